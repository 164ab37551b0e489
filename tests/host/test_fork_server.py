"""Guests that start by fork are what new processes are, at a fraction of their cost, and end when they must."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from pydantic import BaseModel
from structlog.testing import capture_logs

from agentvisor.channel import Refused
from agentvisor.host.fork_server import ForkServer, read_at_start
from agentvisor.host.guest import Guest, GuestStart, NoGuestError
from agentvisor.host.guests import GuestProcesses
from agentvisor.project import Project
from tests.host.processes import exists, until

ROOT = Path(__file__).parents[2]
AGENT = """
import json, locale, os, random, signal, subprocess, sys, threading, uuid
from pathlib import Path
from google.adk.agents import LlmAgent

def descriptors():
    paths = [Path("/proc/self/fd", name) for name in os.listdir("/proc/self/fd")]
    return sorted(os.readlink(path).partition(":")[0] for path in paths if path.exists())

facts = {
    "environment": dict(os.environ),
    "folder": os.getcwd(),
    "arguments": [word for word in sys.argv if not word.isdigit()],
    "path": sys.path,
    "modules": sorted({name.partition(".")[0] for name in sys.modules if not name.startswith(("uvloop", "_cython"))}),
    "main": sys.modules["__main__"].__spec__.name,
    "descriptors": descriptors(),
    "inheritable": [fd for fd in range(3, 64) if Path(f"/proc/self/fd/{fd}").exists() and os.get_inheritable(fd)],
    "threads": sorted(thread.name for thread in threading.enumerate()),
    "signals": {int(number): str(signal.getsignal(number)) for number in signal.valid_signals()},
    "leads": os.getsid(0) == os.getpgid(0) == os.getpid(),
    "input": sys.stdin.read(),
    "encodings": [sys.stdout.encoding, sys.getfilesystemencoding(), locale.setlocale(locale.LC_CTYPE)],
    "unbuffered": sys.stdout.write_through,
}
chance = [random.random(), uuid.uuid4().hex, uuid.uuid1().hex, os.urandom(8).hex()]
child = subprocess.Popen(["sleep", "1000"]).pid if "WITH_CHILD" in os.environ else None
Path(f"facts-{os.getpid()}").write_text(json.dumps({"facts": facts, "chance": chance, "child": child}))
print("loaded by", os.getpid())
root_agent = LlmAgent(name="shop", model="gemini-2.0-flash", instruction="Help.")
"""


class Nothing(BaseModel):
    pass


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project that writes down what it finds when it is loaded."""
    folder = tmp_path_factory.mktemp("shop")
    (folder / "agent.py").write_text(AGENT)
    return folder


def start(folder: Path, server: ForkServer | None, **more: str) -> GuestStart:
    environment = {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"}
    return GuestStart(Project(folder, "shop"), {**environment, **more}, fork_server=server)


@asynccontextmanager
async def guest(folder: Path, server: ForkServer | None, **more: str) -> AsyncGenerator[Guest]:
    guest = await Guest.start(start(folder, server, **more))
    try:
        yield guest
    finally:
        await guest.end()


@pytest_asyncio.fixture(scope="module")
async def forked(folder: Path, fork_server: ForkServer) -> AsyncGenerator[Guest]:
    async with guest(folder, fork_server, SHOP_MODE="test", AGENTVISOR_TASK_QUEUE="q", TEMPORAL_API_KEY="k") as one:
        yield one


@pytest_asyncio.fixture(scope="module")
async def started(folder: Path) -> AsyncGenerator[Guest]:
    async with guest(folder, None, SHOP_MODE="test") as one:
        yield one


def found(folder: Path, guest: Guest) -> dict[str, Any]:
    return json.loads((folder / f"facts-{guest.pid}").read_text())


def parent(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("PPid:")[2].split()[0])


def children(pid: int | None) -> list[str]:
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


def private_kilobytes(pid: int) -> int:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("Private_"))


async def answers(guest: Guest) -> bool:
    with pytest.raises(Refused) as refused:
        await asyncio.wait_for(guest.channel.ask("dance", Nothing(), Nothing), 60)
    return refused.value.kind == "unknown-operation"


async def test_a_forked_guest_has_loaded_its_project_and_answers(forked: Guest, fork_server: ForkServer) -> None:
    assert parent(forked.pid) == fork_server.pid
    assert [agent.name for agent in forked.agents] == ["shop"]
    assert await answers(forked)


async def test_a_forked_guest_finds_what_a_process_of_its_own_finds(
    folder: Path, forked: Guest, started: Guest
) -> None:
    facts = found(folder, forked)["facts"]
    assert facts == found(folder, started)["facts"]
    assert facts["folder"] == str(folder)
    assert facts["environment"]["SHOP_MODE"] == "test"
    assert not [name for name in facts["environment"] if name.startswith(("AGENTVISOR_", "TEMPORAL_"))]


async def test_where_the_locale_is_c_forked_guests_speak_utf_8_too(folder: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("LC_", "LANG"))}
    program = [sys.executable, "-c", "import os; print(os.environ.get('LC_CTYPE'))"]
    own = subprocess.run(program, capture_output=True, check=True, env=environment, text=True)  # noqa: ASYNC221
    async with ForkServer(environment) as server:
        one = await Guest.start(GuestStart(Project(folder, "shop"), environment, fork_server=server))
        assert parent(one.pid) == server.pid
        await one.end()
    assert found(folder, one)["facts"]["environment"].get("LC_CTYPE") == own.stdout.strip() == "C.UTF-8"


async def test_a_server_may_be_begun_before_there_is_an_event_loop(folder: Path) -> None:
    environment = dict(os.environ)
    async with ForkServer(environment).begin() as server:
        one = await Guest.start(GuestStart(Project(folder, "shop"), environment, fork_server=server))
        assert parent(one.pid) == server.pid
        await one.end()


async def test_a_server_that_was_begun_and_never_used_ends() -> None:
    before = children(os.getpid())
    server = ForkServer(dict(os.environ)).begin()
    begun = [pid for pid in children(os.getpid()) if pid not in before]
    await server.close()
    assert len(begun) == 1
    assert not exists(int(begun[0]))


async def test_chance_is_another_one_in_each_guest(folder: Path, forked: Guest, fork_server: ForkServer) -> None:
    async with guest(folder, fork_server) as other:
        mine, theirs = found(folder, forked)["chance"], found(folder, other)["chance"]
    assert [one for one, two in zip(mine, theirs, strict=True) if one == two] == []


async def test_a_forked_guest_shares_most_of_its_memory(forked: Guest, started: Guest) -> None:
    assert private_kilobytes(forked.pid) < private_kilobytes(started.pid) / 2


async def test_guests_asked_for_at_once_are_as_many(folder: Path, fork_server: ForkServer) -> None:
    guests = await asyncio.gather(*(Guest.start(start(folder, fork_server)) for _ in range(4)))
    assert len({guest.pid for guest in guests}) == 4
    assert all([await answers(guest) for guest in guests])
    await asyncio.gather(*(guest.end() for guest in guests))
    await until(lambda: not any(Path(f"/proc/{guest.pid}").exists() for guest in guests))


async def test_the_server_holds_nothing_but_what_imports_read(fork_server: ForkServer, forked: Guest) -> None:
    del forked
    held = Path(f"/proc/{fork_server.pid}/environ").read_text().split("\0")
    assert [name for name in (entry.partition("=")[0] for entry in held) if name and not read_at_start(name)] == []


def test_what_imports_read_is_compared_before_a_fork() -> None:
    program = """
import os
read, get = set(), type(os.environ).__getitem__
type(os.environ).__getitem__ = lambda self, name: read.add(name) or get(self, name)
from agentvisor.adk.fork_server import import_all
import_all()
print(*read)
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, cwd=ROOT, text=True)
    read = ended.stdout.split()
    assert "OTEL_PYTHON_CONTEXT" in read
    assert [name for name in read if not read_at_start(name)] == []


@pytest.mark.parametrize("more", [{"TZ": "Pacific/Auckland"}, {"PYTHONPATH": "/lib"}, {"ADK_SOMETHING": "1"}])
async def test_what_an_import_would_read_otherwise_is_not_forked(
    folder: Path, fork_server: ForkServer, more: Mapping[str, str]
) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        environment = {**os.environ, **more}
        assert await fork_server.fork(folder, environment, channel=theirs, on_line=pytest.fail) is None


async def test_a_path_of_modules_beside_the_project_means_a_process_of_its_own(folder: Path) -> None:
    async with (
        ForkServer({**os.environ, "PYTHONPATH": "lib"}) as server,
        guest(folder, server, PYTHONPATH="lib") as own,
    ):
        assert parent(own.pid) == os.getpid()
        assert str(folder / "lib") in found(folder, own)["facts"]["path"]


async def test_where_an_import_leaves_a_thread_guests_are_processes_of_their_own(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import threading, time\nthreading.Thread(target=time.sleep, args=[99], daemon=True).start()\n"
    )
    path = {"PYTHONPATH": str(tmp_path)}
    with capture_logs() as logs:
        async with ForkServer({**os.environ, **path}) as server, guest(folder, server, **path) as own:
            assert parent(own.pid) == os.getpid()
            assert await answers(own)
            assert server.pid is None
    assert [entry for entry in logs if entry["event"] == "fork-server.not-started"]
    assert "NotFitError" in " ".join(entry["line"] for entry in logs if entry["event"] == "fork-server.said")


def test_a_descriptor_that_an_import_left_open_is_forked_into_no_guest() -> None:
    program = """
import os
from agentvisor.adk.fork_server import NotFitError, check_fit
check_fit()
left = os.open("/dev/null", os.O_RDONLY)
check_fit(left)
try:
    check_fit()
except NotFitError as problem:
    print(problem)
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, cwd=ROOT, text=True)
    assert "left descriptors [3] open" in ended.stdout


async def test_a_project_that_does_not_load_says_the_same(fork_server: ForkServer, tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text("import no_such_module_anywhere")
    said: list[str] = []
    for server in (fork_server, None):
        with pytest.raises(NoGuestError) as refused:
            await Guest.start(start(tmp_path, server))
        assert refused.value.kind == "project-not-loaded"
        said.append(str(refused.value))
    assert said[0] == said[1]


async def test_a_project_that_ends_the_process_shows_its_last_words(fork_server: ForkServer, tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text("import os\nprint('no more')\nos._exit(3)")
    with pytest.raises(NoGuestError, match="no more") as refused:
        await Guest.start(start(tmp_path, fork_server))
    assert refused.value.kind == "guest-not-started"


async def test_what_a_forked_guest_prints_is_logged_as_its_own(folder: Path, fork_server: ForkServer) -> None:
    with capture_logs() as logs:
        async with guest(folder, fork_server) as one:
            await until(lambda: [entry for entry in logs if entry["event"] == "guest.said"])
    said = [(entry["guest"], entry["line"]) for entry in logs if entry["event"] == "guest.said"]
    assert said == [(one.pid, f"loaded by {one.pid}")]


async def test_a_guest_that_dies_leaves_no_zombie_and_no_child(folder: Path, fork_server: ForkServer) -> None:
    async with GuestProcesses(start(folder, fork_server, WITH_CHILD="1"), legs=1) as processes:
        await until(lambda: len(processes.pids()) == 3)
        pid, *_ = processes.pids("legs")
        child = json.loads((folder / f"facts-{pid}").read_text())["child"]
        assert exists(child)
        os.kill(pid, signal.SIGKILL)
        await until(lambda: not Path(f"/proc/{pid}").exists() and not exists(child))
        await until(lambda: len(processes.pids()) == 3)


async def test_a_start_that_nobody_waits_for_any_more_leaves_nothing(folder: Path, fork_server: ForkServer) -> None:
    async with guest(folder, fork_server):
        before = children(fork_server.pid)
        for turns in range(1, 9):
            task = asyncio.create_task(Guest.start(start(folder, fork_server)))
            for _ in range(turns):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait([task])
        await until(lambda: children(fork_server.pid) == before)


async def test_guests_outlive_their_server_and_the_next_one_gets_another(folder: Path) -> None:
    async with ForkServer(os.environ) as server, guest(folder, server, WITH_CHILD="1") as orphan:
        first = server.pid
        assert first
        os.kill(first, signal.SIGKILL)
        await until(lambda: not Path(f"/proc/{first}").exists() and server.pid is None)
        assert await answers(orphan)
        async with guest(folder, server) as later:
            assert parent(later.pid) == server.pid != first
            assert await answers(later)
        await orphan.end()
        child = found(folder, orphan)["child"]
        await until(lambda: not exists(orphan.pid) and not exists(child))


async def test_a_server_that_is_killed_while_it_is_asked_fails_no_start(folder: Path) -> None:
    async with ForkServer(os.environ) as server:
        left = await Guest.start(start(folder, server))
        first = server.pid
        assert first
        os.kill(first, signal.SIGSTOP)
        starting = asyncio.create_task(Guest.start(start(folder, server)))
        await asyncio.sleep(0)
        os.kill(first, signal.SIGKILL)
        later = await starting
        assert await answers(later)
        assert await answers(left)
        second = server.pid
    await until(lambda: not exists(later.pid) and not Path(f"/proc/{second}").exists())
    await asyncio.gather(left.end(), later.end())


async def test_a_killed_worker_leaves_neither_server_nor_guests_nor_what_they_started(folder: Path) -> None:
    program = f"""
import asyncio, os
from pathlib import Path
from agentvisor.host.fork_server import ForkServer
from agentvisor.host.guest import Guest
from tests.host.test_fork_server import found, start
async def main():
    folder, server = Path({str(folder)!r}), ForkServer(os.environ)
    guests = [await Guest.start(start(folder, server, WITH_CHILD="1")) for _ in range(2)]
    print("pids", server.pid, *(f"{{guest.pid}} {{found(folder, guest)['child']}}" for guest in guests), flush=True)
    await asyncio.sleep(1000)
asyncio.run(main())
"""
    worker = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, cwd=ROOT)  # noqa: ASYNC220
    with worker:
        assert worker.stdout
        line = "-"
        while line and not line.startswith("pids"):
            line = await asyncio.to_thread(worker.stdout.readline)
        pids = [int(word) for word in line.split()[1:]]
        assert len(pids) == 5
        assert all(exists(pid) for pid in pids)
        worker.kill()
        await until(lambda: not any(exists(pid) for pid in pids))
