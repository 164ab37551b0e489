"""Blobs: values as they were put, each for its own thread."""

from __future__ import annotations

import json
import sqlite3
import uuid
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import SecretStr

from agentvisor.host.store import BlobDamaged, BlobNotFound, BlobRefused, BlobTooLarge, Store

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=20,
)


@given(value=VALUES)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_a_value_comes_back_as_it_was_put(store: Store, value: Any) -> None:
    thread = uuid.uuid4().hex
    ref = await store.blobs.put(thread, value)
    assert json.dumps(await store.blobs.get(thread, ref.digest)) == json.dumps(value)


async def test_a_large_value_comes_back(store: Store) -> None:
    value = {"pages": [uuid.uuid4().hex * 1000 for _ in range(100)]}
    ref = await store.blobs.put("t", value)
    assert ref.size > 3_000_000
    assert await store.blobs.get("t", ref.digest) == value


async def test_the_same_value_is_one_blob(store: Store) -> None:
    assert await store.blobs.put("t", [1, "a"]) == await store.blobs.put("t", [1, "a"])


async def test_different_values_are_different_blobs(store: Store) -> None:
    refs = [await store.blobs.put("t", value) for value in (1, 1.0, "1", True, [1], None)]
    assert len({ref.digest for ref in refs}) == 6


async def test_no_thread_reads_the_blob_of_another_one(store: Store) -> None:
    ref = await store.blobs.put("ana", "private")
    with pytest.raises(BlobNotFound, match="'bo' has no blob"):
        await store.blobs.get("bo", ref.digest)


async def test_the_same_value_of_two_threads_goes_with_its_own_thread(store: Store) -> None:
    ref = await store.blobs.put("ana", "shared")
    await store.blobs.put("bo", "shared")
    await store.blobs.delete_all("ana")
    assert await store.blobs.get("bo", ref.digest) == "shared"
    with pytest.raises(BlobNotFound):
        await store.blobs.get("ana", ref.digest)


async def test_a_thread_that_is_deleted_leaves_nothing(store: Store) -> None:
    refs = [await store.blobs.put("t", value) for value in ("a", "b")]
    await store.spent_calls.spend("t", "1-1", owner="first")
    await store.delete_thread("t")
    for ref in refs:
        with pytest.raises(BlobNotFound):
            await store.blobs.get("t", ref.digest)
    assert (await store.spent_calls.spend("t", "1-1", owner="second")).mine


@pytest.mark.parametrize(
    "value",
    [float("nan"), [float("inf")], "\ud800", b"bytes", {1: "a"}, (1, 2), {"s"}, object(), Path()],
    ids=["nan", "infinity", "surrogate", "bytes", "number as key", "tuple", "set", "object", "path"],
)
async def test_what_would_not_read_back_as_it_is_is_refused(store: Store, value: Any) -> None:
    with pytest.raises(BlobRefused, match="Give JSON"):
        await store.blobs.put("t", value)


async def test_a_value_that_is_nested_without_end_is_refused(store: Store) -> None:
    value: list[Any] = []
    for _ in range(2000):
        value = [value]
    with pytest.raises(BlobRefused):
        await store.blobs.put("t", value)


async def test_more_than_64_mib_are_refused(store: Store) -> None:
    with pytest.raises(BlobTooLarge, match="67108864 are allowed"):
        await store.blobs.put("t", "x" * (64 * 1024 * 1024 - 1))


async def test_a_blob_that_changed_in_the_database_is_not_handed_out(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    async with Store.open(SecretStr(f"sqlite:///{path}")) as store:
        one = await store.blobs.put("t", "one" * 100)
        two = await store.blobs.put("t", "two" * 100)
        cut = await store.blobs.put("t", "cut" * 100)
        with sqlite3.connect(path) as connection:
            data = "SELECT data FROM agentvisor_blobs WHERE digest = ?"
            change = "UPDATE agentvisor_blobs SET data = ? WHERE digest = ?"
            connection.execute(change, (connection.execute(data, (two.digest,)).fetchone()[0], one.digest))
            connection.execute(change, (connection.execute(data, (cut.digest,)).fetchone()[0][:-6], cut.digest))
            connection.execute(change, (b"garbage", two.digest))
        connection.close()
        for ref in (one, two, cut):
            with pytest.raises(BlobDamaged, match="Restore it"):
                await store.blobs.get("t", ref.digest)
