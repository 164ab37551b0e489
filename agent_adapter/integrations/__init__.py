"""Bridges to agent frameworks, one package each; a framework is imported when its bridge is asked for."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

from agent_adapter.errors import ToolUsageError

__all__ = ["get_integration"]


def get_integration(name: str) -> Any:
    """The `INTEGRATION` of `agent_adapter.integrations.<name>`. Raises ToolUsageError if there is none."""
    module = f"{__name__}.{name}"
    if not name.isidentifier() or find_spec(module) is None:
        msg = f'There is no integration {name!r}. Use "adk".'
        raise ToolUsageError(msg)
    return import_module(module).INTEGRATION
