"""One tool call outside its turn: made, checked, or looked after."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, cast

import structlog
from google.adk.agents import BaseAgent
from google.adk.sessions import Session
from google.adk.tools import BaseTool, FunctionTool
from google.adk.tools import ToolContext as AdkToolContext
from google.adk.tools.tool_confirmation import ToolConfirmation

from agent_adapter.approval.decision import ApprovalDecision
from agent_adapter.approval.pause import PausedCall
from agent_adapter.context import Permission, ToolContext
from agent_adapter.errors import AdapterError, ApprovalDenied, ModelError, RunLimitExceeded, ToolArgsInvalid, ToolError
from agent_adapter.integrations.adk.context import bind_context
from agent_adapter.integrations.adk.hosted import asks_by_itself, expiring, hosting
from agent_adapter.integrations.adk.tool import AdapterTool
from agent_adapter.integrations.adk.tool import paused_call as adapter_call
from agentvisor.adk.agents import all_agents, find_agent, find_tool
from agentvisor.adk.here import Here, being
from agentvisor.adk.hosted_runner import HostedRunner, run_config
from agentvisor.adk.hosted_tool import host_tool, own_of, own_outcome, refuse_unfit_state, result_as_json
from agentvisor.adk.plain_tool import checked_arguments, judged, paused_call
from agentvisor.adk.project_rules import ProjectRules
from agentvisor.channel import Refused, Request
from agentvisor.protocol import (
    CallDone,
    CallEnd,
    CallFailed,
    CallNeedsApproval,
    CheckEnd,
    Frame,
    JsonObject,
    ProbeEnd,
    RunCall,
    SessionGiven,
    SessionWanted,
    Spent,
)

_NOT_RUN = (ToolArgsInvalid, ApprovalDenied, RunLimitExceeded)
_NOT_TOLD = {"state_delta", "artifact_delta", "requested_tool_confirmations", "requested_auth_configs"}

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Checked:
    """A call that may be made, or asked about."""

    args: JsonObject
    needs_approval: bool
    pause: PausedCall
    """What a person, and the host, need to know of the call as its tool now is."""
    digest: str = ""


class NotStarted(Exception):
    """The call cannot be made; the tool's body was not entered."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.failed = CallFailed(code=code, message=text)


class OneCall:
    """A call with its tool and the context it runs in."""

    def __init__(self, asked: RunCall, tool: BaseTool, context: AdkToolContext) -> None:
        self.asked = asked
        self.tool = tool
        self.context = context

    @property
    def is_repeatable(self) -> bool:
        if isinstance(self.tool, AdapterTool):
            return self.tool.spec.is_repeatable
        return own_of(self.tool).said.effect == "read"

    @property
    def cost(self) -> float:
        return self.tool.spec.cost if isinstance(self.tool, AdapterTool) else 0.0

    @property
    def is_async(self) -> bool:
        """The call can be stopped. What is neither an adapter tool nor a function runs on the event loop."""
        if isinstance(self.tool, AdapterTool):
            return self.tool.spec.is_async
        function = self.tool.func if isinstance(self.tool, FunctionTool) else None
        return function is None or inspect.iscoroutinefunction(inspect.unwrap(function))

    def bound(self, permission: Permission | None = None) -> ToolContext:
        """The adapter's context of this call."""
        asked = self.asked
        return replace(
            bind_context(self.context),
            call=asked.key,
            idempotency_key=asked.idempotency_key,
            attempt=asked.attempt,
            permission=permission,
        )

    async def check(self) -> Checked:
        """Validate, guard and judge; no effect. Raises ModelError or NotStarted."""
        if isinstance(self.tool, AdapterTool):
            prepared = await self.tool.executor.prepare(self.tool.spec, self.asked.args, self.bound())
            return Checked(
                prepared.arguments,
                prepared.needs_approval,
                adapter_call(prepared, prepared.arguments),
                digest=prepared.digest(self.bound()),
            )
        args, own = checked_arguments(self.tool, self.asked.args), own_of(self.tool)
        try:
            asks = await judged(own.rule, args, self.context)
        except Exception as error:
            log.exception("confirm_rule.failed", tool=self.tool.name)
            text = (
                f"The confirmation rule of {self.tool.name!r} failed, so it was not run. The guest's log has the cause."
            )
            raise NotStarted("confirm-rule-failed", text) from error
        return Checked(args, asks, paused_call(self.tool, args, args, approval=asks, said=own.said))

    async def run(self, checked: Checked) -> Any:
        """Make the call. Raises ModelError, or whatever a plain tool raises."""
        if isinstance(self.tool, AdapterTool):
            approved = ApprovalDecision(approved=True)
            permission = Permission(digest=checked.digest, decision=approved) if self.asked.approved else None
            return await self.tool.executor.run_spec(self.tool.spec, checked.args, self.bound(permission))
        return await own_outcome(own_of(self.tool).run(args=checked.args, tool_context=self.context))


class Calls:
    """Serves calls for any thread."""

    def __init__(self, runner_of: Callable[[str], HostedRunner], rules: ProjectRules) -> None:
        self._runner_of = runner_of
        self._rules = rules

    async def make(self, asked: RunCall, request: Request) -> CallEnd:
        """Make the call, unless it may not be made (any more). Nothing is made twice, and nothing is logged of it."""
        with being(Here(asked.thread_id, asked.principal, asked.run_id)), hosting(expires=self._rules.expires):
            try:
                call = await self._open(asked, request)
                _only_once(call)
                checked = await call.check()
            except NotStarted as refused:
                return CallEnd(outcome=refused.failed)
            except AdapterError as error:
                return CallEnd(outcome=CallFailed(code=error.kind, message=error.message))
            if reason := _why_ask(asked, checked):
                return CallEnd(outcome=_needs_approval(checked, reason))
            if asked.asks_to_begin:
                await request.ask("begin", Frame(), Frame)
            return await _told(call, checked)

    async def check(self, asked: RunCall, request: Request) -> CheckEnd:
        """Validate, guard and judge the arguments."""
        with being(Here(asked.thread_id, asked.principal, asked.run_id)), hosting(expires=self._rules.expires):
            try:
                checked = await (await self._open(asked, request)).check()
            except NotStarted as refused:
                return CheckEnd(code=refused.failed.code, message=refused.failed.message)
            except AdapterError as error:
                return CheckEnd(code=error.kind, message=error.message)
            return CheckEnd(args=checked.args, fingerprint=checked.pause.fingerprint, summary=checked.pause.summary)

    async def probe(self, asked: RunCall, request: Request) -> ProbeEnd:
        """What became of the call, as far as its tool's probe knows.

        A probe returns None (it cannot know), False (no effect), `{"outcome": "done" | "not_done", "result"}`, or the
        call's result. One that raises does not know.
        """
        with being(Here(asked.thread_id, asked.principal, asked.run_id)), hosting(expires=self._rules.expires):
            try:
                call = await self._open(asked, request)
                probe = call.tool.spec.probe if isinstance(call.tool, AdapterTool) else None
                if probe is None:
                    return ProbeEnd(outcome="unknown")
                return _probed(await _asked_probe(probe, call.bound()))
            except NotStarted:
                return ProbeEnd(outcome="unknown")
            except Exception:
                log.exception("probe.failed", tool=asked.tool)
                return ProbeEnd(outcome="unknown")

    async def _open(self, asked: RunCall, request: Request) -> OneCall:
        runner = self._runner_of(asked.agent)
        agent, tool = await _located(runner.agent, asked)
        host_tool(tool, self._rules)
        state: JsonObject = {}
        if _wants_state(tool):
            state = (await request.ask("session", SessionWanted(state_only=True), SessionGiven)).state
        return OneCall(asked, tool, _adk_context(runner, agent, asked, state))


async def _located(root: Any, asked: RunCall) -> tuple[BaseAgent, BaseTool]:
    author = find_agent(root, asked.author) if asked.author else None
    candidates = [author] if author else ([] if asked.author else list(all_agents(root)))
    for agent in candidates:
        if (tool := await find_tool(agent, asked.tool)) is not None:
            return agent, tool
    owner = f"agent {asked.author!r} has no" if author else "the project has no such agent, or no"
    raise NotStarted("tool-not-found", f"Tool {asked.tool!r} was not run: {owner} tool of this name any more.")


def _wants_state(tool: BaseTool) -> bool:
    if isinstance(tool, AdapterTool):
        spec = tool.spec
        guarded = bool(spec.guards or tool.executor.guards)
        return bool(spec.context_parameter) or callable(spec.confirm) or spec.probe is not None or guarded
    if not isinstance(tool, FunctionTool):
        return True
    rule: Any = tool._require_confirmation  # pyright: ignore[reportPrivateUsage]
    parameter: str = tool._context_param_name  # pyright: ignore[reportPrivateUsage]
    return callable(rule) or parameter in inspect.signature(tool.func).parameters


def _adk_context(runner: HostedRunner, agent: BaseAgent, asked: RunCall, state: JsonObject) -> AdkToolContext:
    session = Session(id=asked.thread_id, app_name=runner.app_name, user_id=asked.principal, state=state)
    invocation = runner._new_invocation_context(  # pyright: ignore[reportPrivateUsage]  # ADK's extension point
        session, invocation_id=asked.run_id, run_config=run_config()
    )
    invocation.agent = agent
    invocation.branch = asked.branch
    confirmed = ToolConfirmation(confirmed=True) if asked.approved else None
    return AdkToolContext(invocation, function_call_id=asked.call_id, tool_confirmation=confirmed)


def _only_once(call: OneCall) -> None:
    """Whatever the request's retry policy says: what an earlier attempt did, nobody knows."""
    if call.asked.attempt > 1 and not call.is_repeatable:
        text = f"An earlier attempt of {call.tool.name!r} may have taken effect; a write is attempted once."
        raise Refused("outcome-unknown", text)


def _why_ask(asked: RunCall, checked: Checked) -> str | None:
    if asked.fingerprint != checked.pause.fingerprint:
        return f"The tool {asked.tool!r} changed since the call was made. Look at the call again."
    if checked.needs_approval and not asked.approved:
        return f"The rule of tool {asked.tool!r} now asks for an approval."
    return None


def _needs_approval(checked: Checked, reason: str) -> CallNeedsApproval:
    pause = expiring(checked.pause)
    return CallNeedsApproval(reason=reason, args=checked.args, fingerprint=pause.fingerprint, pause=pause.dump())


async def _told(call: OneCall, checked: Checked) -> CallEnd:
    """What became of the call. From here on nothing may pass for a call that never began: it would be made again."""
    try:
        return await _finished(call, checked)
    except Refused:
        raise
    except Exception as error:
        log.exception("call.not_told", tool=call.tool.name, thread=call.asked.thread_id, run=call.asked.run_id)
        text = f"The tool {call.tool.name!r} ran, but what it left cannot be told: {type(error).__name__}."
        raise Refused("outcome-unknown", text) from error


async def _finished(call: OneCall, checked: Checked) -> CallEnd:
    spent = Spent(tool_calls=1, cost=call.cost)
    try:
        result = await _to_its_end(call, checked)
    except ModelError as error:
        if isinstance(error, ToolError) and error.outcome_unknown:
            raise Refused("outcome-unknown", error.message) from error
        started = not isinstance(error, _NOT_RUN)
        failed = CallFailed(
            code=error.kind, message=str(error.message), started=started, state_delta=_delta(call.context)
        )
        return CallEnd(outcome=failed, spent=spent if started else Spent())
    except AdapterError as error:
        raise Refused(error.kind, error.message) from error
    except Exception as error:
        log.exception("tool.failed", tool=call.tool.name, thread=call.asked.thread_id, run=call.asked.run_id)
        text = f"The tool {call.tool.name!r} failed with {type(error).__name__}. It may have had effects."
        failed = CallFailed(code="tool-error", message=text, started=True, state_delta=_delta(call.context))
        return CallEnd(outcome=failed, spent=spent)
    if asks_by_itself(call.context):
        reason = f"The tool {call.tool.name!r} asks for an approval by itself."
        return CallEnd(outcome=_needs_approval(checked, reason))
    if (refusal := refuse_unfit_state(call.context)) is not None:
        result = refusal
    return CallEnd(outcome=_done(call.context, result), spent=spent)


async def _to_its_end(call: OneCall, checked: Checked) -> Any:
    """A cancelled call of an async tool stops. A sync tool cannot be stopped: its true outcome is waited for."""
    work = asyncio.ensure_future(call.run(checked))
    while not work.done():
        try:
            await asyncio.wait([work])
        except asyncio.CancelledError:
            if call.is_async:
                work.cancel()
                await asyncio.wait([work])
                raise
    return work.result()


def _done(context: AdkToolContext, result: Any) -> CallDone:
    actions = context.actions.model_dump(
        mode="json", by_alias=True, exclude_none=True, exclude_defaults=True, exclude=_NOT_TOLD
    )
    return CallDone(
        result=result_as_json(result),
        state_delta=_delta(context),
        artifact_delta=context.actions.artifact_delta,
        actions=actions,
    )


def _delta(context: AdkToolContext) -> JsonObject:
    """State the call wrote. `temp:` values would stand in the session's events; they end with the call."""
    refuse_unfit_state(context)
    return {key: value for key, value in context.actions.state_delta.items() if not key.startswith("temp:")}


async def _asked_probe(probe: Callable[..., Any], context: ToolContext) -> Any:
    if inspect.iscoroutinefunction(probe):
        return await probe(context)
    answer = await asyncio.to_thread(probe, context)
    return await answer if inspect.isawaitable(answer) else answer


def _probed(answer: Any) -> ProbeEnd:
    if answer is None:
        return ProbeEnd(outcome="unknown")
    if answer is False:
        return ProbeEnd(outcome="not_done")
    told = cast("JsonObject", answer) if isinstance(answer, dict) else {}
    if told.get("outcome") in {"done", "not_done", "unknown"}:
        return ProbeEnd(outcome=told["outcome"], result=result_as_json(told.get("result")))
    return ProbeEnd(outcome="done", result=result_as_json(answer))
