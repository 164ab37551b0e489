"""A child process that cannot outlive this one."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Self

_LINE = 4096
_LINES_PER_WINDOW, _WINDOW = 500, 5.0
_POLL = 0.02

# Runs in a bare interpreter of its own and then becomes the command. A preexec_fn would run Python between fork and
# exec, which is unsafe beside the threads of temporalio.
_WITH_PARENT = """
import ctypes, os, sys
parent, how, *command = sys.argv[1:]
libc = ctypes.CDLL(None)
if hasattr(libc, "prctl"):
    libc.prctl(1, int(how))
if os.getppid() == int(parent):
    os.execv(command[0], command)
"""


class Child:
    """A process in a session of its own (Ctrl-C does not reach it), without input, killed when this process dies.

    Start it from the thread that runs the event loop: the kernel ties a child's life to the thread that made it.
    """

    def __init__(self, process: subprocess.Popen[bytes], pipe: int | None) -> None:
        self._process = process
        self._pipe = pipe
        self._output: Output | None = None
        self.pid = process.pid

    @classmethod
    async def start(
        cls,
        command: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        pass_fds: Sequence[int] = (),
        on_line: Callable[[str], None] | None = None,
        dies_by: signal.Signals = signal.SIGKILL,
    ) -> Self:
        """Start `command` (its first word is a path). `on_line` gets what it prints, at a bounded rate.

        `env` None: the environment of this process. `dies_by`: the signal it gets when this process dies.
        """
        child = cls.launch(command, env=env, cwd=cwd, pass_fds=pass_fds, heard=on_line is not None, dies_by=dies_by)
        if on_line:
            await child.listen(on_line)
        return child

    @classmethod
    def launch(
        cls,
        command: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        pass_fds: Sequence[int] = (),
        heard: bool = False,
        dies_by: signal.Signals = signal.SIGKILL,
    ) -> Self:
        """As `start`, where no event loop runs yet. `heard`: what it prints waits until somebody listens."""
        launch = [sys.executable, "-I", "-S", "-c", _WITH_PARENT, str(os.getpid()), str(int(dies_by)), *command]
        ours, theirs = os.pipe() if heard else (None, None)
        try:
            process = subprocess.Popen(
                launch,
                env=env,
                cwd=cwd,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL if theirs is None else theirs,
                stderr=subprocess.DEVNULL if theirs is None else theirs,
                pass_fds=pass_fds,
                start_new_session=True,
            )
        except BaseException:
            if ours is not None:
                os.close(ours)
            raise
        finally:
            if theirs is not None:
                os.close(theirs)
        return cls(process, ours)

    async def listen(self, on_line: Callable[[str], None]) -> None:
        """Hear what it prints, from its first line on."""
        assert self._pipe is not None, "it was launched with heard=False"
        pipe, self._pipe = self._pipe, None
        self._output = await Output.of(pipe, on_line)

    @property
    def ended(self) -> bool:
        """Whether the process has ended."""
        if self._process.returncode is not None or not hasattr(os, "waitid"):
            return self._process.poll() is not None
        # It stays a zombie until `end`: so long its process group cannot be anybody else's.
        return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def terminate(self) -> None:
        """Ask it to end."""
        if not self.ended:
            self._process.terminate()

    def kill(self) -> None:
        """End it and every process it started that stayed in its group."""
        if self._process.returncode is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)

    async def end(self, grace: float) -> None:
        """Wait so many seconds for its end, then kill it and what it left behind. It is gone afterwards."""
        try:
            async with asyncio.timeout(grace):
                await self._wait()
        except TimeoutError:
            pass
        finally:
            self.kill()
            self._process.wait()
            if self._output:
                self._output.close()
            if self._pipe is not None:
                os.close(self._pipe)

    async def _wait(self) -> None:
        while not self.ended:  # noqa: ASYNC110 - no event loop tells of a child's end in a portable way
            await asyncio.sleep(_POLL)


class Output(asyncio.Protocol):
    """Lines of a pipe: long ones cut, and of a flood only some, so that a child cannot drown its host."""

    def __init__(self, on_line: Callable[[str], None]) -> None:
        self._on_line = on_line
        self._rest = b""
        self._window, self._lines, self._dropped = 0.0, 0, 0

    @classmethod
    async def of(cls, fd: int, on_line: Callable[[str], None]) -> Output:
        """Lines of the pipe with this read end, which it then owns."""
        pipe = os.fdopen(fd, "rb", buffering=0)
        _, output = await asyncio.get_running_loop().connect_read_pipe(lambda: cls(on_line), pipe)
        return output

    def close(self) -> None:
        self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._start_window()
        if self._lines >= _LINES_PER_WINDOW:
            self._dropped += data.count(b"\n")
            return
        *lines, rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._say(line)
        self._rest = rest
        if len(rest) > _LINE:
            self._say(rest)
            self._rest = b""

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - the base class names it
        if self._rest:
            self._say(self._rest)

    def _start_window(self) -> None:
        now = asyncio.get_running_loop().time()
        if now - self._window < _WINDOW:
            return
        if self._dropped:
            self._on_line(f"… {self._dropped} lines dropped")
        self._window, self._lines, self._dropped = now, 0, 0

    def _say(self, line: bytes) -> None:
        if self._lines < _LINES_PER_WINDOW:
            self._on_line(line[:_LINE].decode(errors="replace").rstrip())
        else:
            self._dropped += 1
        self._lines += 1
