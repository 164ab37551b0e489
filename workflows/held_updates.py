"""Updates that came with a workflow task and wait for its end: a thread neither ends nor continues as new before them.

Set by the runner of the worker (`agentvisor.host.workflow_runner`), whose process runs a workflow's task in one thread.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

_held: set[str] = set()


@contextmanager
def held_updates(run_id: str) -> Generator[None]:
    """For as long as this lasts, the execution has updates that it was not shown yet."""
    _held.add(run_id)
    try:
        yield
    finally:
        _held.discard(run_id)


def has_held_updates(run_id: str) -> bool:
    """Whether the task that is at work has updates for this execution that come last."""
    return run_id in _held
