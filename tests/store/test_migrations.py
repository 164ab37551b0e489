"""The schema: made at the first start, left alone afterwards, refused where it is newer."""

from __future__ import annotations

import sqlite3
import stat
from pathlib import Path

import pytest
from pydantic import SecretStr

from agentvisor.host.store import Store, StoreTooNew
from tests.store.postgresql import Postgresql


async def test_a_second_start_changes_nothing(url: SecretStr) -> None:
    for _ in range(2):
        async with Store.open(url) as store:
            await store.ready()
            await store.blobs.put("t", "value")


async def test_a_newer_schema_is_left_alone(server: Postgresql | None, url: SecretStr) -> None:
    async with Store.open(url):
        pass
    newer = "INSERT INTO agentvisor_schema VALUES (1000, 0)"
    if server is None:
        with sqlite3.connect(url.get_secret_value().removeprefix("sqlite:///")) as connection:
            connection.execute(newer)
        connection.close()
    else:
        schema = url.get_secret_value().rpartition("=")[2]
        await server.execute(newer.replace("INTO ", f"INTO {schema}."))
    with pytest.raises(StoreTooNew, match="has schema 1000"):
        async with Store.open(url):
            pass


async def test_a_worker_that_may_not_create_tables_uses_those_that_are_there(postgresql: Postgresql) -> None:
    await postgresql.execute("CREATE SCHEMA ready; CREATE ROLE guarded LOGIN")
    owner = SecretStr(f"{postgresql.url}&search_path=ready")
    async with Store.open(owner):
        pass
    rights = "SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA ready"
    await postgresql.execute(f"GRANT USAGE ON SCHEMA ready TO guarded; GRANT {rights} TO guarded")
    async with Store.open(SecretStr(owner.get_secret_value().replace("postgres:", "guarded:", 1))) as store:
        assert (await store.spent_calls.spend("t", "1-1", owner="first")).mine


async def test_a_new_file_is_for_its_user_alone_and_in_wal(tmp_path: Path) -> None:
    path = tmp_path / "new" / "store.db"
    async with Store.open(SecretStr(f"sqlite:///{path}")) as store:
        await store.blobs.put("t", "value")
        for name in ("store.db", "store.db-wal"):
            assert stat.S_IMODE((path.parent / name).stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


async def test_the_url_may_name_a_file_as_people_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    for url, path in {"sqlite:///~/home.db": "home.db", "sqlite:///here.db": "here.db"}.items():
        async with Store.open(SecretStr(url)) as store:
            await store.ready()
        assert (tmp_path / path).stat().st_size > 0
