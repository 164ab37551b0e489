"""What every measure stands on: one server with its data in a WAL file, and workers beside it."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from temporalio.client import Client

from agentvisor.host.dev_server import TemporalServer, dev_server
from benchmarks.ear import Ear
from benchmarks.process import WorkerProcess
from client import Threads
from client.connection import connect

QUEUE, PLUGIN_QUEUE, BARE_QUEUE, LEAST_QUEUE = "agentvisor", "plugin", "bare", "least"
_PROJECT = Path(__file__).parent / "project"
_OWN = ("AGENTVISOR_", "TEMPORAL_", "PYTHONDONTWRITEBYTECODE")


@dataclass(frozen=True)
class Stage:
    """A server, a client of it, a folder for what processes write.

    `say`: tells whoever waits how far it is. `quick`: shows that everything runs, not how fast.
    """

    client: Client
    threads: Threads
    server: TemporalServer
    ear: Ear
    port: int
    folder: Path
    say: Callable[[str], None]
    quick: bool = False

    @classmethod
    @asynccontextmanager
    async def built(cls, say: Callable[[str], None], *, quick: bool = False) -> AsyncGenerator[Stage]:
        """With a server of its own on free ports; nothing of it is left afterwards."""
        folder = Path(tempfile.mkdtemp(prefix="agentvisor-bench-"))
        try:
            (folder / "notes").mkdir()
            async with dev_server(db=folder / "temporal.db", ui=False) as server, Ear.open() as (ear, port):
                client = await connect(server.connection)
                yield cls(client, Threads(client, task_queue=QUEUE), server, ear, port, folder, say, quick)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def size(self, whole: int, quick: int) -> int:
        """One of the two."""
        return quick if self.quick else whole

    @property
    def store(self) -> Path:
        """The file of the product's Store."""
        return self.folder / "store.db"

    def product(self, **settings: str) -> AbstractAsyncContextManager[WorkerProcess]:
        """This host's worker, with its default Settings but for those given."""
        return WorkerProcess.running(self.product_command, self.environment(**settings))

    async def started_product(self) -> WorkerProcess:
        """The same as `product`, for those that kill it."""
        return await WorkerProcess.start(self.product_command, self.environment())

    def plugin(self) -> AbstractAsyncContextManager[WorkerProcess]:
        """A worker with Temporal's ADK plugin."""
        return WorkerProcess.running(self.plugin_command, self.environment())

    def bare(self) -> AbstractAsyncContextManager[WorkerProcess]:
        """A worker of the bare workflow."""
        return WorkerProcess.running(["-m", "benchmarks.bare_worker"], self.environment())

    def least(self) -> AbstractAsyncContextManager[WorkerProcess]:
        """A worker that does the least."""
        return WorkerProcess.running(["-m", "benchmarks.least_worker"], self.environment())

    @property
    def product_command(self) -> list[str]:
        """Arguments of Python."""
        return ["worker.py", "--project", str(_PROJECT)]

    @property
    def plugin_command(self) -> list[str]:
        """Arguments of Python."""
        return ["-m", "benchmarks.plugin_worker"]

    def noted(self, order: str, what: str) -> list[tuple[float, int]]:
        """What the agent noted for an order: when it began, in which process."""
        path = self.folder / "notes" / f"{order}.{what}"
        lines = path.read_text().splitlines() if path.exists() else []
        return [(float(at), int(pid)) for at, pid in map(str.split, lines)]

    def environment(self, **settings: str) -> dict[str, str]:
        """What processes on this stage inherit; `settings`: those of the product, by field name."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(_OWN)}
        address = self.server.connection.address or ""
        own = {
            "TEMPORAL_ADDRESS": address,
            "AGENTVISOR_STORE": f"sqlite:///{self.store}",
            "BENCH_NOTES": str(self.folder / "notes"),
            "BENCH_PORT": str(self.port),
            "PYTHONPATH": str(_PROJECT),  # where the plugin's worker finds the parts of the agent
        }
        return {**kept, **own, **{f"AGENTVISOR_{name.upper()}": value for name, value in settings.items()}}
