"""What happens to calls, as it happens: for progress displays, metrics and traces."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from agent_adapter.ledger import Outcome

EventKind = Literal[
    "approval.requested", "approval.decided", "call.waiting", "call.started", "call.retried", "call.finished"
]
"""`call.finished` is the only terminal one: exactly once for each call that ended, as the ledger has one entry.
`call.waiting` ends nothing: the call waits for approval and is made again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEvent:
    """One thing that happened to one call. Holds no arguments and no result."""

    kind: EventKind
    at: datetime
    thread: str
    run: str
    call: str
    tool: str
    attempt: int = 1
    approved: bool | None = None
    outcome: Outcome | None = None
    error: str | None = None
    """Kind of the error, for `call.finished`."""


OnEvent = Callable[[RunEvent], None]
"""Called on the event loop, in order. It returns at once; one that raises is logged and changes no outcome."""


class EventStream:
    """Run events as an async iterator: give it to an executor as `on_event`, iterate over it, `close` it at the end.

    Events that nobody reads are kept up to `size`; then the oldest are dropped and counted in `dropped`.
    """

    def __init__(self, *, size: int = 10_000) -> None:
        self._queue: asyncio.Queue[RunEvent | None] = asyncio.Queue()
        self._size = size
        self.dropped = 0

    def __call__(self, event: RunEvent) -> None:
        if self._queue.qsize() >= self._size:
            self._queue.get_nowait()
            self.dropped += 1
        self._queue.put_nowait(event)

    def close(self) -> None:
        """End the iteration after the events that happened so far."""
        self._queue.put_nowait(None)

    async def __aiter__(self) -> AsyncIterator[RunEvent]:
        while (event := await self._queue.get()) is not None:
            yield event
