"""`python worker.py`, as a process."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

from agentvisor.host.dev_server import TemporalServer, free_port
from tests.fixtures.temporal import MakeProject
from tests.host.processes import exists, until

ROOT = Path(__file__).parents[2]
AGENT = """
from google.adk.agents import LlmAgent
root_agent = LlmAgent(name="shop", model="gemini-2.0-flash", instruction="Help.")
"""


class WorkerProcess:
    """A worker, and what it has printed so far."""

    def __init__(self, *arguments: str, address: str, **environment: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "worker.py", *arguments],
            cwd=ROOT,
            env={
                **os.environ,
                "TEMPORAL_ADDRESS": address,
                "AGENTVISOR_TASK_QUEUE": f"test-{uuid.uuid4()}",
                "AGENTVISOR_LEG_GUESTS": "1",
                **environment,
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self.said = ""

    async def says(self, text: str) -> None:
        """Read on until it says so, or ends."""
        assert self._process.stdout
        while text not in self.said:
            line = await asyncio.to_thread(self._process.stdout.readline)
            assert line, self.said
            self.said += line

    def send(self, number: signal.Signals) -> None:
        os.kill(self._process.pid, number)

    async def ended(self) -> int:
        """Its exit code; what it said until then is in `said`."""
        rest, _ = await asyncio.to_thread(self._process.communicate, timeout=90)
        self.said += rest
        return self._process.returncode

    def processes(self) -> list[int]:
        """The guests, and the server that forked them."""
        return [int(pid) for pid in re.findall(r"(?:guest|fork-server)\.started +(?:guest|pid)=(\d+)", self.said)]


@pytest.fixture
def address(temporal_server: TemporalServer) -> str:
    assert temporal_server.connection.address
    return temporal_server.connection.address


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_a_signal_ends_the_worker_and_every_process_of_it(
    make_project: MakeProject, address: str, number: signal.Signals
) -> None:
    worker = WorkerProcess("--project", str(make_project({"agent.py": AGENT})), address=address)
    await worker.says("worker.ready")
    worker.send(number)
    assert await worker.ended() == 0, worker.said
    assert len(worker.processes()) >= 3
    assert not any(exists(pid) for pid in worker.processes())


async def test_a_signal_during_the_start_ends_it_too(make_project: MakeProject, address: str) -> None:
    slow = make_project({"agent.py": "print('loading', flush=True)\nimport time\ntime.sleep(1000)"})
    worker = WorkerProcess("--project", str(slow), address=address)
    await worker.says("loading")
    pids = [int(pid) for pid in re.findall(r"guest=(\d+)", worker.said)]
    worker.send(signal.SIGINT)
    assert await worker.ended() == 0, worker.said
    assert pids
    assert not any(exists(pid) for pid in pids)


async def test_a_killed_worker_leaves_no_process(make_project: MakeProject, address: str) -> None:
    worker = WorkerProcess("--project", str(make_project({"agent.py": AGENT})), address=address)
    await worker.says("worker.ready")
    worker.send(signal.SIGKILL)
    await worker.ended()
    await until(lambda: not any(exists(pid) for pid in worker.processes()))


async def test_a_project_is_required(address: str) -> None:
    worker = WorkerProcess(address=address)
    assert await worker.ended() == 2
    assert "--project" in worker.said


async def test_a_folder_that_is_no_project_is_refused(tmp_path: Path, address: str) -> None:
    worker = WorkerProcess("--project", str(tmp_path), address=address)
    assert await worker.ended() == 1
    assert "has no agent.yaml" in worker.said
    assert "Traceback" not in worker.said


async def test_a_project_that_cannot_be_loaded_is_refused_in_its_authors_words(
    make_project: MakeProject, address: str
) -> None:
    folder = make_project({"agent.py": "import no_such_module_anywhere"})
    worker = WorkerProcess("--project", str(folder), address=address)
    assert await worker.ended() == 1
    assert "worker: " in worker.said
    assert "no_such_module_anywhere" in worker.said


async def test_two_agents_of_one_name_are_refused(make_project: MakeProject, address: str) -> None:
    folders = [str(make_project({"agent.py": AGENT})) for _ in range(2)]
    worker = WorkerProcess("--project", folders[0], "--project", folders[1], address=address)
    assert await worker.ended() == 1
    assert "both name their agent 'test-agent'" in worker.said


async def test_without_a_server_it_says_how_to_get_one(make_project: MakeProject) -> None:
    folder = make_project({"agent.py": AGENT})
    worker = WorkerProcess("--project", str(folder), address=f"127.0.0.1:{free_port()}")
    assert await worker.ended() == 1
    assert "There is no Temporal server at" in worker.said


async def test_a_setting_that_makes_no_sense_is_refused_by_name(make_project: MakeProject, address: str) -> None:
    folder = make_project({"agent.py": AGENT})
    worker = WorkerProcess("--project", str(folder), address=address, AGENTVISOR_LEG_GUESTS="none")
    assert await worker.ended() == 1
    assert "AGENTVISOR_LEG_GUESTS" in worker.said


async def test_dev_brings_a_server_of_its_own_and_takes_it_away(make_project: MakeProject) -> None:
    folder = make_project({"agent.py": AGENT})
    worker = WorkerProcess("--project", str(folder), "--dev", address=f"127.0.0.1:{free_port()}")
    await worker.says("worker.ready")
    worker.send(signal.SIGTERM)
    assert await worker.ended() == 0, worker.said
    pids = [int(pid) for pid in re.findall(r"dev-server\.started +pid=(\d+)", worker.said)]
    assert pids
    assert not any(exists(pid) for pid in pids)


def test_the_worker_loads_no_agent_framework() -> None:
    program = "import sys, worker; print([m for m in sys.modules if m.startswith(('google.adk', 'google.genai'))])"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, cwd=ROOT, text=True)
    assert ended.stdout.strip() == "[]"
