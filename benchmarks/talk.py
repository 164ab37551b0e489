"""Talking to a workflow and seeing the end of a turn: the same way for every peer, without queries and updates.

A signal begins a turn. One conversation is followed closely, by long polls of its history: the turn has ended with the
first workflow task that is completed after the last of its activities. Such a poll costs the server as much as half a
turn, and to ask whether a workflow is at rest a tenth of one. So of many conversations the client hears that they are
answered (`ear.py`), and goes on some seconds later, as a person would. Whether they are at rest it asks at the end.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Any

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import EventType, WorkflowExecutionStatus
from temporalio.api.history.v1 import HistoryEvent
from temporalio.api.workflowservice.v1 import GetWorkflowExecutionHistoryRequest
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from benchmarks.ear import Ear
from benchmarks.process import MeasureFailed

_BROKEN = {
    EventType.EVENT_TYPE_ACTIVITY_TASK_FAILED,
    EventType.EVENT_TYPE_ACTIVITY_TASK_TIMED_OUT,
    EventType.EVENT_TYPE_WORKFLOW_TASK_FAILED,
    EventType.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED,
    EventType.EVENT_TYPE_WORKFLOW_EXECUTION_FAILED,
    EventType.EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED,
}
_CONTINUED = EventType.EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW
_AGAIN = {RPCStatusCode.CANCELLED, RPCStatusCode.DEADLINE_EXCEEDED, RPCStatusCode.UNAVAILABLE}
"""How a poll ends on a machine that is busy."""
_PATIENCE = 240.0
_DEAF_AFTER = 30.0
_LOOKS = 0.5


class Talk:
    """One workflow. `steps`: the names of the activities that make up a turn."""

    def __init__(self, client: Client, workflow_id: str, *, steps: frozenset[str]) -> None:
        self.id = workflow_id
        self._client = client
        self._handle = client.get_workflow_handle(workflow_id)
        self._steps = steps
        self._run_id, self._token = "", b""
        self._names: dict[int, str] = {}
        self._done = 0

    async def turn(self, message: Any, *, steps: int) -> float:
        """Say something and wait until so many activities are done and the workflow knows it. Returns the seconds."""
        began = time.perf_counter()
        await self.say(message)
        await self.until_done(steps)
        return time.perf_counter() - began

    async def turn_among_many(self, message: Any, *, ear: Ear, times: int) -> None:
        """Say something, and hear so many times that it is answered."""
        await self.say(message)
        await ear.hear(self.id, times, patience=_DEAF_AFTER)

    async def come_to_rest(self) -> int:
        """Wait until nothing of the workflow is at work or scheduled. Returns its events. Raises MeasureFailed."""
        try:
            async with asyncio.timeout(_PATIENCE):
                while (events := await self._events_at_rest()) is None:  # noqa: ASYNC110 - no event tells of rest
                    await asyncio.sleep(_LOOKS)
        except TimeoutError:
            raise MeasureFailed(f"{self.id}: a turn did not end within {_PATIENCE:g} s") from None
        return events

    async def _events_at_rest(self) -> int | None:
        description = (await self._handle.describe()).raw_description
        info = description.workflow_execution_info
        if info.status != WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_RUNNING:
            raise MeasureFailed(f"{self.id}: it has ended")
        busy = description.pending_activities or description.HasField("pending_workflow_task")
        return None if busy else info.history_length

    async def steps_so_far(self) -> int:
        """How many activities of turns are done. Raises MeasureFailed where anything went wrong."""
        self._run_id, self._token, self._names, self._done = "", b"", {}, 0
        self._follow(await self._news(), 0)
        return self._done

    async def say(self, message: Any) -> None:
        """Begin a turn."""
        self._done = 0
        await self._handle.signal("run", message)

    async def until_done(self, steps: int) -> None:
        """Read on until so many activities of the turn are done and the workflow knows it. Raises MeasureFailed."""
        try:
            async with asyncio.timeout(_PATIENCE):
                while not self._follow(await self._news(), steps):
                    pass
        except TimeoutError:
            raise MeasureFailed(f"{self.id}: a turn did not end within {_PATIENCE:g} s") from None

    async def _news(self) -> Sequence[HistoryEvent]:
        request = GetWorkflowExecutionHistoryRequest(
            namespace=self._client.namespace,
            execution=WorkflowExecution(workflow_id=self.id, run_id=self._run_id),
            wait_new_event=True,
            next_page_token=self._token,
        )
        try:
            response = await self._client.workflow_service.get_workflow_execution_history(request)
        except RPCError as problem:
            if problem.status not in _AGAIN:
                raise
            return ()
        self._token = response.next_page_token
        return response.history.events

    def _follow(self, events: Sequence[HistoryEvent], steps: int) -> bool:
        """Whether the turn is over with these events."""
        over = False
        for event in events:
            kind = event.event_type
            if kind in _BROKEN:
                raise MeasureFailed(f"{self.id}: {EventType.Name(kind)}")
            if kind == EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
                self._names[event.event_id] = event.activity_task_scheduled_event_attributes.activity_type.name
            elif kind == EventType.EVENT_TYPE_ACTIVITY_TASK_COMPLETED:
                scheduled = event.activity_task_completed_event_attributes.scheduled_event_id
                self._done += self._names.pop(scheduled, "") in self._steps
            elif kind == EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED:
                over = over or self._done >= steps
            elif kind == _CONTINUED:
                self._run_id = event.workflow_execution_continued_as_new_event_attributes.new_execution_run_id
                self._token, self._names = b"", {}
        return over
