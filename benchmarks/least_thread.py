"""The least that a host of write turns has to do: the three activities of a turn, and nothing of a product.

ADK is left for the call, which is an activity of its own and comes after a row of its own in a database.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from temporalio import workflow

_WITHIN = timedelta(seconds=60)


@workflow.defn
class LeastThread:
    """A conversation. Answers each signal by `say`, `note` and `tell`."""

    def __init__(self) -> None:
        self._queue: list[str] = []
        self._closed = False

    @workflow.signal
    def run(self, text: str) -> None:
        """Queue a turn."""
        self._queue.append(text)

    @workflow.signal
    def close(self) -> None:
        """End once nothing is queued."""
        self._closed = True

    @workflow.run
    async def talk(self) -> None:
        """Go on until closed."""
        while True:
            await workflow.wait_condition(lambda: bool(self._queue) or self._closed)
            if not self._queue:
                return
            call: dict[str, Any] = await _activity("say", self._queue.pop(0))
            result: dict[str, Any] = await _activity("note", call)
            await _activity("tell", {"call": call, "result": result})


async def _activity(name: str, value: Any) -> Any:
    return await workflow.execute_activity(name, value, start_to_close_timeout=_WITHIN)
