"""One ThreadWorkflow seen through Temporal: every call has a deadline, every failure is a ThreadsError."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any, TypeVar

from temporalio.client import Client, WorkflowExecution, WorkflowExecutionDescription, WorkflowUpdateStage

from client.checks import payload
from client.errors import NoWorker, ThreadsError, ThreadStuck
from client.rpc import RPC_DEADLINE, Unanswered, within
from client.tail import Bookmark, Tail
from workflows.messages import Interrupt, JsonObject, Message

M = TypeVar("M", bound=Message)

_PREFIX = "thread-"
_OUTCOME = 60.0
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
        """The raw result of a query. NoWorker or ThreadStuck where nothing answered for 4 s."""
        args = [] if argument is None else [argument]
        try:
            async with within(self.thread_id):
                return await self._handle.query(name, args=args, rpc_timeout=RPC_DEADLINE)
        except Unanswered:
            raise await self._why_unanswered(
                "Runs stay queued, but only a worker can read a thread or go on with it."
            ) from None

    async def update(self, name: str, argument: Message | JsonObject | None = None) -> Any:
        """Send an update and return its raw outcome: 4 s until the thread takes it, a minute until it is done."""
        args = [] if argument is None else [payload(argument)]
        try:
            async with within(self.thread_id):
                update = await self._handle.start_update(
                    name, args=args, wait_for_stage=WorkflowUpdateStage.ACCEPTED, rpc_timeout=RPC_DEADLINE
                )
            async with within(self.thread_id, patience=_OUTCOME):
                return await update.result(rpc_timeout=timedelta(seconds=_OUTCOME))
        except Unanswered:
            _give_cancellation_back()
            raise await self._why_unanswered(
                "It may still be taken once one answers: look before you repeat it."
            ) from None

    async def interrupts(self) -> tuple[Interrupt, ...]:
        return tuple(Interrupt.model_validate(one) for one in await self.ask("interrupts"))

    async def describe(self) -> WorkflowExecutionDescription:
        async with within(self.thread_id):
            return await self._handle.describe(rpc_timeout=RPC_DEADLINE)

    def tail(self, start: Bookmark) -> Tail:
        return Tail(self._client, workflow_id(self.thread_id), start)

    async def _why_unanswered(self, note: str) -> ThreadsError:
        description = await self.describe()
        pending = description.raw_description.pending_workflow_task
        if pending.attempt >= _STUCK_AT:
            return ThreadStuck(self.thread_id)
        return NoWorker(description.task_queue or self._task_queue, note=note)


def workflow_id(thread_id: str) -> str:
    return f"{_PREFIX}{thread_id}"


def thread_id_of(execution: WorkflowExecution) -> str:
    return execution.id.removeprefix(_PREFIX)


def _give_cancellation_back() -> None:
    """Temporal's client reports the cancellation of its caller as a timeout of the update."""
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError
