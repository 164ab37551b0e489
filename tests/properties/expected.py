"""A thread as its clients may think of it: runs in a queue, decisions that count once, state, and a session."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

GATED = frozenset({"pay", "two", "soon"})
NOTED = frozenset({"note", "two"})


@dataclass
class ExpectedRun:
    """One run, and what was told of it."""

    number: int
    kind: str
    cancelled: bool = False
    """Somebody was told that it is cancelled."""
    amount: int | None = None
    """What was approved."""
    unknown: bool = False
    """Nobody knew what became of a call: a guest was killed."""


@dataclass
class ExpectedThread:
    """What must be true in the end."""

    runs: dict[str, ExpectedRun] = field(default_factory=dict)
    decided: dict[str, str] = field(default_factory=dict)
    """Approval ids, and as what they were decided."""
    state: dict[str, Any] = field(default_factory=dict)
    appended: list[str] = field(default_factory=list)

    def say(self, kind: str) -> tuple[str, ExpectedRun]:
        """A new run of this kind."""
        run_id = f"r{len(self.runs) + 1}"
        self.runs[run_id] = ExpectedRun(len(self.runs) + 1, kind)
        return run_id, self.runs[run_id]
