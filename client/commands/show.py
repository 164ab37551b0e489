"""Threads, runs and interrupts, shown to people."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from client.commands.session import Session
from client.commands.terminal import compact, one_line, shortened
from client.listing import ListedThread
from workflows.messages import Interrupt, InterruptKind, RunView, ThreadView

_ARGUMENTS = 60
_TONES = {"success": "green", "error": "red", "timeout": "red", "cancelled": "yellow", "waiting": "yellow"}


def threads(session: Session, found: Iterable[ListedThread]) -> None:
    columns = ("THREAD", "AGENT", "PRINCIPAL", "STATUS", "SINCE")
    session.terminal.table(
        columns,
        [
            (
                one.thread_id,
                one.agent,
                one.principal,
                one.status,
                ago(one.closed_at or one.waiting_since or one.started_at),
            )
            for one in found
        ],
    )


def interrupts(session: Session, found: Iterable[Interrupt]) -> None:
    """A line each."""
    session.terminal.table(
        ("NAME", "TOOL", "ABOUT", "AGENT", "PRINCIPAL", "SINCE", "EXPIRES"),
        [
            (
                name(one),
                one.tool,
                _ABOUT[one.kind] + shortened(one_line(one.summary or compact(one.arguments)), _ARGUMENTS),
                one.agent,
                one.principal,
                ago(one.since),
                left(one.deadline),
            )
            for one in found
        ],
    )


def interrupt(session: Session, one: Interrupt) -> None:
    """All that a person must know to answer, and how to."""
    terminal = session.terminal
    terminal.say(f"{_TITLES[one.kind]}: {one.tool}", "bold")
    terminal.fields([(key, compact(value)) for key, value in one.arguments.items()], indent=2)
    terminal.say()
    terminal.fields(
        [
            ("name", name(one)),
            ("about", one.summary or ""),
            ("known", one.detail or ""),
            ("run", one.run_id),
            ("agent", f"{one.agent} for {one.principal}"),
            ("since", f"{one.since} ({ago(one.since)})"),
            ("expires", f"{one.deadline} ({left(one.deadline)})" if one.deadline else "never"),
            ("progress", "\n".join(map(compact, one.progress))),
            ("", "A decision is being checked." if one.being_decided else ""),
        ],
        indent=2,
    )
    terminal.say()
    for line in answers(session, one):
        terminal.say(line, "cyan", indent=2)


def answers(session: Session, one: Interrupt) -> list[str]:
    """The commands that answer it, ready to be pasted."""
    here = name(one)
    if one.kind == "approval":
        lines = [
            session.command_line("approvals", "approve", here),
            session.command_line("approvals", "deny", here, "--reason", "..."),
        ]
        key = next(iter(one.arguments), "KEY")
        edit = session.command_line("approvals", "edit", here, "--set", f"{one_line(key)}=...")
        return [*lines, edit] if one.editable else lines
    if one.kind == "input":
        return [session.command_line("answer", "input", here, '"..."')]
    if one.kind == "long_running":
        return [session.command_line("answer", "result", here, "{}")]
    return [
        session.command_line("answer", "done", here, "{}"),
        session.command_line("answer", "undone", here, "--reason", "..."),
        session.command_line("answer", "again", here),
    ]


def run(session: Session, thread_id: str, view: RunView) -> None:
    """How a run ended, or what it waits for."""
    terminal = session.terminal
    if view.status == "success":
        terminal.say(view.answer or "")
    elif view.error is not None:
        terminal.problem(f"Run {view.run_id} ended as {view.status}: {view.error.message}", view.error.code)
    elif view.status == "waiting":
        terminal.say(f"Run {view.run_id} waits for a person.", "yellow")
        for one in view.interrupts:
            terminal.say()
            interrupt(session, one)
    else:
        terminal.say(f"Run {view.run_id} is {view.status}.")
        terminal.say(session.command_line("threads", "watch", thread_id, view.run_id), "cyan", indent=2)


def run_status(view: RunView) -> str:
    """One line of live status."""
    words = [view.status, *(f"{one.tool} ({one.id})" for one in view.interrupts)]
    if view.status == "running":
        words += [f"{call.tool}: {call.status}" for call in view.calls]
    if view.usage.model_calls:
        words.append(f"{view.usage.model_calls} model calls")
    return one_line(", ".join(words))


def thread(session: Session, view: ThreadView, waiting: Iterable[Interrupt]) -> None:
    terminal = session.terminal
    terminal.fields(
        [
            ("thread", view.thread_id),
            ("agent", view.agent),
            ("principal", view.principal),
            ("app", view.app or ""),
            ("status", view.status),
            ("current", view.current or ""),
            ("queued", "\n".join(view.queued)),
            ("runs", str(view.runs)),
            ("events", str(view.events)),
            ("state", "\n".join(f"{key} = {compact(value)}" for key, value in view.state.items())),
            ("metadata", compact(view.metadata) if view.metadata else ""),
        ]
    )
    if view.recent:
        terminal.say()
        rows = [(one.run_id, one.status, ago(one.ended_at), _why(one)) for one in reversed(view.recent)]
        terminal.table(("RUN", "STATUS", "ENDED", "WHY"), rows)
    for one in waiting:
        terminal.say()
        interrupt(session, one)


def name(one: Interrupt) -> str:
    return f"{one.thread_id}/{one.id}"


def ago(at: str | None) -> str:
    return f"{_span(_seconds(at))} ago" if at else ""


def left(deadline: str | None) -> str:
    if deadline is None:
        return ""
    seconds = -_seconds(deadline)
    return f"in {_span(seconds)}" if seconds > 0 else "now"


def _why(view: RunView) -> str:
    return shortened(f"{view.error.code}: {view.error.message}", _ARGUMENTS) if view.error else ""


def _seconds(at: str) -> float:
    return (datetime.now(UTC) - datetime.fromisoformat(at)).total_seconds()


def _span(seconds: float) -> str:
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= 1.95 * size:
            return f"{round(seconds / size)} {unit}"
    return f"{max(0, int(seconds))} s"


_TITLES: dict[InterruptKind, str] = {
    "approval": "Waits for a decision",
    "input": "Waits for input",
    "long_running": "Waits for the result of a long-running tool",
    "unknown_outcome": "Nobody knows whether this call took effect",
}
_ABOUT: dict[InterruptKind, str] = {
    "approval": "",
    "input": "input: ",
    "long_running": "result: ",
    "unknown_outcome": "unknown outcome: ",
}
