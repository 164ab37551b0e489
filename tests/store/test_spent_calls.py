"""Spent calls: each has one owner, whoever asks, from wherever."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

from pydantic import SecretStr

from agentvisor.host.store import Store
from agentvisor.host.store.database import Database
from agentvisor.host.store.engine import engine_of
from agentvisor.host.store.migrations import migrate
from agentvisor.host.store.spent_calls import SpentCalls

ROOT = Path(__file__).parents[2]


async def test_the_first_owner_gets_the_call(store: Store) -> None:
    spent = await store.spent_calls.spend("t", "1-1", owner="first")
    assert (spent.mine, spent.owner) == (True, "first")
    assert abs(datetime.now(UTC) - spent.at) < timedelta(minutes=5)


async def test_the_same_owner_may_ask_again(store: Store) -> None:
    assert await store.spent_calls.spend("t", "1-1", owner="first") == await store.spent_calls.spend(
        "t", "1-1", owner="first"
    )


async def test_another_owner_is_told_whose_it_is_and_since_when(store: Store) -> None:
    first = await store.spent_calls.spend("t", "1-1", owner="first")
    second = await store.spent_calls.spend("t", "1-1", owner="second")
    assert (second.mine, second.owner, second.at) == (False, "first", first.at)


async def test_calls_of_other_keys_and_threads_are_others(store: Store) -> None:
    await store.spent_calls.spend("t", "1-1", owner="first")
    assert (await store.spent_calls.spend("t", "1-2", owner="second")).mine
    assert (await store.spent_calls.spend("u", "1-1", owner="second")).mine


async def test_a_released_call_can_be_made_by_another_owner(store: Store) -> None:
    await store.spent_calls.spend("t", "1-1", owner="first")
    await store.spent_calls.release("t", "1-1", owner="first")
    assert (await store.spent_calls.spend("t", "1-1", owner="second")).mine


async def test_nobody_releases_the_call_of_another_owner(store: Store) -> None:
    await store.spent_calls.spend("t", "1-1", owner="first")
    await store.spent_calls.release("t", "1-1", owner="second")
    assert not (await store.spent_calls.spend("t", "1-1", owner="second")).mine


async def test_spent_calls_outlive_the_worker(url: SecretStr) -> None:
    async with Store.open(url) as store:
        await store.spent_calls.spend("t", "1-1", owner="first")
    async with Store.open(url) as store:
        assert (await store.spent_calls.spend("t", "1-1", owner="second")).owner == "first"


async def test_an_owner_that_is_cancelled_does_not_have_the_call(store: Store) -> None:
    cancelled = 0
    for turns in range(12):  # cancelled a little later each time
        spending = asyncio.create_task(store.spent_calls.spend("t", f"1-{turns}", owner="first"))
        for _ in range(turns):
            await asyncio.sleep(0)
        spending.cancel()
        await asyncio.wait({spending})
        cancelled += spending.cancelled()
        assert (await store.spent_calls.spend("t", f"1-{turns}", owner="second")).mine == spending.cancelled()
    assert cancelled


async def test_calls_are_spent_while_blobs_are_written(store: Store) -> None:
    large = {"text": "x" * 3_000_000}
    writing = [asyncio.create_task(store.blobs.put("t", {**large, "n": n})) for n in range(5)]
    spent = await asyncio.gather(*(store.spent_calls.spend("t", f"1-{n}", owner="first") for n in range(50)))
    assert all(call.mine for call in spent)
    assert len(set(await asyncio.gather(*writing))) == 5


async def test_a_connection_that_was_closed_is_replaced(url: SecretStr) -> None:
    engine = engine_of(url.get_secret_value(), patience=5)
    database = Database(engine, prepare=migrate, patience=5)
    calls = SpentCalls(database)
    await calls.spend("t", "1-1", owner="first")
    await engine.dispose()
    assert (await calls.spend("t", "1-1", owner="second")).owner == "first"
    await database.close()


async def test_of_several_processes_exactly_one_gets_each_call(url: SecretStr) -> None:
    calls = [str(n) for n in range(25)]
    processes = {owner: await _spender(url, owner, len(calls)) for owner in ("a", "b")}
    for process in processes.values():
        assert process.stdout is not None
        assert await process.stdout.readline() == b"here\n"
    async with Store.open(url) as store:  # all three open it, and one makes it
        begun = {owner: asyncio.create_task(process.communicate(b"go\n")) for owner, process in processes.items()}
        ours = await asyncio.gather(*(store.spent_calls.spend("t", call, owner="c") for call in calls))
    answers: dict[str, list[tuple[bool, str]]] = {"c": [(spent.mine, spent.owner) for spent in ours]}
    answers |= {owner: json.loads((await communicating)[0]) for owner, communicating in begun.items()}
    for n in range(len(calls)):
        winners = [owner for owner, spent in answers.items() if spent[n][0]]
        assert len(winners) == 1
        assert {spent[n][1] for spent in answers.values()} == set(winners)


async def _spender(url: SecretStr, owner: str, calls: int) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.store.spender", owner, str(calls)),
        cwd=ROOT,
        env={**os.environ, "AGENTVISOR_STORE": url.get_secret_value()},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
