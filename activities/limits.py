"""What one leg may use: the thread and the project both have a say, and the smaller one counts."""

from __future__ import annotations

from typing import TypeVar

from agentvisor.project import ProjectLimits
from agentvisor.protocol import LegLimits
from workflows.messages import RunLimits, Usage

Number = TypeVar("Number", int, float)


def leg_limits(left: RunLimits, project: ProjectLimits, *, used: Usage) -> LegLimits:
    """The least of what the thread leaves to the run, and of the project's limits without what the run has used."""
    return LegLimits(
        model_calls=_least(left.model_calls, project.model_calls, used.model_calls),
        tool_calls=_least(left.tool_calls, project.tool_calls, used.tool_calls),
        tokens=_least(left.tokens, project.tokens, used.tokens),
        cost=_least(left.cost, project.cost, used.cost),
    )


def _least(left: Number | None, limit: Number | None, used: Number) -> Number | None:
    rest = None if limit is None else limit - used
    if left is None or rest is None:
        return rest if left is None else left
    return min(left, rest)
