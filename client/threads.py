"""The threads of a task queue: create one, find one, list them, see what they wait for."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping
from typing import Any

from temporalio.client import Client
from temporalio.common import WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.exceptions import WorkflowAlreadyStartedError
from temporalio.service import RPCError, RPCStatusCode

from client import labels
from client.catalog import WORKFLOW_TYPE, Catalog
from client.checks import checked_start, checked_thread_id, payload
from client.errors import InvalidValue, ThreadClosed, ThreadExists
from client.execution import Execution, workflow_id
from client.labels import KnownAttributes
from client.listing import ListedStatus, ListedThread, Waiting
from client.rpc import RPC_DEADLINE, within
from client.thread import Stored, Thread
from workflows.messages import InterruptKind, Options, StartThread


class Threads:
    """The threads of one task queue, over a Temporal client that is connected already. Holds nothing to be closed.

    A handle (`get`) reaches a thread of any task queue. `stored`: the Store of the workers, for whoever reads whole
    sessions.
    """

    def __init__(self, client: Client, *, task_queue: str = "agentvisor", stored: Stored | None = None) -> None:
        self._client = client
        self._task_queue = task_queue
        self._stored = stored
        self._attributes = KnownAttributes(client)
        self._catalog = Catalog(client, self._attributes, task_queue=task_queue)

    async def create(
        self,
        agent: str,
        *,
        principal: str | None = None,
        thread_id: str | None = None,
        app: str | None = None,
        state: Mapping[str, Any] | None = None,
        metadata: Mapping[str, Any] | None = None,
        options: Options | None = None,
    ) -> Thread:
        """Start a thread; its id is a new uuid unless given. Needs no worker.

        Raises ThreadExists where the id is, or ever was, in use (as long as the namespace remembers), InvalidThreadId,
        InvalidValue, Refused (state-refused), TooLarge above 1 MiB.
        """
        start = _start(agent, principal=principal, app=app, state=state, metadata=metadata, options=options)
        chosen = checked_thread_id(str(uuid.uuid4()) if thread_id is None else thread_id)
        try:
            await self._started(chosen, start, WorkflowIDConflictPolicy.FAIL)
        except WorkflowAlreadyStartedError:
            raise ThreadExists(chosen) from None
        return self.get(chosen)

    async def get_or_create(
        self,
        thread_id: str,
        agent: str,
        *,
        principal: str | None = None,
        app: str | None = None,
        state: Mapping[str, Any] | None = None,
        metadata: Mapping[str, Any] | None = None,
        options: Options | None = None,
    ) -> Thread:
        """The thread with this id; started with the other values where there is none.

        An open thread is returned as it is, whatever its agent and principal. Raises ThreadClosed for a closed one: it
        is not silently reborn.
        """
        start = _start(agent, principal=principal, app=app, state=state, metadata=metadata, options=options)
        try:
            await self._started(checked_thread_id(thread_id), start, WorkflowIDConflictPolicy.USE_EXISTING)
        except WorkflowAlreadyStartedError:
            raise ThreadClosed(thread_id) from None
        return self.get(thread_id)

    def get(self, thread_id: str) -> Thread:
        """A handle. Asks nobody: whether the thread exists shows when the handle is used."""
        execution = Execution(self._client, checked_thread_id(thread_id), task_queue=self._task_queue)
        return Thread(execution, stored=self._stored)

    async def list(
        self, *, status: ListedStatus | None = None, agent: str | None = None, limit: int = 100
    ) -> list[ListedThread]:
        """At most `limit` threads: the open ones first, newest first. "open" includes those that wait."""
        if limit < 1:
            raise InvalidValue(f"limit is at least 1, not {limit}. Mend that and ask again.")
        async with within(patience=60):
            return await self._catalog.threads(status=status, agent=agent, limit=limit)

    async def approvals(self, *, agent: str | None = None) -> Waiting:
        """Every approval that waits in an open thread, oldest first."""
        return await self.interrupts(kinds=("approval",), agent=agent)

    async def interrupts(self, *, kinds: Collection[InterruptKind] | None = None, agent: str | None = None) -> Waiting:
        """Everything that waits in open threads, oldest first. NoWorker where none of them could be asked."""
        async with within(patience=60):
            return await self._catalog.waiting(kinds=kinds, agent=agent)

    async def _started(self, thread_id: str, start: StartThread, conflict: WorkflowIDConflictPolicy) -> None:
        async with within(thread_id):
            known = await self._attributes.names()
            try:
                return await self._start_workflow(thread_id, start, conflict, known)
            except RPCError as problem:
                if not known or not _is_about_attributes(problem):
                    raise
            self._attributes.refuse()
            return await self._start_workflow(thread_id, start, conflict, frozenset())

    async def _start_workflow(
        self, thread_id: str, start: StartThread, conflict: WorkflowIDConflictPolicy, known: frozenset[str]
    ) -> None:
        await self._client.start_workflow(
            WORKFLOW_TYPE,
            payload(start),
            id=workflow_id(thread_id),
            task_queue=self._task_queue,
            id_conflict_policy=conflict,
            id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE,
            search_attributes=labels.search_attributes(start.agent, start.principal, known=known),
            memo=labels.memo(start.agent, start.principal),
            static_summary=labels.summary(start.agent, start.principal),
            static_details=labels.details(thread_id, start.agent, start.principal),
            rpc_timeout=RPC_DEADLINE,
        )


def _start(agent: str, **given: Any) -> StartThread:
    return checked_start(agent=agent, **{name: value for name, value in given.items() if value is not None})


def _is_about_attributes(problem: RPCError) -> bool:
    return problem.status == RPCStatusCode.INVALID_ARGUMENT and "search attribute" in problem.message.lower()
