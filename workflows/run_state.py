"""What a thread knows of a run: while it is queued, while it goes on, and after it ended. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Literal

from pydantic import BaseModel

from agent_adapter.approval.digest import call_digest
from agent_adapter.approval.pause import PausedCall
from workflows.cuts import BLOB
from workflows.events import WaitingCall
from workflows.messages import (
    CallAnswer,
    CallView,
    CheckedArgs,
    Done,
    Handed,
    InterruptKind,
    Json,
    JsonObject,
    RunError,
    RunStatus,
    ToolCall,
    ToolFailed,
    Usage,
    as_object,
)

KEPT_CALLS = 50
MAX_KEPT_ARGUMENTS = 1024

CallStatus = Literal["waiting", "ready", "running", "unknown", "settled"]


def iso(at: float) -> str:
    """UTC, ISO 8601, of seconds since the epoch."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class QueuedRun(BaseModel):
    """A run that waits for its turn. `message`: ADK Content JSON."""

    run_id: str
    message: JsonObject
    state_delta: JsonObject = {}
    queued_at: float


class OpenInterrupt(BaseModel):
    """What a call waits for, other than an approval (the ledger holds those)."""

    id: str
    kind: InterruptKind
    since: float
    detail: str | None = None
    progress: list[Json] = []


class Call(BaseModel):
    """One call of a paused turn, from the pause until its response is known."""

    key: str
    kind: Literal["tool", "long_running", "input"]
    request_id: str
    call_id: str
    name: str
    """Of the function call that gets the response."""
    tool: str
    args: JsonObject
    branch: str | None = None
    author: str = ""
    pause: PausedCall = PausedCall()
    status: CallStatus = "waiting"
    outcome: str = "waiting"
    """For people: waiting, approved, running, done, failed, denied, expired, answered, unknown or withdrawn."""
    by: str | None = None
    approval_id: str | None = None
    interrupt: OpenInterrupt | None = None
    attempts: int = 0
    rounds: int = 0
    """How often a person wanted it made again."""
    not_started: int = 0
    doubtful: bool = False
    """An attempt ended without a value: whatever came after, the tool may have taken effect."""
    response: JsonObject | None = None

    @classmethod
    def of(cls, waiting: WaitingCall, *, key: str) -> Call:
        """The call that a leg's events show as waiting."""
        return cls(
            key=key,
            kind=waiting.kind,  # pyright: ignore[reportArgumentType]  # validated by pydantic
            request_id=waiting.request_id,
            call_id=waiting.call_id,
            name=waiting.name,
            tool=waiting.tool,
            args=waiting.arguments,
            branch=waiting.branch,
            author=waiting.author,
            pause=waiting.pause,
        )

    def tool_call(self, args: JsonObject | None = None) -> ToolCall:
        """The call as activities see it; with other arguments where given."""
        return ToolCall(
            key=self.key,
            call_id=self.call_id,
            tool=self.tool,
            args=self.args if args is None else args,
            fingerprint=self.pause.fingerprint,
            branch=self.branch,
            author=self.author,
        )

    def edited(self, checked: CheckedArgs) -> Call:
        """The call with arguments a person gave, as the tool's own checks left them.

        The tool stays the one that the person saw: where it changed since, they are asked again.
        """
        about = self.pause.model_copy(update={"summary": checked.summary})
        return self.model_copy(update={"args": checked.args or {}, "pause": about})

    def digest(self, *, thread_id: str, run_id: str) -> str:
        """What a permission for this call, as it is now, is bound to."""
        return call_digest(
            thread=thread_id,
            run=run_id,
            call=self.key,
            tool=self.tool,
            fingerprint=self.pause.fingerprint,
            arguments=self.args,
        )

    def flaw(self) -> str | None:
        """Why no permission can be bound to this call: its arguments have no canonical form."""
        try:
            self.digest(thread_id="", run_id="")
        except ValueError as problem:
            return f"The arguments have no canonical form: {problem}. Send large integers as text."
        return None

    @property
    def is_repeatable(self) -> bool:
        """Making it twice is as good as once."""
        return self.pause.idempotent or self.pause.effect == "read"

    def answer(self) -> CallAnswer:
        """What the next leg hands to ADK."""
        return CallAnswer(request_id=self.request_id, name=self.name, branch=self.branch, response=self.response or {})

    def settle(self, response: JsonObject, *, outcome: str, by: str | None = None) -> None:
        """The call has its response; the first one stays."""
        if self.response is not None:
            return
        self.response, self.outcome, self.by = response, outcome, by or self.by
        self.status, self.interrupt = "settled", None

    def settle_done(self, done: Done, *, by: str | None = None) -> None:
        """The tool ran."""
        payload = {
            "result": done.result,
            BLOB: None if done.blob is None else done.blob.model_dump(),
            "state": done.state_delta,
            "artifacts": done.artifact_delta,
            "actions": done.actions,
        }
        given = {name: value for name, value in payload.items() if value or (name == "result" and done.blob is None)}
        self.settle({"confirmed": True, "payload": given}, outcome="done", by=by)

    def settle_failed(self, failed: ToolFailed) -> None:
        """The tool said no: the model is told why."""
        payload: JsonObject = {"result": {"error": {"kind": failed.code, "message": failed.message}}}
        if failed.state_delta:
            payload["state"] = failed.state_delta
        self.settle({"confirmed": True, "payload": payload}, outcome="failed")

    def settle_refused(self, *, code: str, message: str, outcome: str, by: str | None = None) -> None:
        """The call is never made: a person said no, or nobody said yes in time."""
        self.settle({"confirmed": False, "payload": {"code": code, "message": message}}, outcome=outcome, by=by)

    def result(self) -> Json:
        """What the model sees of this call, or where that is (`blob`); None while it waits."""
        payload = self.payload()
        if self.kind != "tool" or self.response is None:
            return self.response
        if "result" in payload:
            return payload["result"]
        if BLOB in payload:
            return {BLOB: payload[BLOB]}
        return {"error": {"kind": payload.get("code"), "message": payload.get("message")}}

    def payload(self) -> JsonObject:
        """What stands beside `confirmed` in the response of a tool call; empty while it waits."""
        return as_object((self.response or {}).get("payload")) if self.kind == "tool" else {}

    def brief(self) -> CallView:
        """What is remembered of the call after its turn."""
        small = len(json.dumps(self.args)) <= MAX_KEPT_ARGUMENTS
        return CallView(
            id=self.key, tool=self.tool, arguments=self.args if small else {}, status=self.outcome, by=self.by
        )

    def view(self) -> CallView:
        """The call as the `run` query shows it."""
        return CallView(
            id=self.key, tool=self.tool, arguments=self.args, status=self.outcome, by=self.by, result=self.result()
        )


class Ending(BaseModel):
    """Why a run is being ended before its agent answered."""

    status: Literal["cancelled", "timeout"]
    error: RunError
    by: str


class CurrentRun(BaseModel):
    """The run a thread is busy with. `first`: position of the run's first event."""

    run_id: str
    number: int
    queued_at: float
    started_at: float
    first: int
    handed: Handed
    calls: list[Call] = []
    past: list[CallView] = []
    asked: int = 0
    made: int = 0
    temp: JsonObject = {}
    usage: Usage = Usage()
    legs: int = 0
    ending: Ending | None = None
    attributes: tuple[str, ...] = ()
    shown_waiting: bool = False

    def open_calls(self) -> list[Call]:
        """The calls without a response."""
        return [call for call in self.calls if call.response is None]

    def retire_calls(self, left: Iterable[Call] = ()) -> None:
        """The calls but those that are left have their place in the session; of the last 50, how they ended is kept."""
        kept = list(left)
        keys = {call.key for call in kept}
        self.calls = [call for call in self.calls if call.key not in keys]
        self.past, self.calls = self.retired(), kept

    def retired(self) -> list[CallView]:
        """How the paused calls of the run ended; big arguments and results are in the session only."""
        return [*self.past, *(call.brief() for call in self.calls)][-KEPT_CALLS:]

    def call_of_interrupt(self, interrupt_id: str) -> Call | None:
        """The call that waits under this interrupt id (approvals are in the ledger)."""
        return next((c for c in self.calls if c.interrupt and c.interrupt.id == interrupt_id), None)

    def call_of_key(self, key: str) -> Call:
        """The call with this key; it exists."""
        return next(call for call in self.calls if call.key == key)

    def next_interrupt(self) -> int:
        """A fresh number for an approval or another interrupt of this run."""
        self.asked += 1
        return self.asked

    def next_call(self) -> str:
        """A fresh key for a call of this run."""
        self.made += 1
        return f"{self.number}-{self.made}"


class RunRecord(BaseModel):
    """A run that ended. Its events are first..last-1 of the log; `answer` is kept where those are in the Store."""

    answer: str | None = None
    run_id: str
    number: int
    status: RunStatus
    error: RunError | None = None
    queued_at: float
    started_at: float | None = None
    ended_at: float
    first: int = 0
    last: int = 0
    usage: Usage = Usage()
    legs: int = 0
    calls: list[CallView] = []
