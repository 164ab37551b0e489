"""Every value that crosses a Temporal boundary.

Rules of this file: never rename or retype a field; add one with a default. Unknown fields are ignored, so an older
worker reads what a newer one wrote. A field that equals its default is not sent: history pays for every byte.
"""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any, ClassVar, Literal, Self, cast

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    StrictBool,
    StrictInt,
    StrictStr,
    field_serializer,
    model_serializer,
    model_validator,
)

CONFIRMATION = "adk_request_confirmation"
"""The name of the function call by which ADK asks for the confirmation of another one."""
type_ = type
Json = Any
"""A JSON value: None, bool, int, float, str, a list or a dict with str keys."""
JsonObject = dict[str, Any]


def as_object(value: Any) -> JsonObject:
    """The value where it is a JSON object; an empty one otherwise."""
    return cast("JsonObject", value) if isinstance(value, dict) else {}


THREAD_ID = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$"
MAX_SECONDS = 10 * 365 * 86400.0
"""The longest time anything may be told to take: ten years. Clocks and Temporal refuse much longer ones."""
MIN_SECONDS = 0.001
"""The shortest one. Temporal takes a timeout that rounds to nothing for none at all."""
MAX_INLINE = 1024 * 1024
By = Annotated[StrictStr, Field(min_length=1, max_length=3000)]
"""Who sent something."""
Id = Annotated[StrictStr, Field(max_length=128)]
"""An id that somebody sends back."""
RUN_ID = r"^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$"

_TAGS = frozenset({"kind"})


class Message(BaseModel):
    """Base of all boundary values: frozen, tolerant of unknown fields, silent about defaults."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    _shows_defaults: ClassVar[bool] = False

    @model_serializer(mode="wrap")
    def _without_defaults(self, handler: SerializerFunctionWrapHandler) -> JsonObject:
        if self._shows_defaults:
            return handler(self)
        defaults = _defaults(type_(self))
        return {
            name: value
            for name, value in handler(self).items()
            if name in _TAGS or name not in defaults or getattr(self, name) != defaults[name]
        }


@cache
def _defaults(message: type_[BaseModel]) -> JsonObject:
    """What the fields of a message are where nobody says otherwise; a required one is like nothing else."""
    return {name: field.get_default(call_default_factory=True) for name, field in message.model_fields.items()}


class View(Message):
    """Base of what queries and updates answer: every field is there, since people and scripts read it."""

    _shows_defaults: ClassVar[bool] = True


# ---- the thread ----------------------------------------------------------------------------------------------------


class RunLimits(Message):
    """What one run may use. None means unlimited. `seconds` counts from the start of the run, waiting included."""

    model_calls: int | None = Field(default=100, ge=0)
    tool_calls: int | None = Field(default=200, ge=0)
    tokens: int | None = Field(default=None, ge=0)
    cost: float | None = Field(default=None, ge=0)
    seconds: float | None = Field(default=None, ge=MIN_SECONDS, le=MAX_SECONDS)


class Usage(Message):
    """What a leg or a call has used, in the units of RunLimits."""

    model_calls: int = 0
    tool_calls: int = 0
    tokens: int = 0
    cost: float = 0.0

    def plus(self, other: Usage) -> Usage:
        return Usage(
            model_calls=self.model_calls + other.model_calls,
            tool_calls=self.tool_calls + other.tool_calls,
            tokens=self.tokens + other.tokens,
            cost=self.cost + other.cost,
        )


class Options(Message):
    """How a thread behaves. Times are seconds."""

    approval_ttl: float | None = Field(default=7 * 86400.0, ge=MIN_SECONDS, le=MAX_SECONDS)
    """How long an approval waits before it expires; None: for ever. A tool's own value goes first."""
    limits: RunLimits = RunLimits()
    runs_per_execution: int = Field(default=30, ge=1)
    """Continue-as-new after so many runs, ..."""
    events_per_execution: int = Field(default=500, ge=50)
    """... or so many events of history: what a worker must read again that meets the thread for the first time."""
    leg_timeout: float = Field(default=3600.0, ge=MIN_SECONDS, le=MAX_SECONDS)
    leg_attempts: int = Field(default=5, ge=1, le=1000)
    tool_timeout: float = Field(default=300.0, ge=MIN_SECONDS, le=MAX_SECONDS)
    heartbeat_timeout: float = Field(default=10.0, ge=MIN_SECONDS, le=MAX_SECONDS)
    """Of calls: one that is silent for longer has an unknown outcome."""
    leg_heartbeat_timeout: float = Field(default=3.0, ge=MIN_SECONDS, le=MAX_SECONDS)
    """Of legs: one that is silent for longer is tried again from its last heartbeat, elsewhere."""
    inline_bytes: int = Field(default=4096, ge=0, le=MAX_INLINE)
    """Input of a leg up to this size travels in the activity input; a bigger one is asked for by query."""


class StartThread(Message):
    """Input of ThreadWorkflow."""

    agent: str = Field(min_length=1, max_length=256)
    principal: str = Field(default="temporal", min_length=1, max_length=4096)
    app: str | None = Field(default=None, max_length=256)
    state: JsonObject = {}
    metadata: JsonObject = {}
    options: Options = Options()
    carried: Json = None
    """The thread's own state at continue-as-new; never set by clients."""


# ---- signals and updates: what people and clients send -------------------------------------------------------------


class RunRequest(Message):
    """Input of the `run` signal. `message`: text, or ADK Content as JSON (role user; text and data parts only)."""

    run_id: StrictStr | None = Field(default=None, pattern=RUN_ID)
    message: Json = None
    state_delta: JsonObject = {}


class Decide(Message):
    """Input of the `decide` update. `approved` is true or false, never "true" or 1."""

    approval_id: Id
    approved: StrictBool
    edited_args: JsonObject | None = None
    reason: StrictStr | None = Field(default=None, max_length=4000)
    by: By = "temporal"

    @model_validator(mode="after")
    def _edits_only_when_approved(self) -> Self:
        if self.edited_args is not None and not self.approved:
            msg = "edited_args go with approved: true only"
            raise ValueError(msg)
        return self


class InputAnswer(Message):
    """An answer to an `input` interrupt."""

    kind: Literal["input"] = "input"
    interrupt_id: Id
    value: Json
    by: By = "temporal"


class LongRunningAnswer(Message):
    """Progress (`final` false) or the result (`final` true) of a long-running tool."""

    kind: Literal["long_running"] = "long_running"
    interrupt_id: Id
    result: Json
    final: StrictBool = True
    by: By = "temporal"


class UnknownOutcomeDone(Message):
    """A person found that the call took effect, with this result."""

    kind: Literal["done"] = "done"
    interrupt_id: Id
    result: Json
    by: By = "temporal"


class UnknownOutcomeNotDone(Message):
    """A person found that the call had no effect; the model is told that it failed."""

    kind: Literal["not_done"] = "not_done"
    interrupt_id: Id
    reason: StrictStr | None = Field(default=None, max_length=4000)
    by: By = "temporal"


class UnknownOutcomeRunAgain(Message):
    """A person wants the call to be made again, under a new token."""

    kind: Literal["run_again"] = "run_again"
    interrupt_id: Id
    by: By = "temporal"


Answer = Annotated[
    InputAnswer | LongRunningAnswer | UnknownOutcomeDone | UnknownOutcomeNotDone | UnknownOutcomeRunAgain,
    Field(discriminator="kind"),
]
"""Input of the `answer` update. For `unknown_outcome` the kind is `done`, `not_done` or `run_again`."""


class CancelRun(Message):
    """Input of the `cancel_run` update."""

    run_id: Id
    by: By = "temporal"


class PutState(Message):
    """Input of the `put_state` update."""

    values: JsonObject = {}
    delete: tuple[StrictStr, ...] = ()
    if_revision: StrictInt | None = None


class AppendEvents(Message):
    """Input of the `append_events` update: ADK Event JSON, in order."""

    events: tuple[JsonObject, ...]
    if_revision: StrictInt


class Receipt(View):
    """Result of `decide` and `answer`. `at` is UTC, ISO 8601."""

    id: str
    status: str
    """approved, denied, answered, progress, done, not_done or run_again."""
    by: str
    at: str


class Revision(View):
    """Result of `put_state`, `append_events` and `clear`: the thread's revision after it."""

    revision: int


# ---- queries -------------------------------------------------------------------------------------------------------

RunStatus = Literal["queued", "running", "waiting", "success", "error", "cancelled", "timeout"]
ThreadStatus = Literal["idle", "busy", "waiting", "closed"]
InterruptKind = Literal["approval", "input", "long_running", "unknown_outcome"]


class RunError(Message):
    """Why a run ended as error, cancelled or timeout. `kind` is stable; `message` is for people."""

    code: str
    message: str


class Interrupt(View):
    """What a run waits for from outside. Times are UTC, ISO 8601."""

    kind: InterruptKind
    id: str
    thread_id: str
    run_id: str
    agent: str
    principal: str
    tool: str
    arguments: JsonObject
    summary: str | None = None
    since: str
    deadline: str | None = None
    being_decided: bool = False
    editable: bool = True
    progress: tuple[Json, ...] = ()
    detail: str | None = None
    """For `unknown_outcome`: what is known of the attempt."""


class CallView(View):
    """One paused tool call of a run, as the `run` query shows it."""

    id: str
    tool: str
    arguments: JsonObject
    status: str
    by: str | None = None
    result: Json = None


class RunView(View):
    """Result of the `run` query."""

    run_id: str
    status: RunStatus
    number: int = 0
    message: Json = None
    answer: str | None = None
    """The text of the final response; None until the run ended well.

    A thread that continues as new forgets the longest answers of earlier runs, more than 32 KiB together: its session
    has them.
    """
    error: RunError | None = None
    queued_at: str
    started_at: str | None = None
    ended_at: str | None = None
    interrupts: tuple[Interrupt, ...] = ()
    calls: tuple[CallView, ...] = ()
    usage: Usage = Usage()
    legs: int = 0

    @field_serializer("usage")
    def _whole(self, usage: Usage) -> JsonObject:
        return {name: getattr(usage, name) for name in Usage.model_fields}


class ThreadView(View):
    """Result of the `thread` query. `recent`: the last finished runs, oldest first, without answers and calls."""

    thread_id: str
    agent: str
    principal: str
    app: str | None = None
    status: ThreadStatus
    revision: int
    current: str | None = None
    queued: tuple[str, ...] = ()
    recent: tuple[RunView, ...] = ()
    state: JsonObject = {}
    metadata: JsonObject = {}
    events: int = 0
    runs: int = 0


class Position(Message):
    """Where a copy of a session stands: how many events it holds, and the id of the last one."""

    count: int = 0
    head: str = ""

    _shows_defaults: ClassVar[bool] = True  # it costs nothing: a position at the start is left out as a whole


class BlobRef(Message):
    """A value of a thread in the Store: SHA-256 of its JSON text, and how many bytes that has."""

    digest: str
    size: int


class KeptEvents(Message):
    """The first events of a session, up to `end`, in the Store: `digest` names the last segment of them.

    A segment is a blob of the thread, `{"before": digest or null, "events": [...]}`, and names the one before it.
    """

    digest: str
    end: Position


class SessionRequest(Message):
    """Input of the `session` query: events after `since`, at most `max_bytes` of them (one at least).

    `state_only` asks for the state without any event.
    """

    since: Position = Position()
    max_bytes: int = Field(default=512 * 1024, ge=1024)
    answers_from: int = Field(default=0, ge=0)
    """How many answers of `handed` the asker has already."""
    state_only: bool = False


class SessionPage(View):
    """Result of the `session` query.

    `base` is where `events` begin: `since` where the thread knows that position, else the first position it holds (the
    asker drops its copy). What comes before it is then in the Store, as `kept` says; without `kept`, nothing does.
    `end` is the position after `events`, `head` the thread's own; another page follows while they differ. `state` holds
    the values the session had at its very beginning and, where `state_only`, the current ones.
    `handed` is the input of the leg that is due, from the page on where `end` is `head`; while `answers_left` is not 0,
    ask again with the number of answers that have arrived.
    """

    base: Position
    end: Position
    head: Position
    events: tuple[JsonObject, ...] = ()
    kept: KeptEvents | None = None
    state: JsonObject = {}
    handed: Handed | None = None
    answers_left: int = 0


class ApprovalAsked(Message):
    """Input of the `approval` query."""

    approval_id: Id


class ApprovalView(View):
    """Result of the `approval` query. `status`: pending, approved, denied, expired, withdrawn or consumed (used up).

    `by`: who settled it; None while it is pending.
    """

    id: str
    status: Literal["pending", "approved", "denied", "expired", "withdrawn", "consumed"]
    by: str | None = None


class GrantRequest(Message):
    """Input of the `grant` query."""

    token: str


class GrantView(View):
    """Result of the `grant` query: what the token was minted for and which activity it was spent on."""

    approval_id: str
    digest: str
    activity_id: str | None = None


# ---- activities: one leg -------------------------------------------------------------------------------------------


class CallAnswer(Message):
    """The response to the function call `request_id` of a paused turn."""

    request_id: str
    name: str = CONFIRMATION
    branch: str | None = None
    response: JsonObject


class Handed(Message):
    """Input of one leg: the user's message (first leg), or the answers of the turn that paused, or neither (go on)."""

    message: Json = None
    answers: tuple[CallAnswer, ...] = ()
    state_delta: JsonObject = {}


class RunAgent(Message):
    """Input of `run_agent`. `handed` None: too big for the input, ask the thread.

    The thread is the workflow that asks, here as in every other activity. `limits`: of the run, as the thread has them.
    `used`: what of them, and of the project's, the run has used.
    """

    agent: str
    principal: str
    run_id: str
    base: Position = Position()
    handed: Handed | None = None
    state: JsonObject | None = None
    """What the session begins with, where `base` is its beginning; None: ask the thread."""
    temp: JsonObject = {}
    limits: RunLimits = RunLimits()
    used: Usage = Usage()
    attempts: int = 5


class Answered(Message):
    """The run has its answer."""

    kind: Literal["answered"] = "answered"


WAITING_ATTRIBUTES = frozenset({"PendingTools", "WaitingSince"})
"""The search attributes a thread sets when it begins to wait for a person, and unsets when that ends."""


class Paused(Message):
    """Calls of the turn wait for the thread; which ones is in the events.

    `attributes`: the search attributes that exist in this namespace, of those the thread would set.
    """

    kind: Literal["paused"] = "paused"
    attributes: tuple[str, ...] = tuple(sorted(WAITING_ATTRIBUTES))


MESSAGE_INVALID = "message-invalid"
"""Code of a leg whose agent framework cannot read the user's message."""


class Failed(Message):
    """The leg cannot go on. `code` is stable, the text is for people."""

    kind: Literal["failed"] = "failed"
    code: str
    message: str


class HandedOver(Message):
    """The leg stopped at a safe point (the worker drains, its progress grew large); the next leg goes on from here."""

    kind: Literal["handed_over"] = "handed_over"


class Stopped(Message):
    """The leg was cancelled; its events say how far it came."""

    kind: Literal["stopped"] = "stopped"


LegOutcome = Annotated[Answered | Paused | Failed | HandedOver | Stopped, Field(discriminator="kind")]


class LegResult(Message):
    """Result of `run_agent`: the outcome and only the new events, stripped by `workflows.events`."""

    outcome: LegOutcome
    events: tuple[JsonObject, ...] = ()
    temp: JsonObject = {}
    usage: Usage = Usage()


# ---- activities: one call ------------------------------------------------------------------------------------------


class Grant(Message):
    """A spent token: it permits exactly the call with this digest, made by the activity it was spent on.

    `digest` binds thread, run, call key, tool, fingerprint and arguments.
    """

    token: str
    approval_id: str
    digest: str


class Once(Message):
    """What a call that is made at most once is spent under, outside of history.

    `thread`: the first execution of the thread, which a reset keeps and a reborn thread does not have. `round`: how
    often a person wanted the call made again.
    """

    thread: str
    round: int = 0


class ToolCall(Message):
    """One call of a turn. `key` is unique in the thread; `call_id` is the model's own and may repeat."""

    key: str
    call_id: str
    tool: str
    args: JsonObject
    fingerprint: str = ""
    """Of the tool as the caller saw it: its version, schema and rule."""
    branch: str | None = None
    author: str = ""
    """The agent that made the call."""


class RunTool(Message):
    """Input of `run_tool`."""

    agent: str
    principal: str
    run_id: str
    call: ToolCall
    grant: Grant | None = None
    once: Once | None = None
    """Set for a call that must not be made twice, whatever becomes of this history."""


class Done(Message):
    """The tool ran. `result` is what the model sees; a large one is in the Store, as ADK shows it: an object."""

    kind: Literal["done"] = "done"
    result: Json = None
    blob: BlobRef | None = None
    state_delta: JsonObject = {}
    artifact_delta: dict[str, int] = {}
    actions: JsonObject = {}


class ToolFailed(Message):
    """The tool itself, its arguments or a guard said no. `code` and `message` reach the model."""

    kind: Literal["tool_failed"] = "tool_failed"
    code: str
    message: str
    state_delta: JsonObject = {}


class NotStarted(Message):
    """The call never reached the tool: it may be made again."""

    kind: Literal["not_started"] = "not_started"
    message: str


class NeedsApproval(Message):
    """The tool changed since the call was made, or its rule now asks: a person must see it (again)."""

    kind: Literal["needs_approval"] = "needs_approval"
    reason: str
    args: JsonObject
    fingerprint: str
    pause: JsonObject = {}
    """The call's PausedCall as JSON, made of the tool as it now is. Empty: nothing is known, a write is assumed."""


ToolOutcome = Annotated[Done | ToolFailed | NotStarted | NeedsApproval, Field(discriminator="kind")]


class ToolResult(Message):
    """Result of `run_tool`. Whatever else comes out of the activity is an unknown outcome."""

    outcome: ToolOutcome
    usage: Usage = Usage()


class CheckArgs(Message):
    """Input of `check_args`: a person's edited arguments, to be validated, guarded and judged."""

    agent: str
    principal: str
    run_id: str
    call: ToolCall


class CheckedArgs(Message):
    """Result of `check_args`: the arguments as the tool will get them, or why it will not."""

    args: JsonObject | None = None
    fingerprint: str = ""
    summary: str | None = None
    code: str | None = None
    message: str | None = None


class ProbeTool(Message):
    """Input of `probe_tool`: ask the tool's `probe` what became of a call whose outcome is unknown."""

    agent: str
    principal: str
    run_id: str
    call: ToolCall


class Probed(Message):
    """Result of `probe_tool`."""

    outcome: Literal["done", "not_done", "unknown"]
    result: Json = None


# ---- activities: old events ----------------------------------------------------------------------------------------


class KeepEvents(Message):
    """Input of `keep_events`: put the events after `kept`, up to the one with the number `until`, into the Store."""

    kept: KeptEvents | None = None
    until: int


SessionPage.model_rebuild()
