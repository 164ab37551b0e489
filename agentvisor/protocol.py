"""What host and guest say to each other. Frames and transport: `agentvisor.channel`.

The host asks `leg`, `call`, `check` and `probe`; on behalf of a leg or a call the guest may ask back `session`, and
on behalf of a call `begin`.
Whom a request is about is decided by the request it belongs to, never by what the guest writes.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

JsonObject = dict[str, Any]
_MOST = 10**15
"""More than anything a leg can use: sums of what guests say must stay numbers."""


class Frame(BaseModel):
    """Base of all protocol messages: frozen; unknown fields are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore")


# ---- notes from guest to host --------------------------------------------------------------------------------------


class AgentInfo(Frame):
    """One agent of the project, as its guest loaded it."""

    name: str
    description: str = ""
    tools: tuple[str, ...] = ()


class LeftOut(Frame):
    """A tool that no agent of the project has, since no model can be shown what it takes."""

    tool: str
    reason: str
    """A message for the project's author."""


class Hello(Frame):
    """First note of a guest (request id 0): what it loaded, or why it could not."""

    pid: int
    agents: tuple[AgentInfo, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    error: str | None = None
    """A message for the project's author: what is wrong, where, and the way out."""


class Alive(Frame):
    """Sent once a second from the guest's event loop (request id 0)."""


# ---- one leg -------------------------------------------------------------------------------------------------------


class Base(Frame):
    """A position in a session: how many events, and the id of the last one."""

    count: int = 0
    head: str = ""


class BranchAnswer(Frame):
    """The response to one function call that the last leg left open."""

    request_id: str
    name: str
    branch: str | None = None
    response: JsonObject


class LegInput(Frame):
    """A user's message, or the answers of a paused turn, or neither: go on where the session stands."""

    message: JsonObject | None = None
    answers: tuple[BranchAnswer, ...] = ()
    state_delta: JsonObject = {}


class LegLimits(Frame):
    """What the run has left; None: unlimited."""

    model_calls: int | None = None
    tool_calls: int | None = None
    tokens: int | None = None
    cost: float | None = None


class Spent(Frame):
    """What a leg or call used."""

    model_calls: int = 0
    tool_calls: int = 0
    tokens: int = 0
    cost: float = 0.0

    @field_validator("*")
    @classmethod
    def _bounded(cls, count: float) -> float:
        return type(count)(min(max(0, count), _MOST))


class EventNote(Frame):
    """A stored event of a running leg: ADK Event JSON, camelCase, without None; and what the leg used until now."""

    event: JsonObject
    spent: Spent = Spent()

    @field_validator("event")
    @classmethod
    def _has_an_id(cls, event: JsonObject) -> JsonObject:
        if not isinstance(event.get("id"), str) or not event["id"]:
            msg = "an event has an id: a thread finds its place by it"
            raise ValueError(msg)
        if any(key.startswith("~") for key in event):
            msg = "a field of an event begins with '~': the host says there what it left out"
            raise ValueError(msg)
        return event


class RunLeg(Frame):
    """Request `leg`. `given` None: ask `session` for it. `progress`: events of an attempt that ended early.

    `state`: what the session begins with, where `base` is its beginning; None: ask `session`.
    """

    thread_id: str
    principal: str
    agent: str
    run_id: str
    base: Base
    given: LegInput | None = None
    state: JsonObject | None = None
    progress: tuple[JsonObject, ...] = ()
    temp: JsonObject = {}
    limits: LegLimits = LegLimits()


class SessionWanted(Frame):
    """Request `session`, from the guest on behalf of a leg or call.

    `state_only`: no events, the current state in `state`.
    """

    since: Base = Base()
    state_only: bool = False


class SessionGiven(Frame):
    """All events after `base` and what the leg was given. `base` is empty where the guest must drop its copy.

    `state`: the values the session had before its first event; with `state_only` the current ones.
    """

    base: Base = Base()
    events: tuple[JsonObject, ...] = ()
    state: JsonObject = {}
    given: LegInput | None = None


class LegAnswered(Frame):
    """The agent answered."""

    kind: Literal["answered"] = "answered"


class LegPaused(Frame):
    """Calls of the turn wait; they are in the events (long-running ids)."""

    kind: Literal["paused"] = "paused"


class LegFailed(Frame):
    """The leg cannot go on. `retryable`: another attempt may succeed (a model that is down, say)."""

    kind: Literal["failed"] = "failed"
    code: str
    message: str
    retryable: bool = False


class LegYielded(Frame):
    """The leg stopped at a safe point because the host asked it to (`yield_leg`)."""

    kind: Literal["yielded"] = "yielded"


class LegEnd(Frame):
    """Answer to `leg`. Events went before it as notes."""

    outcome: Annotated[LegAnswered | LegPaused | LegFailed | LegYielded, Field(discriminator="kind")]
    temp: JsonObject = {}
    spent: Spent = Spent()


class YieldLeg(Frame):
    """Request `yield_leg`: let the leg of this thread stop at its next safe point. Answer: an empty object."""

    thread_id: str


# ---- one call ------------------------------------------------------------------------------------------------------


class RunCall(Frame):
    """Request `call` (make it), `check` (validate, guard and judge `args`) or `probe` (what became of it?)."""

    thread_id: str
    principal: str
    agent: str
    run_id: str
    key: str
    call_id: str
    tool: str
    args: JsonObject
    fingerprint: str = ""
    idempotency_key: str = ""
    approved: bool = False
    """The host verified the grant of exactly this call."""
    author: str = ""
    branch: str | None = None
    attempt: int = 1
    asks_to_begin: bool = False
    """The guest asks `begin` (an empty object both ways) before it enters the tool; where refused, it does not."""


class CallDone(Frame):
    """The tool returned."""

    kind: Literal["done"] = "done"
    result: Any = None
    state_delta: JsonObject = {}
    artifact_delta: dict[str, int] = {}
    actions: JsonObject = {}


class CallFailed(Frame):
    """The tool, its arguments or a guard said no: a model-facing error. `started`: the tool's body was entered."""

    kind: Literal["failed"] = "failed"
    code: str
    message: str
    started: bool = False
    state_delta: JsonObject = {}


class CallNeedsApproval(Frame):
    """The call may not run without a (new) approval: its rule asks, or the tool changed."""

    kind: Literal["needs_approval"] = "needs_approval"
    reason: str
    args: JsonObject
    fingerprint: str
    pause: JsonObject = {}
    """The call's PausedCall as JSON, made of the tool as it now is."""


class CallEnd(Frame):
    """Answer to `call`."""

    outcome: Annotated[CallDone | CallFailed | CallNeedsApproval, Field(discriminator="kind")]
    spent: Spent = Spent()


class CheckEnd(Frame):
    """Answer to `check`: validated `args`, or `code` and `message` of the refusal."""

    args: JsonObject | None = None
    fingerprint: str = ""
    summary: str | None = None
    code: str | None = None
    message: str | None = None


class ProbeEnd(Frame):
    """Answer to `probe`."""

    outcome: Literal["done", "not_done", "unknown"]
    result: Any = None
