"""The command `agentvisor` as a process of its own, against the real server."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import re
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client

from tests.client.conftest import carried, shop, shop_queue, threads

__all__ = ["carried", "shop", "shop_queue", "threads"]

AGENTVISOR = str(Path(sys.executable).with_name("agentvisor"))
_PRIVATE = re.compile(r"^(TEMPORAL_|AGENTVISOR_|NO_COLOR|FORCE_COLOR|COLUMNS|LINES|EDITOR|VISUAL)")
_PATIENCE = 60.0


@dataclass(frozen=True)
class Ended:
    """What a command printed and how it ended."""

    code: int | None
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()


class Cli:
    """Runs commands against one server and one task queue."""

    def __init__(self, client: Client, task_queue: str) -> None:
        kept = {name: value for name, value in os.environ.items() if not _PRIVATE.match(name)}
        address = client.service_client.config.target_host
        self._environment = {**kept, "TEMPORAL_ADDRESS": address, "TERM": "xterm"}
        self.task_queue = task_queue

    async def __call__(self, *words: str, said: str = "", **environment: str) -> Ended:
        process = await self.start(*words, **environment)
        out, err = await asyncio.wait_for(process.communicate(said.encode()), _PATIENCE)
        return Ended(process.returncode, out.decode(), err.decode())

    async def start(self, *words: str, **environment: str) -> asyncio.subprocess.Process:
        pipe = asyncio.subprocess.PIPE
        return await asyncio.create_subprocess_exec(
            *self._command(words), stdin=pipe, stdout=pipe, stderr=pipe, env={**self._environment, **environment}
        )

    async def on_terminal(
        self, *words: str, columns: int = 100, on_text: Callable[[str], None] | None = None, **environment: str
    ) -> Ended:
        """Run it on a pseudo terminal; `out` is all that arrives there."""
        ours, theirs = pty.openpty()
        sizes = {"COLUMNS": str(columns), "LINES": "40"}
        process = await asyncio.create_subprocess_exec(
            *self._command(words),
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env={**self._environment, **sizes, **environment},
        )
        os.close(theirs)
        try:
            reading = asyncio.to_thread(_read_all, ours)
            out, code = await asyncio.wait_for(asyncio.gather(reading, process.wait()), _PATIENCE)
        finally:
            with suppress(ProcessLookupError):
                process.send_signal(signal.SIGKILL)
            os.close(ours)
        return Ended(code, out.replace("\r\n", "\n"), "")

    def _command(self, words: tuple[str, ...]) -> list[str]:
        return [AGENTVISOR, *words, "--task-queue", self.task_queue]


def _read_all(descriptor: int) -> str:
    """Until the other end is closed, which Linux reports as an error."""
    parts: list[bytes] = []
    with suppress(OSError):
        while part := os.read(descriptor, 65536):
            parts.append(part)
    return b"".join(parts).decode()


@pytest.fixture
def cli(client: Client, task_queue: str) -> Cli:
    """Commands for a task queue of the test's own."""
    return Cli(client, task_queue)


@pytest.fixture
def shop_cli(client: Client, shop_queue: str) -> Cli:
    """Commands for the shop helper."""
    return Cli(client, shop_queue)
