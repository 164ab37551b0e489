"""Where agent code runs: for which thread, for whom."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(frozen=True)
class Here:
    """The thread whose agent or tool runs, and the principal it runs for."""

    thread_id: str
    principal: str
    run_id: str = ""


_here: ContextVar[Here | None] = ContextVar("agentvisor_here", default=None)


def current() -> Here:
    """The thread and principal of the agent or tool code that asks, in any task or thread pool it started.

    Raises RuntimeError where no thread's code runs.
    """
    here = _here.get()
    if here is not None:
        return here
    try:
        return Here(thread_id=os.environ["AGENTVISOR_THREAD_ID"], principal=os.environ["AGENTVISOR_PRINCIPAL"])
    except KeyError:
        msg = "current() is asked outside a thread's run. Call it from an agent's callback or tool, not at import."
        raise RuntimeError(msg) from None


@contextmanager
def being(here: Here) -> Generator[None]:
    """Within it, and in what is started there, `current()` is `here`."""
    token = _here.set(here)
    try:
        yield
    finally:
        _here.reset(token)


def running_run() -> str | None:
    """The run whose leg or call runs here, if any."""
    here = _here.get()
    return here.run_id if here else None
