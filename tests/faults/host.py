"""`python worker.py` as a process that a test may kill, stop and start again: same task queue, same Store."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from tests.host.processes import exists, until

ROOT = Path(__file__).parents[2]


class Host:
    """A worker with one guest for legs and one for calls. What it says goes to a file in `folder`."""

    def __init__(self, folder: Path, project: Path, *, address: str, environment: Mapping[str, str]) -> None:
        self.task_queue = f"faults-{uuid.uuid4()}"
        self.store = folder / "store.db"
        self._log = folder / f"{self.task_queue}.log"
        self._command = [sys.executable, "worker.py", "--project", str(project)]
        self._environment = {
            **os.environ,
            "TEMPORAL_ADDRESS": address,
            "AGENTVISOR_TASK_QUEUE": self.task_queue,
            "AGENTVISOR_STORE": f"sqlite:///{self.store}",
            "AGENTVISOR_LEG_GUESTS": "1",
            "AGENTVISOR_TOOL_GUESTS": "1",
            "AGENTVISOR_STICKY_TIMEOUT": "1",
            "AGENTVISOR_GRACEFUL_SHUTDOWN": "3",
            "AGENTVISOR_WORKFLOW_SANDBOX": "true",
            **environment,
        }
        self._process: subprocess.Popen[bytes] | None = None
        self._read = 0

    async def start(self) -> None:
        """Start it and wait until it works."""
        with self._log.open("ab") as log:
            self._read = log.tell()
            self._process = subprocess.Popen(  # noqa: ASYNC220 - it lives on
                self._command,
                cwd=ROOT,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        await self.says("worker.ready")

    async def says(self, text: str) -> None:
        """Wait until it says so, since its last start."""
        await until(lambda: text in self.said() or not self.lives, 60)
        assert text in self.said(), self.said()

    def said(self) -> str:
        """What it has said since its last start."""
        return self._log.read_bytes()[self._read :].decode(errors="replace")

    @property
    def lives(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def send(self, number: signal.Signals) -> None:
        """Send it a signal."""
        assert self._process
        os.kill(self._process.pid, number)

    async def kill(self) -> None:
        """Kill -9; it is gone afterwards."""
        self.send(signal.SIGKILL)
        await self.ended()

    async def ended(self) -> int:
        """Wait for its end; its exit code."""
        assert self._process
        return await asyncio.to_thread(self._process.wait, 90)

    async def close(self) -> None:
        """End it, if it lives."""
        if self.lives:
            self.send(signal.SIGCONT)
            self.send(signal.SIGTERM)
            await self.ended()


def stop(pid: int) -> None:
    """The process stands still until it is killed, or goes on by SIGCONT."""
    os.kill(pid, signal.SIGSTOP)


async def kill(*pids: int) -> None:
    """Kill -9, and wait until they are gone."""
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    await gone(*pids)


async def gone(*pids: int) -> None:
    """Wait until the processes are gone."""
    await until(lambda: not any(map(exists, pids)))
