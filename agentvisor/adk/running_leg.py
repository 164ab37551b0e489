"""The leg that runs here, as the host's ADK plugins see it: what it may use, and whether it must stop."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NoReturn

from agentvisor.protocol import LegAnswered, LegFailed, LegLimits, LegPaused, LegYielded, Spent

Outcome = LegAnswered | LegPaused | LegFailed | LegYielded


class RunningLeg:
    """Counts what a leg uses. A leg stops by being cancelled from outside: no error event, no half-told story."""

    def __init__(self, limits: LegLimits) -> None:
        self.spent = Spent()
        self.model_error: BaseException | None = None
        self.may_yield = False
        self.yield_wanted = False
        self.stopped: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._limits = limits
        self._waiting = 0

    def stop(self, outcome: Outcome) -> None:
        """End the leg with this outcome. The first one counts."""
        if not self.stopped.done():
            self.stopped.set_result(outcome)

    async def stand_still(self) -> NoReturn:
        """Wait to be cancelled: the leg has its outcome."""
        await asyncio.Event().wait()
        raise AssertionError

    async def before_model(self) -> None:
        """Called before each model call; does not return where there must be none."""
        self._check_model_limits()
        if self.yield_wanted and self.may_yield:
            self.stop(LegYielded())
        if self.stopped.done():
            await self.stand_still()
        self.spent = self.spent.model_copy(update={"model_calls": self.spent.model_calls + 1})

    async def before_tool(self) -> None:
        """Called before each tool call; does not return where there must be none."""
        limit = self._limits.tool_calls
        if limit is not None and self.spent.tool_calls + self._waiting >= limit:
            self._exceeded(f"tool calls ({limit} left for this leg)")
        if self.stopped.done():
            await self.stand_still()

    def count_tool(self, cost: float = 0.0) -> None:
        more = {"tool_calls": self.spent.tool_calls + 1, "cost": self.spent.cost + cost}
        self.spent = self.spent.model_copy(update=more)

    def uncount_tool(self, cost: float = 0.0) -> None:
        """The call did not run here after all: it waits to be made outside."""
        self._waiting += 1
        less = {"tool_calls": self.spent.tool_calls - 1, "cost": max(0.0, self.spent.cost - cost)}
        self.spent = self.spent.model_copy(update=less)

    def count_tokens(self, tokens: int) -> None:
        self.spent = self.spent.model_copy(update={"tokens": self.spent.tokens + tokens})

    def _check_model_limits(self) -> None:
        limits, spent = self._limits, self.spent
        if limits.model_calls is not None and spent.model_calls >= limits.model_calls:
            self._exceeded(f"model calls ({max(0, limits.model_calls)} left for this leg)")
        elif limits.tokens is not None and spent.tokens >= limits.tokens:
            self._exceeded(f"tokens ({max(0, limits.tokens)} left for this leg)")
        elif limits.cost is not None and spent.cost > limits.cost:
            self._exceeded(f"cost ({max(0.0, limits.cost):g} left for this leg)")

    def _exceeded(self, what: str) -> None:
        text = (
            f"The run has used up its {what}. Raise the limits of the thread or of the project, "
            "or give the agent a smaller task."
        )
        self.stop(LegFailed(code="run-limit-exceeded", message=text))


_running: ContextVar[RunningLeg | None] = ContextVar("agentvisor_running_leg", default=None)


def running_leg() -> RunningLeg | None:
    """The leg this code runs in; None in a single call."""
    return _running.get()


@contextmanager
def running(leg: RunningLeg) -> Generator[None]:
    """Within it, and in what is started there, `running_leg()` is `leg`."""
    token = _running.set(leg)
    try:
        yield
    finally:
        _running.reset(token)
