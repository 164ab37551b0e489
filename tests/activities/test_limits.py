"""What a leg may use is the smaller limit, of the thread or of the project, without what the run has used."""

from __future__ import annotations

from activities.limits import leg_limits
from agentvisor.project import ProjectLimits
from agentvisor.protocol import LegLimits
from workflows.messages import RunLimits, Usage

UNLIMITED = RunLimits(model_calls=None, tool_calls=None)


def test_the_smaller_limit_counts() -> None:
    thread = RunLimits(model_calls=5, tool_calls=13, tokens=1050, cost=1.25)
    project = ProjectLimits(model_calls=10, tool_calls=10, tokens=1000, cost=1.0)
    used = Usage(model_calls=2, tool_calls=4, tokens=950, cost=0.75)
    assert leg_limits(thread, project, used=used) == LegLimits(model_calls=3, tool_calls=6, tokens=50, cost=0.25)


def test_what_neither_limits_is_unlimited() -> None:
    assert leg_limits(UNLIMITED, ProjectLimits(), used=Usage(tokens=5)) == LegLimits()


def test_one_limit_is_enough() -> None:
    thread = RunLimits(model_calls=None, tool_calls=7)
    limits = leg_limits(thread, ProjectLimits(model_calls=5), used=Usage(model_calls=1, tool_calls=3))
    assert limits == LegLimits(model_calls=4, tool_calls=4)


def test_a_cost_that_calls_outside_the_turn_overdrew_stays_overdrawn() -> None:
    assert leg_limits(RunLimits(cost=1), ProjectLimits(), used=Usage(cost=3.0)).cost == -2
    assert leg_limits(UNLIMITED, ProjectLimits(cost=1), used=Usage(cost=3.0)).cost == -2
