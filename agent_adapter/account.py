"""Accounting for calls: each that ends has one ledger entry and one terminal event, in this order."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from agent_adapter.approval.decision import ApprovalDecision, ApprovalRequest
from agent_adapter.causes import log_cause
from agent_adapter.context import ToolContext
from agent_adapter.errors import AdapterError
from agent_adapter.events import EventKind, OnEvent, RunEvent
from agent_adapter.invocation import Progress
from agent_adapter.ledger import Ledger, LedgerEntry
from agent_adapter.preparation import PreparedCall
from agent_adapter.spec import ToolSpec


@dataclass(slots=True, kw_only=True)
class OpenCall:
    """A call on its way, with all that its entry will say."""

    spec: ToolSpec
    raw: Any
    context: ToolContext
    started_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    clock: float = field(default_factory=time.perf_counter)
    progress: Progress = field(default_factory=Progress)
    prepared: PreparedCall | None = None
    digest: str | None = None
    """The `call_digest` of the prepared arguments."""
    decision: ApprovalDecision | None = None
    charged: bool = False
    closed: bool = False

    @property
    def asks(self) -> bool:
        return self.prepared is not None and self.prepared.needs_approval

    def take(self, prepared: PreparedCall) -> None:
        self.prepared = prepared
        self.digest = prepared.digest(self.context)

    def question(self) -> ApprovalRequest:
        assert self.prepared is not None
        return self.prepared.question(self.context)


class Account:
    """Writes ledger and events. Neither can change what becomes of a call: their failures are logged."""

    def __init__(self, ledger: Ledger | None, on_event: OnEvent | None) -> None:
        self._ledger = ledger
        self._on_event = on_event

    def close(self, call: OpenCall, problem: BaseException | None) -> None:
        """The call has ended: with a result, an error or by cancellation."""
        error = _kind(problem)
        if self._ledger is not None:
            self._safely("ledger.failed", call, self._ledger.record, _entry(call, problem, error))
        self.tell(call, "call.finished", outcome=call.progress.outcome, error=error)

    def tell(self, call: OpenCall, kind: EventKind, **facts: Any) -> None:
        """Hand over one event."""
        if self._on_event is None:
            return
        context = call.context
        event = RunEvent(
            kind=kind,
            at=datetime.now(UTC),
            thread=context.thread,
            run=context.run,
            call=context.call,
            tool=call.spec.name,
            **facts,
        )
        self._safely("event.failed", call, self._on_event, event)

    def _safely(self, failure: str, call: OpenCall, take: Callable[[Any], None], value: Any) -> None:
        try:
            take(value)
        except Exception as problem:  # noqa: BLE001 - an observer changes no outcome
            log_cause(failure, problem, tool=call.spec.name, run=call.context.run, call=call.context.call)


def _entry(call: OpenCall, problem: BaseException | None, error: str | None) -> LedgerEntry:
    return LedgerEntry(
        thread=call.context.thread,
        run=call.context.run,
        call=call.context.call,
        tool=call.spec.name,
        version=call.spec.version,
        effect=call.spec.effect,
        outcome=call.progress.outcome,
        error=error,
        cancelled=call.progress.cancelled or isinstance(problem, asyncio.CancelledError),
        arguments_digest=call.digest,
        attempts=call.progress.attempts,
        cost=call.spec.cost if call.progress.outcome != "not_started" else 0.0,
        decided_by=call.decision.decided_by if call.decision else None,
        started_at=call.started_at,
        seconds=time.perf_counter() - call.clock,
        idempotency_key=call.context.idempotency_key,
    )


def _kind(problem: BaseException | None) -> str | None:
    if problem is None or isinstance(problem, asyncio.CancelledError):
        return None
    return problem.kind if isinstance(problem, AdapterError) else "interrupted"
