"""One guest: a process that has loaded an agent project, and the channel to it."""

from __future__ import annotations

import asyncio
import socket
import sys
from collections import deque
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Self

import structlog

from agentvisor.channel import Channel, JsonObject
from agentvisor.host.child import Child
from agentvisor.host.fork_server import ForkedChild, ForkServer
from agentvisor.project import Project
from agentvisor.protocol import AgentInfo, Hello
from agentvisor.redaction import without_secrets

RUNNER = (sys.executable, "-P", "-u", "-m", "agentvisor.adk.runner")
"""The command that starts a guest, before its options."""

_HOST_ONLY = ("TEMPORAL_", "AGENTVISOR_")
_TICK = 1.0
_END_SECONDS = 2.0

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class NoGuestError(Exception):
    """No guest took the request: nothing of it was sent.

    `kind`: `project-not-loaded` (the project's author must act; the text is the guest's) or `guest-not-started`.
    """

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind = kind


@dataclass(frozen=True)
class GuestStart:
    """How guests of one project are started. Times are seconds.

    `environment`: what guests inherit; the host's own settings and its access to Temporal are left out.
    `silence`: a guest whose event loop gave no sign of life for so long is killed.
    `fork_server`: forks them, where it can and no other `command` is given.
    """

    project: Project
    environment: Mapping[str, str]
    start_timeout: float = 120.0
    silence: float = 30.0
    command: Sequence[str] = RUNNER
    fork_server: ForkServer | None = None

    async def process(self, channel: socket.socket, on_line: Callable[[str], None]) -> Child | ForkedChild:
        """A new process with this end of its channel; `on_line` gets what it prints."""
        folder, environment = self.project.folder, self.guest_environment()
        if self.fork_server and tuple(self.command) == RUNNER:
            forked = await self.fork_server.fork(folder.absolute(), environment, channel=channel, on_line=on_line)
            if forked:
                return forked
        command = [*self.command, "--fd", str(channel.fileno()), "--project", str(folder)]
        return await Child.start(command, env=environment, cwd=folder, pass_fds=[channel.fileno()], on_line=on_line)

    def guest_environment(self) -> dict[str, str]:
        return {name: value for name, value in self.environment.items() if not name.startswith(_HOST_ONLY)}


class Guest:
    """A guest that said Hello."""

    def __init__(self, start: GuestStart) -> None:
        self._start = start
        self._hello: asyncio.Future[Hello] = asyncio.get_running_loop().create_future()
        self._last_lines: deque[str] = deque(maxlen=5)
        self._silent = 0.0
        self._watch: asyncio.Task[None] | None = None
        self.pid = 0
        self._began = asyncio.get_running_loop().time()

    @classmethod
    async def start(cls, start: GuestStart) -> Self:
        """Start a process and wait until it has loaded the project. Raises NoGuestError."""
        guest = cls(start)
        await guest._spawn()
        try:
            await guest._wait_for_hello()
        except BaseException:
            await _to_its_end(guest.end(grace=0))
            raise
        guest._watch = asyncio.create_task(guest._kill_when_silent())
        log.info("guest.started", guest=guest.pid, project=start.project.name)
        for tool in guest._hello.result().left_out:
            log.error("tool.left_out", project=start.project.name, tool=tool.tool, reason=guest._told(tool.reason))
        return guest

    @property
    def agents(self) -> tuple[AgentInfo, ...]:
        return self._hello.result().agents

    @property
    def alive(self) -> bool:
        return not self.channel.closed.done()

    @property
    def age(self) -> float:
        """Seconds since it was started."""
        return asyncio.get_running_loop().time() - self._began

    async def end(self, grace: float = _END_SECONDS) -> None:
        """End the process, and what it started. What it was doing is lost."""
        if self._watch:
            self._watch.cancel()
        self.channel.close()
        await self._child.end(grace)
        self.channel.abort()

    async def _spawn(self) -> None:
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                self._child = await self._start.process(theirs, self._said)
        except BaseException:
            ours.close()
            raise
        self.pid = self._child.pid
        self.channel = await Channel.over(ours, on_note=self._noted)

    async def _wait_for_hello(self) -> None:
        try:
            async with asyncio.timeout(self._start.start_timeout):
                await asyncio.wait([self._hello, self.channel.closed], return_when=asyncio.FIRST_COMPLETED)
        except TimeoutError:
            raise self._not_started(f"did not load within {self._start.start_timeout:g} s") from None
        if not self._hello.done():
            raise self._not_started("ended while it was loading")
        if error := self._hello.result().error:
            raise NoGuestError("project-not-loaded", self._told(error))

    def _not_started(self, what: str) -> NoGuestError:
        said = " | ".join(self._last_lines) or "nothing"
        name = self._start.project.name
        return NoGuestError("guest-not-started", f"The process for {name!r} {what}. It said: {said}. Mend the project.")

    def _noted(self, body: JsonObject) -> None:
        self._silent = 0.0
        if not self._hello.done():
            self._hello.set_result(Hello.model_validate(body))

    def _said(self, line: str) -> None:
        told = self._told(line)
        self._last_lines.append(told)
        log.info("guest.said", guest=self.pid, project=self._start.project.name, line=told)

    def _told(self, text: str) -> str:
        """What a guest prints or says of its project ends in logs and in history."""
        return without_secrets(text, self._start.environment)

    async def _kill_when_silent(self) -> None:
        # Counts its own ticks: when this process was stopped for a while, its guests are not to blame.
        while self.alive and self._silent < self._start.silence:
            await asyncio.sleep(_TICK)
            self._silent += _TICK
        if self.alive:
            log.error("guest.silent", guest=self.pid, project=self._start.project.name, seconds=self._silent)
            self._child.kill()
            self.channel.abort()


async def _to_its_end(work: Coroutine[Any, Any, None]) -> None:
    """Also where the caller is cancelled meanwhile: what is left behind here nobody would end."""
    task = asyncio.create_task(work)
    while not task.done():
        with suppress(asyncio.CancelledError):
            await asyncio.wait([task])
    task.result()
