"""Guests that start by fork: of a process that has imported ADK once for all of them."""

from __future__ import annotations

import asyncio
import json
import os
import select
import signal
import socket
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Self

import structlog

from agentvisor.host.child import Child, Output

COMMAND = (sys.executable, "-P", "-u", "-m", "agentvisor.adk.fork_server")

_AT_START = frozenset(
    {"HOME", "LANG", "LANGUAGE", "LOCPATH", "TZ", "TZDIR", "NO_COLOR", "FORCE_COLOR", "GLIBC_TUNABLES"}
)
_AT_START_PREFIXES = (
    *("PYTHON", "_PYTHON", "LC_", "LD_", "MALLOC_", "OPENSSL_", "SSL_"),
    *("ADK_", "OTEL_", "PYDANTIC_", "WEBSOCKETS_"),
)

_START_SECONDS = 120.0
_FORK_SECONDS = 30.0
_END_SECONDS = 5.0

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class ForkedChild:
    """A process that the fork server made: in a session of its own, without input; what it prints is read.

    It is used as a `Child`. Its parent, the server, takes its exit status.
    """

    def __init__(self, pid: int, pidfd: int, output: Output) -> None:
        self.pid = pid
        self._pidfd = pidfd
        self._output = output

    def kill(self) -> None:
        """End it and every process it started that stayed in its group."""
        if self._pidfd >= 0:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)  # it may not yet have a group of its own
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)

    async def end(self, grace: float) -> None:
        """Wait so many seconds for its end, then kill it and what it left behind. It is gone afterwards."""
        if self._pidfd < 0:
            return
        try:
            async with asyncio.timeout(grace):
                await _readable(self._pidfd)
        except TimeoutError:
            pass
        finally:
            self.kill()
            self._let_go()

    def _let_go(self) -> None:
        pidfd, self._pidfd = self._pidfd, -1
        end = select.poll()
        end.register(pidfd, select.POLLIN)
        end.poll()
        with suppress(ChildProcessError):  # ours where the server died and this process inherits, as the first of all
            os.waitid(os.P_PIDFD, pidfd, os.WEXITED | os.WNOHANG)
        os.close(pidfd)
        self._output.close()


class ForkServer:
    """Forks guests of any project that uses this interpreter; one for a whole worker. Linux only.

    Use it as an async context manager; leaving ends the server and the guests that are left. The server is started
    when the first guest is asked for, and again when it was lost; its guests outlive it. Of `environment` it gets what
    is `read_at_start` and nothing else.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = _at_start(environment)
        self._server: _Server | None = None
        self._begun: _Server | None = None
        self._starting = asyncio.Lock()
        self._usable = sys.platform == "linux" and hasattr(os, "pidfd_open")

    def begin(self) -> Self:
        """Start the server now, where no event loop runs yet: it is waited for when it is needed."""
        if self._usable:
            self._begun = _Server.launch(self._environment)
        return self

    @property
    def pid(self) -> int | None:
        """Of the server, while there is one."""
        return self._server.pid if self._server and self._server.lives else None

    async def fork(
        self, project: Path, environment: Mapping[str, str], *, channel: socket.socket, on_line: Callable[[str], None]
    ) -> ForkedChild | None:
        """A guest of the project (an absolute path) that serves `channel`; `on_line` gets what it prints.

        None where this guest must be a process of its own: its environment differs in what is read once and for all,
        or there is no server here.
        """
        if _at_start(environment) != self._environment or _looks_here(environment):
            return None
        birth = json.dumps({"project": str(project), "environment": dict(environment)}).encode()
        for _ in range(2):
            server = await self._running()
            if server is None:
                return None
            with suppress(_LostError):
                return await server.fork(birth, channel, on_line)
        return None

    async def close(self) -> None:
        """End the server and the guests that are left. Later guests are processes of their own."""
        self._usable = False
        async with self._starting:
            if server := self._begun or self._server:
                await server.end()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _running(self) -> _Server | None:
        async with self._starting:
            if self._usable and not (self._server and self._server.lives):
                server, self._begun = self._begun or _Server.launch(self._environment), None
                try:
                    await server.up()
                    self._server = server
                except _LostError:
                    self._usable = False
                    log.warning("fork-server.not-started", instead="guests are started as processes of their own")
            return self._server if self._usable else None


class _LostError(Exception):
    """The server does not answer any more, or never did."""


class _Server:
    """One process that forks, and the socket to it."""

    def __init__(self, child: Child, control: socket.socket) -> None:
        self._child = child
        self._control = control
        self.pid = child.pid
        self.lives = True
        self._watch: asyncio.Task[None] | None = None

    @classmethod
    def launch(cls, environment: Mapping[str, str]) -> Self:
        """Start it."""
        control, theirs = socket.socketpair()
        control.setblocking(False)
        with theirs:
            command = [*COMMAND, "--fd", str(theirs.fileno())]
            child = Child.launch(
                command, env=environment, pass_fds=[theirs.fileno()], heard=True, dies_by=signal.SIGTERM
            )
        return cls(child, control)

    async def up(self) -> None:
        """Wait until it has imported ADK. Raises _LostError."""
        try:
            await self._child.listen(_said)
            await self._ready()
        except BaseException:
            await self.end(grace=0)
            raise
        self._watch = asyncio.create_task(self._end_when_lost())
        log.info("fork-server.started", pid=self.pid)

    async def fork(self, birth: bytes, channel: socket.socket, on_line: Callable[[str], None]) -> ForkedChild:
        """Raises _LostError."""
        ours, theirs = os.pipe()
        output = await Output.of(ours, on_line)
        try:
            pid, pidfd = await self._asked(birth, channel.fileno(), theirs)
        except BaseException:
            output.close()
            raise
        finally:
            os.close(theirs)
        return ForkedChild(pid, pidfd, output)

    async def end(self, grace: float = _END_SECONDS) -> None:
        """It ends when it sees that its socket is closed."""
        self.lives = False
        try:
            if self._watch:
                self._watch.cancel()
                await asyncio.wait([self._watch])
        finally:
            self._control.close()
            await self._child.end(grace)

    async def _ready(self) -> None:
        try:
            async with asyncio.timeout(_START_SECONDS):
                await _readable(self._control.fileno())
        except TimeoutError:
            raise _LostError from None
        if not self._control.recv(1):
            raise _LostError

    async def _asked(self, birth: bytes, channel: int, output: int) -> tuple[int, int]:
        """Pid and pidfd of a new guest."""
        with ExitStack() as open_here:
            answer, theirs = socket.socketpair()
            open_here.enter_context(answer)
            with theirs, os.fdopen(os.memfd_create("birth"), "wb") as file:
                file.write(birth)
                file.seek(0)
                fds = [file.fileno(), theirs.fileno(), channel, output]
                try:
                    socket.send_fds(self._control, [b"f"], fds)
                except OSError:
                    raise _LostError from None
            return await self._answered(answer)

    async def _answered(self, answer: socket.socket) -> tuple[int, int]:
        try:
            async with asyncio.timeout(_FORK_SECONDS):
                await _readable(answer.fileno())
        except TimeoutError:
            self.lives = False
            self._child.kill()
            raise _LostError from None
        told, fds, _, _ = socket.recv_fds(answer, 32, 1, socket.MSG_CMSG_CLOEXEC)
        if not told:
            self.lives = False
            raise _LostError
        return int(told), fds[0]

    async def _end_when_lost(self) -> None:
        await _readable(self._control.fileno())  # it says nothing after its start
        self.lives = False
        log.warning("fork-server.lost", pid=self.pid)
        self._control.close()
        await self._child.end(grace=0)


def read_at_start(name: str) -> bool:
    """Whether an interpreter, its libraries or an import of ADK read this variable once and for all."""
    return name in _AT_START or name.startswith(_AT_START_PREFIXES)


def _at_start(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if read_at_start(name)}


def _looks_here(environment: Mapping[str, str]) -> bool:
    """Whether modules are looked for relative to the folder in which the interpreter starts."""
    path = environment.get("PYTHONPATH")
    return bool(path) and not all(Path(entry).is_absolute() for entry in path.split(os.pathsep))


def _said(line: str) -> None:
    log.warning("fork-server.said", line=line)


async def _readable(fd: int) -> None:
    """Wait until there is something to read, or an end."""
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()
    loop.add_reader(fd, lambda: ready.done() or ready.set_result(None))
    try:
        await ready
    finally:
        loop.remove_reader(fd)
