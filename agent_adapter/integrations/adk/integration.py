"""What `get_integration("adk")` returns."""

from __future__ import annotations

from dataclasses import dataclass

from google.adk.tools import BaseTool

from agent_adapter.executor import Executor
from agent_adapter.integrations.adk.tool import adk_tool, adk_tools
from agent_adapter.registry import ToolRegistry
from agent_adapter.spec import ToolSpec


@dataclass(frozen=True)
class AdkIntegration:
    """The bridge to Google ADK, for code that is given the name of its framework."""

    name: str = "adk"

    def tool(self, spec: ToolSpec, *, executor: Executor | None = None) -> BaseTool:
        """As `adk_tool`."""
        return adk_tool(spec, executor=executor)

    def tools(self, registry: ToolRegistry, *, executor: Executor | None = None) -> list[BaseTool]:
        """As `adk_tools`."""
        return adk_tools(registry, executor=executor)


INTEGRATION = AdkIntegration()
