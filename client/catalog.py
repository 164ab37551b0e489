"""The threads of a task queue, from Temporal's visibility; with and without registered search attributes."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Collection
from datetime import datetime

from temporalio.client import Client, WorkflowExecution, WorkflowExecutionStatus
from temporalio.service import RPCError, RPCStatusCode

from client.errors import NoWorker, OperatorError, ThreadsError
from client.execution import Execution, thread_id_of
from client.labels import AGENT_NAME, WAITING_SINCE, KnownAttributes, Labels, cut, labels_of
from client.listing import ListedStatus, ListedThread, Waiting
from workflows.messages import Interrupt, InterruptKind, ThreadView

WORKFLOW_TYPE = "ThreadWorkflow"
_AT_ONCE = 16
_PLAIN = re.compile(r"[^'\"\\\x00-\x1f]*")
"""What a visibility query finds again as it was written; no way of quoting the rest works on every store."""
_OPEN = "ExecutionStatus = 'Running'"
_LATEST = "ExecutionStatus != 'ContinuedAsNew'"
_CLOSED = f"ExecutionStatus != 'Running' AND {_LATEST}"
_CLAUSES: dict[ListedStatus | None, str] = {None: _LATEST, "open": _OPEN, "waiting": _OPEN, "closed": _CLOSED}


class Catalog:
    """Finds threads. What visibility does not know, the thread itself is asked."""

    def __init__(self, client: Client, attributes: KnownAttributes, *, task_queue: str) -> None:
        self._client = client
        self._attributes = attributes
        self._task_queue = task_queue

    async def threads(self, *, status: ListedStatus | None, agent: str | None, limit: int) -> list[ListedThread]:
        found: dict[str, ListedThread] = {}
        can_ask = True
        async for batch in _batches(self._executions(_CLAUSES[status], agent=agent, waiting=status == "waiting")):
            lines = await asyncio.gather(*(self._listed(one, can_ask=can_ask) for one in batch))
            can_ask = all(was_answered for _, was_answered in lines)
            for line, _ in lines:
                if _is_wanted(line, status=status, agent=agent):
                    found.setdefault(line.thread_id, line)  # a reset leaves an older execution of the thread behind
            if len(found) >= limit:
                break
        return list(found.values())[:limit]

    async def waiting(self, *, kinds: Collection[InterruptKind] | None, agent: str | None) -> Waiting:
        interrupts: list[Interrupt] = []
        unread: dict[str, str] = {}
        waiting = [thread_id_of(one.id) async for one in self._executions(_OPEN, agent=agent, waiting=True)]
        for start in range(0, len(waiting), _AT_ONCE):
            batch = waiting[start : start + _AT_ONCE]
            for thread_id, answer in zip(batch, await self._all_interrupts(batch), strict=True):
                if isinstance(answer, ThreadsError):
                    unread[thread_id] = answer.kind
                else:
                    interrupts += answer
        wanted = [one for one in interrupts if (kinds is None or one.kind in kinds) and agent in {None, one.agent}]
        return Waiting(interrupts=tuple(sorted(wanted, key=lambda one: (one.since, one.id))), unread=unread)

    async def _all_interrupts(self, thread_ids: Collection[str]) -> list[tuple[Interrupt, ...] | ThreadsError]:
        answers = await asyncio.gather(*map(self._interrupts, thread_ids))
        if all(isinstance(answer, NoWorker) for answer in answers):
            for answer in answers:
                if isinstance(answer, NoWorker):
                    raise answer
        return answers

    async def _interrupts(self, thread_id: str) -> tuple[Interrupt, ...] | ThreadsError:
        try:
            return await self._execution(thread_id).interrupts()
        except OperatorError as problem:
            return problem
        except ThreadsError:  # it was closed between the listing and the question
            return ()

    async def _listed(self, execution: WorkflowExecution, *, can_ask: bool) -> tuple[ListedThread, bool]:
        """The line of an execution; False where a worker was asked and none answered."""
        labels = await labels_of(execution)
        if execution.status != WorkflowExecutionStatus.RUNNING:
            return _line(execution, labels, "closed"), True
        if labels.is_complete and WAITING_SINCE in await self._attributes.names():
            return _line(execution, labels, "waiting" if labels.waiting_since else "open"), True
        try:
            view = (
                await self._execution(thread_id_of(execution.id)).query("thread", None, ThreadView) if can_ask else None
            )
        except ThreadsError as problem:  # a listing shows what is known
            return _line(execution, labels, "open"), not isinstance(problem, NoWorker)
        if view is None:
            return _line(execution, labels, "open"), False
        asked = Labels(agent=cut(view.agent), principal=cut(view.principal), waiting_since=labels.waiting_since)
        return _line(execution, asked, "waiting" if view.status == "waiting" else "open"), True

    async def _executions(self, clause: str, *, agent: str | None, waiting: bool) -> AsyncIterator[WorkflowExecution]:
        """The matching executions and, since nobody labelled them, those without labels."""
        query = f"WorkflowType = '{WORKFLOW_TYPE}' AND {clause}"
        if _PLAIN.fullmatch(self._task_queue):
            query += f" AND TaskQueue = '{self._task_queue}'"
        labelled = _labelled(await self._attributes.names(), agent=agent, waiting=waiting)
        try:
            async for execution in self._search(query + labelled):
                yield execution
        except RPCError as problem:
            if not labelled or problem.status != RPCStatusCode.INVALID_ARGUMENT:
                raise
            self._attributes.refuse()
            async for execution in self._search(query):
                yield execution

    async def _search(self, query: str) -> AsyncIterator[WorkflowExecution]:
        async for execution in self._client.list_workflows(query):
            yield execution

    def _execution(self, thread_id: str) -> Execution:
        return Execution(self._client, thread_id, task_queue=self._task_queue)


async def _batches(executions: AsyncIterator[WorkflowExecution]) -> AsyncIterator[list[WorkflowExecution]]:
    batch: list[WorkflowExecution] = []
    async for execution in executions:
        batch.append(execution)
        if len(batch) == _AT_ONCE:
            yield batch
            batch = []
    if batch:
        yield batch


def _is_wanted(line: ListedThread, *, status: ListedStatus | None, agent: str | None) -> bool:
    has_status = status in {None, line.status} or (status == "open" and line.status == "waiting")
    return has_status and (agent is None or line.agent == cut(agent))


def _labelled(names: frozenset[str], *, agent: str | None, waiting: bool) -> str:
    """The part of the query that narrows by attributes; a thread without labels (AgentName) is never left out."""
    if AGENT_NAME not in names:
        return ""
    clauses: list[str] = []
    if agent is not None and _PLAIN.fullmatch(cut(agent)):
        clauses.append(f"{AGENT_NAME} = '{cut(agent)}'")
    if waiting and WAITING_SINCE in names:
        clauses.append(f"{WAITING_SINCE} IS NOT NULL")
    return f" AND ({AGENT_NAME} IS NULL OR ({' AND '.join(clauses)}))" if clauses else ""


def _line(execution: WorkflowExecution, labels: Labels, status: ListedStatus) -> ListedThread:
    return ListedThread(
        thread_id=thread_id_of(execution.id),
        agent=labels.agent,
        principal=labels.principal,
        status=status,
        started_at=_iso(execution.start_time),
        closed_at=_iso(execution.close_time) if execution.close_time else None,
        waiting_since=labels.waiting_since if status == "waiting" else None,
    )


def _iso(at: datetime) -> str:
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
