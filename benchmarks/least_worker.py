"""`python -m benchmarks.least_worker`: a worker of `LeastThread`, with all that makes a worker of this host quick.

No sandbox, uvloop, one data converter, no idle visits of payloads; as many guests as the host's, that do as little.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import sys
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import orjson
import uvloop
from temporalio import activity
from temporalio.client import Client
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from agentvisor.host.exit import leave
from agentvisor.host.payload_visits import leave_out_idle_visits
from benchmarks.least_thread import LeastThread
from benchmarks.stage import LEAST_QUEUE
from client.data_converter import DATA_CONVERTER
from worker import HANDOVER, POLLS, POLLS_FOR_NEW_THREADS

_GUESTS_EACH = 2


class _Guest:
    """A process of `least_guest`."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin
        assert process.stdout
        self._in, self._out = process.stdin, process.stdout
        self._asked: dict[int, asyncio.Future[Any]] = {}
        self._number = 0
        self._reading = asyncio.create_task(self._read())

    @classmethod
    async def start(cls) -> _Guest:
        command, pipe = (sys.executable, "-m", "benchmarks.least_guest"), asyncio.subprocess.PIPE
        return cls(await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe))

    async def ask(self, what: str, conversation: str, value: Any) -> Any:
        self._number += 1
        asked = self._asked[self._number] = asyncio.get_running_loop().create_future()
        self._in.write(orjson.dumps([self._number, what, conversation, value]) + b"\n")
        return await asked

    async def _read(self) -> None:
        while line := await self._out.readline():
            number, answer = orjson.loads(line)
            self._asked.pop(number).set_result(answer)


class Calls:
    """A row for each call, on the disk before the call is made; as the Store does it."""

    def __init__(self, path: Path) -> None:
        self._thread = ThreadPoolExecutor(1)
        self._connection = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        self._connection.execute("PRAGMA journal_mode=WAL")
        self._connection.execute("PRAGMA synchronous=FULL")
        self._connection.execute("CREATE TABLE calls (id TEXT PRIMARY KEY, owner TEXT)")

    async def note(self, call: str, owner: str) -> None:
        """Raises sqlite3.IntegrityError for one that is there."""
        insert = "INSERT INTO calls VALUES (?, ?)"
        await asyncio.get_running_loop().run_in_executor(self._thread, self._connection.execute, insert, (call, owner))


class Activities:
    """Of a turn."""

    def __init__(self, agents: list[_Guest], hands: list[_Guest], calls: Calls) -> None:
        self._agents, self._hands, self._calls = agents, hands, calls

    @activity.defn
    async def say(self, text: str) -> Any:
        """A message to the agent; the call it leaves."""
        return await _ask(self._agents, "say", text)

    @activity.defn
    async def note(self, call: dict[str, Any]) -> Any:
        """Make the call; its result."""
        info = activity.info()
        await self._calls.note(call["id"], f"{info.workflow_run_id} {info.activity_id}")
        return await _ask(self._hands, "note", call)

    @activity.defn
    async def tell(self, value: dict[str, Any]) -> Any:
        """The result to the agent."""
        return await _ask(self._agents, "tell", value)


async def _ask(guests: list[_Guest], what: str, value: Any) -> Any:
    conversation = activity.info().workflow_id or ""
    return await guests[zlib.crc32(conversation.encode()) % len(guests)].ask(what, conversation, value)


async def _work(address: str, database: Path) -> None:
    leave_out_idle_visits()
    agents, hands = [[await _Guest.start() for _ in range(_GUESTS_EACH)] for _ in range(2)]
    activities = Activities(agents, hands, Calls(database))
    client = await Client.connect(address, data_converter=DATA_CONVERTER)
    async with Worker(
        client,
        task_queue=LEAST_QUEUE,
        workflows=[LeastThread],
        activities=[activities.say, activities.note, activities.tell],
        workflow_runner=UnsandboxedWorkflowRunner(),
        max_concurrent_activities=200,
        max_concurrent_workflow_task_polls=POLLS,
        nonsticky_to_sticky_poll_ratio=POLLS_FOR_NEW_THREADS,
        max_cached_workflows=1000,
    ):
        sys.stderr.write("worker.ready\n")
        await asyncio.Event().wait()


if __name__ == "__main__":
    sys.setswitchinterval(HANDOVER)
    uvloop.run(_work(os.environ["TEMPORAL_ADDRESS"], Path(os.environ["BENCH_NOTES"]) / "calls.db"))
    leave(0)
