"""What a guest may ask back on behalf of a leg or a call: the session of its own thread."""

from __future__ import annotations

from pydantic import BaseModel

from activities.questions import Questions
from agentvisor.channel import JsonObject, Refused
from agentvisor.protocol import Base, BranchAnswer, LegInput, SessionGiven, SessionWanted
from client.errors import CallerError, ThreadClosed, ThreadNotFound, ThreadsError
from workflows.messages import Handed, Position, SessionPage, SessionRequest

THREAD_GONE = "thread-gone"
THREAD_UNREACHABLE = "thread-unreachable"


class ThreadSession:
    """The session of one thread, asked for by query."""

    def __init__(self, thread: Questions) -> None:
        self._thread = thread

    @property
    def thread_id(self) -> str:
        return self._thread.thread_id

    async def serve(self, body: JsonObject) -> BaseModel:
        """Answer a guest's `session`. Raises Refused: thread-gone, thread-unreachable."""
        wanted = SessionWanted.model_validate(body)
        if wanted.state_only:
            return SessionGiven(state=(await self._page(SessionRequest(state_only=True))).state)
        return await self._events(Position(count=wanted.since.count, head=wanted.since.head))

    async def handed(self, base: Position) -> Handed:
        """The input of the leg that is due, all of its answers included."""
        page = await self._page(SessionRequest(since=base))
        while page.end != page.head:
            page = await self._page(SessionRequest(since=page.end))
        return await self._all_answers(page)

    async def _events(self, since: Position) -> SessionGiven:
        page = first = await self._page(SessionRequest(since=since))
        events = [*page.events]
        while page.end != page.head:
            end = page.end
            page = await self._page(SessionRequest(since=end))
            if page.base != end:  # the thread was cleared meanwhile
                first, events = page, []
            events += page.events
        return SessionGiven(
            base=Base(count=first.base.count, head=first.base.head),
            events=tuple(events),
            state=first.state,
            given=leg_input(await self._all_answers(page)),
        )

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


def leg_input(handed: Handed) -> LegInput:
    """The input of a leg in the guest's words."""
    answers = tuple(
        BranchAnswer(request_id=answer.request_id, name=answer.name, branch=answer.branch, response=answer.response)
        for answer in handed.answers
    )
    return LegInput(message=handed.message, answers=answers, state_delta=handed.state_delta)
