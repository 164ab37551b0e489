"""What a listing of threads is made of."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from workflows.messages import Interrupt, Message

ListedStatus = Literal["open", "waiting", "closed"]


class ListedThread(Message):
    """A line of a listing. Visibility lags behind the threads by a moment.

    `agent` and `principal` are cut at 200 bytes and empty where unknown. `started_at` (UTC, ISO 8601) is the start of
    the thread's present execution.
    """

    thread_id: str
    agent: str
    principal: str
    status: ListedStatus
    started_at: str
    closed_at: str | None = None
    waiting_since: str | None = None


class Waiting(Message):
    """What all threads wait for, oldest first. `unread`: threads that could not be asked, and the kind of why."""

    interrupts: tuple[Interrupt, ...] = ()
    unread: dict[str, str] = Field(default_factory=dict)
