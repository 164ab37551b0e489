"""What agentvisor.yaml says of a project's calls, as its guests go by it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Self

from google.adk.tools import BaseTool

from agent_adapter.integrations.adk.tool import AdapterTool
from agentvisor.project import PlainTool, ProjectConfig

NOTHING_SAID = PlainTool()


@dataclass(frozen=True)
class ProjectRules:
    """What is said of plain tools, by name; and when approvals expire whose tool does not say it."""

    tools: Mapping[str, PlainTool] = field(default_factory=dict[str, PlainTool])
    expires: float | Literal["never"] | None = None

    @classmethod
    def of(cls, config: ProjectConfig) -> Self:
        """The rules of a project with this agentvisor.yaml."""
        return cls(config.tools, config.approvals.expires)

    def about(self, tool: BaseTool) -> PlainTool:
        """What holds for this tool."""
        return NOTHING_SAID if speaks_for_itself(tool) else self.tools.get(tool.name, NOTHING_SAID)


def speaks_for_itself(tool: BaseTool) -> bool:
    """The tool's own code says how it is called: an adapter tool, or one that waits for an answer anyway."""
    return isinstance(tool, AdapterTool) or tool.is_long_running
