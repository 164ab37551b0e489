"""How a question reaches a person: an approval port. No port means that nobody approves."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import Literal, Protocol, runtime_checkable

from agent_adapter.approval.decision import ApprovalDecision, ApprovalRequest
from agent_adapter.approval.stores import ApprovalRecord, ApprovalStore
from agent_adapter.errors import ApprovalAlreadyDecided, ApprovalPending, ToolUsageError

DEFAULT_EXPIRES = timedelta(days=7).total_seconds()


class ApprovalPort(Protocol):
    """Asks about one call."""

    async def ask(self, request: ApprovalRequest) -> ApprovalDecision:
        """The decision. Raises ApprovalPending where it comes later, ApprovalAlreadyDecided where it was used."""
        ...


@runtime_checkable
class TwoPhasePort(ApprovalPort, Protocol):
    """A port that can record all questions of a batch before it collects the first answer."""

    async def record(self, request: ApprovalRequest) -> None:
        """Make the question known. Recording it again changes nothing."""
        ...

    async def collect(self, requests: Sequence[ApprovalRequest]) -> list[ApprovalDecision]:
        """All decisions, in order, or none: raises ApprovalPending with those that wait, and uses up nothing."""
        ...


Reviewer = Callable[[ApprovalRequest], ApprovalDecision | bool | Awaitable[ApprovalDecision | bool]]


class CallbackApproval:
    """Asks a function, sync or async, and waits for it. It answers with an ApprovalDecision, True or False."""

    def __init__(self, reviewer: Reviewer) -> None:
        self._reviewer = reviewer

    async def ask(self, request: ApprovalRequest) -> ApprovalDecision:
        answer = self._reviewer(request)
        if inspect.isawaitable(answer):
            answer = await answer
        if isinstance(answer, bool):
            return ApprovalDecision(approved=answer)
        if not isinstance(answer, ApprovalDecision):  # pyright: ignore[reportUnnecessaryIsInstance]
            msg = (
                f"The reviewer answered {request.tool!r} with a {type(answer).__name__}; nothing was run. "
                "Return an ApprovalDecision, True or False."
            )
            raise ToolUsageError(msg)
        return answer


class DeferredApproval:
    """Records the question in a store and raises ApprovalPending; made again, the call finds the decision there.

    An approval is used once: a third time is ApprovalAlreadyDecided. `expires` is in seconds, or "never"; a tool's own
    value goes first.
    """

    def __init__(self, store: ApprovalStore, *, expires: float | Literal["never"] = DEFAULT_EXPIRES) -> None:
        self.store = store
        self._expires = expires

    async def ask(self, request: ApprovalRequest) -> ApprovalDecision:
        await self.record(request)
        return (await self.collect([request]))[0]

    async def record(self, request: ApprovalRequest) -> None:
        expires = self._expires if request.expires is None else request.expires
        await self.store.record(request, lifetime=None if isinstance(expires, str) else timedelta(seconds=expires))

    async def collect(self, requests: Sequence[ApprovalRequest]) -> list[ApprovalDecision]:
        records = [await self.store.get(request.id) for request in requests]
        if pending := [record.request for record in records if record.status == "pending"]:
            raise ApprovalPending(pending)
        for record in records:
            if record.status == "consumed":
                raise record.already_decided()
        await self.store.consume([record.id for record in records if record.status == "approved"])
        return [_decision(record) for record in records]


def _decision(record: ApprovalRecord) -> ApprovalDecision:
    if record.status == "expired" or record.status == "withdrawn":  # noqa: PLR1714 - narrows the type
        return ApprovalDecision(approved=False, lapsed=record.status)
    if record.decision is None:
        raise ApprovalAlreadyDecided(record.id, status=record.status)
    return record.decision
