"""`python -m agentvisor.adk.fork_server --fd N`: a process that imported ADK once, and forks guests.

It has loaded no project, holds no project's environment and runs one thread, so that what it forks is as good as a new
process. A request is one byte on the socket, with four file descriptors beside it: a file with the guest's `Birth`, the
socket of the answer (the guest's pid, and beside it a pidfd), the guest's channel, and where it prints. The guest alone
reads its Birth, puts that environment in the place of its own, and is from there on what `agentvisor.adk.runner` makes
of a process: in a session and a folder of its own, with no descriptor but these, and random numbers of its own.

What cannot be given to a fork any more is what an interpreter and imports read from the environment. The host compares
it (`agentvisor.host.fork_server.read_at_start`) and starts a process of its own where a project differs.
The seed of `hash()` is the same in all guests of one server, and /proc/PID/environ and cmdline show the server's.

It ends when its host has gone, and kills the guests that are left. Guests survive its own death.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import json
import os
import random
import select
import signal
import socket
import sys
import traceback
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import NoReturn, TypedDict

from agentvisor.adk import runner

NEEDED = (
    "uvloop",
    "anyio._backends._asyncio",
    "google.adk.agents",
    "google.adk.apps.compaction",
    "google.adk.flows.llm_flows.auto_flow",
    "google.adk.models.google_llm",
    "google.adk.tools",
    "google.adk.workflow",
    "google.genai.types",
    "agent_adapter.integrations.adk",
    "agentvisor.adk.guest",
)
"""What every guest imports, sooner or later. No name that a project may give to a module of its own comes with it."""

READY = b"r"
_CHANNEL = 3


class Birth(TypedDict):
    """What a guest is made of."""

    project: str
    environment: dict[str, str]


class NotFitError(Exception):
    """This process must not fork. The text says why."""


def main() -> None:
    """Fork guests for the host at the other end of the inherited socket, for as long as it is there."""
    parser = argparse.ArgumentParser(prog="agentvisor.adk.fork_server", description="Fork guests for their host.")
    parser.add_argument("--fd", type=int, required=True, help="file descriptor of the inherited socket")
    control = socket.socket(fileno=parser.parse_args().fd)
    control.set_inheritable(False)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # comes when the host dies; the socket tells that, too
    import_all()
    check_fit(control.fileno())
    gc.collect()
    gc.freeze()
    control.sendall(READY)
    _Guests(control).serve()


def import_all() -> None:
    """Import what guests need, but no project."""
    runner.prepare_adk()
    for name in NEEDED:
        with suppress(ImportError):  # a guest that cannot do without it says so
            importlib.import_module(name)


def check_fit(*own: int) -> None:
    """Raise NotFitError where an import left a thread or a file descriptor beside `own`: a guest would inherit it."""
    if len(os.listdir("/proc/self/task")) != 1:  # noqa: PTH208 - names are enough
        raise NotFitError("An import of ADK has started a thread. Guests are started as processes of their own.")
    if left := sorted(_descriptors() - {0, 1, 2, *own}):
        raise NotFitError(
            f"An import of ADK left descriptors {left} open. Guests are started as processes of their own."
        )


def _descriptors() -> set[int]:
    names = os.listdir("/proc/self/fd")  # noqa: PTH208 - names are enough
    return {int(name) for name in names if Path("/proc/self/fd", name).exists()}  # not that of the listing itself


class _Guests:
    """The guests of this server, by pidfd."""

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._pids: dict[int, int] = {}
        self._poll = select.poll()
        self._poll.register(control, select.POLLIN)

    def serve(self) -> None:
        while True:
            for fd, _ in self._poll.poll():
                if fd != self._control.fileno():
                    self._reap(fd)
                elif not self._fork():
                    self._kill_all()
                    return

    def _fork(self) -> bool:
        """Fork the next guest; False where there is none, as the host has gone."""
        asked, fds, _, _ = socket.recv_fds(self._control, 1, 4, socket.MSG_CMSG_CLOEXEC)
        if not asked:
            return False
        birth, answer, channel, output = fds
        pid = os.fork()
        if pid == 0:
            self._control.detach()
            _be_guest(birth, channel, output)
        pidfd = os.pidfd_open(pid)
        self._pids[pidfd] = pid
        self._poll.register(pidfd, select.POLLIN)
        with socket.socket(fileno=answer) as answering, suppress(OSError):
            socket.send_fds(answering, [str(pid).encode()], [pidfd])
        for fd in (birth, channel, output):
            os.close(fd)
        return True

    def _reap(self, pidfd: int) -> None:
        self._poll.unregister(pidfd)
        os.close(pidfd)
        os.waitpid(self._pids.pop(pidfd), 0)

    def _kill_all(self) -> None:
        for pid in self._pids.values():
            with suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)
            os.kill(pid, signal.SIGKILL)  # it may not yet have a group of its own


def _be_guest(birth: int, channel: int, output: int) -> NoReturn:
    """Become what a new process would be, and serve the project. In the child of the fork."""
    try:
        os.setsid()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        with os.fdopen(birth) as file:
            born: Birth = json.load(file)
        _keep_only(channel, output)
        _live_in(born["environment"])
        os.chdir(born["project"])
        random.seed()
        sys.argv = [str(Path(runner.__file__)), "--fd", str(_CHANNEL), "--project", born["project"]]
        sys.modules["__main__"] = runner
        runner.main()
    except BaseException:  # noqa: BLE001 - nothing may return into the server's loop
        traceback.print_exc()
    os._exit(1)


def _live_in(environment: Mapping[str, str]) -> None:
    """Put this in the place of the whole environment, but for what Python itself sets where the locale is C."""
    own = {name: value for name, value in os.environ.items() if name == "LC_CTYPE"}
    os.environ.clear()
    os.environ.update({**own, **environment})


def _keep_only(channel: int, output: int) -> None:
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.dup2(channel, _CHANNEL, inheritable=False)
    os.closerange(_CHANNEL + 1, os.sysconf("SC_OPEN_MAX"))


if __name__ == "__main__":
    main()
