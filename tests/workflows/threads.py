"""Threads in a given situation."""

from __future__ import annotations

from typing import Any

from tests.workflows.adk_events import asking, call, confirmation, event
from workflows.messages import JsonObject, LegResult, Options, Paused, RunRequest, StartThread
from workflows.run_state import Call, CurrentRun
from workflows.thread_state import ThreadState

AT = 1_700_000_000.0
SAID = {"parts": [{"text": "hello"}], "role": "user"}


def thread(**start: Any) -> ThreadState:
    """A new thread."""
    return ThreadState.begin(StartThread(agent="helper", principal="ana", **start))


def send(state: ThreadState, run_id: str = "r1", message: Any = "hello", **more: Any) -> None:
    """A run signal."""
    state.queue_run(RunRequest(message=message, **more), run_id=run_id, at=AT)


def busy(**start: Any) -> tuple[ThreadState, CurrentRun]:
    """A thread whose first leg runs."""
    state = thread(**start)
    send(state)
    run = state.begin_next(at=AT)
    assert run is not None
    return state, run


def paused(*pauses: JsonObject, **start: Any) -> tuple[ThreadState, CurrentRun, list[Call]]:
    """A thread whose run waits: for each of `pauses` (a PausedCall as JSON) a call of `pay`."""
    state, run = busy(options=start.pop("options", Options()), **start)
    made: list[JsonObject] = [call(f"c{n}", "pay", {"n": n}) for n in range(len(pauses))]
    asked = [
        confirmation(f"q{n}", {"id": f"c{n}", "name": "pay", "args": {"n": n}}, pause) for n, pause in enumerate(pauses)
    ]
    leg = (event("e1", author="user") | {"content": SAID}, event("e2", *made), asking("e3", *asked))
    state.apply_leg(LegResult(outcome=Paused(), events=leg), at=AT)
    return state, run, run.calls


def carried(state: ThreadState) -> ThreadState:
    """The thread in its next execution."""
    start = state.carried()
    assert start is not None
    return ThreadState.begin(StartThread.model_validate_json(start.model_dump_json()))
