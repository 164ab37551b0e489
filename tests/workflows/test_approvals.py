from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule

from workflows.approvals import KEPT, Ledger, Refused

PEOPLE = ("ana", "ben", "temporal")
people = st.sampled_from(PEOPLE)
later = st.integers(0, 30)


@dataclass
class Asked:
    """What the model knows of an approval. `end`: the kind that a further decision is refused with."""

    id: str
    deadline: float | None
    status: str = "pending"
    by: str = ""
    end: str = ""
    decided: int = 0
    spent_as: tuple[str, str] | None = None


class LedgerMachine(RuleBasedStateMachine):
    """The ledger beside a dictionary, with a clock that only goes forward."""

    approvals = Bundle("approvals")

    def __init__(self) -> None:
        super().__init__()
        self.ledger = Ledger()
        self.known: dict[str, Asked] = {}
        self.now = 100.0
        self.run = 1
        self.count = 0
        self.made = 0

    # ---- what happens
    @rule(target=approvals, new_run=st.booleans(), ttl=st.none() | st.integers(1, 40))
    def ask(self, new_run: bool, ttl: int | None) -> str:
        self.run += new_run
        self.count += 1
        deadline = None if ttl is None else self.now + ttl
        approval = self.ledger.ask(
            run=self.run, count=self.count, run_id="r", call_key="1", tool="pay", at=self.now, deadline=deadline
        )
        assert approval.id not in self.known
        self.known[approval.id] = Asked(approval.id, deadline)
        return approval.id

    @rule(seconds=later)
    def time_passes(self, seconds: int) -> None:
        self.now += seconds

    @rule(id_=approvals, by=people)
    def approve(self, id_: str, by: str) -> None:
        asked = self.known[id_]
        if refusal := self.refusal(asked, by):
            with pytest.raises(Refused) as refused:
                self.ledger.approve(id_, by=by, token="never", digest="never", at=self.now)
            self.check(refused.value, asked, refusal)
            return
        self.made += 1
        self.ledger.approve(id_, by=by, token=f"token-{self.made}", digest=f"digest-{self.made}", at=self.now)
        asked.status, asked.by, asked.end = "approved", by, "already-decided"
        asked.decided += 1

    @rule(id_=approvals, by=people)
    def deny(self, id_: str, by: str) -> None:
        asked = self.known[id_]
        if refusal := self.refusal(asked, by):
            with pytest.raises(Refused) as refused:
                self.ledger.deny(id_, by=by, at=self.now)
            self.check(refused.value, asked, refusal)
            return
        self.ledger.deny(id_, by=by, at=self.now)
        self.settled(asked, "denied", by, "already-decided")
        asked.decided += 1

    @rule(id_=approvals, by=people)
    def reserve(self, id_: str, by: str) -> None:
        asked = self.known[id_]
        if refusal := self.refusal(asked):
            with pytest.raises(Refused) as refused:
                self.ledger.reserve(id_, by=by, at=self.now)
            self.check(refused.value, asked, refusal)
            return
        self.ledger.reserve(id_, by=by, at=self.now)
        asked.status, asked.by = "deciding", by

    @rule(id_=approvals)
    def release(self, id_: str) -> None:
        self.ledger.release(id_)
        if self.known[id_].status == "deciding":
            self.known[id_].status, self.known[id_].by = "pending", ""

    @rule(id_=approvals)
    def expire(self, id_: str) -> None:
        asked = self.known[id_]
        assert self.ledger.expire(id_) is (asked.status == "pending")
        if asked.status == "pending":
            self.settled(asked, "expired", "the clock", "approval-expired")

    @rule(id_=approvals, by=people)
    def withdraw(self, id_: str, by: str) -> None:
        asked = self.known[id_]
        is_open = asked.status in ("pending", "deciding", "approved")
        assert self.ledger.withdraw(id_, by=by) is is_open
        if is_open:
            self.settled(asked, "withdrawn", by, "approval-withdrawn")

    @rule(id_=approvals, right=st.booleans(), activity=st.sampled_from(["call-1.1", "call-1.2"]))
    def spend(self, id_: str, right: bool, activity: str) -> None:
        asked = self.known[id_]
        held = self.ledger.open.get(id_)
        digest = (held.digest or "") if held and right else "digest-of-another-call"
        if asked.status != "approved" or not right:
            with pytest.raises(Refused) as refused:
                self.ledger.spend(id_, digest=digest, activity_id=activity)
            assert refused.value.kind == "token-refused"
            return
        token = self.ledger.spend(id_, digest=digest, activity_id=activity)
        asked.status, asked.spent_as = "spent", (token, activity)

    @rule(id_=approvals)
    def unspend(self, id_: str) -> None:
        self.ledger.unspend(id_)
        if self.known[id_].status == "spent":
            self.known[id_].status, self.known[id_].spent_as = "approved", None

    @rule(id_=approvals)
    def close_or_supersede(self, id_: str) -> None:
        asked = self.known[id_]
        if asked.status in ("approved", "spent"):
            self.ledger.close(id_)
            self.settled(asked, "approved-and-closed", asked.by, "already-decided")
        elif asked.status in ("pending", "deciding"):
            self.ledger.supersede(id_)
            self.settled(asked, "withdrawn", "a change of the tool", "approval-withdrawn")

    @rule()
    def carry(self) -> None:
        before = self.ledger.model_dump()
        self.ledger = Ledger.model_validate_json(self.ledger.model_dump_json(exclude_defaults=True))
        assert self.ledger.model_dump() == before

    # ---- what holds
    @invariant()
    def nothing_is_decided_twice(self) -> None:
        assert all(asked.decided <= 1 for asked in self.known.values())

    @invariant()
    def only_spent_tokens_are_granted(self) -> None:
        spent = {asked.spent_as[0]: asked for asked in self.known.values() if asked.spent_as}
        for n in range(1, self.made + 1):
            token = f"token-{n}"
            if token not in spent:
                with pytest.raises(Refused, match="token"):
                    self.ledger.grant(token)
                continue
            grant = self.ledger.grant(token)
            asked = spent[token]
            assert (grant.approval_id, grant.digest) == (asked.id, f"digest-{n}")
            assert asked.spent_as == (token, grant.activity_id)

    @invariant()
    def what_is_open_is_open(self) -> None:
        assert set(self.ledger.open) == {asked.id for asked in self.known.values() if not self.is_settled(asked)}

    # ---- the model's rules
    def refusal(self, asked: Asked, by: str | None = None) -> str:
        """The kind a decision is refused with; empty where it holds."""
        if asked.status == "deciding":
            return "" if asked.by == by else "being-decided"
        if asked.status != "pending":
            return asked.end
        return "approval-expired" if asked.deadline is not None and self.now >= asked.deadline else ""

    def check(self, refused: Refused, asked: Asked, kind: str) -> None:
        assert refused.kind == kind
        assert repr(asked.id) in str(refused)
        if kind in ("already-decided", "approval-withdrawn", "being-decided"):
            assert repr(asked.by) in str(refused)

    def settled(self, asked: Asked, status: str, by: str, end: str) -> None:
        asked.status, asked.by, asked.end, asked.spent_as = status, by, end, None

    def is_settled(self, asked: Asked) -> bool:
        return asked.status not in ("pending", "deciding", "approved", "spent")


TestLedgerMachine = LedgerMachine.TestCase
TestLedgerMachine.settings = settings(max_examples=80, stateful_step_count=25)


def ask(ledger: Ledger, run: int = 1, count: int = 1) -> str:
    return ledger.ask(run=run, count=count, run_id="r", call_key="1", tool="pay", at=0, deadline=None).id


def refused(ledger: Ledger, id_: str) -> Refused:
    with pytest.raises(Refused) as problem:
        ledger.pending(id_, at=0)
    return problem.value


def test_memory_is_bounded_and_old_decisions_stay_decided() -> None:
    ledger = Ledger()
    for n in range(1, KEPT + 101):
        ledger.deny(ask(ledger, run=n), by="ana", at=0)
    assert len(ledger.settled) == KEPT
    assert ledger.open == {}
    old, young = refused(ledger, "ap-1-1"), refused(ledger, f"ap-{KEPT + 100}-1")
    assert (old.kind, young.kind) == ("already-decided", "already-decided")
    assert "denied by 'ana'" in str(young)


def test_ids_that_were_never_given_out_are_unknown() -> None:
    ledger = Ledger()
    ledger.deny(ask(ledger, run=2, count=3), by="ana", at=0)
    strange = ["ap-2-4", "ap-3-1", "ap-0-1", "ap-01-1", "ap-2", "ap-2-3 ", "ap-2-3\n", "", "lr-1-1", "ap--1-1"]
    strange += ["ap-" + "9" * 5000 + "-1", "ap-²-1", "AP-1-1"]
    for id_ in strange:
        assert refused(ledger, id_).kind == "approval-unknown", id_


def test_numbers_of_approvals_only_grow() -> None:
    ledger = Ledger()
    ask(ledger, run=2, count=2)
    for run, count in [(2, 2), (2, 1), (1, 9)]:
        with pytest.raises(ValueError, match="only grow"):
            ask(ledger, run=run, count=count)


def test_a_decision_made_before_the_deadline_holds_when_its_check_ends_after_it() -> None:
    ledger = Ledger()
    id_ = ledger.ask(run=1, count=1, run_id="r", call_key="1", tool="pay", at=0, deadline=10).id
    ledger.reserve(id_, by="ana", at=9)
    assert ledger.expire(id_) is False
    ledger.approve(id_, by="ana", token="t", digest="d", at=11)
    assert ledger.spend(id_, digest="d", activity_id="a") == "t"


def test_unspending_what_is_not_spent_approves_nothing() -> None:
    ledger = Ledger()
    id_ = ask(ledger)
    ledger.unspend(id_)
    ledger.unspend("ap-9-9")
    assert ledger.pending(id_, at=0).status == "pending"


def test_an_answered_interrupt_says_by_whom() -> None:
    ledger = Ledger()
    approval = ask(ledger)
    ledger.note_answer("lr-1-2", "answered", by="ana")
    known, unknown = ledger.not_waiting("lr-1-2"), ledger.not_waiting("lr-1-9")
    assert (known.kind, unknown.kind) == ("already-answered", "interrupt-unknown")
    assert "'ana'" in str(known)
    assert ledger.not_waiting(approval).kind == "wrong-answer"
