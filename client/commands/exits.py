"""Exit codes of the commands: part of their contract, shown in every --help."""

from __future__ import annotations

from enum import IntEnum

from client.errors import InvalidThreadId, InvalidValue, OperatorError, RunNotFound, ThreadNotFound, ThreadsError
from workflows.messages import RunView

_USAGE = (InvalidThreadId, InvalidValue)
_NOT_FOUND = (ThreadNotFound, RunNotFound)
_NOTHING_THERE = frozenset({"approval-unknown", "interrupt-unknown", "run-unknown"})


class Exit(IntEnum):
    OK = 0
    RUN_FAILED = 1
    USAGE = 2
    WAITS = 3
    NOT_FOUND = 4
    UNAVAILABLE = 5
    REFUSED = 6
    INTERRUPTED = 130
    BROKEN_PIPE = 141


MEANINGS = {
    Exit.OK: "done",
    Exit.RUN_FAILED: "the run ended as error, cancelled or timeout",
    Exit.USAGE: "wrong usage",
    Exit.WAITS: "the run waits for a person, or has not ended in time",
    Exit.NOT_FOUND: "no such thread, run or approval",
    Exit.UNAVAILABLE: "no worker answers, or Temporal cannot be reached",
    Exit.REFUSED: "refused: decided already, closed, too large, ...",
    Exit.INTERRUPTED: "Ctrl-C",
}


def of_error(problem: ThreadsError) -> Exit:
    if isinstance(problem, OperatorError):
        return Exit.UNAVAILABLE
    if isinstance(problem, _NOT_FOUND) or problem.kind in _NOTHING_THERE:
        return Exit.NOT_FOUND
    return Exit.USAGE if isinstance(problem, _USAGE) else Exit.REFUSED


def of_run(view: RunView) -> Exit:
    match view.status:
        case "success":
            return Exit.OK
        case "queued" | "running" | "waiting":
            return Exit.WAITS
        case _:
            return Exit.RUN_FAILED
