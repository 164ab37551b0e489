"""Approval stores: from the question to the one use of its answer, one suite for all of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any, ClassVar

import pytest
import pytest_asyncio
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from agent_adapter import (
    ApprovalAlreadyDecided,
    ApprovalDecision,
    ApprovalRecord,
    ApprovalRequest,
    ApprovalStore,
    ApprovalUnknown,
    MemoryApprovalStore,
    ToolUsageError,
)
from agent_adapter.approval.sql import SqlApprovalStore

YES = ApprovalDecision(approved=True, decided_by="ana")
NO = ApprovalDecision(approved=False, decided_by="bo")
HOUR = timedelta(hours=1)


class Clock:
    def __init__(self) -> None:
        self.time = datetime(2026, 2, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.time


def question(id: str = "ap-1") -> ApprovalRequest:  # noqa: A002
    return ApprovalRequest(id=id, run="r", call=id, tool="pay", arguments={"amount": 5})


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=["memory", "sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Of an empty database; "" for memory."""
    if request.param == "memory":
        return ""
    return (
        f"sqlite:///{tmp_path / 'approvals.db'}"
        if request.param == "sqlite"
        else request.getfixturevalue("postgresql_url")
    )


@pytest_asyncio.fixture
async def store(url: str, clock: Clock) -> AsyncGenerator[ApprovalStore]:
    if not url:
        yield MemoryApprovalStore(now=clock)
        return
    async with SqlApprovalStore.open(url, now=clock) as store:
        yield store


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


async def test_only_the_store_s_own_databases_are_taken(tmp_path: Path) -> None:
    for url in ("mysql://u@h/d", "sqlite://", "sqlite:///:memory:", "here"):
        with pytest.raises(ToolUsageError):
            async with SqlApprovalStore.open(url):
                pass


async def test_what_has_its_end_can_be_forgotten(tmp_path: Path, clock: Clock) -> None:
    async with SqlApprovalStore.open(f"sqlite:///{tmp_path / 'approvals.db'}", now=clock) as store:
        for approval in ("ap-1", "ap-2", "ap-3", "ap-4"):
            await store.record(question(approval), lifetime=HOUR if approval == "ap-4" else None)
        await store.decide("ap-1", NO)
        await store.decide("ap-2", YES)
        clock.time += HOUR
        assert await store.forget(before=clock.time) == 2
        assert [await status(store, approval) for approval in ("ap-2", "ap-3")] == ["approved", "pending"]


@pytest.mark.parametrize("round_", range(20))
def test_of_many_threads_at_once_one_decides_and_one_uses(round_: int) -> None:
    store = MemoryApprovalStore()
    asyncio.run(store.record(question(), lifetime=HOUR))

    def attempt(action: Callable[[], Any]) -> bool:
        return asyncio.run(succeeds(action()))

    with ThreadPoolExecutor(8) as pool:
        decided = list(pool.map(attempt, [lambda: store.decide("ap-1", YES)] * 8))
        used = list(pool.map(attempt, [lambda: store.consume(["ap-1"])] * 8))
    assert (decided.count(True), used.count(True)) == (1, 1)


async def test_of_many_at_once_one_decides_and_one_uses(store: ApprovalStore) -> None:
    for number in range(10):
        name = f"ap-{number}"
        await store.record(question(name), lifetime=HOUR)
        decided = await asyncio.gather(*(succeeds(store.decide(name, answer)) for answer in (YES, NO, YES, NO)))
        assert decided.count(True) == 1
        used = await asyncio.gather(*(succeeds(store.consume([name])) for _ in range(4)))
        assert used.count(True) == (1 if await status(store, name) == "consumed" else 0)


async def test_batches_that_share_approvals_use_each_of_them_once(store: ApprovalStore) -> None:
    names = ["ap-1", "ap-2", "ap-3"]
    for name in names:
        await store.record(question(name), lifetime=HOUR)
        await store.decide(name, YES)
    batches = [["ap-1", "ap-2"], ["ap-2", "ap-1"], ["ap-3", "ap-2"], ["ap-2", "ap-3"]]
    used = await asyncio.gather(*(succeeds(store.consume(batch)) for batch in batches))
    assert used.count(True) == 1
    left = next(iter(set(names) - set(batches[used.index(True)])))
    assert [await status(store, name) for name in names].count("consumed") == 2
    assert await status(store, left) == "approved"


async def succeeds(action: Coroutine[Any, Any, Any]) -> bool:
    try:
        await action
    except ApprovalAlreadyDecided:
        return False
    return True


class StoreMachine(RuleBasedStateMachine):
    """Whatever is done in whatever order, a store agrees with the table of moves."""

    moves: ClassVar[dict[str, tuple[set[str], str]]] = {
        "decide-yes": ({"pending"}, "approved"),
        "decide-no": ({"pending"}, "denied"),
        "withdraw": ({"pending", "approved"}, "withdrawn"),
        "consume": ({"approved"}, "consumed"),
    }

    def __init__(self, store: ApprovalStore, clock: Clock, loop: asyncio.AbstractEventLoop, life: int) -> None:
        super().__init__()
        self.store, self.clock, self.loop, self.life = store, clock, loop, life
        self.expected: dict[str, str] = {}
        self.expires: dict[str, datetime | None] = {}

    def run(self, action: Coroutine[Any, Any, Any]) -> Any:
        return self.loop.run_until_complete(action)

    @rule(letter=st.sampled_from("abc"), hours=st.sampled_from([1, 3, None]))
    def record(self, letter: str, hours: int | None) -> None:
        name = f"{self.life}{letter}"  # the store keeps what earlier lives of the machine left
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
        mine = f"{self.life}"
        pending = {record.id for record in self.run(self.store.pending()) if record.id[:-1] == mine}
        assert pending == {name for name, state in self.expected.items() if state == "pending"}


def agrees_with_the_table(
    open_store: Callable[[Clock], AbstractAsyncContextManager[ApprovalStore]], lives: int
) -> None:
    clock, loop, life = Clock(), asyncio.new_event_loop(), count()
    opened = open_store(clock)
    store = loop.run_until_complete(opened.__aenter__())
    try:
        run_state_machine_as_test(
            lambda: StoreMachine(store, clock, loop, next(life)),  # pyright: ignore[reportArgumentType]
            settings=settings(max_examples=lives, stateful_step_count=20, deadline=None),
        )
    finally:
        loop.run_until_complete(opened.__aexit__(None, None, None))
        loop.close()


def test_the_memory_store_is_a_state_machine() -> None:
    @asynccontextmanager
    async def memory(clock: Clock) -> AsyncGenerator[ApprovalStore]:
        yield MemoryApprovalStore(now=clock)

    agrees_with_the_table(memory, 40)


def test_the_sqlite_store_is_a_state_machine(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'approvals.db'}"
    agrees_with_the_table(lambda clock: SqlApprovalStore.open(url, now=clock), 15)


def test_the_postgresql_store_is_a_state_machine(postgresql_url: str) -> None:
    agrees_with_the_table(lambda clock: SqlApprovalStore.open(postgresql_url, now=clock), 15)
