"""All that a thread is, and all that it carries through continue-as-new. Pure: times and ids come in as arguments."""

from __future__ import annotations

import base64
import hashlib
import zlib
from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field

from workflows import door
from workflows.approvals import Ledger, Refused
from workflows.closing import closing_events, settle_unfinished, without_response
from workflows.events import answer_text, expand, waiting_calls
from workflows.messages import (
    Answered,
    Handed,
    Json,
    JsonObject,
    KeptEvents,
    LegResult,
    Options,
    Paused,
    RunError,
    RunRequest,
    RunStatus,
    StartThread,
    ToolFailed,
)
from workflows.run_state import Call, CurrentRun, Ending, OpenInterrupt, QueuedRun, RunRecord
from workflows.session_state import SessionState

MAX_QUEUED = 1000
MAX_QUEUED_BYTES = 1024 * 1024
MAX_CARRIED_BYTES = 1_900_000
"""Temporal refuses a payload of 2 MiB, without telling anybody: the thread would be stuck."""
KEPT_RECORDS = 10
KEPT_ANSWERS = 32 * 1024
"""Characters of all answers that a thread keeps beside its events."""
KEPT_RUN_IDS = 250
MAX_ERROR = 4000
MAX_BY = 3000
_FULL = (
    "This thread holds as much as it can carry until the Store takes its older events. Look at the worker's log; send "
    "it as a new run when the Store is back, or create another thread."
)


class ThreadState(SessionState):
    """One thread. Changed only through its methods."""

    agent: str
    principal: str
    app: str | None = None
    metadata: JsonObject = Field(default_factory=dict)
    options: Options = Options()
    queue: list[QueuedRun] = Field(default_factory=list[QueuedRun])
    queued_bytes: int = 0
    current: CurrentRun | None = None
    records: list[RunRecord] = Field(default_factory=list[RunRecord])
    known_runs: list[str] = Field(default_factory=list[str])
    """Short hashes of the last run ids: a repeated one is ignored."""
    runs: int = 0
    ledger: Ledger = Field(default_factory=Ledger)
    closed_by: str | None = None
    full: bool = False

    @classmethod
    def begin(cls, start: StartThread) -> ThreadState:
        """A new thread, or the one that was carried here. Refused where the start state is no state."""
        if start.carried is not None:
            try:
                return cls.model_validate_json(zlib.decompress(base64.b85decode(start.carried)))
            except (TypeError, ValueError, zlib.error):
                raise Refused("malformed", "`carried` is no thread's state. Leave it out: a thread sets it.") from None
        door.check_state(start.state)
        door.check_json(start.metadata, what="metadata", kind="malformed")
        return cls(
            agent=start.agent,
            principal=start.principal,
            app=start.app,
            metadata=start.metadata,
            options=start.options,
            initial_state=start.state,
            state=dict(start.state),
        )

    def carried(self) -> StartThread | None:
        """The input of the next execution; None, and the thread counts as full, where it would not fit."""
        packed = self.model_copy(deep=True)
        packed.log.pack()
        text = packed.model_dump_json(exclude_defaults=True).encode()
        carried = base64.b85encode(zlib.compress(text, 6)).decode("ascii")
        self.full = len(carried) > MAX_CARRIED_BYTES
        return None if self.full else StartThread(agent=self.agent, principal=self.principal, carried=carried)

    # ---- runs
    def queue_run(self, request: RunRequest, *, run_id: str, at: float) -> None:
        """Queue a run. A run id that is known is ignored; what cannot be run ends at once, with the reason."""
        if self._is_known(run_id):
            return
        try:
            queued = self._acceptable(request, run_id=run_id, at=at)
        except Refused as refused:
            self.refuse_run(run_id, RunError(code=refused.kind, message=str(refused)), at=at)
            return
        self._remember(run_id)
        self.queue.append(queued)
        self.queued_bytes += _size(queued)

    def refuse_run(self, run_id: str, error: RunError, *, at: float) -> None:
        """Record a run that never began; not where a run with its id is known."""
        if self._is_known(run_id):
            return
        self._remember(run_id)
        status: RunStatus = "cancelled" if error.code == "cancelled" else "error"
        self._record(RunRecord(run_id=run_id, number=0, status=status, error=error, queued_at=at, ended_at=at))

    def _acceptable(self, request: RunRequest, *, run_id: str, at: float) -> QueuedRun:
        if self.closed_by is not None:
            raise Refused("thread-closed", f"The thread was closed by {self.closed_by!r}. Create another one.")
        if self.full:
            raise Refused("thread-full", _FULL)
        if len(self.queue) >= MAX_QUEUED:
            raise Refused("queue-full", f"{MAX_QUEUED} runs wait already. Send it as a new run when some are done.")
        queued = QueuedRun(
            run_id=run_id, message=door.user_message(request.message), state_delta=request.state_delta, queued_at=at
        )
        door.check_state(request.state_delta, what="state_delta")
        door.check_size(
            [queued.message, queued.state_delta], what="message with its state_delta", kind="message-refused"
        )
        if self.queue and self.queued_bytes + _size(queued) > MAX_QUEUED_BYTES:
            raise Refused(
                "queue-full", f"{self.queued_bytes} bytes wait already. Send it as a new run when some are done."
            )
        return queued

    def begin_next(self, *, at: float) -> CurrentRun | None:
        """Take the next run out of the queue; None where there is none."""
        if not self.queue:
            return None
        queued = self.queue.pop(0)
        self.queued_bytes = self.queued_bytes - _size(queued) if self.queue else 0
        self.runs += 1
        self.current = CurrentRun(
            run_id=queued.run_id,
            number=self.runs,
            queued_at=queued.queued_at,
            started_at=at,
            first=self.log.end.count,
            handed=Handed(message=queued.message, state_delta=queued.state_delta),
        )
        return self.current

    def end_run(self, status: RunStatus, error: RunError | None = None, *, at: float) -> None:
        """The current run is over."""
        run = self.current
        if run is None:
            return
        self.current = None
        self._record(
            RunRecord(
                run_id=run.run_id,
                number=run.number,
                status=status,
                error=error,
                queued_at=run.queued_at,
                started_at=run.started_at,
                ended_at=at,
                first=run.first,
                last=self.log.end.count,
                usage=run.usage,
                legs=run.legs,
                calls=run.retired(),
            )
        )

    def cancel(self, run_id: str, *, by: str, at: float) -> Literal["queued", "current"]:
        """Cancel a queued run, or mark the current one as ending. Refused where there is none to cancel."""
        error = RunError(code="cancelled", message=f"Cancelled by {by!r}.")
        for n, queued in enumerate(self.queue):
            if queued.run_id == run_id:
                del self.queue[n]
                self.queued_bytes -= _size(queued)
                self._record(
                    RunRecord(
                        run_id=run_id,
                        number=0,
                        status="cancelled",
                        error=error,
                        queued_at=queued.queued_at,
                        ended_at=at,
                    )
                )
                return "queued"
        if self.current is not None and self.current.run_id == run_id:
            self.current.ending = self.current.ending or Ending(status="cancelled", error=error, by=by[:MAX_BY])
            return "current"
        if record := self.record(run_id):
            raise Refused("run-ended", f"Run {run_id!r} has ended already ({record.status}). Nothing to do.")
        raise Refused("run-unknown", f"This thread knows no run {run_id!r}. The query `thread` lists the recent ones.")

    def close(self, *, by: str, at: float) -> None:
        """No run begins any more: queued ones end cancelled, the current one is ending."""
        self.closed_by = self.closed_by or by[:MAX_BY]
        for queued in list(self.queue):
            self.cancel(queued.run_id, by=by, at=at)
        if self.current is not None:
            self.cancel(self.current.run_id, by=by, at=at)

    def record(self, run_id: str) -> RunRecord | None:
        """The record of a run that ended, if it is remembered."""
        return next((record for record in reversed(self.records) if record.run_id == run_id), None)

    # ---- legs
    def apply_leg(self, result: LegResult, *, at: float) -> None:
        """Take over what a leg did: its events, and the calls that now wait."""
        run = self._running()
        events = expand(result.events, run.handed, run_id=run.run_id)
        self.append(events)
        if self.later:
            self.append(self.later)
            self.later = []
        run.usage, run.legs, run.temp = run.usage.plus(result.usage), run.legs + 1, result.temp
        done = isinstance(result.outcome, Answered | Paused)
        stored = any(_is_message(event) for event in events)
        run.handed = Handed() if done or stored else run.handed.model_copy(update={"answers": ()})
        run.retire_calls(left=() if done else without_response(run.calls, events))
        if isinstance(result.outcome, Paused):
            run.attributes = result.outcome.attributes
            run.calls = [Call.of(waiting, key=run.next_call()) for waiting in waiting_calls(events)]
            for call in run.calls:
                self._open(run, call, at=at)

    def keep_message(self, run: CurrentRun, message: Json, *, event_id: str, at: float) -> None:
        """A leg that failed may have stored nothing: what the user said, and calls gave, stays in the session."""
        if run.calls:
            self.append(closing_events(run, event_id=event_id, at=at))
            run.retire_calls()
        if message is None or any(map(_is_message, self.log.slice(run.first, self.log.end.count))):
            return
        self.append(
            [{"id": event_id, "invocationId": run.run_id, "author": "user", "timestamp": at, "content": message}]
        )

    def hand_answers(self) -> None:
        """Every call of the turn has its response: they are the input of the next leg."""
        run = self._running()
        if run.calls:
            run.handed = Handed(answers=tuple(call.answer() for call in run.calls))

    def _open(self, run: CurrentRun, call: Call, *, at: float) -> None:
        if call.kind != "tool":
            self.interrupt(run, call, call.kind, at=at)
        elif problem := call.flaw():
            call.settle_failed(ToolFailed(code="tool-args-invalid", message=problem))
        elif call.pause.approval:
            self.ask(run, call, at=at)
        else:
            call.status = "ready"

    def ask(self, run: CurrentRun, call: Call, *, at: float) -> None:
        """A person must approve this call."""
        ttl = call.pause.expires if call.pause.expires is not None else self.options.approval_ttl
        deadline = None if ttl is None or ttl == "never" else at + ttl
        approval = self.ledger.ask(
            run=run.number,
            count=run.next_interrupt(),
            run_id=run.run_id,
            call_key=call.key,
            tool=call.tool,
            at=at,
            deadline=deadline,
        )
        call.approval_id, call.status, call.outcome = approval.id, "waiting", "waiting"

    def interrupt(
        self,
        run: CurrentRun,
        call: Call,
        kind: Literal["input", "long_running", "unknown_outcome"],
        *,
        at: float,
        detail: str | None = None,
    ) -> None:
        """The call waits for something from outside other than an approval."""
        prefix = {"input": "in", "long_running": "lr", "unknown_outcome": "uo"}[kind]
        id_ = f"{prefix}-{run.number}-{run.next_interrupt()}"
        call.interrupt = OpenInterrupt(id=id_, kind=kind, since=at, detail=detail)
        call.doubtful = call.doubtful or kind == "unknown_outcome"
        call.status = call.outcome = "unknown" if kind == "unknown_outcome" else "waiting"

    def settle_unfinished(self, *, event_id: str, at: float, by: str) -> None:
        """The run ends with open calls: withdraw approvals, and tell the session what became of every call.

        Without that event the session would keep calls without responses, and the next run's model would not know
        that an effect may have happened.
        """
        run = self._running()
        for call in run.open_calls():
            if call.approval_id and not self.ledger.withdraw(call.approval_id, by=by):
                self.ledger.close(call.approval_id)
            settle_unfinished(call)
        if run.calls and not run.handed.answers:
            self.append(closing_events(run, event_id=event_id, at=at))

    # ---- what is kept
    def keep_events(self, kept: KeptEvents) -> None:
        """The Store has these events now. The answers of runs that are remembered stay here, as far as they are short.

        The newest one always does.
        """
        left = KEPT_ANSWERS
        for n, record in enumerate(reversed(self.records)):
            answer = self.answer_of(record)
            left -= len(answer or "")
            record.answer = answer if n == 0 or left >= 0 else None
        self.log.keep(kept)

    def clear(self) -> None:
        """Forget events and state; runs, decisions and the workflow stay."""
        super().clear()
        self.full = False
        self.records = [record.model_copy(update={"first": 0, "last": 0, "answer": None}) for record in self.records]

    def answer_of(self, record: RunRecord) -> str | None:
        """The text a finished run answered with."""
        if record.answer is not None or record.last <= self.log.start.count:
            return record.answer
        return answer_text(self.log.slice(record.first, record.last)) if record.status == "success" else None

    def _running(self) -> CurrentRun:
        if self.current is None:
            msg = "no run is going on"
            raise ValueError(msg)
        return self.current

    def _record(self, record: RunRecord) -> None:
        if record.error is not None and len(record.error.message) > MAX_ERROR:
            record.error = record.error.model_copy(update={"message": f"{record.error.message[:MAX_ERROR]}…"})
        self.records = [*self.records[-(KEPT_RECORDS - 1) :], record]

    def _is_known(self, run_id: str) -> bool:
        if _short(run_id) in self.known_runs or self.record(run_id) is not None:
            return True
        going_on = self.current is not None and self.current.run_id == run_id
        return going_on or any(queued.run_id == run_id for queued in self.queue)

    def _remember(self, run_id: str) -> None:
        self.known_runs = [*self.known_runs[-(KEPT_RUN_IDS - 1) :], _short(run_id)]


def _short(run_id: str) -> str:
    return base64.b85encode(hashlib.blake2b(run_id.encode("utf-8", "replace"), digest_size=6).digest()).decode("ascii")


def _is_message(event: Mapping[str, Any]) -> bool:
    return event.get("author") == "user" and bool(event.get("content"))


def _size(queued: QueuedRun) -> int:
    return door.json_bytes(queued.message) + door.json_bytes(queued.state_delta)
