"""Which events of a thread go to the Store when it continues as new. Pure."""

from __future__ import annotations

from workflows.messages import KeepEvents
from workflows.thread_state import ThreadState

TAIL_BYTES = 256 * 1024
"""JSON text of the current run's events that may be carried on, at most."""
_WORTH_IT = 40


def events_to_keep(state: ThreadState) -> KeepEvents | None:
    """All but the events of the current run; None where so few are not worth an activity."""
    log = state.log
    until = log.end.count if state.current is None else max(state.current.first, log.tail(TAIL_BYTES))
    if until - log.start.count < _WORTH_IT and log.is_small:
        return None
    return KeepEvents(kept=log.kept, until=until) if until > log.start.count else None
