"""What is kept of a conversation: by Temporal, in the chain of executions it becomes, and by the Store."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from temporalio.client import Client, WorkflowHistory


@dataclass(frozen=True)
class Kept:
    """Sums over a chain. `event_bytes`: of every history event as protobuf, which is what the server counts, too."""

    events: int
    event_bytes: int
    server_bytes: int
    """`history_size_bytes` as the server describes each execution."""
    store_bytes: int
    """Length of every value in the rows that the Store's tables have for the conversation."""
    executions: int

    @property
    def bytes(self) -> int:
        """All that is kept of the conversation."""
        return self.event_bytes + self.store_bytes


async def chain(client: Client, workflow_id: str) -> list[WorkflowHistory]:
    """The histories of all executions, oldest first."""
    histories: list[WorkflowHistory] = []
    run_id = await _current(client, workflow_id)
    while run_id:
        histories.insert(0, await client.get_workflow_handle(workflow_id, run_id=run_id).fetch_history())
        run_id = histories[0].events[0].workflow_execution_started_event_attributes.continued_execution_run_id
    return histories


async def kept(client: Client, workflow_id: str, store: Path) -> Kept:
    """What is kept of a conversation now."""
    histories = await chain(client, workflow_id)
    described = [await client.get_workflow_handle(workflow_id, run_id=h.run_id).describe() for h in histories]
    return Kept(
        events=sum(len(history.events) for history in histories),
        event_bytes=sum(event.ByteSize() for history in histories for event in history.events),
        server_bytes=sum(one.raw_description.workflow_execution_info.history_size_bytes for one in described),
        store_bytes=_stored(store, workflow_id.removeprefix("thread-")),
        executions=len(histories),
    )


async def _current(client: Client, workflow_id: str) -> str:
    return (await client.get_workflow_handle(workflow_id).describe()).run_id


def _stored(store: Path, thread: str) -> int:
    """Of every table whose rows belong to threads."""
    if not store.exists():
        return 0
    with closing(sqlite3.connect(store)) as database:
        tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return sum(_stored_in(database, table, thread) for table in tables)


def _stored_in(database: sqlite3.Connection, table: str, thread: str) -> int:
    columns = [row[1] for row in database.execute(f"PRAGMA table_info({table})")]
    if "thread" not in columns:
        return 0
    length = " + ".join(f"length(CAST({column} AS BLOB))" for column in columns)
    query = f"SELECT coalesce(sum({length}), 0) FROM {table} WHERE thread LIKE ?"  # noqa: S608 - names of the schema
    (found,) = database.execute(query, (f"%{thread}%",)).fetchone()
    return int(found)
