"""What one leg may use: the thread and the project both have a say, and the smaller one counts."""

from __future__ import annotations

from typing import TypeVar

from agentvisor.project import ProjectLimits
from agentvisor.protocol import LegLimits
from workflows.messages import RunLimits, Usage

Number = TypeVar("Number", int, float)


def leg_limits(thread: RunLimits, project: ProjectLimits, *, used: Usage) -> LegLimits:
    """The lesser of both limits, without what the run has used."""
    return LegLimits(
        model_calls=_left(thread.model_calls, project.model_calls, used.model_calls),
        tool_calls=_left(thread.tool_calls, project.tool_calls, used.tool_calls),
        tokens=_left(thread.tokens, project.tokens, used.tokens),
        cost=_left(thread.cost, project.cost, used.cost),
    )


def _left(one: Number | None, other: Number | None, used: Number) -> Number | None:
    limits = [limit for limit in (one, other) if limit is not None]
    return min(limits) - used if limits else None
