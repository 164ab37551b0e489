"""Kill -9 of the Temporal dev server in the midst of runs; it starts again on its database file."""

from __future__ import annotations

import asyncio
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest
from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest
from temporalio.client import Client
from temporalio.service import RPCError

from agentvisor.host.dev_server import find_binary, free_port
from agentvisor.local_gemini import LocalGemini
from client.connection import Connection, connect
from client.errors import TemporalUnavailable
from tests.faults.case import Case, World
from tests.faults.host import Host
from tests.faults.seams import SEAMS
from tests.fixtures.effects import Effects

STRUCK = (
    "during-a-model-call",
    "after-a-model-turn",
    "in-a-read-tool",
    "in-an-idempotent-tool",
    "in-an-approved-idempotent-tool",
    "in-a-write-before-its-effect",
    "in-a-write-after-its-effect",
    "waiting-for-approvals",
    "one-call-done-others-waiting",
    "while-edits-are-checked",
    "between-decide-and-the-tool",
    "after-continue-as-new",
    "between-runs-that-continue-as-new",
)


class Server:
    """A dev server that keeps its port and its data."""

    def __init__(self, folder: Path) -> None:
        self._port = free_port()
        self._command = [
            find_binary(),
            "server",
            "start-dev",
            "--headless",
            "--ip",
            "127.0.0.1",
            "--log-level",
            "error",
        ]
        self._command += ["--port", str(self._port), "--db-filename", str(folder / "temporal.db")]
        self._command += ["--sqlite-pragma", "journal_mode=wal", "--sqlite-pragma", "synchronous=normal"]
        self.address = f"127.0.0.1:{self._port}"

    async def start(self) -> Client:
        """Start it; a client of it."""
        out = subprocess.DEVNULL
        self._process = subprocess.Popen(self._command, stdin=out, stdout=out, stderr=out)  # noqa: ASYNC220
        async with asyncio.timeout(60):
            while True:
                with suppress(TemporalUnavailable, RPCError):
                    client = await connect(Connection(address=self.address, namespace="default", tls=False))
                    request = DescribeNamespaceRequest(namespace="default")
                    await client.workflow_service.describe_namespace(request)
                    return client
                await asyncio.sleep(0.1)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


@pytest.mark.timeout(240)
async def test_a_server_that_is_killed_and_comes_back_loses_nothing_and_doubles_nothing(
    tmp_path: Path, project: Path, model: LocalGemini, counter: Effects
) -> None:
    """Two calls in each turn; what tools return while there is no server is stored when it is back, or unknown."""
    server = Server(tmp_path)
    client = await server.start()
    host = Host(tmp_path, project, address=server.address, environment={**model.env(), **counter.env()})
    try:
        await host.start()
        world = World(client, host.task_queue, model, counter)
        cases = {name: Case(world, SEAMS[name].tool, 2 if SEAMS[name].tool else 1) for name in STRUCK}
        await asyncio.gather(*(SEAMS[name].reach(case) for name, case in cases.items()))
        server.kill()
        await asyncio.gather(*(case.release() for case in cases.values()))
        await server.start()
        await asyncio.gather(*(case.to_its_end() for case in cases.values()))
        for case in cases.values():
            await case.check()
            await case.goes_on()
    finally:
        await host.close()
        server.kill()
