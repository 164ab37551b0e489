"""The account of all calls: exactly one entry for each that ended, whatever its end was."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol

Outcome = Literal["done", "failed", "not_started", "unknown"]
"""done: the tool returned. failed: the tool was started and failed. not_started: the tool's function was not entered.
unknown: it was entered, and nobody knows whether it took effect."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerEntry:
    """How one call ended. Holds no arguments and no result; a call that waits for approval has not ended."""

    thread: str
    run: str
    call: str
    tool: str
    version: str
    effect: str
    outcome: Outcome
    error: str | None
    """Kind of the error the caller got; None: it got a result, or it was cancelled."""
    cancelled: bool
    """The caller was cancelled meanwhile; `outcome` says what became of the call all the same."""
    arguments_digest: str | None
    """`call_digest` of the validated arguments it ran with; None: none were valid."""
    attempts: int
    cost: float
    decided_by: str | None
    started_at: datetime
    seconds: float
    idempotency_key: str


class Ledger(Protocol):
    """Where entries go. `record` returns at once; one that raises is logged and changes no outcome."""

    def record(self, entry: LedgerEntry) -> None: ...


class MemoryLedger:
    """Keeps the entries of this process in a list, in order of their ends."""

    def __init__(self) -> None:
        self.entries: list[LedgerEntry] = []

    def record(self, entry: LedgerEntry) -> None:
        self.entries.append(entry)
