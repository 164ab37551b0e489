"""One leg: the part of a run between two pauses, driven through ADK from the events that are stored."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import structlog
from google.adk.agents import BaseAgent, LlmAgent
from google.adk.events import Event
from google.genai import types

from agent_adapter.integrations.adk.hosted import hosting
from agentvisor.adk.agents import find_agent, find_tool
from agentvisor.adk.events import CONFIRMATION, dump, is_message, of_run, open_calls
from agentvisor.adk.failures import agent_failure, chain, model_failure, stopped_model
from agentvisor.adk.here import Here, being
from agentvisor.adk.hosted_runner import HostedRunner, run_config
from agentvisor.adk.json_values import flaw
from agentvisor.adk.message import HandedRefused, answer_messages, user_message
from agentvisor.adk.project_rules import ProjectRules
from agentvisor.adk.running_leg import Outcome, RunningLeg, running
from agentvisor.adk.sessions import LiveSession, LiveSessions, StateRefused
from agentvisor.adk.telling import Telling
from agentvisor.channel import Request
from agentvisor.protocol import (
    Base,
    EventNote,
    JsonObject,
    LegAnswered,
    LegEnd,
    LegFailed,
    LegInput,
    LegPaused,
    RunLeg,
    SessionGiven,
    SessionWanted,
)

TEMP_BYTES = 16 * 1024
_ADK_TEMP = ("temp:adk_", "temp:_adk_")

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class Leg:
    """One attempt to run a leg."""

    def __init__(
        self, asked: RunLeg, request: Request, *, runner: HostedRunner, sessions: LiveSessions, rules: ProjectRules
    ) -> None:
        self._asked = asked
        self._rules = rules
        self._request = request
        self._runner = runner
        self._sessions = sessions
        self._control = RunningLeg(asked.limits)
        self._telling = Telling(lambda event: request.note(EventNote(event=dump(event), spent=self._control.spent)))
        self._here = Here(asked.thread_id, asked.principal, asked.run_id)

    def yield_soon(self) -> None:
        """Stop before the next model turn, if something was stored by then."""
        self._control.yield_wanted = True

    async def run(self) -> LegEnd:
        """Run to the end of the leg. Every end is a value; only cancellation and a lost host come out as exceptions."""
        live, given = await self._session()
        done = live.extend(self._asked.progress)
        live.put_temp(self._asked.temp)
        live.on_event = self._telling.stored
        self._sessions.begin(live)
        try:
            with being(self._here), running(self._control), hosting(expires=self._rules.expires):
                outcome = await self._outcome(live, given, done)
            return self._end(live, outcome)
        finally:
            self._sessions.end(live)

    # ---- the session -----------------------------------------------------------------------------------------------

    async def _session(self) -> tuple[LiveSession, LegInput]:
        asked = self._asked
        live = self._sessions.take(app=self._runner.app_name, principal=asked.principal, thread_id=asked.thread_id)
        given = asked.given
        if live is None and given is not None and asked.state is not None and asked.base == Base():
            return self._begun(asked.state), given
        if live is None or live.position != asked.base or given is None:
            live, given = await self._loaded(live)
        return live, given or LegInput()

    async def _loaded(self, live: LiveSession | None) -> tuple[LiveSession, LegInput | None]:
        since = live.position if live else Base()
        got = await self._request.ask("session", SessionWanted(since=since), SessionGiven)
        if live is None or got.base != since:
            live = self._begun(got.state)
        live.extend(got.events)
        return live, got.given if got.given is not None else self._asked.given

    def _begun(self, state: JsonObject) -> LiveSession:
        """The session at its beginning."""
        asked = self._asked
        return LiveSession(app=self._runner.app_name, principal=asked.principal, thread_id=asked.thread_id, state=state)

    # ---- driving ADK -----------------------------------------------------------------------------------------------

    async def _outcome(self, live: LiveSession, given: LegInput, done: Sequence[Event]) -> Outcome:
        try:
            messages = await self._messages(live, given, done)
        except HandedRefused as refused:
            return LegFailed(code=refused.code, message=refused.text)
        work = asyncio.ensure_future(self._drive(live, messages, given.state_delta if not _has_input(done) else {}))
        try:
            await asyncio.wait([work, self._control.stopped], return_when=asyncio.FIRST_COMPLETED)
        finally:
            work.cancel()
            await asyncio.wait([work])
        if self._control.stopped.done():
            return self._control.stopped.result()
        if error := work.exception():
            return self._failure(error)
        return self._ending(live)

    async def _messages(self, live: LiveSession, given: LegInput, done: Sequence[Event]) -> list[types.Content]:
        run = of_run(live.session.events, self._asked.run_id)
        if given.answers:
            waiting = open_calls(run)
            stored = {
                response.id for event in run if event.author == "user" for response in event.get_function_responses()
            }
            await self._refuse_orphans(given, waiting)
            return answer_messages(given.answers, waiting, stored)
        if given.message is not None and not any(is_message(event) for event in done):
            return [user_message(given.message)]
        return []

    async def _refuse_orphans(self, given: LegInput, waiting: Any) -> None:
        """ADK swallows an answer whose agent is gone, and calls the model as if nothing had been asked."""
        for answer in given.answers:
            call = waiting.get(answer.request_id)
            if call is None:
                continue
            agent = find_agent(self._runner.agent, call.author)
            if agent is None and not isinstance(self._runner.agent, BaseAgent):
                continue  # a workflow may make its nodes as it runs
            if agent is None:
                text = f"The agent {call.author!r} that waits is no longer in the project. Start a new run."
                raise HandedRefused("agent-not-found", text)
            if call.name == CONFIRMATION and await find_tool(agent, call.tool) is None:
                text = f"The tool {call.tool!r} of agent {call.author!r} is no longer in the project. Start a new run."
                raise HandedRefused("tool-not-found", text)

    async def _drive(self, live: LiveSession, messages: list[types.Content], state_delta: JsonObject) -> None:
        """Give ADK each message it has not stored; if it has them all, let it go on where it stopped."""
        run_id = self._asked.run_id
        for index, message in enumerate(messages):
            self._control.may_yield = index == len(messages) - 1
            # An LlmAgent root takes its invocation id as an argument; other roots refuse that on an empty session.
            named = {"invocation_id": run_id} if isinstance(self._runner.agent, LlmAgent) else {}
            await self._exhaust(live, new_message=message, state_delta=state_delta or None, **named)
            state_delta = {}
        run = of_run(live.session.events, run_id)
        if not messages and not open_calls(run) and not _has_ended(self._runner.agent, run):
            self._control.may_yield = True
            await self._exhaust(live, invocation_id=run_id, state_delta=state_delta or None)

    async def _exhaust(self, live: LiveSession, **what: Any) -> None:
        session = live.session
        async for _ in self._runner.run_async(
            user_id=session.user_id, session_id=session.id, run_config=run_config(), **what
        ):
            pass

    # ---- how it ended ----------------------------------------------------------------------------------------------

    def _failure(self, error: BaseException) -> LegFailed:
        here = {"thread": self._asked.thread_id, "run": self._asked.run_id}
        for cause in chain(error):
            if cause is self._control.model_error:
                failed = model_failure(cause)
                self._control.uncount_model()
                log.error("leg.failed", **here, reason=failed.message)  # its traceback is ADK's alone
                return failed
        log.error("leg.failed", **here, exc_info=error)
        for cause in chain(error):
            if isinstance(cause, StateRefused):
                return LegFailed(code="state-not-json", message=str(cause))
        return agent_failure(error)

    def _ending(self, live: LiveSession) -> Outcome:
        if self._telling.credential_asked:
            text = (
                "A tool asked for a credential, which would end in the thread's history. "
                "Let the proxy add it: name the host and the secret under proxy.credentials."
            )
            return LegFailed(code="credential-request-unsupported", message=text)
        if errors := self._telling.errors:
            last = errors[-1]
            return stopped_model(str(last.error_code), last.error_message, last.author)
        run = of_run(live.session.events, self._asked.run_id)
        if open_calls(run):
            return LegPaused()
        if not any(event.author != "user" for event in run):
            text = "The agent ended without an answer. Check its callbacks and its model's responses."
            return LegFailed(code="no-answer", message=text)
        return LegAnswered()

    def _end(self, live: LiveSession, outcome: Outcome) -> LegEnd:
        temp = live.take_temp()
        if isinstance(outcome, LegFailed):
            return LegEnd(outcome=outcome, spent=self._control.spent)  # the session here has events nobody was told of
        kept = _kept_temp(temp) if not isinstance(outcome, LegAnswered) else {}
        if len(json.dumps(kept, ensure_ascii=False).encode()) > TEMP_BYTES:
            return LegEnd(outcome=_temp_too_large(kept), spent=self._control.spent)
        self._telling.end_well()
        if self._telling.in_order:
            self._sessions.keep(live)
        return LegEnd(outcome=outcome, temp=kept, spent=self._control.spent)


def _has_input(done: Sequence[Event]) -> bool:
    """The leg's input, and with it the state it brings, is stored."""
    return any(event.author == "user" for event in done)


def _has_ended(root: Any, run: Sequence[Event]) -> bool:
    """The run has its answer. ADK would ask the model of an LlmAgent root once more."""
    last = run[-1] if run else None
    if last is None or last.author == "user":
        return False
    if not isinstance(root, LlmAgent):
        return last.author == root.name and bool(last.actions.end_of_agent)
    author = find_agent(root, last.author)
    speaks_to_user = isinstance(author, LlmAgent) and author.mode in {None, "chat"}
    return speaks_to_user and (bool(last.actions.end_of_agent) or last.is_final_response())


def _kept_temp(temp: JsonObject) -> JsonObject:
    kept: JsonObject = {}
    for key, value in temp.items():
        if key.startswith(_ADK_TEMP):
            continue
        if reason := flaw(value):
            log.warning("temp_state.lost", key=key, reason=reason)
            continue
        kept[key] = value
    return kept


def _temp_too_large(kept: JsonObject) -> LegFailed:
    text = (
        f"The temp: state of the run has more than {TEMP_BYTES} bytes ({', '.join(sorted(kept)[:10])}). "
        "Keep big values as artifacts or in the session state."
    )
    return LegFailed(code="temp-state-too-large", message=text)
