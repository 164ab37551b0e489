"""The approval ledger of a thread: pending -> deciding -> approved -> spent, or denied, expired, withdrawn. Pure.

Ids, tokens and times (seconds since the epoch) come in as arguments. What breaks a rule raises Refused, which names
the rule (`kind`) and says what to do.
"""

from __future__ import annotations

import re
from typing import Literal

from pydantic import BaseModel, Field

from workflows.messages import ApprovalView, GrantView

Status = Literal["pending", "deciding", "approved", "spent", "denied", "expired", "withdrawn"]

KEPT = 200
"""How many settled approvals are remembered with who settled them; of older ones only that they are settled."""

_ID = re.compile(r"ap-([1-9][0-9]{0,17})-([1-9][0-9]{0,17})")


class Refused(Exception):
    """A rule was broken. `kind` is stable; the text is for the person who sent it."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind = kind


class Approval(BaseModel):
    """One call that waits for a person, until it is settled; with its token from the decision to the call's end."""

    id: str
    run_id: str
    call_key: str
    tool: str
    asked_at: float
    deadline: float | None = None
    status: Status = "pending"
    by: str | None = None
    token: str | None = None
    digest: str | None = None
    activity_id: str | None = None


class Settled(BaseModel):
    """How an approval, or another interrupt, ended."""

    status: str
    by: str


class Ledger(BaseModel):
    """All approvals of a thread. `watermark`: the highest (run number, count) given out."""

    open: dict[str, Approval] = {}
    settled: dict[str, Settled] = {}
    watermark: tuple[int, int] = Field(default=(0, 0))

    def ask(
        self, *, run: int, count: int, run_id: str, call_key: str, tool: str, at: float, deadline: float | None
    ) -> Approval:
        """Record that a call waits. (run, count) must be above every earlier pair."""
        if (run, count) <= self.watermark:
            msg = f"approval numbers only grow: {(run, count)} after {self.watermark}"
            raise ValueError(msg)
        self.watermark = (run, count)
        approval = Approval(
            id=f"ap-{run}-{count}", run_id=run_id, call_key=call_key, tool=tool, asked_at=at, deadline=deadline
        )
        self.open[approval.id] = approval
        return approval

    def pending(self, approval_id: str, *, at: float) -> Approval:
        """The approval, if it can be decided now; Refused otherwise."""
        approval = self.open.get(approval_id)
        if approval is None:
            raise self._not_open(approval_id)
        if approval.status == "deciding":
            raise Refused(
                "being-decided",
                f"A decision about {approval_id!r} by {approval.by!r} is being checked. Wait a moment and look again.",
            )
        if approval.status != "pending":
            raise _decided(approval_id, approval.status, approval.by or "")
        if approval.deadline is not None and at >= approval.deadline:
            raise _decided(approval_id, "expired", "the clock")
        return approval

    def reserve(self, approval_id: str, *, by: str, at: float) -> None:
        """Keep other decisions out while this one is checked."""
        approval = self.pending(approval_id, at=at)
        approval.status, approval.by = "deciding", by

    def release(self, approval_id: str) -> None:
        """The decision that was checked does not hold: the approval waits again."""
        approval = self.open.get(approval_id)
        if approval is not None and approval.status == "deciding":
            approval.status, approval.by = "pending", None

    def approve(self, approval_id: str, *, by: str, token: str, digest: str, at: float) -> Approval:
        """Mint the token: it permits one call, the one with this digest."""
        approval = self._reserved(approval_id, by=by, at=at)
        approval.status, approval.by, approval.token, approval.digest = "approved", by, token, digest
        return approval

    def deny(self, approval_id: str, *, by: str, at: float) -> Approval:
        """A person said no."""
        approval = self._reserved(approval_id, by=by, at=at)
        self._settle(approval, "denied", by)
        return approval

    def expire(self, approval_id: str) -> bool:
        """Nobody decided in time. False where there is nothing to expire, or a decision is just being checked."""
        approval = self.open.get(approval_id)
        if approval is None or approval.status != "pending":
            return False
        self._settle(approval, "expired", "the clock")
        return True

    def withdraw(self, approval_id: str, *, by: str) -> bool:
        """The call no longer waits (run cancelled, tool changed). False where it is settled already."""
        approval = self.open.get(approval_id)
        if approval is None or approval.status == "spent":
            return False
        self._settle(approval, "withdrawn", by)
        return True

    def spend(self, approval_id: str, *, digest: str, activity_id: str) -> str:
        """Use the token for one activity; returns it. Refused unless it is unspent and bound to this very call."""
        approval = self.open.get(approval_id)
        if approval is None or approval.status != "approved" or approval.token is None:
            raise Refused("token-refused", f"Approval {approval_id!r} holds no unspent token.")
        if approval.digest != digest:
            raise Refused("token-refused", f"The token of {approval_id!r} is bound to another call.")
        approval.status, approval.activity_id = "spent", activity_id
        return approval.token

    def unspend(self, approval_id: str) -> None:
        """The activity said that it never reached the tool: the token may be used for another one."""
        approval = self.open.get(approval_id)
        if approval is not None and approval.status == "spent":
            approval.status, approval.activity_id = "approved", None

    def close(self, approval_id: str) -> None:
        """The call has ended; its approval and token with it."""
        approval = self.open.get(approval_id)
        if approval is not None:
            self._settle(approval, "approved" if approval.token else "withdrawn", approval.by or "")

    def supersede(self, approval_id: str) -> None:
        """The call was not made because its tool changed: a person has to look again."""
        approval = self.open.get(approval_id)
        if approval is not None:
            self._settle(approval, "withdrawn", "a change of the tool")

    def note_answer(self, interrupt_id: str, status: str, *, by: str) -> None:
        """Remember who answered an interrupt that is no approval."""
        self._remember(interrupt_id, Settled(status=status, by=by))

    def not_waiting(self, interrupt_id: str) -> Refused:
        """Why an interrupt that is no approval cannot be answered."""
        if known := self.settled.get(interrupt_id):
            text = f"Interrupt {interrupt_id!r} was already answered ({known.status}) by {known.by!r}. Nothing to do."
            return Refused("already-answered", text)
        if interrupt_id in self.open:
            return Refused("wrong-answer", f"{interrupt_id!r} is an approval: send it to the update `decide`.")
        return Refused(
            "interrupt-unknown", f"Nothing waits as {interrupt_id!r}. The query `interrupts` lists what does."
        )

    def view(self, approval_id: str) -> ApprovalView:
        """How an approval stands. Refused where no such id was given out, or it was settled too long ago."""
        if (approval := self.open.get(approval_id)) is not None:
            waits = approval.status in {"pending", "deciding"}
            return _view(approval_id, "pending" if waits else approval.status, None if waits else approval.by)
        known = self.settled.get(approval_id)
        if known is None or not _ID.fullmatch(approval_id):
            raise self._not_open(approval_id)
        return _view(approval_id, "consumed" if known.status == "approved" else known.status, known.by)

    def grant(self, token: str) -> GrantView:
        """What a token permits. Refused for a token that does not exist, or is not spent."""
        for approval in self.open.values():
            if approval.token == token and approval.digest and approval.status == "spent":
                return GrantView(approval_id=approval.id, digest=approval.digest, activity_id=approval.activity_id)
        raise Refused("token-refused", "No spent token of an open call has this id.")

    def _reserved(self, approval_id: str, *, by: str, at: float) -> Approval:
        approval = self.open.get(approval_id)
        if approval is not None and approval.status == "deciding" and approval.by == by:
            return approval
        return self.pending(approval_id, at=at)

    def _settle(self, approval: Approval, status: Status, by: str) -> None:
        del self.open[approval.id]
        self._remember(approval.id, Settled(status=status, by=by))

    def _remember(self, id_: str, how: Settled) -> None:
        self.settled[id_] = how
        while len(self.settled) > KEPT:
            del self.settled[next(iter(self.settled))]

    def _not_open(self, approval_id: str) -> Refused:
        if known := self.settled.get(approval_id):
            return _decided(approval_id, known.status, known.by)
        match = _ID.fullmatch(approval_id)
        if match and (int(match[1]), int(match[2])) <= self.watermark:
            return Refused("already-decided", f"Approval {approval_id!r} was settled long ago. Nothing to do.")
        return Refused("approval-unknown", f"Nothing waits as {approval_id!r}. The query `interrupts` lists what does.")


def _view(approval_id: str, status: str, by: str | None) -> ApprovalView:
    return ApprovalView.model_validate({"id": approval_id, "status": _USED_UP.get(status, status), "by": by or None})


_USED_UP = {"spent": "consumed"}
_WORDS = {"approved": "approved", "spent": "approved", "denied": "denied"}


def _decided(approval_id: str, status: str, by: str) -> Refused:
    if status == "expired":
        return Refused("approval-expired", f"Approval {approval_id!r} has expired. The agent was told; ask it again.")
    if status == "withdrawn":
        return Refused("approval-withdrawn", f"Approval {approval_id!r} was withdrawn by {by!r}. Nothing to do.")
    return Refused(
        "already-decided",
        f"Approval {approval_id!r} was already {_WORDS.get(status, status)} by {by!r}. Nothing to do.",
    )
