"""One thread, from question to invoice: `make demo`, or `python examples/demo.py`.

Uses the Temporal server that answers at TEMPORAL_ADDRESS, else starts the development server; uses Gemini where
GOOGLE_API_KEY is set, else the local model. DEMO_DECISION (approve, edit or deny) decides in a person's place; without
a terminal it is `approve` unless set. Exit code 0: every run ended well. Nothing that was started is left behind.
"""

from __future__ import annotations

import asyncio
import getpass
import json
import logging
import os
import signal
import sys
from collections.abc import Generator, Mapping
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import structlog
from rich.console import Console
from rich.text import Text
from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import Client

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REPOSITORY))

from agentvisor.host.dev_server import DevServerError, TemporalServer, answering_or_dev_server  # noqa: E402
from agentvisor.host.exit import leave  # noqa: E402
from agentvisor.host.guest import NoGuestError  # noqa: E402
from agentvisor.host.settings import Settings  # noqa: E402
from agentvisor.local_gemini import LocalGemini, load_script  # noqa: E402
from agentvisor.project import read_project  # noqa: E402
from client import Thread, Threads  # noqa: E402
from client.connection import Connection, connect  # noqa: E402
from client.errors import Refused, ThreadsError  # noqa: E402
from client.execution import workflow_id  # noqa: E402
from worker import running_worker  # noqa: E402
from workflows.messages import Interrupt, JsonObject, Receipt, RunView  # noqa: E402

SHOP = REPOSITORY / "examples" / "shop_helper"
QUESTIONS = ("Which orders have no invoice yet?", "Send the invoice for order A-1001.")
DECISIONS = ("approve", "edit", "deny")
PATIENCE = 180.0
"""Seconds in which a run must answer or pause."""


class DemoFailedError(Exception):
    """The demo cannot go on; the text says why."""


@dataclass(frozen=True)
class Decision:
    """What a person says to a pending approval."""

    approved: bool
    edited_args: Mapping[str, Any] | None = None
    reason: str | None = None


# ---- the story -----------------------------------------------------------------------------------------------------


async def demo(screen: Screen, person: Person) -> None:
    """From the question to what Temporal recorded."""
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(answering_or_dev_server(Connection()))
        client = await connect(server.connection)
        screen.server(server, client)
        model, environment = stack.enter_context(chosen_model())
        screen.fact("Model", model)
        screen.fact("Agent", "shop-helper, from examples/shop_helper")
        settings = demo_settings(server)
        worker = running_worker(client, settings, [read_project(SHOP)], environment=environment)
        await stack.enter_async_context(worker)
        threads = Threads(client, task_queue=settings.task_queue)
        thread = await threads.create("shop-helper", principal=getpass.getuser())
        screen.fact("Thread", thread.id)
        for question in QUESTIONS:
            await converse(thread, question, screen=screen, person=person)
        screen.recorded(await history_of(client, thread))
        await thread.close(by=getpass.getuser())
        if person.is_there and server.ui_url:
            await person.asked("The Web UI stays until you press Enter.")


async def converse(thread: Thread, question: str, *, screen: Screen, person: Person) -> None:
    """One run, through every approval it waits for, until its answer."""
    screen.said("You", question)
    run_id = await thread.run(question)
    view = await thread.wait(run_id, until="paused", timeout=PATIENCE)
    while view.status == "waiting":
        for interrupt in view.interrupts:
            screen.pending(interrupt)
            await settle(thread, interrupt, screen=screen, person=person)
        view = await thread.wait(run_id, until="paused", timeout=PATIENCE)
    screen.said("Agent", answer_of(view))


async def settle(thread: Thread, interrupt: Interrupt, *, screen: Screen, person: Person) -> None:
    """Ask the person until the thread takes the decision."""
    if interrupt.kind != "approval":
        raise DemoFailedError(f"{interrupt.tool} waits with an {interrupt.kind}: {interrupt.detail or interrupt.id}")
    while True:
        decision = await person.decides(interrupt)
        try:
            receipt = await thread.decide(
                interrupt.id,
                decision.approved,
                by=getpass.getuser(),
                edited_args=decision.edited_args,
                reason=decision.reason,
            )
        except Refused as refused:
            if not person.is_there:
                raise
            screen.problem(str(refused))
        else:
            screen.decided(receipt, decision)
            return


def answer_of(view: RunView) -> str:
    """What the agent said in a run that ended well. Raises DemoFailedError for every other end."""
    if view.status == "success":
        return view.answer or "(nothing)"
    if view.error:
        raise DemoFailedError(f"The run ended as {view.status}: {view.error.message} ({view.error.code})")
    raise DemoFailedError(f"The run is still {view.status} after {PATIENCE:g} seconds.")


@contextmanager
def chosen_model() -> Generator[tuple[str, Mapping[str, str]]]:
    """Gemini where there is a key, else the local model: its description, and the environment of the agent."""
    if os.environ.get("GOOGLE_API_KEY"):
        yield "Gemini, with GOOGLE_API_KEY", os.environ
        return
    with LocalGemini(load_script(SHOP / "shop.yaml")) as gemini:
        told = "local, answers from shop.yaml (set GOOGLE_API_KEY for Gemini)"
        yield told, {**os.environ, **gemini.env()}


def demo_settings(server: TemporalServer) -> Settings:
    """On a server that others use, too, the demo has a task queue of its own: their workers lack the shop helper."""
    return Settings() if server.started else Settings(task_queue=f"agentvisor-demo-{os.getpid()}")


async def history_of(client: Client, thread: Thread) -> list[HistoryEvent]:
    """Every event of the thread's workflow."""
    return list((await client.get_workflow_handle(workflow_id(thread.id)).fetch_history()).events)


# ---- who decides ---------------------------------------------------------------------------------------------------


class Person:
    """Somebody at the terminal, or DEMO_DECISION in their place."""

    def __init__(self, screen: Screen, *, wish: str | None) -> None:
        self._screen = screen
        self._wish = wish or "approve"
        self.is_there = wish is None and sys.stdin.isatty()

    async def decides(self, interrupt: Interrupt) -> Decision:
        """Approve, edit (the amount) or deny."""
        wish = await self._chosen() if self.is_there else self._wish
        if wish == "deny":
            return Decision(approved=False, reason="Not today.")
        if wish == "edit":
            return Decision(approved=True, edited_args=await self._edited(interrupt.arguments))
        return Decision(approved=True)

    async def asked(self, question: str, preset: str = "") -> str:
        """A line from the terminal, or the preset where it is empty or nobody is there."""
        if not self.is_there:
            return preset
        self._screen.prompt(question, preset)
        return await _line() or preset

    async def _chosen(self) -> str:
        while True:
            said = await self.asked("approve, edit or deny?", DECISIONS[0])
            for choice in DECISIONS:
                if choice.startswith(said.lower()):
                    return choice

    async def _edited(self, arguments: JsonObject) -> JsonObject:
        lower = f"{Decimal(arguments['amount']) * Decimal('0.9'):.2f}"
        return {**arguments, "amount": await self.asked("amount in euros?", lower)}


async def _line() -> str:
    """Read by the event loop: a thread that waits for input would outlive Ctrl-C."""
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_reader(sys.stdin, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(sys.stdin)
    line = sys.stdin.readline()
    if not line:
        raise DemoFailedError("The input ended before the decision.")
    return line.strip()


# ---- what is shown -------------------------------------------------------------------------------------------------


class Screen:
    """Plain lines; colours only on a terminal."""

    def __init__(self) -> None:
        self._console = Console(highlight=False, soft_wrap=True)
        self._web_ui: str | None = None

    def fact(self, label: str, text: str, *, indent: int = 0, style: str = "") -> None:
        line = Text(f"{'':{indent}}{label:<{12 - indent}}", style="dim")
        self._console.print(line.append(text, style=f"not dim {style}"))

    def server(self, server: TemporalServer, client: Client) -> None:
        address = server.connection.resolved().address
        self.fact("Temporal", f"{address}, {'development server' if server.started else 'was there already'}")
        if server.ui_url:
            self._web_ui = f"{server.ui_url}/namespaces/{client.namespace}/workflows"
            self.fact("Web UI", server.ui_url)

    def said(self, who: str, text: str) -> None:
        self._console.print()
        self.fact(who, text, style="bold")

    def pending(self, interrupt: Interrupt) -> None:
        """What waits, in the words a person needs to decide."""
        self._console.print()
        self._console.print(Text("The run waits for an approval.", style="bold yellow"))
        shown = {
            "tool": interrupt.tool,
            "arguments": json.dumps(interrupt.arguments, ensure_ascii=False),
            "summary": interrupt.summary,
            "approval": interrupt.id,
            "thread": interrupt.thread_id,
            "run": interrupt.run_id,
            "deadline": interrupt.deadline or "none",
            "Web UI": self._link(interrupt.thread_id),
        }
        for label, text in shown.items():
            if text:
                self.fact(label, text, indent=2)

    def decided(self, receipt: Receipt, decision: Decision) -> None:
        edited = f", with {json.dumps(decision.edited_args, ensure_ascii=False)}" if decision.edited_args else ""
        self.fact(
            "Decision", f"{receipt.status} by {receipt.by}{edited}", style="green" if decision.approved else "red"
        )

    def recorded(self, events: list[HistoryEvent]) -> None:
        """What stands in the thread's history of the two runs, in its order."""
        self._console.print()
        self._console.print(Text(f"Temporal recorded {len(events)} events, among them", style="bold"))
        for event in events:
            if line := _told(event):
                self.fact(*line, indent=2)
        started = events[0].workflow_execution_started_event_attributes
        if link := self._link(started.workflow_id.removeprefix("thread-")):
            self.fact("Web UI", link)

    def prompt(self, question: str, preset: str) -> None:
        self._console.print(Text(f"{question} [{preset}] " if preset else f"{question} ", style="bold"), end="")

    def problem(self, text: str) -> None:
        self._console.print(Text(text, style="red"))

    def _link(self, thread_id: str) -> str | None:
        return f"{self._web_ui}/{workflow_id(thread_id)}" if self._web_ui else None


def _told(event: HistoryEvent) -> tuple[str, str] | None:
    """Kind and name of an event that stands for something a person would call a step."""
    summary = event.user_metadata.summary.data
    about = f"  {json.loads(summary)}" if summary else ""
    if event.HasField("workflow_execution_signaled_event_attributes"):
        return "signal", event.workflow_execution_signaled_event_attributes.signal_name
    if event.HasField("activity_task_scheduled_event_attributes"):
        return "activity", event.activity_task_scheduled_event_attributes.activity_type.name + about
    if event.HasField("timer_started_event_attributes"):
        return "timer", about.strip() or event.timer_started_event_attributes.timer_id
    if event.HasField("workflow_execution_update_accepted_event_attributes"):
        return "update", event.workflow_execution_update_accepted_event_attributes.accepted_request.input.name
    return None


# ---- beginning and end ---------------------------------------------------------------------------------------------


def main() -> int:
    """Run the demo; returns the exit code."""
    screen, wish = Screen(), os.environ.get("DEMO_DECISION") or None
    if wish and wish not in DECISIONS:
        screen.problem(f"DEMO_DECISION={wish!r} is not known. Use {', '.join(DECISIONS)}, or leave it out.")
        return 2
    _only_warnings()
    try:
        asyncio.run(_until_stopped(demo(screen, Person(screen, wish=wish))))
    except (DemoFailedError, DevServerError, NoGuestError, ThreadsError) as problem:
        screen.problem(str(problem))
        return 1
    except (KeyboardInterrupt, asyncio.CancelledError):
        screen.problem("Stopped.")
        return 130
    return 0


async def _until_stopped(work: Any) -> None:
    """SIGTERM and SIGHUP end the demo as Ctrl-C does: in order."""
    task, loop = asyncio.ensure_future(work), asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, task.cancel)
    await task


def _only_warnings() -> None:
    logging.basicConfig(level=logging.WARNING)
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )


if __name__ == "__main__":
    leave(main())
