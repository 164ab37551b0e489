"""Our ToolContext over ADK's."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from typing import Any, NoReturn

from google.adk.sessions.state import State
from google.adk.tools.tool_context import ToolContext as AdkToolContext

from agent_adapter.approval.digest import digest
from agent_adapter.context import ToolContext
from agent_adapter.errors import ToolUsageError


class SessionState(MutableMapping[str, Any]):
    """The session's state as a mapping. ADK has no way to remove a key: write None instead."""

    def __init__(self, state: State) -> None:
        self._state = state

    def __getitem__(self, key: str) -> Any:
        return self._state[key]

    def __setitem__(self, key: str, value: Any) -> None:
        self._state[key] = value

    def __delitem__(self, key: str) -> NoReturn:
        msg = f"State {key!r} cannot be removed: ADK sessions keep every key. Write None instead."
        raise ToolUsageError(msg)

    def __iter__(self) -> Iterator[str]:
        return iter(self._state.to_dict())

    def __len__(self) -> int:
        return len(self._state.to_dict())


def repeatable_key(tool_context: AdkToolContext) -> str:
    """An idempotency key of what is called, for calls that a lost leg may repeat: their ids are others then.

    Derived from thread, run, agent, tool and the model's arguments, and from how many such calls the run made before.
    Empty for a call that is not in the session, or whose arguments have no canonical form.
    """
    made = [
        (event.author, call.name, call.args or {}, call.id)
        for event in tool_context.session.events
        if event.invocation_id == tool_context.invocation_id
        for call in event.get_function_calls()
    ]
    at = next((n for n, call in enumerate(made) if call[3] == tool_context.function_call_id), None)
    if at is None:
        return ""
    this = made[at][:3]
    before = sum(call[:3] == this for call in made[:at])
    try:
        return digest([tool_context.session.id, tool_context.invocation_id, *this, before])
    except ValueError:
        return ""


def bind_context(tool_context: AdkToolContext) -> ToolContext:
    """Our context of an ADK tool call: run = invocation id, call = function call id, thread = session id.

    State that is written through it is written to the call's own state delta.
    """
    return ToolContext(
        run=tool_context.invocation_id,
        call=tool_context.function_call_id or "",
        thread=tool_context.session.id,
        principal=tool_context.user_id,
        state=SessionState(tool_context.state),
        framework=tool_context,
    )
