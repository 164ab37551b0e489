"""Processes under measurement: started here, ended by their ids, weighed through /proc."""

from __future__ import annotations

import asyncio
import os
import sys
from collections import deque
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from agentvisor.host.child import Child

ROOT = Path(__file__).parents[1]
READY = "worker.ready"
_START_SECONDS, _END_SECONDS = 120.0, 40.0
_TICKS = os.sysconf("SC_CLK_TCK")


class MeasureFailed(Exception):
    """A part could not be measured; the text says what was seen."""


class WorkerProcess:
    """A worker that has said it is ready."""

    def __init__(self, child: Child) -> None:
        self._child = child
        self.pid = child.pid

    @classmethod
    @asynccontextmanager
    async def running(cls, arguments: Sequence[str], environment: Mapping[str, str]) -> AsyncGenerator[WorkerProcess]:
        """`python ARGUMENTS` for as long as this lasts."""
        worker = await cls.start(arguments, environment)
        try:
            yield worker
        finally:
            await worker.end()

    @classmethod
    async def start(cls, arguments: Sequence[str], environment: Mapping[str, str]) -> WorkerProcess:
        """`python ARGUMENTS`, once it says that it is ready. Raises MeasureFailed with what it said instead."""
        said: deque[str] = deque(maxlen=20)
        ready = asyncio.Event()

        def hear(line: str) -> None:
            said.append(line)
            if READY in line:
                ready.set()

        child = await Child.start([sys.executable, *arguments], env=environment, cwd=ROOT, on_line=hear)
        try:
            async with asyncio.timeout(_START_SECONDS):
                while not (ready.is_set() or child.ended):  # noqa: ASYNC110 - no event tells of a child's end
                    await asyncio.sleep(0.02)
        except BaseException:
            await child.end(0)
            raise
        if not ready.is_set():
            raise MeasureFailed(f"python {' '.join(arguments)} ended: {' | '.join(said)}")
        return cls(child)

    async def end(self) -> None:
        """In order, or by force where that takes long."""
        self._child.terminate()
        await self._child.end(_END_SECONDS)

    async def kill(self) -> None:
        """At once, as a crash would: `kill -9` of the worker alone. Its guests see its socket close."""
        os.kill(self.pid, 9)
        await self._child.end(1)

    def guests(self) -> list[int]:
        """The processes it has started, and that have started none themselves."""
        return [pid for pid in _descendants(self.pid) if not _children(pid)]

    def below(self) -> list[int]:
        """All processes that would not be there without it."""
        return _descendants(self.pid)

    async def settled(self, guests: int) -> None:
        """Wait until it has so many guests, and neither it nor they are busy. Raises MeasureFailed."""
        try:
            async with asyncio.timeout(_START_SECONDS):
                while len(self.guests()) < guests or await self._is_busy():  # noqa: ASYNC110 - /proc has no events
                    await asyncio.sleep(0.1)
        except TimeoutError:
            raise MeasureFailed(f"{guests} guests did not come to rest: {self.guests()}") from None

    async def _is_busy(self) -> bool:
        before = self.cpu_seconds()
        await asyncio.sleep(0.5)
        return self.cpu_seconds() - before > 0.1

    def cpu_seconds(self) -> float:
        """Of the worker and all processes below it so far."""
        return sum(map(cpu_seconds, [self.pid, *self.below()]))


async def output_of(arguments: Sequence[str], environment: Mapping[str, str]) -> str:
    """What `python ARGUMENTS` prints, once it has ended. Raises MeasureFailed with what it said instead."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, *arguments),
        cwd=ROOT,
        env=environment,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    if process.returncode:
        raise MeasureFailed(f"python {' '.join(arguments)} failed: {err.decode()[-500:]}")
    return out.decode()


def _descendants(pid: int) -> list[int]:
    found = _children(pid)
    return [*found, *(below for child in found for below in _descendants(child))]


def _children(pid: int) -> list[int]:
    """Of a process, by whichever of its threads. None where it has ended meanwhile."""
    try:
        listed = [task / "children" for task in Path(f"/proc/{pid}/task").iterdir()]
        return [int(child) for path in listed for child in path.read_text().split()]
    except OSError:
        return []


def cpu_seconds(pid: int) -> float:
    """User and system time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def pss_mb(pid: int) -> float:
    """Memory of a process, in MiB; pages it shares are divided among those that share them."""
    return _rollup(pid, "Pss")


def rss_mb(pid: int) -> float:
    """Memory of a process, in MiB; pages it shares are counted in full."""
    return _rollup(pid, "Rss")


def _rollup(pid: int, name: str) -> float:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    (line,) = [line for line in lines if line.startswith(f"{name}:")]
    return int(line.split()[1]) / 1024
