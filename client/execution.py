"""One ThreadWorkflow seen through Temporal: every call has a deadline, every failure is a ThreadsError."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import EventType, TaskQueueType
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import (
    DescribeTaskQueueRequest,
    GetWorkflowExecutionHistoryReverseRequest,
    ResetStickyTaskQueueRequest,
)
from temporalio.client import Client, WorkflowExecutionDescription, WorkflowUpdateStage

from client.checks import payload
from client.errors import NoWorker, ThreadsError, ThreadStuck
from client.rpc import PATIENCE, RPC_DEADLINE, TakenBack, Unanswered, within
from client.tail import Bookmark, Tail
from workflows.messages import Interrupt, JsonObject, Message

M = TypeVar("M", bound=Message)
T = TypeVar("T")

_PREFIX = "thread-"
_OUTCOME = 60.0
_MORE_PATIENCE, _LAST_PATIENCE = 15.0, 2.0
_AGAIN = 0.05
_LAST_EVENTS = 20
_OF_WORKERS = frozenset(
    {
        EventType.EVENT_TYPE_WORKFLOW_TASK_STARTED,
        EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED,
        EventType.EVENT_TYPE_ACTIVITY_TASK_STARTED,
        EventType.EVENT_TYPE_ACTIVITY_TASK_COMPLETED,
    }
)
"""Events that only a worker causes. A server times tasks out by itself."""
_STUCK_AT = 3
"""A workflow task tried so often fails; a worker that died costs one attempt, rarely two."""


class Execution:
    """The workflow of one thread. Values travel as plain JSON, so any JSON data converter of the client will do."""

    def __init__(self, client: Client, thread_id: str, *, task_queue: str) -> None:
        self.thread_id = thread_id
        self._client = client
        self._task_queue = task_queue
        self._handle = client.get_workflow_handle(workflow_id(thread_id))

    async def signal(self, name: str, argument: Message | None = None) -> None:
        args = [] if argument is None else [payload(argument)]
        async with within(self.thread_id):
            await self._handle.signal(name, args=args, rpc_timeout=RPC_DEADLINE)

    async def query(self, name: str, argument: Any, result: type[M]) -> M:
        return result.model_validate(await self.ask(name, argument))

    async def ask(self, name: str, argument: Any = None) -> Any:
        """The raw result of a query. NoWorker or ThreadStuck where nothing answers."""
        args = [] if argument is None else [argument]
        return await self._patiently(
            lambda patience: self._handle.query(name, args=args, rpc_timeout=patience),
            note="Runs stay queued, but only a worker can read a thread or go on with it.",
        )

    async def update(self, name: str, argument: Message | JsonObject | None = None) -> Any:
        """Send an update and return its raw outcome. NoWorker or ThreadStuck where the thread does not take it.

        Refused where the thread does not want it.
        """
        args = [] if argument is None else [payload(argument)]
        update_id = str(uuid.uuid4())
        taken = await self._patiently(
            lambda patience: self._handle.start_update(
                name, args=args, id=update_id, wait_for_stage=WorkflowUpdateStage.ACCEPTED, rpc_timeout=patience
            ),
            note="It may still be taken once one answers: look before you repeat it.",
        )
        async with within(self.thread_id, patience=_OUTCOME):
            return await taken.result(rpc_timeout=timedelta(seconds=_OUTCOME))

    async def interrupts(self) -> tuple[Interrupt, ...]:
        return tuple(Interrupt.model_validate(one) for one in await self.ask("interrupts"))

    async def describe(self) -> WorkflowExecutionDescription:
        async with within(self.thread_id):
            return await self._handle.describe(rpc_timeout=RPC_DEADLINE)

    async def leave_worker(self) -> None:
        """Let any worker take the next step of the thread. Costs the one that has it in its cache a replay."""
        request = ResetStickyTaskQueueRequest(
            namespace=self._client.namespace, execution=WorkflowExecution(workflow_id=workflow_id(self.thread_id))
        )
        async with within(self.thread_id):
            await self._client.workflow_service.reset_sticky_task_queue(request, retry=True, timeout=RPC_DEADLINE)

    def tail(self, start: Bookmark) -> Tail:
        return Tail(self._client, workflow_id(self.thread_id), start)

    async def _patiently(self, call: Callable[[timedelta], Awaitable[T]], *, note: str) -> T:
        """2 s are enough for a worker that is there; one that is seen at work meanwhile is slow and gets more.

        Where none is seen, the thread may belong to one that died, and another one idle, which nothing shows: it is
        asked as well.
        """
        asked_at = datetime.now(UTC)
        try:
            return await self._asked(call, PATIENCE)
        except Unanswered:
            _give_cancellation_back()
        problem, at_work = await self._why_unanswered(asked_at, note)
        if isinstance(problem, ThreadStuck):
            raise problem
        if not at_work:
            with suppress(ThreadsError):
                await self.leave_worker()
        asked_at = datetime.now(UTC)
        try:
            return await self._asked(call, _MORE_PATIENCE if at_work else _LAST_PATIENCE)
        except Unanswered:
            _give_cancellation_back()
        problem, _ = await self._why_unanswered(asked_at, note)
        raise problem

    async def _asked(self, call: Callable[[timedelta], Awaitable[T]], patience: float) -> T:
        """A thread that continues as new just as something reaches it takes its step again, and updates with it."""
        give_up = time.monotonic() + patience
        while True:
            try:
                async with within(self.thread_id, patience=patience):
                    return await call(timedelta(seconds=patience))
            except TakenBack:
                if time.monotonic() > give_up:
                    raise Unanswered from None
                await asyncio.sleep(_AGAIN)

    async def _why_unanswered(self, asked_at: datetime, note: str) -> tuple[ThreadsError, bool]:
        """What to say, and whether a worker is there after all."""
        description = await self.describe()
        if description.raw_description.pending_workflow_task.attempt >= _STUCK_AT:
            return ThreadStuck(self.thread_id), False
        task_queue = description.task_queue or self._task_queue
        at_work = await self._moved(since=asked_at) or await self._was_polled(task_queue, since=asked_at)
        return NoWorker(task_queue, note=note), at_work

    async def _moved(self, *, since: datetime) -> bool:
        """A worker that is too busy to come for more work has just done some for this very thread."""
        request = GetWorkflowExecutionHistoryReverseRequest(
            namespace=self._client.namespace,
            execution=WorkflowExecution(workflow_id=workflow_id(self.thread_id)),
            maximum_page_size=_LAST_EVENTS,
        )
        async with within(self.thread_id):
            service = self._client.workflow_service
            page = await service.get_workflow_execution_history_reverse(request, retry=True, timeout=RPC_DEADLINE)
        return any(
            event.event_time.ToDatetime(UTC) >= since and event.event_type in _OF_WORKERS
            for event in page.history.events
        )

    async def _was_polled(self, task_queue: str, *, since: datetime) -> bool:
        """A worker came for work. The server lists those of the last minutes, also the dead: only their times tell."""
        request = DescribeTaskQueueRequest(
            namespace=self._client.namespace,
            task_queue=TaskQueue(name=task_queue),
            task_queue_type=TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW,
        )
        async with within(self.thread_id):
            answer = await self._client.workflow_service.describe_task_queue(request, retry=True, timeout=RPC_DEADLINE)
        return any(poller.last_access_time.ToDatetime(UTC) >= since for poller in answer.pollers)


def workflow_id(thread_id: str) -> str:
    return f"{_PREFIX}{thread_id}"


def thread_id_of(workflow_id: str) -> str:
    return workflow_id.removeprefix(_PREFIX)


def _give_cancellation_back() -> None:
    """Temporal's client reports the cancellation of its caller as a timeout of the update."""
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError
