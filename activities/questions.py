"""Queries from activities to their threads: one at a time for each thread, and again while it cannot be reached.

Temporal keeps one waiting query per workflow and refuses more, and a turn may have thirty calls that ask at once. No
effect has happened while a question is open, so patience costs nothing but time.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from temporalio import activity
from temporalio.client import Client

from client.errors import CallerError, ThreadClosed, ThreadNotFound, ThreadsError
from client.execution import Execution
from workflows.messages import Message

PATIENCE = 30.0
"""Seconds after which a thread that cannot be reached is given up."""
_PAUSE = 0.2

M = TypeVar("M", bound=Message)


class Questions:
    """What one thread is asked by this worker."""

    def __init__(self, thread: Execution, lock: asyncio.Lock) -> None:
        self.thread_id = thread.thread_id
        self._thread = thread
        self._lock = lock

    async def leave_lost_worker(self) -> None:
        """Before another attempt asks: the worker of the one before it may have died, and would be waited for."""
        if activity.info().attempt > 1:
            with suppress(ThreadsError):  # then it is waited for
                await self._thread.leave_worker()

    async def query(self, name: str, argument: Any, result: type[M]) -> M:
        """As `Execution.query`, but patient. Raises ThreadsError."""
        give_up = time.monotonic() + PATIENCE
        while True:
            try:
                async with self._lock:
                    return await self._thread.query(name, argument, result)
            except (CallerError, ThreadNotFound, ThreadClosed):
                raise
            except ThreadsError:
                if time.monotonic() > give_up:
                    raise
                await asyncio.sleep(_PAUSE)


class AskedThreads:
    """The threads this worker asks. Each has one lock for as long as somebody asks it."""

    def __init__(self, client: Client, *, task_queue: str) -> None:
        self._client = client
        self._task_queue = task_queue
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def questions(self, thread_id: str) -> Questions:
        """How to ask this thread."""
        lock = self._locks.get(thread_id)
        if lock is None:
            lock = self._locks[thread_id] = asyncio.Lock()
        return Questions(Execution(self._client, thread_id, task_queue=self._task_queue), lock)
