"""`make demo`, as a newcomer runs it: a real Temporal server, a worker, guests, and a decision."""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Generator
from pathlib import Path

import pytest

from agentvisor.host.dev_server import TemporalServer

DEMO = Path(__file__).parents[2] / "examples" / "demo.py"
_PRIVATE = re.compile(r"^(TEMPORAL_|GOOGLE_|GEMINI_|AGENTVISOR_|DEMO_|SHOP_|NO_COLOR|FORCE_COLOR|COLUMNS)")
_PATIENCE = 90.0

pytestmark = pytest.mark.timeout(240)


class Marked:
    """An environment by which all processes that inherit it are found."""

    def __init__(self) -> None:
        self._mark = f"DEMO_TEST={uuid.uuid4().hex}"

    def environment(self, **more: str) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not _PRIVATE.match(name)}
        name, _, value = self._mark.partition("=")
        return {**kept, name: value, "TERM": "xterm", "AGENTVISOR_LEG_GUESTS": "1", **more}

    def left(self) -> list[str]:
        """Command lines of the processes that are still there."""
        found: list[str] = []
        for process in Path("/proc").glob("[0-9]*"):
            try:
                if self._mark.encode() in (process / "environ").read_bytes():
                    found.append((process / "cmdline").read_bytes().replace(b"\0", b" ").decode())
            except OSError:
                continue  # it ended, or is not ours
        return found


@pytest.fixture
def marked() -> Marked:
    return Marked()


@pytest.fixture
def address(temporal_server: TemporalServer) -> str:
    """Of a server that runs already."""
    return temporal_server.connection.resolved().address or ""


def run_demo(marked: Marked, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(DEMO)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
        env=marked.environment(**environment),
    )


class Terminal:
    """The demo at a terminal."""

    def __init__(self, process: subprocess.Popen[bytes], descriptor: int) -> None:
        self.process = process
        self._descriptor = descriptor
        self.shown = ""

    def wait_for(self, text: str, *, times: int = 1) -> None:
        deadline = time.monotonic() + _PATIENCE
        while self.shown.count(text) < times:
            assert time.monotonic() < deadline, self.shown
            assert self._reads(), self.shown

    def type(self, text: str) -> None:
        os.write(self._descriptor, f"{text}\n".encode())

    def ended(self) -> int:
        """Exit code, after everything was read."""
        while self._reads():
            pass
        return self.process.wait(_PATIENCE)

    def _reads(self) -> bool:
        """Read on; False at the end, which a terminal tells as an error."""
        try:
            got = os.read(self._descriptor, 4096)
        except OSError:
            return False
        self.shown += got.decode(errors="replace")
        return bool(got)


@pytest.fixture
def terminal(marked: Marked) -> Generator[Terminal]:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, str(DEMO)],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=marked.environment(),
        start_new_session=True,
    )
    os.close(theirs)
    yield Terminal(process, ours)
    if process.poll() is None:
        process.kill()
        process.wait()
    os.close(ours)


def test_without_a_terminal_it_approves_and_shows_what_happened(marked: Marked) -> None:
    done = run_demo(marked)
    assert done.returncode == 0, done.stdout + done.stderr
    shown = done.stdout
    assert "local, answers from shop.yaml" in shown
    assert "Without an invoice: A-1001, A-1002." in shown
    pending = shown.partition("The run waits for an approval.")[2].partition("Decision")[0]
    facts = dict(line.split(maxsplit=1) for line in pending.strip().splitlines())
    assert facts["tool"] == "send_invoice"
    assert facts["arguments"] == '{"order_id": "A-1001", "amount": "149.00"}'
    assert facts.keys() >= {"summary", "approval", "thread", "run", "deadline"}
    assert f"/workflows/thread-{facts['thread']}" in pending
    assert "Invoice INV-A-1001 over EUR 149.00 went to ana@example.com." in shown
    recorded = shown.partition("Temporal recorded")[2]
    steps = re.findall(r"^\s+(signal|activity|update)\s+(\w+)", recorded, re.MULTILINE)
    assert [step for step in steps if step[0] != "activity"] == [
        ("signal", "run"),
        ("signal", "run"),
        ("update", "decide"),
    ]
    assert [name for kind, name in steps if kind == "activity"] == ["run_agent", "run_agent", "run_tool", "run_agent"]
    assert "\x1b" not in shown
    assert "Traceback" not in done.stderr
    assert marked.left() == []


def test_an_edit_changes_the_amount(marked: Marked, address: str) -> None:
    done = run_demo(marked, DEMO_DECISION="edit", TEMPORAL_ADDRESS=address)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Invoice INV-A-1001 over EUR 134.10 went to ana@example.com." in done.stdout
    assert marked.left() == []


def test_a_denial_is_what_the_agent_reports(marked: Marked, address: str) -> None:
    done = run_demo(marked, DEMO_DECISION="deny", TEMPORAL_ADDRESS=address)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{address}, was there already" in done.stdout
    assert "The invoice for order A-1001 was not sent" in done.stdout
    assert "run_tool" not in done.stdout
    assert marked.left() == []


def test_an_unknown_wish_is_refused_before_anything_starts(marked: Marked) -> None:
    done = run_demo(marked, DEMO_DECISION="maybe")
    assert done.returncode == 2
    assert "Use approve, edit, deny" in done.stdout


def test_at_a_terminal_a_refused_edit_is_asked_again(marked: Marked, terminal: Terminal) -> None:
    terminal.wait_for("approve, edit or deny?")
    terminal.type("edit")
    terminal.wait_for("amount in euros?")
    terminal.type("500.00")
    terminal.wait_for("approve, edit or deny?", times=2)
    assert "Order A-1001 comes to EUR 149.00" in terminal.shown
    terminal.type("")
    terminal.wait_for("until you press Enter")
    assert "Invoice INV-A-1001 over EUR 149.00 went to" in terminal.shown
    terminal.type("")
    assert terminal.ended() == 0
    assert marked.left() == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_stopping_it_leaves_no_process(marked: Marked, terminal: Terminal, number: signal.Signals) -> None:
    terminal.wait_for("approve, edit or deny?")
    terminal.process.send_signal(number)
    assert terminal.ended() == 130
    assert "Traceback" not in terminal.shown
    assert marked.left() == []


def test_killing_it_leaves_no_process(marked: Marked, terminal: Terminal) -> None:
    terminal.wait_for("approve, edit or deny?")
    terminal.process.kill()
    terminal.ended()
    deadline = time.monotonic() + _PATIENCE
    while marked.left():
        assert time.monotonic() < deadline, marked.left()
        time.sleep(0.1)
