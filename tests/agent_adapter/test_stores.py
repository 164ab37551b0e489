"""Approval stores: from the question to the one use of its answer. A new store is added to `STORES`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from agent_adapter import (
    ApprovalAlreadyDecided,
    ApprovalDecision,
    ApprovalRecord,
    ApprovalRequest,
    ApprovalStore,
    ApprovalUnknown,
    MemoryApprovalStore,
)

YES = ApprovalDecision(approved=True, decided_by="ana")
NO = ApprovalDecision(approved=False, decided_by="bo")
HOUR = timedelta(hours=1)


class Clock:
    def __init__(self) -> None:
        self.time = datetime(2026, 2, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.time


STORES: dict[str, Callable[[Clock], ApprovalStore]] = {"memory": lambda clock: MemoryApprovalStore(now=clock)}


def question(id: str = "ap-1") -> ApprovalRequest:  # noqa: A002
    return ApprovalRequest(id=id, run="r", call=id, tool="pay", arguments={"amount": 5})


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=list(STORES))
def store(request: pytest.FixtureRequest, clock: Clock) -> ApprovalStore:
    return STORES[request.param](clock)


async def status(store: ApprovalStore, approval: str = "ap-1") -> str:
    return (await store.get(approval)).status


async def test_a_recorded_question_is_pending(store: ApprovalStore) -> None:
    record = await store.record(question(), lifetime=HOUR)
    assert record.status == "pending"
    assert await store.pending() == [record]


async def test_recording_a_question_again_changes_nothing(store: ApprovalStore) -> None:
    await store.record(question(), lifetime=HOUR)
    decided = await store.decide("ap-1", YES)
    assert await store.record(question(), lifetime=None) == decided


async def test_an_approval_is_used_once(store: ApprovalStore) -> None:
    await store.record(question(), lifetime=HOUR)
    await store.decide("ap-1", YES)
    (record,) = await store.consume(["ap-1"])
    assert (record.status, record.decision) == ("consumed", YES)
    with pytest.raises(ApprovalAlreadyDecided, match="consumed by 'ana'"):
        await store.consume(["ap-1"])


@pytest.mark.parametrize("second", [YES, NO])
@pytest.mark.parametrize("first", [YES, NO])
async def test_the_first_decision_stands(
    store: ApprovalStore, first: ApprovalDecision, second: ApprovalDecision
) -> None:
    await store.record(question(), lifetime=HOUR)
    decided = await store.decide("ap-1", first)
    with pytest.raises(ApprovalAlreadyDecided) as refused:
        await store.decide("ap-1", second)
    assert (refused.value.status, refused.value.decided_by) == (decided.status, first.decided_by)
    assert await store.get("ap-1") == decided


async def test_time_passes_only_for_what_waits(store: ApprovalStore, clock: Clock) -> None:
    await store.record(question("ap-1"), lifetime=HOUR)
    await store.record(question("ap-2"), lifetime=HOUR)
    await store.record(question("ap-3"), lifetime=None)
    await store.decide("ap-2", YES)
    clock.time += HOUR
    assert [await status(store, approval) for approval in ("ap-1", "ap-2", "ap-3")] == [
        "expired",
        "approved",
        "pending",
    ]
    assert [record.id for record in await store.pending()] == ["ap-3"]
    with pytest.raises(ApprovalAlreadyDecided, match="already expired"):
        await store.decide("ap-1", YES)
    assert (await store.consume(["ap-2"]))[0].status == "consumed"


async def test_a_withdrawn_approval_cannot_be_decided_or_used(store: ApprovalStore) -> None:
    await store.record(question("ap-1"), lifetime=HOUR)
    await store.record(question("ap-2"), lifetime=HOUR)
    await store.decide("ap-2", YES)
    for approval in ("ap-1", "ap-2"):
        assert (await store.withdraw(approval)).status == "withdrawn"
        with pytest.raises(ApprovalAlreadyDecided):
            await store.consume([approval])
        with pytest.raises(ApprovalAlreadyDecided):
            await store.withdraw(approval)


async def test_several_are_used_together_or_not_at_all(store: ApprovalStore) -> None:
    for approval in ("ap-1", "ap-2"):
        await store.record(question(approval), lifetime=HOUR)
    await store.decide("ap-1", YES)
    with pytest.raises(ApprovalAlreadyDecided):
        await store.consume(["ap-1", "ap-2"])
    assert await status(store, "ap-1") == "approved"
    await store.decide("ap-2", YES)
    assert len(await store.consume(["ap-1", "ap-2"])) == 2


async def test_an_unknown_id_is_refused_everywhere(store: ApprovalStore) -> None:
    for action in (store.get("x"), store.decide("x", YES), store.withdraw("x"), store.consume(["x"])):
        with pytest.raises(ApprovalUnknown, match="'x'"):
            await action


@pytest.mark.parametrize("round_", range(20))
def test_of_many_at_once_one_decides_and_one_uses(round_: int) -> None:
    store = MemoryApprovalStore()
    asyncio.run(store.record(question(), lifetime=HOUR))

    def attempt(action: Callable[[], Any]) -> bool:
        try:
            asyncio.run(action())
        except ApprovalAlreadyDecided:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        decided = list(pool.map(attempt, [lambda: store.decide("ap-1", YES)] * 8))
        used = list(pool.map(attempt, [lambda: store.consume(["ap-1"])] * 8))
    assert (decided.count(True), used.count(True)) == (1, 1)


class StoreMachine(RuleBasedStateMachine):
    """Whatever is done in whatever order, a store agrees with the table of moves."""

    moves: ClassVar[dict[str, tuple[set[str], str]]] = {
        "decide-yes": ({"pending"}, "approved"),
        "decide-no": ({"pending"}, "denied"),
        "withdraw": ({"pending", "approved"}, "withdrawn"),
        "consume": ({"approved"}, "consumed"),
    }
    make: Callable[[Clock], ApprovalStore]

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.clock = Clock()
        self.store = type(self).make(self.clock)
        self.expected: dict[str, str] = {}
        self.expires: dict[str, datetime | None] = {}

    def teardown(self) -> None:
        self.loop.close()

    def run(self, action: Coroutine[Any, Any, Any]) -> Any:
        return self.loop.run_until_complete(action)

    @rule(name=st.sampled_from("abc"), hours=st.sampled_from([1, 3, None]))
    def record(self, name: str, hours: int | None) -> None:
        lifetime = None if hours is None else timedelta(hours=hours)
        record: ApprovalRecord = self.run(self.store.record(question(name), lifetime=lifetime))
        if name not in self.expected:
            self.expected[name] = "pending"
            self.expires[name] = None if lifetime is None else self.clock.time + lifetime
        assert record.status == self.expected[name]

    @rule(hours=st.integers(1, 2))
    def pass_time(self, hours: int) -> None:
        self.clock.time += timedelta(hours=hours)
        for name, moment in self.expires.items():
            if moment and moment <= self.clock.time and self.expected[name] == "pending":
                self.expected[name] = "expired"

    @precondition(lambda self: self.expected)
    @rule(data=st.data(), move=st.sampled_from(sorted(moves)))
    def move(self, data: st.DataObject, move: str) -> None:
        name = data.draw(st.sampled_from(sorted(self.expected)))
        sources, target = self.moves[move]
        actions: dict[str, Callable[[], Coroutine[Any, Any, Any]]] = {
            "decide-yes": lambda: self.store.decide(name, YES),
            "decide-no": lambda: self.store.decide(name, NO),
            "withdraw": lambda: self.store.withdraw(name),
            "consume": lambda: self.store.consume([name]),
        }
        action = actions[move]
        if self.expected[name] in sources:
            self.run(action())
            self.expected[name] = target
        else:
            with pytest.raises(ApprovalAlreadyDecided) as refused:
                self.run(action())
            assert refused.value.status == self.expected[name]

    @invariant()
    def agree(self) -> None:
        found = {name: self.run(self.store.get(name)).status for name in self.expected}
        assert found == self.expected
        pending = {record.id for record in self.run(self.store.pending())}
        assert pending == {name for name, state in self.expected.items() if state == "pending"}


class MemoryMachine(StoreMachine):
    make = staticmethod(STORES["memory"])


TestMemoryStoreAsAStateMachine = MemoryMachine.TestCase
TestMemoryStoreAsAStateMachine.settings = settings(max_examples=40, stateful_step_count=20, deadline=None)
