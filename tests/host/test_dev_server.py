from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from agentvisor.host.dev_server import TemporalServer, answering_or_dev_server, dev_server, free_port
from client.connection import Connection, connect
from tests.host.processes import exists, until


async def test_a_second_server_finds_other_ports_and_no_process_stays(temporal_server: TemporalServer) -> None:
    async with dev_server() as other:
        assert other.connection.address != temporal_server.connection.address
        assert other.ui_url
        assert other.ui_url != temporal_server.ui_url
        assert (await connect(other.connection)).namespace == "default"
        assert other.pid
        assert exists(other.pid)
    assert not exists(other.pid)


async def test_a_server_that_answers_at_the_address_that_was_said_is_used(temporal_server: TemporalServer) -> None:
    async with answering_or_dev_server(temporal_server.connection) as server:
        assert server.connection == temporal_server.connection
        assert not server.started


async def test_temporal_address_is_read_from_the_environment(
    temporal_server: TemporalServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert temporal_server.connection.address
    monkeypatch.setenv("TEMPORAL_ADDRESS", temporal_server.connection.address)
    async with answering_or_dev_server(Connection()) as server:
        assert not server.started
        assert server.connection.resolved().address == temporal_server.connection.address


async def test_where_nothing_answers_a_server_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEMPORAL_API_KEY", "for-another-server")
    async with answering_or_dev_server(Connection(address=f"127.0.0.1:{free_port()}")) as server:
        assert server.started
        assert (await connect(server.connection)).namespace == "default"


async def test_a_database_file_keeps_the_data(tmp_path: Path) -> None:
    async with dev_server(db=tmp_path / "temporal.db", ui=False) as server:
        assert server.ui_url is None
    assert (tmp_path / "temporal.db").stat().st_size > 0


def test_a_port_that_is_taken_is_not_free() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert free_port(port) != port
    assert free_port(port) == port


async def test_the_server_ends_when_its_host_is_killed() -> None:
    program = """
import asyncio
from agentvisor.host.dev_server import dev_server
async def main():
    async with dev_server(ui=False) as server:
        print("pid", server.pid, flush=True)
        await asyncio.sleep(1000)
asyncio.run(main())
"""
    host = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)  # noqa: ASYNC220
    with host:
        assert host.stdout
        pid = next(int(line.split()[1]) for line in host.stdout if line.startswith("pid"))
        assert exists(pid)
        host.kill()
    await until(lambda: not exists(pid))
