"""Where the commands of the documents run.

A document says so in comments its reader does not see: `<!-- stage: folder -->` (an empty folder instead of the
repository) and `<!-- stage: worker PROJECT SCRIPT -->` (a Temporal server, and a worker of that project with a local
model that speaks that script; the text tells the reader to start them) and `<!-- stage: until waiting THREAD -->`
(which takes a reader no effort). A block whose info string has `file=NAME` is
written into the document's folder.
"""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Iterable
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from sybil import Document, Example, Region
from sybil.parsers.markdown.lexers import DirectiveInHTMLCommentLexer, FencedCodeBlockLexer

from agentvisor.local_gemini import LocalGemini, load_script

REPOSITORY = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
# What would make a document's output depend on the machine it is tested on.
_PRIVATE = re.compile(r"^(TEMPORAL_|GOOGLE_|GEMINI_|AGENTVISOR_|PYTEST_|DEMO_|VIRTUAL_ENV$|COLUMNS$|MAKE|MFLAGS$)")


@dataclass(frozen=True)
class Place:
    """Where one document's commands run."""

    folder: Path
    scratch: Path
    environment: dict[str, str]

    @property
    def variables(self) -> Path:
        return self.scratch / "variables"

    @property
    def output(self) -> Path:
        return self.scratch / "output"


class Stage:
    """The places of all documents, and the servers and workers that some of them need."""

    def __init__(self, scratch: Path, resources: ExitStack) -> None:
        self._scratch = scratch
        self._resources = resources
        self._places: dict[Path, Place] = {}
        self._addresses: dict[str, str] = {}
        self._broken: set[Path] = set()

    def place(self, document: Path) -> Place:
        """Where a document's commands run. RuntimeError after a stage of it failed: its commands would only wait."""
        if document in self._broken:
            msg = f"{document}: an earlier stage failed"
            raise RuntimeError(msg)
        if document not in self._places:
            scratch = self._scratch / document.stem
            scratch.mkdir(parents=True)
            self._places[document] = Place(REPOSITORY, scratch, _environment())
        return self._places[document]

    def set(self, document: Path, directive: str, argument: str) -> None:
        """Carry out one `stage:` comment of a document."""
        try:
            self._set(self.place(document), document, directive, argument)
        except Exception:
            self._broken.add(document)
            raise

    def _set(self, place: Place, document: Path, directive: str, argument: str) -> None:
        if directive == "folder":
            folder = place.scratch / "folder"
            folder.mkdir()
            self._places[document] = replace(place, folder=folder)
        elif directive == "until":
            _await_waiting(argument.removeprefix("waiting "), place)
        elif directive == "worker":
            project, script = (place.folder / name for name in argument.split())
            environment = {**place.environment, "TEMPORAL_ADDRESS": self._worker(project, script)}
            self._places[document] = replace(place, environment=environment)
        else:
            msg = f"{document}: no stage is called {directive!r}"
            raise ValueError(msg)

    def _worker(self, project: Path, script: Path) -> str:
        key = str(project.resolve())
        if key not in self._addresses:
            log = self._scratch / f"worker-{len(self._addresses)}.log"
            address = self._resources.enter_context(_server(log.with_suffix(".server")))
            model = self._resources.enter_context(LocalGemini(load_script(script)))
            environment = {**_environment(), **model.env(), "TEMPORAL_ADDRESS": address}
            command = [sys.executable, str(REPOSITORY / "worker.py"), "--project", key]
            process = self._resources.enter_context(_process(command, environment, log))
            _await(process, log, lambda: "worker.ready" in log.read_text())
            self._addresses[key] = address
        return self._addresses[key]


@pytest.fixture(scope="session")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Generator[Stage]:
    """The Stage of this test run; what it started ends with the run."""
    with ExitStack() as resources:
        yield Stage(tmp_path_factory.mktemp("docs"), resources)


def _await_waiting(thread: str, place: Place) -> None:
    """Until the thread waits for a person; what a reader's own slowness does."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        shown = subprocess.run(
            ["agentvisor", "threads", "show", thread, "--json"], capture_output=True, check=True, env=place.environment
        )
        if json.loads(shown.stdout)["status"] == "waiting":
            return
        time.sleep(0.2)
    msg = f"The thread {thread!r} does not come to wait."
    raise TimeoutError(msg)


class StageParser:
    """Finds the `stage:` comments."""

    def __call__(self, document: Document) -> Iterable[Region]:
        for region in DirectiveInHTMLCommentLexer("stage", ".*?")(document):
            region.parsed = str(region.lexemes["arguments"]).split(maxsplit=1)
            region.evaluator = _set_stage
            yield region


class FileParser:
    """Finds the blocks that are files."""

    def __call__(self, document: Document) -> Iterable[Region]:
        for region in FencedCodeBlockLexer(r"\w+ file=\S+")(document):
            region.parsed = region.lexemes["source"]
            region.evaluator = _write_file
            yield region


def _set_stage(example: Example) -> None:
    directive, *argument = example.parsed
    example.namespace["stage"].set(Path(example.path), directive, "".join(argument))


def _write_file(example: Example) -> None:
    place: Place = example.namespace["stage"].place(Path(example.path))
    if place.folder == REPOSITORY:
        msg = f"{example.path}: a document that writes files begins with <!-- stage: folder -->"
        raise ValueError(msg)
    path = place.folder / example.region.lexemes["language"].partition("file=")[2]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(example.parsed)


def _environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not _PRIVATE.match(name)}
    return {**kept, "PATH": f"{BIN}{os.pathsep}{kept['PATH']}", "COLUMNS": "120", "LC_ALL": "C.UTF-8"}


@contextmanager
def _server(log: Path) -> Generator[str]:
    port = _free_port()
    command = [str(BIN / "temporal"), "server", "start-dev", "--headless", "--port", str(port), "--log-level", "error"]
    with _process(command, _environment(), log) as process:
        _await(process, log, lambda: _listens(port))
        yield f"127.0.0.1:{port}"


@contextmanager
def _process(command: list[str], environment: dict[str, str], log: Path) -> Generator[subprocess.Popen[bytes]]:
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=environment, start_new_session=True
        )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _await(process: subprocess.Popen[bytes], log: Path, ready: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 90
    while not ready():
        if process.poll() is not None or time.monotonic() > deadline:
            msg = f"{process.args} did not start: {log.read_text()[-3000:]}"
            raise RuntimeError(msg)
        time.sleep(0.1)


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0
