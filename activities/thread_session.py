"""What a guest may ask back on behalf of a leg or a call: the session of its own thread."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from pydantic import BaseModel

from activities.questions import Questions
from agentvisor.channel import JsonObject, Refused
from agentvisor.host.store import StoreError
from agentvisor.host.stored_events import StoredEvents
from agentvisor.protocol import Base, BranchAnswer, LegInput, SessionGiven, SessionWanted
from client.errors import CallerError, ThreadClosed, ThreadNotFound, ThreadsError
from workflows.cuts import Place, blob_of, whole_answer
from workflows.messages import BlobRef, Handed, Position, SessionPage, SessionRequest

THREAD_GONE = "thread-gone"
THREAD_UNREACHABLE = "thread-unreachable"
STORE_UNAVAILABLE = "store-unavailable"


class ThreadSession:
    """The session of one thread: asked for by query, what is old out of the Store."""

    def __init__(self, thread: Questions, stored: StoredEvents) -> None:
        self._thread = thread
        self._stored = stored

    @property
    def thread_id(self) -> str:
        return self._thread.thread_id

    async def serve(self, body: JsonObject) -> BaseModel:
        """Answer a guest's `session`. Raises Refused: thread-gone, thread-unreachable, store-unavailable."""
        wanted = SessionWanted.model_validate(body)
        if wanted.state_only:
            return SessionGiven(state=(await self._page(SessionRequest(state_only=True))).state)
        return await self._events(Position(count=wanted.since.count, head=wanted.since.head))

    async def handed(self, base: Position) -> Handed:
        """The input of the leg that is due, all of its answers included; large results are left in the Store."""
        page = await self._page(SessionRequest(since=base))
        while page.end != page.head:
            page = await self._page(SessionRequest(since=page.end))
        return await self._all_answers(page)

    async def _events(self, since: Position) -> SessionGiven:
        page = first = await self._page(SessionRequest(since=since))
        events = await self._begun(page)
        while page.end != page.head:
            end = page.end
            page = await self._page(SessionRequest(since=end))
            if page.base != end:  # the thread was cleared, or let older events go, meanwhile
                first, events = page, await self._begun(page)
            else:
                events += page.events
        base = Position() if first.kept else first.base
        return SessionGiven(
            base=Base(count=base.count, head=base.head),
            events=tuple(await self.whole(events)),
            state=first.state,
            given=leg_input(await self.whole_input(await self._all_answers(page))),
        )

    async def whole(self, events: Sequence[JsonObject]) -> list[JsonObject]:
        """Events with the values that are in the Store. Raises Refused store-unavailable."""
        with _from_store():
            return await self._stored.whole(self.thread_id, events)

    async def whole_input(self, handed: Handed) -> Handed:
        """The input of a leg with the results that are in the Store. Raises Refused store-unavailable."""
        digests = {ref.digest for ref in map(blob_of, handed.answers) if ref is not None}
        if not digests:
            return handed
        with _from_store():
            values = await self._stored.values(self.thread_id, digests)
        return handed.model_copy(update={"answers": tuple(whole_answer(one, values) for one in handed.answers)})

    async def keep(self, values: Mapping[Place, Any]) -> dict[Place, BlobRef]:
        """Put values that are cut out of an event into the Store. Raises Refused store-unavailable."""
        with _from_store():
            return await self._stored.put_values(self.thread_id, values)

    async def _begun(self, page: SessionPage) -> list[JsonObject]:
        """The events of a first page, and what comes before them in the Store."""
        if page.kept is None:
            return [*page.events]
        with _from_store():
            return [*await self._stored.older(self.thread_id, page.kept.digest), *page.events]

    async def _all_answers(self, page: SessionPage) -> Handed:
        handed = page.handed or Handed()
        while page.answers_left:
            page = await self._page(SessionRequest(since=page.head, answers_from=len(handed.answers)))
            more = page.handed.answers if page.handed else ()
            if not more:
                break
            handed = handed.model_copy(update={"answers": handed.answers + more})
        return handed

    async def _page(self, request: SessionRequest) -> SessionPage:
        try:
            return await self._thread.query("session", request, SessionPage)
        except (ThreadNotFound, ThreadClosed) as problem:
            raise Refused(THREAD_GONE, str(problem)) from problem
        except CallerError as problem:
            raise Refused(problem.kind, str(problem)) from problem
        except ThreadsError as problem:
            raise Refused(THREAD_UNREACHABLE, str(problem)) from problem


@contextmanager
def _from_store() -> Generator[None]:
    try:
        yield
    except StoreError as problem:
        raise Refused(STORE_UNAVAILABLE, f"What the Store holds of the thread is out of reach: {problem}") from problem


async def events_between(
    thread: Questions, since: Position, until: int, max_bytes: int
) -> AsyncGenerator[tuple[list[JsonObject], Position]]:
    """The events after `since`, as far as the one with the number `until`, in parts of about `max_bytes`.

    With each part the position at its end. Ends early where the thread no longer knows `since`. Raises ThreadsError.
    """
    request = SessionRequest(since=since)
    part: list[JsonObject] = []
    size, at = 0, since.count
    while at < until:
        page = await thread.query("session", request, SessionPage)
        if page.base != request.since or not page.events:
            return
        taken = page.events[: until - at]
        part, at, size = [*part, *taken], at + len(taken), size + request.max_bytes
        if size >= max_bytes or at == until:
            yield part, Position(count=at, head=part[-1]["id"])
            part, size = [], 0
        request = SessionRequest(since=page.end)


def leg_input(handed: Handed) -> LegInput:
    """The input of a leg in the guest's words."""
    answers = tuple(
        BranchAnswer(request_id=answer.request_id, name=answer.name, branch=answer.branch, response=answer.response)
        for answer in handed.answers
    )
    return LegInput(message=handed.message, answers=answers, state_delta=handed.state_delta)
