"""Asking about several calls at once."""

from __future__ import annotations

from collections.abc import Sequence

from agent_adapter.approval.decision import ApprovalDecision, ApprovalRequest
from agent_adapter.approval.ports import ApprovalPort, TwoPhasePort


async def ask_each(port: ApprovalPort, requests: Sequence[ApprovalRequest]) -> list[ApprovalDecision]:
    """The decisions on a batch of calls, in order.

    Two-phase where the port can: first every request is recorded, so that a person sees all that waits, then the
    decisions are collected. Raises ApprovalPending with all that still wait; then no approval has been used up.
    """
    if not isinstance(port, TwoPhasePort):
        return [await port.ask(request) for request in requests]
    for request in requests:
        await port.record(request)
    return await port.collect(requests)
