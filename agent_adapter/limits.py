"""What a run may use, and what it has used."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

from agent_adapter.errors import RunLimitExceeded

_RUNS_KEPT = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLimits:
    """Upper bounds of one run; None: unlimited. `seconds` counts from the first that is heard of the run."""

    model_calls: int | None = None
    tool_calls: int | None = None
    tokens: int | None = None
    cost: float | None = None
    seconds: float | None = None


@dataclass(slots=True, kw_only=True)
class RunMeter:
    """Counts what one run uses. Every check and charge is one step: parallel calls cannot pass a limit together."""

    limits: RunLimits = field(default_factory=RunLimits)
    model_calls: int = 0
    tool_calls: int = 0
    tokens: int = 0
    cost: float = 0.0
    now: Callable[[], float] = time.monotonic
    started: float = field(init=False)

    def __post_init__(self) -> None:
        self.started = self.now()

    def charge_model_call(self, *, tokens: int = 0) -> None:
        """Count one model call and its tokens. Raises RunLimitExceeded, counting nothing, if it is one too many."""
        self._check("model calls", self.model_calls + 1, self.limits.model_calls)
        self._check_used()
        self.model_calls += 1
        self.tokens += tokens

    def charge_tokens(self, tokens: int) -> None:
        """Count tokens after the fact; the next charge finds the limit exceeded."""
        self.tokens += tokens

    def check_tool_call(self, cost: float = 0.0) -> None:
        """Whether one more tool call of this cost may be made. Raises RunLimitExceeded."""
        self._check("tool calls", self.tool_calls + 1, self.limits.tool_calls)
        self._check("cost", self.cost + cost, self.limits.cost)
        self._check_used()

    def charge_tool_call(self, cost: float = 0.0) -> None:
        """Count one tool call. Raises RunLimitExceeded, counting nothing, if it is one too many."""
        self.check_tool_call(cost)
        self.tool_calls += 1
        self.cost += cost

    def refund(self, *, cost: float, tool_calls: int = 0) -> None:
        """Take back a charge: a call that was not made costs nothing; one that will come again is not counted."""
        self.tool_calls -= tool_calls
        self.cost -= cost

    def _check_used(self) -> None:
        if self.limits.tokens is not None and self.tokens >= self.limits.tokens:
            raise self._exceeded("tokens", self.limits.tokens)
        self._check("seconds", self.now() - self.started, self.limits.seconds)

    def _check(self, what: str, needed: float, limit: float | None) -> None:
        if limit is not None and needed > limit:
            raise self._exceeded(what, limit)

    def _exceeded(self, what: str, limit: float) -> RunLimitExceeded:
        return RunLimitExceeded(
            f"This run may use {limit:g} {what} and has no more left. Nothing was run. "
            "Answer with what you have; a new run starts anew."
        )


class RunMeters:
    """The meters of all runs of an executor. The longest unused ones are forgotten beyond 10,000."""

    def __init__(self, limits: RunLimits | None = None) -> None:
        self.limits = limits or RunLimits()
        self._meters: OrderedDict[tuple[str, str], RunMeter] = OrderedDict()

    def of(self, *, thread: str, run: str) -> RunMeter:
        """The meter of this run; a new one the first time."""
        key = (thread, run)
        meter = self._meters.get(key)
        if meter is None:
            meter = self._meters[key] = RunMeter(limits=self.limits)
            if len(self._meters) > _RUNS_KEPT:
                self._meters.popitem(last=False)
        else:
            self._meters.move_to_end(key)
        return meter
