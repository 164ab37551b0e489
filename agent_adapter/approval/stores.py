"""Where approvals are kept between the question and the one use of its answer.

pending -> approved -> consumed        (used by the call: once)
pending -> denied | expired | withdrawn
approved -> withdrawn                  (taken back before it was used)
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Literal, Protocol

from agent_adapter.approval.decision import ApprovalDecision, ApprovalRequest
from agent_adapter.errors import ApprovalAlreadyDecided, ApprovalUnknown

Status = Literal["pending", "approved", "denied", "expired", "withdrawn", "consumed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalRecord:
    """One approval as it stands."""

    request: ApprovalRequest
    status: Status = "pending"
    recorded_at: datetime
    expires_at: datetime | None = None
    """None: never."""
    decision: ApprovalDecision | None = None

    @property
    def id(self) -> str:
        return self.request.id

    def already_decided(self) -> ApprovalAlreadyDecided:
        by = self.decision.decided_by if self.decision else None
        return ApprovalAlreadyDecided(self.id, status=self.status, decided_by=by)


class ApprovalStore(Protocol):
    """Keeps approvals. Every method is one atomic step, for all processes that share the store.

    A pending record whose time has passed reads as `expired`, whether or not somebody looked at it in time. What was
    decided in time stays decided.
    """

    async def record(self, request: ApprovalRequest, *, lifetime: timedelta | None) -> ApprovalRecord:
        """Keep the question as pending. If its id is known already, nothing changes and that record is returned."""
        ...

    async def get(self, approval: str) -> ApprovalRecord:
        """The record as it stands. Raises ApprovalUnknown."""
        ...

    async def pending(self) -> list[ApprovalRecord]:
        """All that wait for a decision, oldest first."""
        ...

    async def decide(self, approval: str, decision: ApprovalDecision) -> ApprovalRecord:
        """Settle a pending approval. Raises ApprovalUnknown; for what is not pending, ApprovalAlreadyDecided."""
        ...

    async def withdraw(self, approval: str) -> ApprovalRecord:
        """Take back an approval that is pending, or approved and not used. Raises as `decide` does."""
        ...

    async def consume(self, approvals: Sequence[str]) -> list[ApprovalRecord]:
        """Use up approved approvals: all of them, or none. Raises ApprovalUnknown and ApprovalAlreadyDecided."""
        ...


def _now() -> datetime:
    return datetime.now(UTC)


class MemoryApprovalStore:
    """Keeps approvals in this process, for all its threads and event loops. They are gone when it ends."""

    def __init__(self, *, now: Callable[[], datetime] = _now) -> None:
        self._records: dict[str, ApprovalRecord] = {}
        self._lock = threading.Lock()
        self._now = now

    async def record(self, request: ApprovalRequest, *, lifetime: timedelta | None) -> ApprovalRecord:
        with self._lock:
            if request.id not in self._records:
                now = self._now()
                expires_at = None if lifetime is None else now + lifetime
                self._records[request.id] = ApprovalRecord(request=request, recorded_at=now, expires_at=expires_at)
            return self._current(request.id)

    async def get(self, approval: str) -> ApprovalRecord:
        with self._lock:
            return self._current(approval)

    async def pending(self) -> list[ApprovalRecord]:
        with self._lock:
            records = [self._current(approval) for approval in self._records]
        return [record for record in records if record.status == "pending"]

    async def decide(self, approval: str, decision: ApprovalDecision) -> ApprovalRecord:
        with self._lock:
            record = self._in_status(approval, "pending")
            return self._keep(replace(record, status="approved" if decision.approved else "denied", decision=decision))

    async def withdraw(self, approval: str) -> ApprovalRecord:
        with self._lock:
            return self._keep(replace(self._in_status(approval, "pending", "approved"), status="withdrawn"))

    async def consume(self, approvals: Sequence[str]) -> list[ApprovalRecord]:
        with self._lock:
            records = [self._in_status(approval, "approved") for approval in dict.fromkeys(approvals)]
            return [self._keep(replace(record, status="consumed")) for record in records]

    def _in_status(self, approval: str, *statuses: Status) -> ApprovalRecord:
        record = self._current(approval)
        if record.status not in statuses:
            raise record.already_decided()
        return record

    def _current(self, approval: str) -> ApprovalRecord:
        record = self._records.get(approval)
        if record is None:
            raise ApprovalUnknown(approval)
        if record.status == "pending" and record.expires_at is not None and self._now() >= record.expires_at:
            return self._keep(replace(record, status="expired"))
        return record

    def _keep(self, record: ApprovalRecord) -> ApprovalRecord:
        self._records[record.id] = record
        return record
