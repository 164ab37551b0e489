"""One-use tokens."""

from __future__ import annotations

from google.adk.tools import ToolContext

from agent_adapter.context import Permission


def permission_of(tool_context: ToolContext) -> Permission | None:
    return None
