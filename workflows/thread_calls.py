"""The calls of a paused turn: waited for, made, expired, looked after; and what operators see meanwhile."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from temporalio import workflow
from temporalio.common import RetryPolicy, SearchAttributeKey
from temporalio.exceptions import ActivityError, ApplicationError
from temporalio.exceptions import TimeoutError as ActivityTimeout

with workflow.unsafe.imports_passed_through():
    from workflows import display, views
    from workflows.events import paused_call
    from workflows.messages import (
        Done,
        Grant,
        NeedsApproval,
        NotStarted,
        Once,
        Probed,
        ProbeTool,
        RunTool,
        ToolFailed,
        ToolResult,
        Usage,
    )
    from workflows.ports import ToolActivities
    from workflows.run_state import Call, CurrentRun
    from workflows.thread_handlers import ThreadHandlers

PENDING_TOOLS = SearchAttributeKey.for_keyword_list("PendingTools")
WAITING_SINCE = SearchAttributeKey.for_datetime("WaitingSince")

_NOT_STARTED_TRIES = 5
_DEFAULT_RETRIES = 2
_PROBE_TIME = timedelta(seconds=60)

T = TypeVar("T")


class ThreadCalls(ThreadHandlers):
    """The part of ThreadWorkflow that settles the calls of a turn."""

    _calls: list[workflow.ActivityHandle[Any]]

    def _may_leave(self) -> bool:
        """Continue-as-new is due and nothing is at work: waiting for a person counts as idle."""
        raise NotImplementedError

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
        if limit is not None and run.usage.tool_calls >= limit and not call.approval_id:  # a person's word goes first
            text = (
                f"This run may make {limit} tool calls and has none left. Nothing was run. Answer with what you have."
            )
            call.settle_failed(ToolFailed(code="run-limit-exceeded", message=text))
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
        grant = None
        if call.approval_id:
            digest = call.digest(thread_id=self._thread_id, run_id=run.run_id)
            token = thread.ledger.spend(call.approval_id, digest=digest, activity_id=activity_id)
            grant = Grant(token=token, approval_id=call.approval_id, digest=digest)
        once = None if call.is_repeatable else Once(thread=workflow.info().first_execution_run_id, round=call.rounds)
        retries = _DEFAULT_RETRIES if call.pause.retries is None else call.pause.retries
        return workflow.start_activity_method(
            ToolActivities.run_tool,
            RunTool(
                agent=thread.agent,
                principal=thread.principal,
                run_id=run.run_id,
                call=call.tool_call(),
                grant=grant,
                once=once,
            ),
            activity_id=activity_id,
            start_to_close_timeout=timedelta(seconds=call.pause.timeout or options.tool_timeout),
            heartbeat_timeout=timedelta(seconds=options.heartbeat_timeout),
            retry_policy=RetryPolicy(maximum_attempts=1 + retries if call.is_repeatable else 1),
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
            await self._not_started(run, call, outcome)
        if call.response is not None:
            self._close_approval(call)

    def _ask_again(self, run: CurrentRun, call: Call, changed: NeedsApproval) -> None:
        if call.approval_id:
            self._thread.ledger.supersede(call.approval_id)
        asked = {"fingerprint": changed.fingerprint, "approval": True}
        call.args, call.pause = changed.args, paused_call(changed.pause).model_copy(update=asked)
        call.status = "waiting"
        if run.ending is None:
            self._thread.ask(run, call, at=workflow.time())

    async def _not_started(self, run: CurrentRun, call: Call, outcome: NotStarted) -> None:
        call.not_started += 1
        call.status = "ready"
        if call.approval_id:
            self._thread.ledger.unspend(call.approval_id)
        if call.not_started >= _NOT_STARTED_TRIES:
            text = f"The tool could not be started in {_NOT_STARTED_TRIES} tries: {outcome.message}"
            call.settle_failed(ToolFailed(code="tool-not-started", message=text))
            return
        with suppress(TimeoutError):
            await workflow.wait_condition(
                lambda: run.ending is not None or self._may_leave(),
                timeout=timedelta(seconds=2**call.not_started),
                timeout_summary=f"before another try of {call.tool[:64]}",
            )

    async def _without_outcome(self, run: CurrentRun, call: Call, error: ActivityError) -> None:
        """The activity ended without a value: nobody knows whether the tool took effect. It counts as if it had."""
        run.usage = run.usage.plus(Usage(tool_calls=1, cost=call.pause.cost))
        if call.pause.effect == "read":
            call.settle_failed(ToolFailed(code="tool-error", message=f"The tool {call.tool!r} did not finish."))
            self._close_approval(call)
            return
        if call.pause.probe and await self._probed(run, call):
            self._close_approval(call)
            return
        self._thread.interrupt(run, call, "unknown_outcome", at=workflow.time(), detail=why(error))

    async def _probed(self, run: CurrentRun, call: Call) -> bool:
        """Ask the tool's probe; True where it knew."""
        thread = self._thread
        request = ProbeTool(
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

    async def _while_at_work(self, work: workflow.ActivityHandle[T]) -> T:
        self._calls.append(work)
        try:
            return await work
        finally:
            self._calls.remove(work)

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


def why(error: ActivityError) -> str:
    """What is known of how an activity ended without a value."""
    cause = error.cause
    if isinstance(cause, ActivityTimeout):
        kind = cause.type.name.lower().replace("_", " ") if cause.type else "unknown"
        return f"its attempt timed out ({kind})."
    text = cause.message if isinstance(cause, ApplicationError) else type(cause).__name__
    return f"{text[:500]}"
