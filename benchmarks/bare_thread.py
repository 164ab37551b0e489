"""Temporal alone: a workflow that answers each signal by as many trivial activities as it is told."""

from __future__ import annotations

from datetime import timedelta

from temporalio import activity, workflow

with workflow.unsafe.imports_passed_through():
    import notes


@activity.defn
async def nothing(text: str) -> str:
    """Give back what was given."""
    notes.say_answered(text)
    return text


@workflow.defn
class BareThread:
    """Input: activities per turn."""

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
    async def talk(self, activities: int) -> None:
        """Go on until closed."""
        while True:
            await workflow.wait_condition(lambda: bool(self._queue) or self._closed)
            if not self._queue:
                return
            text = self._queue.pop(0)
            for _ in range(activities):
                text = await workflow.execute_activity(nothing, text, start_to_close_timeout=timedelta(seconds=60))
