"""ThreadWorkflow: one conversation. Its runs go on one after the other; each alternates between legs and pauses.

run():      take the next run, or continue as new, or end
_advance(): a leg, or the calls of a paused turn, or the end of a run that is being ended
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from temporalio import workflow
from temporalio.common import RetryPolicy, SearchAttributeKey
from temporalio.exceptions import ActivityError, ApplicationError
from temporalio.exceptions import TimeoutError as ActivityTimeout

with workflow.unsafe.imports_passed_through():
    from workflows import display, door, views
    from workflows.approvals import Refused
    from workflows.messages import (
        Answered,
        Done,
        Failed,
        Grant,
        HandedOver,
        LegResult,
        NeedsApproval,
        NotStarted,
        Probed,
        ProbeTool,
        RunAgent,
        RunError,
        RunTool,
        StartThread,
        Stopped,
        ToolFailed,
        ToolResult,
    )
    from workflows.ports import AgentActivities, ToolActivities
    from workflows.run_state import Call, CurrentRun, Ending
    from workflows.thread_handlers import ThreadHandlers
    from workflows.thread_state import ThreadState

PENDING_TOOLS = SearchAttributeKey.for_keyword_list("PendingTools")
WAITING_SINCE = SearchAttributeKey.for_datetime("WaitingSince")

_START = '{"agent": "shop-helper", "principal": "ana"}'
_NOT_STARTED_TRIES = 5
_DEFAULT_RETRIES = 2
_PROBE_TIME = timedelta(seconds=60)

T = TypeVar("T")


@workflow.defn(name="ThreadWorkflow")
class ThreadWorkflow(ThreadHandlers):
    """One thread. Input: StartThread."""

    @workflow.init
    def __init__(self, start: Any = None, *surplus: Any) -> None:
        self._state: ThreadState | None = None
        self._renew_wanted = False
        self._cannot_renew = False
        self._ended_here = 0
        self._advancing: asyncio.Task[None] | None = None
        self._leg: workflow.ActivityHandle[LegResult] | None = None
        self._calls: list[workflow.ActivityHandle[Any]] = []
        self._refused: Refused | None = None
        try:
            self._state = ThreadState.begin(
                door.parsed(StartThread, start, surplus=surplus, example=_START),
            )
        except Refused as refused:
            self._refused = refused

    @workflow.run
    async def run(self, start: Any = None, *surplus: Any) -> None:
        if self._refused is not None:
            raise ApplicationError(str(self._refused), type=self._refused.kind, non_retryable=True)
        self._show_waiting()
        try:
            await self._work()
        except asyncio.CancelledError:
            self._close(by="a Temporal cancel request")
            await self._work()
            raise

    async def _work(self) -> None:
        """Until the thread is closed and nothing runs."""
        while True:
            if self._advancing is not None:
                await workflow.wait_condition(self._advancing.done)
                done, self._advancing = self._advancing, None
                done.result()
            if self._thread.current is None and self._thread.closed_by is not None:
                await workflow.wait_condition(workflow.all_handlers_finished)
                return
            if self._renew_due():
                await self._renew()
            elif run := self._thread.current or self._thread.begin_next(at=workflow.time()):
                self._advancing = asyncio.create_task(self._advance(run))
            else:
                await workflow.wait_condition(self._has_work)

    def _has_work(self) -> bool:
        return bool(self._thread.queue) or self._thread.closed_by is not None or self._renew_due()

    # ---- continue-as-new
    def _renew_due(self) -> bool:
        if self._cannot_renew:
            return False
        enough = self._ended_here >= self._thread.options.runs_per_execution
        return self._renew_wanted or enough or workflow.info().is_continue_as_new_suggested()

    def _may_leave(self) -> bool:
        """Continue-as-new is due and nothing is at work: waiting for a person counts as idle."""
        return self._renew_due() and not self._calls and workflow.all_handlers_finished()

    async def _renew(self) -> None:
        await workflow.wait_condition(workflow.all_handlers_finished)
        carried = self._thread.carried()
        if carried is not None:
            workflow.continue_as_new(carried)
        self._cannot_renew = True

    # ---- a run
    async def _advance(self, run: CurrentRun) -> None:
        """One step of a run."""
        clock = asyncio.create_task(self._limit_time(run)) if self._thread.options.limits.seconds else None
        if run.ending is not None:
            self._end_early(run, run.ending)
        elif run.open_calls():
            await self._settle(run)
        else:
            await self._one_leg(run)
        if clock is not None:
            clock.cancel()

    async def _limit_time(self, run: CurrentRun) -> None:
        limit = self._thread.options.limits.seconds or 0.0
        left = run.started_at + limit - workflow.time()
        await workflow.sleep(timedelta(seconds=max(0.001, left)), summary="time limit of the run")
        text = f"The run took longer than its limit of {limit:g} s."
        run.ending = run.ending or Ending(status="timeout", error=RunError(code="run-limit-exceeded", message=text))
        self._stop_activities()

    def _end_early(self, run: CurrentRun, ending: Ending) -> None:
        by = self._thread.closed_by or ending.error.message
        self._thread.settle_unfinished(event_id=str(workflow.uuid4()), at=workflow.time(), by=by)
        self._end(ending.status, ending.error)

    def _end(self, status: Any, error: RunError | None = None) -> None:
        run = self._thread.current
        self._thread.end_run(status, error, at=workflow.time())
        self._ended_here += 1
        if run is not None and run.shown_waiting:
            self._stop_showing(run)

    # ---- a leg
    async def _one_leg(self, run: CurrentRun) -> None:
        thread = self._thread
        thread.hand_answers()
        if run.shown_waiting:
            self._stop_showing(run)
        message = run.handed.message
        result = await self._leg_result(run)
        thread.apply_leg(result, at=workflow.time())
        outcome = result.outcome
        if isinstance(outcome, Answered):
            self._end("success")
        elif isinstance(outcome, Failed):
            thread.keep_message(run, message, event_id=str(workflow.uuid4()), at=workflow.time())
            if run.ending is None:
                self._end("error", RunError(code=outcome.code, message=outcome.message))
        elif isinstance(outcome, HandedOver | Stopped):
            pass  # the next step goes on from here, or ends the run
        elif not run.calls:
            self._end("error", RunError(code="pause-without-calls", message="The agent paused, but no call waits."))

    async def _leg_result(self, run: CurrentRun) -> LegResult:
        thread, options = self._thread, self._thread.options
        small = door.json_bytes(run.handed.model_dump(mode="json")) <= options.inline_bytes
        self._leg = workflow.start_activity_method(
            AgentActivities.run_agent,
            RunAgent(
                thread_id=self._thread_id,
                agent=thread.agent,
                principal=thread.principal,
                run_id=run.run_id,
                base=thread.log.end,
                handed=run.handed if small else None,
                temp=run.temp,
                limits=run.left(options.limits),
                attempts=options.leg_attempts,
            ),
            start_to_close_timeout=timedelta(seconds=options.leg_timeout),
            heartbeat_timeout=timedelta(seconds=options.heartbeat_timeout),
            retry_policy=RetryPolicy(
                initial_interval=timedelta(milliseconds=200),
                maximum_interval=timedelta(seconds=10),
                maximum_attempts=options.leg_attempts,
            ),
            cancellation_type=workflow.ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
        )
        try:
            return await self._leg
        except ActivityError as error:
            return _lost_leg(error, run)
        finally:
            self._leg = None

    # ---- the calls of a paused turn
    async def _settle(self, run: CurrentRun) -> None:
        """Until every call has its response, or the run is being ended, or it is time to continue as new."""
        self._show_waiting()
        self._start_showing(run)
        await asyncio.gather(*(self._settle_call(run, call) for call in run.open_calls()))

    async def _settle_call(self, run: CurrentRun, call: Call) -> None:
        while call.response is None and run.ending is None and not self._may_leave():
            if call.status == "ready":
                await self._make(run, call)
                self._show_waiting()
                self._start_showing(run)
            else:
                await self._wait_outside(run, call)

    async def _wait_outside(self, run: CurrentRun, call: Call) -> None:
        approval = self._thread.ledger.open.get(call.approval_id or "")
        deadline = approval.deadline if approval is not None and call.interrupt is None else None
        if approval is not None and approval.status == "deciding":
            await workflow.wait_condition(lambda: approval.status != "deciding" or run.ending is not None)
            return
        try:
            await workflow.wait_condition(
                lambda: (
                    call.response is not None
                    or call.status == "ready"
                    or run.ending is not None
                    or self._may_leave()
                    or (deadline is not None and approval is not None and approval.status == "deciding")
                ),
                timeout=None if deadline is None else timedelta(seconds=max(0.001, deadline - workflow.time())),
                timeout_summary=None if approval is None else display.approval_summary(call.tool, approval.id),
            )
        except TimeoutError:
            self._expire(call)

    def _expire(self, call: Call) -> None:
        if call.approval_id and self._thread.ledger.expire(call.approval_id):
            call.settle_refused(code="approval-expired", message="Nobody decided in time.", outcome="expired")
            self._show_waiting()

    async def _make(self, run: CurrentRun, call: Call) -> None:
        """Make one call, under its token where it has one."""
        limit = self._thread.options.limits.tool_calls
        if limit is not None and run.usage.tool_calls >= limit:
            call.settle_failed(ToolFailed(code="run-limit-exceeded", message=f"The run may make {limit} tool calls."))
            self._close_approval(call)
            return
        call.attempts += 1
        call.status, call.outcome = "running", "running"
        try:
            result = await self._while_at_work(self._start_call(run, call))
        except ActivityError as error:
            if run.ending is None:
                await self._without_outcome(run, call, error)
        else:
            await self._take_outcome(run, call, result)

    def _start_call(self, run: CurrentRun, call: Call) -> workflow.ActivityHandle[ToolResult]:
        thread, options = self._thread, self._thread.options
        activity_id = f"call-{call.key}.{call.attempts}"
        digest = call.digest(thread_id=self._thread_id, run_id=run.run_id)
        grant = None
        if call.approval_id:
            token = thread.ledger.spend(call.approval_id, digest=digest, activity_id=activity_id)
            grant = Grant(token=token, approval_id=call.approval_id, digest=digest)
        repeatable = call.pause.idempotent or call.pause.effect == "read"
        retries = _DEFAULT_RETRIES if call.pause.retries is None else call.pause.retries
        return workflow.start_activity_method(
            ToolActivities.run_tool,
            RunTool(
                thread_id=self._thread_id,
                agent=thread.agent,
                principal=thread.principal,
                run_id=run.run_id,
                call=call.tool_call(),
                digest=digest,
                grant=grant,
            ),
            activity_id=activity_id,
            start_to_close_timeout=timedelta(seconds=call.pause.timeout or options.tool_timeout),
            heartbeat_timeout=timedelta(seconds=options.heartbeat_timeout),
            retry_policy=RetryPolicy(maximum_attempts=1 + retries if repeatable else 1),
            cancellation_type=workflow.ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
            summary=display.call_summary(call.tool, call.pause.summary),
        )

    async def _take_outcome(self, run: CurrentRun, call: Call, result: ToolResult) -> None:
        run.usage = run.usage.plus(result.usage)
        outcome = result.outcome
        if isinstance(outcome, Done):
            call.settle_done(outcome)
        elif isinstance(outcome, ToolFailed):
            call.settle_failed(outcome)
        elif isinstance(outcome, NeedsApproval):
            self._ask_again(run, call, outcome)
        else:
            await self._not_started(call, outcome)
        if call.response is not None:
            self._close_approval(call)

    def _ask_again(self, run: CurrentRun, call: Call, changed: NeedsApproval) -> None:
        if call.approval_id:
            self._thread.ledger.supersede(call.approval_id)
        pause = {"fingerprint": changed.fingerprint, "approval": True}
        call.args, call.pause = changed.args, call.pause.model_copy(update=pause)
        if run.ending is None:
            self._thread.ask(run, call, at=workflow.time())

    async def _not_started(self, call: Call, outcome: NotStarted) -> None:
        call.not_started += 1
        call.status = "ready"
        if call.approval_id:
            self._thread.ledger.unspend(call.approval_id)
        if call.not_started >= _NOT_STARTED_TRIES:
            text = f"The tool could not be started in {_NOT_STARTED_TRIES} tries: {outcome.message}"
            call.settle_failed(ToolFailed(code="tool-not-started", message=text))
            return
        await self._while_at_work(asyncio.create_task(workflow.sleep(timedelta(seconds=2**call.not_started))))

    async def _without_outcome(self, run: CurrentRun, call: Call, error: ActivityError) -> None:
        """The activity ended without a value: nobody knows whether the tool took effect."""
        if call.pause.effect == "read":
            call.settle_failed(ToolFailed(code="tool-error", message=f"The tool {call.tool!r} did not finish."))
            self._close_approval(call)
            return
        if call.pause.probe and await self._probed(run, call):
            self._close_approval(call)
            return
        self._thread.interrupt(run, call, "unknown_outcome", at=workflow.time(), detail=_why(error))

    async def _probed(self, run: CurrentRun, call: Call) -> bool:
        """Ask the tool's probe; True where it knew."""
        thread = self._thread
        request = ProbeTool(
            thread_id=self._thread_id,
            agent=thread.agent,
            principal=thread.principal,
            run_id=run.run_id,
            call=call.tool_call(),
        )
        handle = workflow.start_activity_method(
            ToolActivities.probe_tool,
            request,
            start_to_close_timeout=_PROBE_TIME,
            retry_policy=RetryPolicy(maximum_attempts=3),
            summary=f"what became of {call.tool[:64]}",
        )
        try:
            probed = await self._while_at_work(handle)
        except ActivityError:
            return False
        return _settle_probed(call, probed)

    def _close_approval(self, call: Call) -> None:
        if call.approval_id:
            self._thread.ledger.close(call.approval_id)

    # ---- what is at work
    async def _while_at_work(self, work: asyncio.Task[T]) -> T:
        self._calls.append(work)  # pyright: ignore[reportArgumentType]  # an ActivityHandle is a Task
        try:
            return await work
        finally:
            self._calls.remove(work)  # pyright: ignore[reportArgumentType]

    @property
    def _leg_runs(self) -> bool:
        return self._leg is not None

    def _stop_activities(self) -> None:
        for work in [*([self._leg] if self._leg is not None else []), *self._calls]:
            work.cancel()

    def _close(self, *, by: str) -> None:
        self._thread.close(by=by, at=workflow.time())
        self._stop_activities()

    # ---- what operators see
    def _start_showing(self, run: CurrentRun) -> None:
        waiting = views.interrupts(self._thread, thread_id=self._thread_id)
        if not waiting or run.shown_waiting:
            return
        run.shown_waiting = True
        updates: list[Any] = []
        if PENDING_TOOLS.name in run.attributes:
            updates.append(PENDING_TOOLS.value_set(display.pending_tools(waiting)))
        if WAITING_SINCE.name in run.attributes:
            updates.append(WAITING_SINCE.value_set(datetime.fromtimestamp(workflow.time(), UTC)))
        if updates:
            workflow.upsert_search_attributes(updates)

    def _stop_showing(self, run: CurrentRun) -> None:
        run.shown_waiting = False
        workflow.set_current_details("")
        keys = (PENDING_TOOLS, WAITING_SINCE)
        updates: list[Any] = [key.value_unset() for key in keys if key.name in run.attributes]
        if updates:
            workflow.upsert_search_attributes(updates)


def _settle_probed(call: Call, probed: Probed) -> bool:
    if probed.outcome == "done":
        call.settle_done(Done(result=probed.result), by="the tool's probe")
    elif probed.outcome == "not_done":
        call.settle_failed(ToolFailed(code="tool-error", message="The call had no effect (the tool's probe says)."))
    return call.response is not None


def _lost_leg(error: ActivityError, run: CurrentRun) -> LegResult:
    """Every attempt died without a value; the last heartbeat still says how far it came."""
    cause = error.cause
    details = cause.last_heartbeat_details if isinstance(cause, ActivityTimeout) else ()
    events = tuple(event for event in details if isinstance(event, dict) and "id" in event)
    if run.ending is not None:
        return LegResult(outcome=Stopped(), events=events)
    text = f"The agent could not be run to an end: {_why(error)} Send the message again."
    return LegResult(outcome=Failed(code="leg-lost", message=text), events=events)


def _why(error: ActivityError) -> str:
    cause = error.cause
    if isinstance(cause, ActivityTimeout):
        kind = cause.type.name.lower().replace("_", " ") if cause.type else "unknown"
        return f"its attempt timed out ({kind})."
    text = cause.message if isinstance(cause, ApplicationError) else type(cause).__name__
    return f"{text[:500]}"
