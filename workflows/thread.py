"""ThreadWorkflow: one conversation. Its runs go on one after the other; each alternates between legs and pauses.

run():      take the next run, or continue as new, or end
_advance(): a leg, or the calls of a paused turn, or the end of a run that is being ended
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError, ApplicationError, is_cancelled_exception
from temporalio.exceptions import TimeoutError as ActivityTimeout

with workflow.unsafe.imports_passed_through():
    from workflows import door
    from workflows.approvals import Refused
    from workflows.event_log import START
    from workflows.held_updates import has_held_updates
    from workflows.keeping import events_to_keep
    from workflows.messages import (
        MESSAGE_INVALID,
        THREAD_ID,
        Answered,
        Failed,
        HandedOver,
        KeepEvents,
        LegResult,
        RunAgent,
        RunError,
        StartThread,
        Stopped,
        as_object,
    )
    from workflows.ports import AgentActivities, EventActivities
    from workflows.run_state import CurrentRun, Ending
    from workflows.thread_calls import ThreadCalls, why
    from workflows.thread_state import ThreadState

_KEEPING = timedelta(seconds=20)
_LOOK_AGAIN = timedelta(minutes=5)
_START = '{"agent": "shop-helper", "principal": "ana"}'


@workflow.defn(name="ThreadWorkflow")
class ThreadWorkflow(ThreadCalls):
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
            _check_id(workflow.info().workflow_id)
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
                await self._heard_everybody()
                return
            if self._renew_due():
                await self._renew()
            elif run := self._thread.current or self._thread.begin_next(at=workflow.time()):
                self._advancing = asyncio.create_task(self._advance(run))
            else:
                await self._rest()

    async def _rest(self) -> None:
        """Until there is something to do. A thread that is full looks again from time to time."""
        try:
            again = _LOOK_AGAIN if self._thread.full else None
            await workflow.wait_condition(
                self._has_work, timeout=again, timeout_summary="before another continue-as-new"
            )
        except TimeoutError:
            self._cannot_renew = False

    def _has_work(self) -> bool:
        return bool(self._thread.queue) or self._thread.closed_by is not None or self._renew_due()

    # ---- continue-as-new
    def _renew_due(self) -> bool:
        if self._cannot_renew or self._thread.closed_by is not None:
            return False
        options, info = self._thread.options, workflow.info()
        enough = self._ended_here >= options.runs_per_execution
        long = info.get_current_history_length() >= options.events_per_execution
        return self._renew_wanted or enough or long or info.is_continue_as_new_suggested()

    def _may_leave(self) -> bool:
        """Continue-as-new is due and nothing is at work: waiting for a person counts as idle."""
        return self._renew_due() and not self._calls and workflow.all_handlers_finished()

    async def _renew(self) -> None:
        if request := events_to_keep(self._thread):
            await self._keep_events(request)
        await self._heard_everybody()
        carried = self._thread.carried()
        if carried is not None:
            workflow.continue_as_new(carried)
        self._cannot_renew = True

    async def _heard_everybody(self) -> None:
        """No handler is at work, and no update of this task still waits: an execution can end."""
        run_id = workflow.info().run_id
        await workflow.wait_condition(lambda: workflow.all_handlers_finished() and not has_held_updates(run_id))

    async def _keep_events(self, request: KeepEvents) -> None:
        """Let the Store have the older events; where it cannot, they are carried on."""
        try:
            kept = await workflow.execute_activity_method(
                EventActivities.keep_events,
                request,
                schedule_to_close_timeout=_KEEPING,
                retry_policy=RetryPolicy(initial_interval=timedelta(milliseconds=500), maximum_attempts=2),
                summary="older events to the Store",
            )
        except ActivityError as error:
            if is_cancelled_exception(error):  # this is how a cancel request for the thread comes out of an activity
                raise asyncio.CancelledError from error
            workflow.logger.warning("events not kept: %s", why(error))
        else:
            self._thread.keep_events(kept)

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
        run.ending = run.ending or Ending(
            status="timeout", error=RunError(code="run-limit-exceeded", message=text), by="the time limit"
        )
        self._stop_activities()

    def _end_early(self, run: CurrentRun, ending: Ending) -> None:
        self._thread.settle_unfinished(event_id=str(workflow.uuid4()), at=workflow.time(), by=ending.by)
        self._end(ending.status, ending.error)

    def _end(self, status: Any, error: RunError | None = None) -> None:
        run = self._thread.current
        self._thread.end_run(status, error, at=workflow.time())
        self._ended_here += 1
        self._cannot_renew = False
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
            kept = None if outcome.code == MESSAGE_INVALID else message
            thread.keep_message(run, kept, event_id=str(workflow.uuid4()), at=workflow.time())
            if run.ending is None:
                self._end("error", RunError(code=outcome.code, message=outcome.message))
        elif isinstance(outcome, HandedOver | Stopped):
            pass  # the next step goes on from here, or ends the run
        elif not run.calls:
            self._end("error", RunError(code="pause-without-calls", message="The agent paused, but no call waits."))

    async def _leg_result(self, run: CurrentRun) -> LegResult:
        thread, options = self._thread, self._thread.options
        small = door.json_bytes(run.handed.model_dump(mode="json")) <= options.inline_bytes
        begins = thread.log.end == START and door.json_bytes(thread.initial_state) <= options.inline_bytes
        self._leg = workflow.start_activity_method(
            AgentActivities.run_agent,
            RunAgent(
                agent=thread.agent,
                principal=thread.principal,
                run_id=run.run_id,
                base=thread.log.end,
                handed=run.handed if small else None,
                state=thread.initial_state if begins else None,
                temp=run.temp,
                limits=options.limits,
                used=run.usage,
                attempts=options.leg_attempts,
            ),
            start_to_close_timeout=timedelta(seconds=options.leg_timeout),
            heartbeat_timeout=timedelta(seconds=options.leg_heartbeat_timeout),
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

    # ---- what is at work
    @property
    def _leg_runs(self) -> bool:
        return self._leg is not None

    def _stop_activities(self) -> None:
        for work in [*([self._leg] if self._leg is not None else []), *self._calls]:
            work.cancel()

    def _close(self, *, by: str) -> None:
        self._thread.close(by=by, at=workflow.time())
        self._stop_activities()


def _check_id(workflow_id: str) -> None:
    """Under any other id, the workers would take this workflow for the thread that its id happens to name."""
    if not workflow_id.startswith("thread-") or not re.fullmatch(THREAD_ID, workflow_id.removeprefix("thread-")):
        text = (
            f"{workflow_id[:200]!r} is no workflow id of a thread. Start it as 'thread-' and an id of A-Z a-z 0-9 . _ -"
        )
        raise Refused("malformed", text)


def _lost_leg(error: ActivityError, run: CurrentRun) -> LegResult:
    """Every attempt died without a value; the last heartbeat still says how far it came."""
    cause = error.cause
    details: Sequence[Any] = cause.last_heartbeat_details if isinstance(cause, ActivityTimeout) else ()
    events = tuple(event for event in map(as_object, details) if "id" in event)
    if run.ending is not None:
        return LegResult(outcome=Stopped(), events=events)
    text = f"The agent could not be run to an end: {why(error)} Send the message again."
    return LegResult(outcome=Failed(code="leg-lost", message=text), events=events)
