"""The port to tools: single calls, made, checked and looked after in guests of their own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import TypeVar

import structlog
from pydantic import BaseModel
from temporalio import activity
from temporalio.client import Client
from temporalio.exceptions import ApplicationError

from activities.caller import calling_thread
from activities.grants import Grants, UncheckedError
from activities.payload import MAX_INLINE, MAX_STORED, NotStorableError, check_value, plain, stored_bytes
from activities.questions import AskedThreads, Questions
from activities.spending import OUTCOME_UNKNOWN, Spending
from activities.thread_session import STORE_UNAVAILABLE, THREAD_UNREACHABLE, ThreadSession
from agent_adapter.approval.digest import digest
from agentvisor.channel import Gone, Refused
from agentvisor.host.guest import NoGuestError
from agentvisor.host.guests import GuestProcesses
from agentvisor.host.scheduled_calls import ScheduledCalls
from agentvisor.host.store import SpentCalls
from agentvisor.host.stored_events import StoredEvents
from agentvisor.protocol import (
    CallDone,
    CallEnd,
    CallFailed,
    CheckEnd,
    ProbeEnd,
    RunCall,
)
from workflows.cuts import Place
from workflows.messages import (
    CheckArgs,
    CheckedArgs,
    Done,
    NeedsApproval,
    NotStarted,
    Probed,
    ProbeTool,
    RunTool,
    ToolFailed,
    ToolOutcome,
    ToolResult,
    Usage,
    as_object,
)
from workflows.ports import ToolActivities

FIRST_BEAT, BEAT = 0.4, 1.0
_PATIENCE = 30.0
"""Seconds a call that is cancelled gets to end truthfully."""
_BEFORE_THE_TOOL = frozenset(
    {"project-not-loaded", "agent-not-found", "unknown-operation", "bad-request", THREAD_UNREACHABLE, STORE_UNAVAILABLE}
)
_CANCELLED = "The call was cancelled before it began."
_NOT_STORED = frozenset({"not-json", "too-large", "bad-answer"})

Answer = TypeVar("Answer", bound=BaseModel)
log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class GuestToolActivities(ToolActivities):
    """Makes single calls in the tool guests of their agent's project. `projects`: by agent name."""

    def __init__(
        self,
        client: Client,
        projects: Mapping[str, GuestProcesses],
        *,
        task_queue: str,
        spent_calls: SpentCalls,
        stored: StoredEvents,
        scheduled: ScheduledCalls,
    ) -> None:
        self._projects = projects
        self._spent_calls = spent_calls
        self._stored = stored
        self._scheduled = scheduled
        self._threads = AskedThreads(client, task_queue=task_queue)

    @activity.defn
    async def run_tool(self, request: RunTool) -> ToolResult:
        thread = self._threads.questions(calling_thread())
        async with _heartbeats():
            try:
                await thread.leave_lost_worker()
                await Grants(thread, self._scheduled).check(request)
                guests = await self._ready_guests(request, thread)
            except asyncio.CancelledError:
                return _not_started(_CANCELLED)
            except (NoGuestError, UncheckedError) as problem:
                return _not_started(str(problem))
            spending = Spending(self._spent_calls, thread.thread_id, request)
            result = await self._made(request, guests, thread, spending)
            if not spending.may_have_begun or isinstance(result.outcome, NotStarted | NeedsApproval):
                await spending.give_back()
        return result

    @activity.defn
    async def check_args(self, request: CheckArgs) -> CheckedArgs:
        end = await self._asked_about("check", request, CheckEnd)
        return CheckedArgs(
            args=end.args, fingerprint=end.fingerprint, summary=end.summary, code=end.code, message=end.message
        )

    @activity.defn
    async def probe_tool(self, request: ProbeTool) -> Probed:
        end = await self._asked_about("probe", request, ProbeEnd)
        return Probed(outcome=end.outcome, result=end.result)

    # ---- making a call ---------------------------------------------------------------------------------------------

    async def _made(
        self, request: RunTool, guests: GuestProcesses, thread: Questions, spending: Spending
    ) -> ToolResult:
        session = ThreadSession(thread, self._stored)
        try:
            end = await guests.ask(
                "tools",
                "call",
                _call(request, thread, approved=request.grant is not None, asks_to_begin=spending.is_needed),
                CallEnd,
                thread_id=thread.thread_id,
                serve={"session": session.serve, "begin": spending.serve},
                patience=_PATIENCE,
            )
        except NoGuestError as problem:
            return _not_started(str(problem))
        except (asyncio.CancelledError, Gone, Refused) as problem:
            if not spending.may_have_begun:
                return _never_begun(problem, spending)
            if isinstance(problem, Refused):
                return _without_value(problem)
            if isinstance(problem, Gone):
                raise ApplicationError("The process of the tool ended during the call.", type="guest-lost") from problem
            raise
        if isinstance(end.outcome, CallDone) and not spending.may_have_begun:
            raise ApplicationError("The process of the tool made the call without asking.", type=OUTCOME_UNKNOWN)
        log.info(
            "tool.ended", thread=thread.thread_id, run=request.run_id, call=request.call.key, tool=request.call.tool
        )
        outcome = await self._slim(_outcome(end), session)
        return _storable(ToolResult(outcome=outcome, usage=Usage.model_validate(end.spent.model_dump())))

    async def _slim(self, outcome: ToolOutcome, session: ThreadSession) -> ToolOutcome:
        """A large result goes to the Store. Where that cannot have it, it stays, as far as history can take it."""
        if not isinstance(outcome, Done):
            return outcome
        result = outcome.result
        shown = as_object(result) if isinstance(result, dict) else {"result": result}  # as ADK does
        try:
            if not MAX_INLINE < stored_bytes(shown) <= MAX_STORED:
                return outcome
            (ref,) = (await session.keep({Place(0, "result"): shown})).values()
        except (NotStorableError, Refused) as problem:
            log.warning("result.not-kept", thread=session.thread_id, reason=type(problem).__name__)
            return outcome
        return outcome.model_copy(update={"result": None, "blob": ref})

    async def _ready_guests(self, request: RunTool | CheckArgs | ProbeTool, thread: Questions) -> GuestProcesses:
        guests = self._projects.get(request.agent)
        if guests is None:
            has = ", ".join(sorted(self._projects)) or "none"
            text = f"This worker has no agent {request.agent!r}; it has: {has}. Start a worker with that project."
            raise NoGuestError("unknown-agent", text)
        await guests.ready("tools", thread_id=thread.thread_id)
        return guests

    # ---- asking about one ------------------------------------------------------------------------------------------

    async def _asked_about(self, op: str, request: CheckArgs | ProbeTool, result: type[Answer]) -> Answer:
        thread = self._threads.questions(calling_thread())
        try:
            guests = await self._ready_guests(request, thread)
            answer = await guests.ask(
                "tools",
                op,
                _call(request, thread),
                result,
                thread_id=thread.thread_id,
                serve={"session": ThreadSession(thread, self._stored).serve},
            )
            check_value(answer)
        except (NoGuestError, Refused) as problem:
            raise ApplicationError(plain(str(problem)), type=plain(problem.kind)) from problem
        except Gone as gone:
            raise ApplicationError("The process of the tool ended meanwhile.", type="guest-lost") from gone
        except NotStorableError as problem:
            raise ApplicationError(f"The answer cannot be stored: {problem}.", type="result-not-stored") from problem
        return answer


def _call(
    request: RunTool | CheckArgs | ProbeTool, thread: Questions, *, approved: bool = False, asks_to_begin: bool = False
) -> RunCall:
    call = request.call
    return RunCall(
        thread_id=thread.thread_id,
        principal=request.principal,
        agent=request.agent,
        run_id=request.run_id,
        key=call.key,
        call_id=call.call_id,
        tool=call.tool,
        args=call.args,
        fingerprint=call.fingerprint,
        idempotency_key=digest([thread.thread_id, request.run_id, call.key]),
        approved=approved,
        author=call.author,
        branch=call.branch,
        attempt=activity.info().attempt,
        asks_to_begin=asks_to_begin,
    )


def _outcome(end: CallEnd) -> ToolOutcome:
    outcome = end.outcome
    if isinstance(outcome, CallDone):
        return Done(
            result=outcome.result,
            state_delta=outcome.state_delta,
            artifact_delta=outcome.artifact_delta,
            actions=outcome.actions,
        )
    if isinstance(outcome, CallFailed):
        return ToolFailed(code=plain(outcome.code), message=plain(outcome.message), state_delta=outcome.state_delta)
    return NeedsApproval(
        reason=plain(outcome.reason), args=outcome.args, fingerprint=outcome.fingerprint, pause=outcome.pause
    )


def _storable(result: ToolResult) -> ToolResult:
    try:
        check_value(result)
    except NotStorableError as problem:
        text = f"The tool ran, but its result cannot be stored: {problem}. Let it return less, a link for instance."
        raise ApplicationError(text, type="result-not-stored", non_retryable=True) from problem
    return result


def _never_begun(problem: BaseException, spending: Spending) -> ToolResult:
    """The guest was not told to begin: the call was refused, or its guest was lost or stopped before that."""
    why = spending.refused()
    if isinstance(why, ApplicationError):
        raise why
    if isinstance(problem, asyncio.CancelledError):
        return _not_started(_CANCELLED)
    if isinstance(problem, Gone):
        return _not_started("The process of the tool ended before the call began.")
    return _not_started(str(why or problem))


def _without_value(refused: Refused) -> ToolResult:
    """A call that certainly never reached the tool may be made again; of any other nobody knows the outcome."""
    if refused.kind in _BEFORE_THE_TOOL:
        return _not_started(refused.text)
    if refused.kind in _NOT_STORED:
        text = f"The tool ran, but its result cannot be stored: {refused.text}"
        raise ApplicationError(plain(text), type="result-not-stored", non_retryable=True)
    raise ApplicationError(plain(refused.text), type=plain(refused.kind))


def _not_started(text: str) -> ToolResult:
    return ToolResult(outcome=NotStarted(message=plain(text)))


@asynccontextmanager
async def _heartbeats() -> AsyncGenerator[None]:
    """Signs of life while it lasts: without them Temporal neither tells of a cancellation nor notices a dead worker."""

    async def beat() -> None:
        await asyncio.sleep(FIRST_BEAT)
        while True:
            activity.heartbeat()
            await asyncio.sleep(BEAT)

    task = asyncio.create_task(beat())
    try:
        yield
    finally:
        task.cancel()
