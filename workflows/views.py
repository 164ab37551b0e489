"""What the queries of a thread answer, made from its state. Pure."""

from __future__ import annotations

from workflows.approvals import Approval, Refused
from workflows.door import json_bytes
from workflows.event_log import START
from workflows.messages import (
    Handed,
    Interrupt,
    InterruptKind,
    JsonObject,
    RunView,
    SessionPage,
    SessionRequest,
    ThreadStatus,
    ThreadView,
)
from workflows.run_state import Call, CurrentRun, QueuedRun, RunRecord, iso
from workflows.thread_state import ThreadState


def thread_view(state: ThreadState, *, thread_id: str) -> ThreadView:
    """The answer to the query `thread`."""
    run = state.current
    return ThreadView(
        thread_id=thread_id,
        agent=state.agent,
        principal=state.principal,
        app=state.app,
        status=_status(state, thread_id=thread_id),
        revision=state.revision,
        current=run.run_id if run else None,
        queued=tuple(queued.run_id for queued in state.queue),
        recent=tuple(_ended(record) for record in state.records),
        state=state.state,
        metadata=state.metadata,
        events=state.log.end.count,
        runs=state.runs,
    )


def run_view(state: ThreadState, run_id: str, *, thread_id: str) -> RunView:
    """The answer to the query `run`. Refused where no such run is known."""
    if state.current is not None and state.current.run_id == run_id:
        return _going_on(state, state.current, thread_id=thread_id)
    for queued in state.queue:
        if queued.run_id == run_id:
            return _queued(queued)
    if record := state.record(run_id):
        calls, answer = tuple(record.calls), state.answer_of(record)
        return _ended(record).model_copy(update={"calls": calls, "answer": answer})
    raise Refused("run-unknown", f"This thread knows no run {run_id!r}. The query `thread` lists the recent ones.")


def interrupts(state: ThreadState, *, thread_id: str) -> list[Interrupt]:
    """The answer to the query `interrupts`: what the current run waits for, in the order of its calls."""
    run = state.current
    if run is None or run.ending is not None:
        return []
    shown = (_interrupt(state, run, call, thread_id=thread_id) for call in run.open_calls())
    return [interrupt for interrupt in shown if interrupt is not None]


def session_page(state: ThreadState, request: SessionRequest) -> SessionPage:
    """The answer to the query `session`."""
    if request.state_only:
        head = state.log.end
        return SessionPage(base=head, end=head, head=head, state=state.state)
    base, events = state.log.page(request.since, request.max_bytes)
    kept = state.log.kept if base == state.log.start != request.since else None
    count = base.count + len(events)
    end = base if not events else state.log.end.model_copy(update={"count": count, "head": events[-1]["id"]})
    handed, left = (None, 0) if end != state.log.end else _handed(state, request)
    return SessionPage(
        base=base,
        end=end,
        head=state.log.end,
        events=tuple(events),
        kept=kept,
        state=state.initial_state if base == START or kept else {},
        handed=handed,
        answers_left=left,
    )


def _handed(state: ThreadState, request: SessionRequest) -> tuple[Handed | None, int]:
    if state.current is None:
        return None, 0
    handed = state.current.handed
    answers = handed.answers[request.answers_from :]
    size = taken = 0
    for answer in answers:
        size += json_bytes(answer.model_dump(mode="json"))
        if size > request.max_bytes and taken:
            break
        taken += 1
    return handed.model_copy(update={"answers": answers[:taken]}), len(answers) - taken


def _status(state: ThreadState, *, thread_id: str) -> ThreadStatus:
    if state.closed_by is not None:
        return "closed"
    if state.current is None:
        return "idle"
    return "waiting" if interrupts(state, thread_id=thread_id) else "busy"


def _queued(queued: QueuedRun) -> RunView:
    return RunView(run_id=queued.run_id, status="queued", message=queued.message, queued_at=iso(queued.queued_at))


def _going_on(state: ThreadState, run: CurrentRun, *, thread_id: str) -> RunView:
    waiting = tuple(interrupts(state, thread_id=thread_id))
    return RunView(
        run_id=run.run_id,
        status="waiting" if waiting else "running",
        number=run.number,
        queued_at=iso(run.queued_at),
        started_at=iso(run.started_at),
        interrupts=waiting,
        calls=(*run.past, *(call.view() for call in run.calls)),
        usage=run.usage,
        legs=run.legs,
    )


def _ended(record: RunRecord) -> RunView:
    """Without what can be big: twenty of these stand in one answer."""
    return RunView(
        run_id=record.run_id,
        status=record.status,
        number=record.number,
        error=record.error,
        queued_at=iso(record.queued_at),
        started_at=None if record.started_at is None else iso(record.started_at),
        ended_at=iso(record.ended_at),
        usage=record.usage,
        legs=record.legs,
    )


def _interrupt(state: ThreadState, run: CurrentRun, call: Call, *, thread_id: str) -> Interrupt | None:
    approval = state.ledger.open.get(call.approval_id) if call.approval_id else None
    if call.interrupt is not None:
        opened = call.interrupt
        shown = _shown(state, run, call, thread_id=thread_id, kind=opened.kind, id_=opened.id, since=opened.since)
        return shown.model_copy(update={"progress": tuple(opened.progress), "detail": opened.detail})
    if approval is None or approval.status not in ("pending", "deciding"):
        return None
    shown = _shown(state, run, call, thread_id=thread_id, kind="approval", id_=approval.id, since=approval.asked_at)
    return shown.model_copy(update=_about(approval, call))


def _about(approval: Approval, call: Call) -> JsonObject:
    return {
        "deadline": None if approval.deadline is None else iso(approval.deadline),
        "being_decided": approval.status == "deciding",
        "editable": call.pause.editable,
    }


def _shown(
    state: ThreadState, run: CurrentRun, call: Call, *, thread_id: str, kind: InterruptKind, id_: str, since: float
) -> Interrupt:
    return Interrupt(
        kind=kind,
        id=id_,
        thread_id=thread_id,
        run_id=run.run_id,
        agent=state.agent,
        principal=state.principal,
        tool=call.tool,
        arguments=call.args,
        summary=call.pause.summary,
        since=iso(since),
    )
