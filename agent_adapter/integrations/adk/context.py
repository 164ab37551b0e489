"""Our ToolContext over ADK's."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from typing import Any, NoReturn

from google.adk.sessions.state import State
from google.adk.tools.tool_context import ToolContext as AdkToolContext

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
