"""The approvals of one thread as an ApprovalStore, for whoever decides in the terms of `agent_adapter`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import NoReturn

from agent_adapter.approval.decision import ApprovalDecision, ApprovalRequest
from agent_adapter.approval.stores import ApprovalRecord
from agent_adapter.errors import ApprovalUnknown, ToolUsageError
from client.errors import Refused
from client.thread import Thread
from workflows.messages import ApprovalView, Decide, Interrupt

_SETTLED = frozenset({"already-decided", "approval-expired", "approval-withdrawn"})


class ThreadApprovals:
    """Lists and decides what a thread asks. The thread records its questions and uses the answers up by itself.

    Of an approval that has ended, a thread remembers how and by whom: such a record has no tool and no arguments.
    Methods raise ThreadsError, too (see client.errors): Refused with the thread's kind, where edited arguments do not
    do or another decision is just being checked.
    """

    def __init__(self, thread: Thread) -> None:
        self._thread = thread

    async def record(self, request: ApprovalRequest, *, lifetime: timedelta | None) -> ApprovalRecord:
        """The record, if the thread has asked this already. Raises ToolUsageError: nobody else asks in its name."""
        del lifetime
        try:
            return await self.get(request.id)
        except ApprovalUnknown:
            self._by_itself("records what it asks")

    async def get(self, approval: str) -> ApprovalRecord:
        """The record as it stands. Raises ApprovalUnknown, for those settled long ago, too: a thread keeps 200."""
        asked = next((one for one in await self.pending() if one.id == approval), None)
        return asked or self._ended(await self._view(approval))

    async def pending(self) -> list[ApprovalRecord]:
        """All that wait for a decision, oldest first."""
        return [_waiting(one) for one in await self._thread.interrupts() if one.kind == "approval"]

    async def decide(self, approval: str, decision: ApprovalDecision) -> ApprovalRecord:
        """Settle a pending approval. Raises ApprovalUnknown; for what is not pending, ApprovalAlreadyDecided."""
        asked = await self.get(approval)
        by = decision.decided_by or Decide.model_fields["by"].get_default()
        try:
            receipt = await self._thread.decide(
                approval, decision.approved, by=by, edited_args=decision.edited_args, reason=decision.reason
            )
        except Refused as refused:
            if refused.kind not in _SETTLED:
                raise
            raise (await self.get(approval)).already_decided() from None
        taken = decision.model_copy(update={"decided_by": receipt.by, "decided_at": _moment(receipt.at)})
        return replace(asked, status="approved" if decision.approved else "denied", decision=taken)

    async def withdraw(self, approval: str) -> ApprovalRecord:
        """Raises ApprovalUnknown and ApprovalAlreadyDecided; ToolUsageError for one that is open."""
        record = await self.get(approval)
        if record.status not in {"pending", "approved"}:
            raise record.already_decided()
        self._by_itself("withdraws what it asked when its run is cancelled")

    async def consume(self, approvals: Sequence[str]) -> list[ApprovalRecord]:
        """Raises as `withdraw` does. Of none: nothing."""
        for approval in approvals:
            record = await self.get(approval)
            if record.status != "approved":
                raise record.already_decided()
        if approvals:
            self._by_itself("uses an approval up when it makes the call")
        return []

    async def _view(self, approval: str) -> ApprovalView:
        try:
            return await self._thread.approval(approval)
        except Refused:
            raise ApprovalUnknown(approval) from None

    def _ended(self, view: ApprovalView) -> ApprovalRecord:
        """A record of what the thread remembers."""
        request = ApprovalRequest(id=view.id, run="", call="", tool="", arguments={}, thread=self._thread.id)
        said = None
        if view.status in {"approved", "denied", "consumed"}:
            said = ApprovalDecision(approved=view.status != "denied", decided_by=view.by)
        return ApprovalRecord(request=request, status=view.status, recorded_at=request.asked_at, decision=said)

    def _by_itself(self, what: str) -> NoReturn:
        msg = f"Thread {self._thread.id!r} {what}. List what is pending, and decide it."
        raise ToolUsageError(msg)


def _waiting(interrupt: Interrupt) -> ApprovalRecord:
    request = ApprovalRequest(
        id=interrupt.id,
        run=interrupt.run_id,
        call="",
        tool=interrupt.tool,
        arguments=interrupt.arguments,
        thread=interrupt.thread_id,
        principal=interrupt.principal,
        summary=interrupt.summary,
        asked_at=_moment(interrupt.since),
    )
    expires_at = None if interrupt.deadline is None else _moment(interrupt.deadline)
    return ApprovalRecord(request=request, recorded_at=request.asked_at, expires_at=expires_at)


def _moment(iso: str) -> datetime:
    return datetime.fromisoformat(iso)
