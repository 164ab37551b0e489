"""Tool calls under a host: a call that pauses its turn, and how its outcome comes back.

Phase 1 asks through ADK's tool confirmation, with a `PausedCall` for whoever holds the approval. The host makes the
call outside the turn. Phase 2 is the host's answer: it carries the outcome, and the tool hands that to ADK.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Literal, cast

from google.adk.events.event_actions import EventActions
from google.adk.tools.tool_context import ToolContext

from agent_adapter.approval.pause import PAYLOAD_KEY, PausedCall

Expires = float | Literal["never"] | None


@dataclass(frozen=True)
class _Host:
    expires: Expires


_host: ContextVar[_Host | None] = ContextVar("agent_adapter_host", default=None)
PLACEHOLDER = {"status": "waiting"}
"""What a call that waits shows in the session; its outcome replaces it before a model sees it."""


@contextmanager
def hosting(*, expires: Expires = None) -> Generator[None]:
    """Within it, a host is the gate: adapter tools pause their turn instead of asking a port of their own.

    `expires`: seconds until an approval does whose tool says nothing of it, or "never".
    """
    token = _host.set(_Host(expires))
    try:
        yield
    finally:
        _host.reset(token)


def is_hosted() -> bool:
    """A host gates the tool calls of this context."""
    return _host.get() is not None


def expiring(call: PausedCall) -> PausedCall:
    """The call; its approval expires when the host says, where its tool says nothing."""
    host = _host.get()
    if host is None or host.expires is None or call.expires is not None:
        return call
    return call.model_copy(update={"expires": host.expires})


def is_waiting(tool_context: ToolContext) -> bool:
    """The call asked for its outcome and has none yet: what a tool callback sees as its response is a placeholder.

    False in the second phase, where callbacks see the real response, and for every call that does not pause.
    """
    asked = tool_context.actions.requested_tool_confirmations
    return tool_context.tool_confirmation is None and tool_context.function_call_id in asked


def pause(tool_context: ToolContext, call: PausedCall) -> dict[str, Any]:
    """End phase 1: the turn pauses at this call. Returns what the tool must return."""
    hint = call.summary or ("waits for an approval" if call.approval else "")
    said = expiring(call) if call.approval else call
    tool_context.request_confirmation(hint=hint, payload={PAYLOAD_KEY: said.dump()})
    tool_context.actions.skip_summarization = True
    return dict(PLACEHOLDER)


def asks_by_itself(tool_context: ToolContext) -> bool:
    """The tool's own code, or a callback, has just asked for a confirmation, and `pause` has not."""
    if not is_waiting(tool_context):
        return False
    request = tool_context.actions.requested_tool_confirmations[tool_context.function_call_id or ""]
    return not (isinstance(request.payload, dict) and PAYLOAD_KEY in request.payload)


def has_outcome(tool_context: ToolContext) -> bool:
    """Phase 2: the confirmation is the host's answer, whoever asked for it. The call was made, or never will be."""
    return tool_context.tool_confirmation is not None


def outcome(tool_context: ToolContext) -> Any:
    """Phase 2: the result the host brought, its state and actions applied to the call; or why there is none."""
    answer = tool_context.tool_confirmation
    brought: Any = answer.payload if answer else None
    payload = cast("dict[str, Any]", brought) if isinstance(brought, dict) else {}
    if not answer or not answer.confirmed:
        kind = payload.get("code", "approval-denied")
        return {
            "error": {"kind": kind, "message": payload.get("message", "The call was not approved. It did not run.")}
        }
    for key, value in payload.get("state", {}).items():
        tool_context.state[key] = value
    tool_context.actions.artifact_delta.update(payload.get("artifacts", {}))
    actions = EventActions.model_validate(payload.get("actions", {}))
    for name in actions.model_fields_set:
        setattr(tool_context.actions, name, getattr(actions, name))
    return payload.get("result")
