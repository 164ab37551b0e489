"""What a part has measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Result:
    """Numbers by key, and the single readings behind them."""

    numbers: dict[str, float] = field(default_factory=dict[str, float])
    readings: dict[str, list[Any]] = field(default_factory=dict[str, list[Any]])

    def number(self, key: str, value: float, readings: Sequence[float] = ()) -> None:
        """A number; `readings`: those it was made of."""
        self.numbers[key] = _short(value)
        if readings:
            self.readings[key] = [_short(reading) for reading in readings]

    def spread(self, key: str, reading: Any) -> None:
        """One more reading of something that is no number of its own."""
        self.readings.setdefault(key, []).append(reading)


def _short(value: float) -> float:
    """Three or more digits, as many as are worth reading."""
    return round(value) if abs(value) >= 1000 else round(value, 3)
