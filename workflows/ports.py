"""The activities a workflow may ask for. `activities/` implements them, one file per class."""

from __future__ import annotations

from abc import ABC, abstractmethod

from temporalio import activity

from workflows.messages import (
    CheckArgs,
    CheckedArgs,
    KeepEvents,
    KeptEvents,
    LegResult,
    Probed,
    ProbeTool,
    RunAgent,
    RunTool,
    ToolResult,
)


class AgentActivities(ABC):
    """Drive the ADK agent of a thread."""

    @activity.defn
    @abstractmethod
    async def run_agent(self, leg: RunAgent) -> LegResult:
        """Run one leg: until the agent answers, pauses, fails or hands over. Heartbeats carry its progress."""


class ToolActivities(ABC):
    """Make, check and look after single tool calls."""

    @activity.defn
    @abstractmethod
    async def run_tool(self, request: RunTool) -> ToolResult:
        """Make one call. Any exception out of here means that nobody knows whether the tool took effect."""

    @activity.defn
    @abstractmethod
    async def check_args(self, request: CheckArgs) -> CheckedArgs:
        """Validate, guard and judge arguments a person edited. No effect."""

    @activity.defn
    @abstractmethod
    async def probe_tool(self, request: ProbeTool) -> Probed:
        """Ask the tool's probe whether a call took effect. No effect of its own."""


class EventActivities(ABC):
    """Keep the events of long threads outside of history."""

    @activity.defn
    @abstractmethod
    async def keep_events(self, request: KeepEvents) -> KeptEvents:
        """Ask the thread for its oldest events and put them into the Store. To do it twice is as good as once."""
