"""What others may say to a thread and ask of it: its signals, updates and queries.

Every handler takes one optional raw argument and reads it itself, so that whatever the `temporal` CLI or the Web UI
sends gets an answer a person understands, and nothing fails a workflow task. Nothing but ApplicationError leaves here.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.api.failure.v1 import ApplicationFailureInfo, Failure
from temporalio.common import RawValue, RetryPolicy
from temporalio.exceptions import ActivityError, ApplicationError

with workflow.unsafe.imports_passed_through():
    from pydantic import TypeAdapter

    from workflows import display, door, views
    from workflows.approvals import Refused
    from workflows.messages import (
        Answer,
        AppendEvents,
        ApprovalAsked,
        ApprovalView,
        CancelRun,
        CheckArgs,
        CheckedArgs,
        Decide,
        Done,
        GrantRequest,
        GrantView,
        InputAnswer,
        Interrupt,
        JsonObject,
        LongRunningAnswer,
        PutState,
        Receipt,
        Revision,
        RunError,
        RunRequest,
        RunView,
        SessionPage,
        SessionRequest,
        ThreadView,
        ToolFailed,
        UnknownOutcomeDone,
        UnknownOutcomeNotDone,
        as_object,
    )
    from workflows.ports import ToolActivities
    from workflows.run_state import Call, CurrentRun, iso
    from workflows.thread_state import ThreadState

_RUN = '{"message": "text", "run_id": "optional"}'
_DECIDE = '{"approval_id": "ap-1-1", "approved": true}'
_ANSWER = '{"interrupt_id": "lr-1-1", "kind": "long_running", "result": {}}'
_CANCEL = '{"run_id": "…"}'
_PUT_STATE = '{"values": {"key": 1}, "delete": ["other"]}'
_APPEND = '{"events": [], "if_revision": 1}'
_CHECK_TIME = timedelta(seconds=10)
_MAX_PROGRESS = 100
_MAX_PROGRESS_BYTES = 256 * 1024
_ANSWERS: TypeAdapter[Answer] = TypeAdapter(Answer)


class RefusedRequest(ApplicationError):
    """A refusal as its sender reads it: message and kind. The Web UI would show a stack trace to people, so none."""

    def __init__(self, refused: Refused) -> None:
        super().__init__(str(refused), type=refused.kind, non_retryable=True)

    @property
    def failure(self) -> Failure:
        about = ApplicationFailureInfo(type=self.type or "", non_retryable=True)
        return Failure(message=self.message, application_failure_info=about)


@contextmanager
def for_people() -> Generator[None]:
    """A refusal becomes the ApplicationError its sender reads; its type is the kind."""
    try:
        yield
    except Refused as refused:
        raise RefusedRequest(refused) from None


class ThreadHandlers:
    """The doors of ThreadWorkflow. `_state` is None only where the thread was started with no proper input."""

    _state: ThreadState | None
    _renew_wanted: bool

    # ---- signals
    @workflow.signal(name="run", description=f"Queue a run: {_RUN}")
    def on_run(self, request: Any = None, *surplus: Any) -> None:
        state, now = self._state, workflow.time()
        if state is None:
            return
        try:
            run = door.parsed(RunRequest, request, surplus=surplus, example=_RUN)
        except Refused as refused:
            workflow.logger.warning("run signal refused: %s", refused.kind)
            state.refuse_run(_run_id(request), RunError(code=refused.kind, message=str(refused)), at=now)
            return
        state.queue_run(run, run_id=run.run_id or str(workflow.uuid4()), at=now)

    @workflow.signal(name="renew", description="Continue as new as soon as nothing runs")
    def on_renew(self, *surplus: Any) -> None:
        self._renew_wanted = True

    @workflow.signal(dynamic=True, description="Anything else is logged and ignored")
    def on_unknown(self, name: str, arguments: Sequence[RawValue]) -> None:
        workflow.logger.warning("unknown signal ignored: %s", name[:80])

    # ---- updates
    @workflow.update(name="decide", description=f"Settle an approval: {_DECIDE}")
    async def on_decide(self, request: Any = None, *surplus: Any) -> Receipt:
        with for_people():
            decision = door.parsed(Decide, request, surplus=surplus, example=_DECIDE)
            call = self._decidable(decision)
            if decision.approved:
                await self._approve(call, decision)
            else:
                self._thread.ledger.deny(decision.approval_id, by=decision.by, at=workflow.time())
                reason = decision.reason or "A person denied this call."
                call.settle_refused(code="approval-denied", message=reason, outcome="denied", by=decision.by)
        self._show_waiting()
        return _receipt(decision.approval_id, "approved" if decision.approved else "denied", decision.by)

    @on_decide.validator
    def check_decide(self, request: Any = None, *surplus: Any) -> None:
        with for_people():
            self._decidable(door.parsed(Decide, request, surplus=surplus, example=_DECIDE))

    @workflow.update(name="answer", description=f"Answer an interrupt that is no approval: {_ANSWER}")
    def on_answer(self, request: Any = None, *surplus: Any) -> Receipt:
        with for_people():
            answer = door.parsed(_ANSWERS, request, surplus=surplus, example=_ANSWER)
            status = self._take_answer(self._answerable(answer), answer)
        self._show_waiting()
        return _receipt(answer.interrupt_id, status, answer.by)

    @on_answer.validator
    def check_answer(self, request: Any = None, *surplus: Any) -> None:
        with for_people():
            self._answerable(door.parsed(_ANSWERS, request, surplus=surplus, example=_ANSWER))

    @workflow.update(name="cancel_run", description=f"Cancel a queued, running or waiting run: {_CANCEL}")
    def on_cancel_run(self, request: Any = None, *surplus: Any) -> RunView:
        with for_people():
            cancel = door.parsed(CancelRun, request, surplus=surplus, example=_CANCEL)
            if self._thread.cancel(cancel.run_id, by=cancel.by, at=workflow.time()) == "current":
                self._stop_activities()
            return views.run_view(self._thread, cancel.run_id, thread_id=self._thread_id)

    @workflow.update(name="put_state", description=f"Set and delete session state: {_PUT_STATE}")
    def on_put_state(self, request: Any = None, *surplus: Any) -> Revision:
        with for_people():
            put = door.parsed(PutState, request, surplus=surplus, example=_PUT_STATE)
            self._thread.check_revision(put.if_revision)
            event_id = str(workflow.uuid4())
            self._thread.put_state(
                put.values, put.delete, event_id=event_id, at=workflow.time(), leg_runs=self._leg_runs
            )
        return Revision(revision=self._thread.revision)

    @workflow.update(name="append_events", description=f"Append ADK events while no run is active: {_APPEND}")
    def on_append_events(self, request: Any = None, *surplus: Any) -> Revision:
        with for_people():
            given = door.parsed(AppendEvents, request, surplus=surplus, example=_APPEND)
            self._must_be_quiet()
            self._thread.check_revision(given.if_revision)
            door.check_events(given.events)
            self._thread.append(given.events)
        return Revision(revision=self._thread.revision)

    @workflow.update(name="clear", description="Delete events and state; the thread lives on")
    def on_clear(self, *surplus: Any) -> Revision:
        with for_people():
            self._must_be_quiet()
            self._thread.clear()
        return Revision(revision=self._thread.revision)

    @workflow.update(name="close", description="End the thread: queued runs and approvals end too")
    def on_close(self, request: Any = None, *surplus: Any) -> ThreadView:
        with for_people():
            by = as_object(request).get("by")
            self._close(by=by if isinstance(by, str) and by else "temporal")
            return views.thread_view(self._thread, thread_id=self._thread_id)

    # ---- queries
    @workflow.query(name="thread", description="Agent, status, queue, recent runs and session state")
    def thread(self, *surplus: Any) -> ThreadView:
        with for_people():
            return views.thread_view(self._thread, thread_id=self._thread_id)

    @workflow.query(name="run", description='One run: {"run_id": "…"}')
    def run_query(self, request: Any = None, *surplus: Any) -> RunView:
        with for_people():
            return views.run_view(self._thread, _run_id(request, default=""), thread_id=self._thread_id)

    @workflow.query(name="interrupts", description="What the current run waits for, and how to answer")
    def interrupts(self, *surplus: Any) -> list[Interrupt]:
        with for_people():
            return views.interrupts(self._thread, thread_id=self._thread_id)

    @workflow.query(name="approval", description='How an approval stands: {"approval_id": "ap-1-1"}')
    def approval(self, request: Any = None, *surplus: Any) -> ApprovalView:
        with for_people():
            asked = door.parsed(ApprovalAsked, request, surplus=surplus, example='{"approval_id": "ap-1-1"}')
            return self._thread.ledger.view(asked.approval_id)

    @workflow.query(name="session", description='Events of the session: {"since": {"count": 0, "head": ""}}')
    def session(self, request: Any = None, *surplus: Any) -> SessionPage:
        with for_people():
            wanted = door.parsed(SessionRequest, request or {}, surplus=surplus, example='{"max_bytes": 524288}')
            return views.session_page(self._thread, wanted)

    @workflow.query(name="grant", description="What a spent token permits; asked by run_tool")
    def grant(self, request: Any = None, *surplus: Any) -> GrantView:
        with for_people():
            wanted = door.parsed(GrantRequest, request, surplus=surplus, example='{"token": "…"}')
            return self._thread.ledger.grant(wanted.token)

    # ---- rules
    @property
    def _thread(self) -> ThreadState:
        if self._state is None:
            raise Refused("malformed", "This thread was started without a proper input. Create another one.")
        return self._state

    @property
    def _thread_id(self) -> str:
        return workflow.info().workflow_id.removeprefix("thread-")

    @property
    def _leg_runs(self) -> bool:
        raise NotImplementedError

    def _close(self, *, by: str) -> None:
        raise NotImplementedError

    def _stop_activities(self) -> None:
        raise NotImplementedError

    def _show_waiting(self) -> None:
        waiting = views.interrupts(self._thread, thread_id=self._thread_id)
        workflow.set_current_details(display.details(waiting))

    def _must_be_quiet(self) -> None:
        if self._thread.current is not None or self._thread.queue:
            raise Refused(
                "run-active", "A run is going on or queued. Cancel it or wait for its end, then send it again."
            )

    def _active(self) -> CurrentRun | None:
        run = self._thread.current
        return None if run is None or run.ending is not None else run

    def _decidable(self, decision: Decide) -> Call:
        approval = self._thread.ledger.pending(decision.approval_id, at=workflow.time())
        call = self._must_go_on(decision.approval_id).call_of_key(approval.call_key)
        if decision.edited_args is not None:
            if not call.pause.editable:
                raise Refused(
                    "not-editable", f"{call.tool!r} runs with the arguments it asked for. Approve or deny it."
                )
            door.check_json(decision.edited_args, what="edited_args", kind="tool-args-invalid")
        return call

    def _must_go_on(self, approval_id: str) -> CurrentRun:
        run = self._active()
        if run is None:
            raise Refused("approval-withdrawn", f"The run of {approval_id!r} is being ended. Nothing to do.")
        return run

    async def _approve(self, call: Call, decision: Decide) -> None:
        ledger, wanted = self._thread.ledger, call
        if decision.edited_args is not None:
            ledger.reserve(decision.approval_id, by=decision.by, at=workflow.time())
            try:
                wanted = call.edited(await self._checked(call, decision.edited_args))
                self._must_go_on(decision.approval_id)
            except Refused:
                ledger.release(decision.approval_id)
                raise
        self._mint(call, decision.approval_id, wanted=wanted, by=decision.by)

    def _mint(self, call: Call, approval_id: str, *, wanted: Call, by: str) -> None:
        """The only place where a token is made: bound to the call as it will be made."""
        run = self._thread.current
        try:
            digest = wanted.digest(thread_id=self._thread_id, run_id=run.run_id if run else "")
        except ValueError as problem:
            self._thread.ledger.release(approval_id)
            raise Refused("tool-args-invalid", f"The arguments have no canonical form: {problem}.") from None
        token = str(workflow.uuid4())
        self._thread.ledger.approve(approval_id, by=by, token=token, digest=digest, at=workflow.time())
        call.args, call.pause = wanted.args, wanted.pause
        call.status, call.outcome, call.by = "ready", "approved", by

    async def _checked(self, call: Call, edited: JsonObject) -> CheckedArgs:
        thread, run = self._thread, self._thread.current
        try:
            checked = await workflow.execute_activity_method(
                ToolActivities.check_args,
                CheckArgs(
                    agent=thread.agent,
                    principal=thread.principal,
                    run_id=run.run_id if run else "",
                    call=call.tool_call(edited),
                ),
                schedule_to_close_timeout=_CHECK_TIME,
                retry_policy=RetryPolicy(initial_interval=timedelta(milliseconds=200), maximum_attempts=3),
                summary=f"check of edited arguments: {call.tool[:64]}",
            )
        except ActivityError:
            raise Refused("check-failed", "The edited arguments could not be checked within 10 s. Try again.") from None
        if checked.args is None:
            why = (checked.message or "").rstrip(". ")
            text = f"The edited arguments do not do: {why}. The approval still waits."
            raise Refused(checked.code or "tool-args-invalid", text)
        return checked

    def _answerable(self, answer: Answer) -> Call:
        run = self._active()
        call = run.call_of_interrupt(answer.interrupt_id) if run else None
        if call is None or call.interrupt is None:
            raise self._thread.ledger.not_waiting(answer.interrupt_id)
        wanted = (
            ("done", "not_done", "run_again") if call.interrupt.kind == "unknown_outcome" else (call.interrupt.kind,)
        )
        if answer.kind not in wanted:
            kinds = " or ".join(map(repr, wanted))
            raise Refused("wrong-answer", f"{answer.interrupt_id!r} takes the kind {kinds}, not {answer.kind!r}.")
        for value in (answer.value if isinstance(answer, InputAnswer) else getattr(answer, "result", None),):
            door.check_json(value, what="answer", kind="answer-refused")
        return call

    def _take_answer(self, call: Call, answer: Answer) -> str:
        status = answer.kind
        if isinstance(answer, InputAnswer):
            call.settle({"result": answer.value}, outcome="answered", by=answer.by)
        elif isinstance(answer, LongRunningAnswer):
            if not answer.final:
                return _progress(call, answer)
            response = as_object(answer.result) or {"result": answer.result}
            call.settle(response, outcome="answered", by=answer.by)
        elif isinstance(answer, UnknownOutcomeDone):
            call.settle_done(Done(result=answer.result), by=answer.by)
        elif isinstance(answer, UnknownOutcomeNotDone):
            call.settle_failed(ToolFailed(code="tool-error", message=answer.reason or "The call had no effect."))
        else:
            self._run_again(call, by=answer.by)
        self._thread.ledger.note_answer(answer.interrupt_id, status, by=answer.by)
        if call.response is not None and call.approval_id:
            self._thread.ledger.close(call.approval_id)
        return status

    def _run_again(self, call: Call, *, by: str) -> None:
        thread, run = self._thread, self._thread.current
        if run is None:
            return
        if call.approval_id:
            thread.ledger.close(call.approval_id)
        call.interrupt, call.rounds = None, call.rounds + 1
        thread.ask(run, call, at=workflow.time())
        self._mint(call, call.approval_id or "", wanted=call, by=by)


def _progress(call: Call, answer: LongRunningAnswer) -> str:
    if call.interrupt is not None:
        kept = [*call.interrupt.progress[-(_MAX_PROGRESS - 1) :], answer.result]
        while len(kept) > 1 and door.json_bytes(kept) > _MAX_PROGRESS_BYTES:
            del kept[0]
        call.interrupt.progress = kept
    return "progress"


def _receipt(id_: str, status: str, by: str) -> Receipt:
    return Receipt(id=id_, status=status, by=by, at=iso(workflow.time()))


def _run_id(request: Any, *, default: str | None = None) -> str:
    """The run id somebody named, if it is one; else `default`, else a fresh one."""
    given: Any = as_object(request).get("run_id", request if default is not None else None)
    if isinstance(given, str) and 0 < len(given) <= 128:
        return given
    return str(workflow.uuid4()) if default is None else default
