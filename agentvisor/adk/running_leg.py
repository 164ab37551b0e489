"""The leg that runs here, as the host's ADK plugins see it: what it may use, and whether it must stop."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NoReturn

from agent_adapter.errors import RunLimitExceeded
from agentvisor.protocol import LegAnswered, LegFailed, LegLimits, LegPaused, LegYielded, Spent

Outcome = LegAnswered | LegPaused | LegFailed | LegYielded
REFUSED_TURNS = 3
"""So many turns of a leg may ask for calls that no limit allows any more; the model was told in each."""


class RunningLeg:
    """Counts what a leg uses. A leg stops by being cancelled from outside: no error event, no half-told story."""

    def __init__(self, limits: LegLimits) -> None:
        self.spent = Spent()
        self.model_error: BaseException | None = None
        self.may_yield = False
        self.yield_wanted = False
        self.stopped: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._limits = limits
        self._waiting = Spent()
        """What calls will use that this leg left to be made outside."""
        self._refused: str | None = None
        self._refused_turns = 0

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
        if what := self._no_model_call():
            self.exceed(what)
        if self.yield_wanted and self.may_yield:
            self.stop(LegYielded())
        if self.stopped.done():
            await self.stand_still()
        self.spent = self.spent.model_copy(update={"model_calls": self.spent.model_calls + 1})

    async def before_tool(self, cost: float = 0.0) -> RunLimitExceeded | None:
        """Called before each tool call; does not return where there must be none. What it returns is the outcome."""
        if self.stopped.done():
            await self.stand_still()
        if (what := self._no_tool_call(cost)) is None:
            return None
        self._refused = what
        return RunLimitExceeded(
            f"This run has no {what} left. Nothing was run. Answer with what you have; a new run starts anew."
        )

    def count_tool(self, cost: float = 0.0) -> None:
        self.spent = _plus(self.spent, 1, cost)

    def uncount_tool(self, cost: float = 0.0) -> None:
        """The call did not run here after all: it waits to be made outside."""
        self.spent, self._waiting = _plus(self.spent, -1, -cost), _plus(self._waiting, 1, cost)

    def uncount_model(self) -> None:
        """The model call raised: it gave nothing, and another attempt may make it again."""
        self.spent = self.spent.model_copy(update={"model_calls": self.spent.model_calls - 1})

    def count_tokens(self, tokens: int) -> None:
        self.spent = self.spent.model_copy(update={"tokens": self.spent.tokens + tokens})

    def exceed(self, what: str) -> None:
        """End the leg: without more of this it can do nothing of use."""
        text = (
            f"The run has used up its {what}. Raise the limits of the thread or of the project, "
            "or give the agent a smaller task."
        )
        self.stop(LegFailed(code="run-limit-exceeded", message=text))

    def _no_model_call(self) -> str | None:
        """What is used up, so that the model is not called."""
        limits, spent = self._limits, self.spent
        if limits.model_calls is not None and spent.model_calls >= limits.model_calls:
            return "model calls"
        if limits.tokens is not None and spent.tokens >= limits.tokens:
            return "tokens"
        if limits.cost is not None and spent.cost > limits.cost:
            return "cost"
        self._refused_turns += self._refused is not None
        refused, self._refused = self._refused, None
        return refused if self._refused_turns >= REFUSED_TURNS else None

    def _no_tool_call(self, cost: float) -> str | None:
        """What is used up, so that one more tool call of this cost is not made."""
        limits, spent, waiting = self._limits, self.spent, self._waiting
        if limits.tool_calls is not None and spent.tool_calls + waiting.tool_calls >= limits.tool_calls:
            return "tool calls"
        if limits.cost is not None and spent.cost + waiting.cost + cost > limits.cost:
            return "cost"
        return "tokens" if limits.tokens is not None and spent.tokens >= limits.tokens else None


def _plus(spent: Spent, tool_calls: int, cost: float) -> Spent:
    more = {"tool_calls": spent.tool_calls + tool_calls, "cost": max(0.0, spent.cost + cost)}
    return spent.model_copy(update=more)


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
