"""The guest processes of one project: some for legs, some for single calls, and a warm spare for both."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Coroutine, Mapping
from typing import Any, Literal, Self, TypeVar

import structlog
from pydantic import BaseModel

from agentvisor.channel import Gone, OnNote, Serve
from agentvisor.host.fork_server import ForkServer
from agentvisor.host.guest import Guest, GuestStart, NoGuestError
from agentvisor.host.settings import Settings
from agentvisor.project import Project
from agentvisor.protocol import AgentInfo

Pool = Literal["legs", "tools"]
Answer = TypeVar("Answer", bound=BaseModel)

_SHORT_LIFE = 10.0
_SHORT_LIVES = 3
_AT_ONCE = 2
_SENDING = 3

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class _Seat:
    """A place in a pool. `taken` gives its guest, or why there is none; None: nobody was asked to sit down."""

    def __init__(self) -> None:
        self.taken: asyncio.Task[Guest] | None = None


class GuestProcesses:
    """Serves requests in guests; a thread always meets the same guest of a pool. A guest that dies is replaced.

    Use it as an async context manager: entering waits for the first guest of each pool and raises NoGuestError where
    the project cannot be loaded; leaving ends every process.
    """

    def __init__(self, start: GuestStart, *, legs: int, tools: int = 1) -> None:
        self._start = start
        self._seats: dict[Pool, list[_Seat]] = {
            "legs": [_Seat() for _ in range(legs)],
            "tools": [_Seat() for _ in range(tools)],
        }
        self._spare = _Seat()
        self._guests: set[Guest] = set()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._starting = asyncio.Semaphore(_AT_ONCE)
        self._short_lives = 0
        self._closed = False

    @classmethod
    def of(
        cls,
        project: Project,
        settings: Settings,
        environment: Mapping[str, str],
        *,
        fork_server: ForkServer | None = None,
    ) -> Self:
        """As the settings say; `environment` is what guests inherit."""
        start = GuestStart(
            project,
            environment,
            start_timeout=settings.guest_start_timeout,
            silence=settings.guest_silence,
            fork_server=fork_server,
        )
        return cls(start, legs=settings.leg_guests, tools=settings.tool_guests)

    @property
    def project(self) -> Project:
        return self._start.project

    @property
    def agents(self) -> tuple[AgentInfo, ...]:
        """The agents of the project, as a guest loaded them."""
        return next((guest.agents for guest in self._guests), ())

    def pids(self, pool: Pool | None = None) -> list[int]:
        """Of all guests that said Hello, the spare included; or of those that sit in one pool."""
        if pool is None:
            return sorted(guest.pid for guest in self._guests)
        taken = [seat.taken for seat in self._seats[pool] if seat.taken is not None]
        return sorted(task.result().pid for task in taken if task.done() and _sits(task))

    async def ready(self, pool: Pool, *, thread_id: str) -> None:
        """Wait until the thread's guest is there. Raises NoGuestError."""
        await self._guest_of(self._seat(pool, thread_id))

    async def ask(
        self,
        pool: Pool,
        op: str,
        model: BaseModel,
        result: type[Answer],
        *,
        thread_id: str,
        on_note: OnNote | None = None,
        serve: Serve | None = None,
        patience: float = 0.0,
    ) -> Answer:
        """Ask the thread's guest, as `Channel.ask`. Raises NoGuestError (nothing was sent), Gone and Refused."""
        seat = self._seat(pool, thread_id)
        for _ in range(_SENDING):
            guest = await self._guest_of(seat)
            try:
                return await guest.channel.ask(op, model, result, on_note=on_note, serve=serve, patience=patience)
            except Gone as gone:
                if gone.sent:
                    raise
        raise NoGuestError("guest-not-started", f"Guests of {self.project.name!r} end as soon as they are started.")

    async def __aenter__(self) -> Self:
        first = [self._fill(seats[0]) for seats in self._seats.values()]
        try:
            await asyncio.gather(*first)
        except BaseException:
            await self.close()
            raise
        for seat in (seat for seats in self._seats.values() for seat in seats[1:]):
            self._fill(seat)
        self._fill(self._spare)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """End every process; what they were doing is lost."""
        self._closed = True
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.gather(*(guest.end() for guest in self._guests))
        self._guests.clear()

    # ---- seats -----------------------------------------------------------------------------------------------------

    def _seat(self, pool: Pool, thread_id: str) -> _Seat:
        seats = self._seats[pool]
        return seats[zlib.crc32(thread_id.encode()) % len(seats)]

    async def _guest_of(self, seat: _Seat) -> Guest:
        task = seat.taken
        if task is None or (task.done() and not _sits(task)):
            task = self._fill(seat)
        if not task.done():
            await asyncio.wait([task])  # unlike `await`, leaves the others' task alone when this request is cancelled
        if task.cancelled():
            raise NoGuestError("guest-not-started", "The worker is shutting down. Another worker will take the work.")
        return task.result()

    def _fill(self, seat: _Seat) -> asyncio.Task[Guest]:
        """Let a guest sit down here: the spare if there is one, else a new one."""
        if self._closed:
            raise NoGuestError("guest-not-started", "The worker is shutting down. Another worker will take the work.")
        spare = self._spare.taken
        if seat is not self._spare and spare and not (spare.done() and not _sits(spare)):
            seat.taken, self._spare.taken = spare, None
            self._fill(self._spare)
        else:
            seat.taken = self._run(self._new_guest())
        return seat.taken

    async def _new_guest(self) -> Guest:
        async with self._starting:
            try:
                guest = await Guest.start(self._start)
            except NoGuestError as problem:
                log.error("guest.not-started", project=self.project.name, kind=problem.kind, reason=str(problem))  # noqa: TRY400
                raise
        self._guests.add(guest)
        guest.channel.closed.add_done_callback(lambda _: self._lost(guest))
        return guest

    def _lost(self, guest: Guest) -> None:
        """A guest has died: clear away what is left of it, and let another take its seat at once."""
        if self._closed:
            return
        log.warning("guest.lost", guest=guest.pid, project=self.project.name, age=round(guest.age, 1))
        self._guests.discard(guest)
        self._run(guest.end())
        self._short_lives = self._short_lives + 1 if guest.age < _SHORT_LIFE else 0
        for seat in (self._spare, *self._seats["legs"], *self._seats["tools"]):
            if seat.taken and seat.taken.done() and not _sits(seat.taken) and self._short_lives < _SHORT_LIVES:
                self._fill(seat)

    def _run(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # whoever asks for the seat gets it; a spare that failed was logged


def _sits(task: asyncio.Task[Guest]) -> bool:
    """Whether this finished task gave a guest that lives."""
    return not task.cancelled() and task.exception() is None and task.result().alive
