"""A database that goes away is said to be away, in bounded time, and used again when it is back."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import structlog
from pydantic import SecretStr

from agentvisor.host.store import Store, StoreMisconfigured, StoreUnavailable
from tests.store.postgresql import Postgresql


@pytest.fixture
def patience(server: Postgresql | None) -> float:
    """A locked file is waited for; a server that is down refuses at once."""
    return 1.5 if server is None else 5.0


@pytest.fixture(autouse=True)
async def within_a_minute() -> AsyncGenerator[None]:
    """Nothing here may hang: the fixture of a test that does fails with it."""
    loop = asyncio.get_running_loop()
    started = loop.time()
    yield
    assert loop.time() - started < 60


@asynccontextmanager
async def outage(server: Postgresql | None, url: SecretStr) -> AsyncGenerator[None]:
    """The file is locked, or the server has crashed and is started again."""
    if server is None:
        connection = sqlite3.connect(url.get_secret_value().removeprefix("sqlite:///"), isolation_level=None)
        connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        finally:
            connection.close()
    else:
        await server.stop()
        try:
            yield
        finally:
            await server.start()


async def test_the_store_says_that_it_is_away_and_works_when_it_is_back(
    server: Postgresql | None, url: SecretStr, patience: float
) -> None:
    async with Store.open(url, patience=patience) as store:
        await store.spent_calls.spend("t", "1-1", owner="first")
        async with outage(server, url):
            with pytest.raises(StoreUnavailable, match="AGENTVISOR_STORE"):
                await store.spent_calls.spend("t", "1-2", owner="first")
            with pytest.raises(StoreUnavailable):
                await store.blobs.put("t", "value")
        assert (await store.spent_calls.spend("t", "1-1", owner="second")).owner == "first"
        ref = await store.blobs.put("t", "value")
        assert await store.blobs.get("t", ref.digest) == "value"


async def test_many_who_ask_at_once_are_all_told_and_do_not_have_their_calls(
    server: Postgresql | None, url: SecretStr, patience: float
) -> None:
    async with Store.open(url, patience=patience) as store:
        async with outage(server, url):
            asked = (store.spent_calls.spend("t", f"1-{n}", owner="first") for n in range(30))
            answers = await asyncio.gather(*asked, return_exceptions=True)
        assert {type(answer) for answer in answers} == {StoreUnavailable}
        again = [await store.spent_calls.spend("t", f"1-{n}", owner="second") for n in range(30)]
        assert all(spent.mine for spent in again)


async def test_a_worker_starts_without_its_store_and_uses_it_when_it_is_there(
    server: Postgresql | None, url: SecretStr, patience: float
) -> None:
    if server is None:
        Path(url.get_secret_value().removeprefix("sqlite:///")).touch()
    with structlog.testing.capture_logs() as logged:
        async with outage(server, url), Store.open(url, patience=patience) as store:
            with pytest.raises(StoreUnavailable):
                await store.ready()
        async with Store.open(url, patience=patience) as store:
            await store.ready()
    assert [entry["event"] for entry in logged] == ["store.unavailable"]


async def test_a_store_that_is_opened_during_an_outage_is_migrated_after_it(
    server: Postgresql | None, url: SecretStr, patience: float
) -> None:
    away = outage(server, url)
    await away.__aenter__()
    try:
        opened = Store.open(url, patience=patience)
        store = await opened.__aenter__()
    finally:
        await away.__aexit__(None, None, None)
    assert (await store.spent_calls.spend("t", "1-1", owner="first")).mine
    await opened.__aexit__(None, None, None)


async def test_a_server_restarted_between_two_uses_is_not_noticed(postgresql: Postgresql) -> None:
    async with Store.open(SecretStr(postgresql.url)) as store:
        await store.spent_calls.spend("restarted", "1-1", owner="first")
        await postgresql.stop()
        await postgresql.start()
        assert (await store.spent_calls.spend("restarted", "1-1", owner="second")).owner == "first"


async def test_a_server_that_stalls_is_given_up_in_time(postgresql: Postgresql) -> None:
    async with Store.open(SecretStr(postgresql.url), patience=1) as store:
        with postgresql.stalled():
            for _ in range(2):
                with pytest.raises(StoreUnavailable, match="within 1 s"):
                    await store.spent_calls.spend("stalled", "1-1", owner="first")
    async with Store.open(SecretStr(postgresql.url)) as store:
        assert (await store.spent_calls.spend("stalled", "1-1", owner="first")).mine


async def test_a_store_closes_while_its_server_stalls(postgresql: Postgresql) -> None:
    opened = Store.open(SecretStr(postgresql.url), patience=1)
    await opened.__aenter__()
    with postgresql.stalled():
        await opened.__aexit__(None, None, None)


async def test_no_text_and_no_log_holds_the_password(unused_tcp_port: int) -> None:
    url = SecretStr(f"postgresql://ana:pa55word@127.0.0.1:{unused_tcp_port}/db?application_name=pa55word")
    with structlog.testing.capture_logs() as logged:
        async with Store.open(url, patience=5) as store:
            with pytest.raises(StoreUnavailable) as raised:
                await store.ready()
            assert "pa55word" not in repr(store) + repr(vars(store))
    chain: list[BaseException | None] = [raised.value, raised.value.__cause__, raised.value.__context__]
    assert "pa55word" not in "".join(map(repr, chain)) + str(logged)
    assert len(logged) == 1


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ana:pa/55word@host/db",
        "postgresql://ana:pa55word@host:port/db",
        "postgresql://ana:pa55word@host/db?sslmode=pa55word",
        "mysql://ana:pa55word@host/db",
        "pa55word",
        "",
    ],
)
async def test_a_wrong_url_is_refused_without_a_word_of_it(url: str) -> None:
    with pytest.raises(StoreMisconfigured, match="Write sqlite:///FILE, or postgresql://USER") as raised:
        async with Store.open(SecretStr(url)):
            pass
    assert "55word" not in str(raised.value) + repr(raised.value.__cause__)


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///:memory:", "sqlite:///a.db?mode=memory", "sqlite://host/a.db"])
async def test_what_would_not_outlive_the_worker_is_refused(url: str) -> None:
    with pytest.raises(StoreMisconfigured, match="must outlive the worker"):
        async with Store.open(SecretStr(url)):
            pass


async def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("not a database, " * 100)
    with pytest.raises(StoreMisconfigured, match="not a database"):
        async with Store.open(SecretStr(f"sqlite:///{tmp_path / 'notes.txt'}")):
            pass


async def test_a_file_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreMisconfigured, match="cannot be made"):
        async with Store.open(SecretStr(f"sqlite:///{tmp_path / 'file' / 'store.db'}")):
            pass


async def test_a_database_that_does_not_exist_is_refused(postgresql: Postgresql) -> None:
    with pytest.raises(StoreMisconfigured, match="does not exist"):
        async with Store.open(SecretStr(postgresql.url.replace("/postgres?", "/nowhere?"))):
            pass
