"""One attempt to run one leg in a guest. Its heartbeats carry the events so far."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import structlog
from temporalio import activity
from temporalio.exceptions import ApplicationError

from activities.limits import leg_limits
from activities.payload import MAX_INLINE, NotStorableError, fits_the_store, fitting, plain, stored_bytes
from activities.thread_session import STORE_UNAVAILABLE, THREAD_GONE, THREAD_UNREACHABLE, ThreadSession, leg_input
from agentvisor.channel import Gone, JsonObject, Refused
from agentvisor.host.guest import NoGuestError
from agentvisor.host.guests import GuestProcesses
from agentvisor.protocol import (
    Base,
    EventNote,
    Frame,
    LegAnswered,
    LegEnd,
    LegFailed,
    LegPaused,
    RunLeg,
    Spent,
    YieldLeg,
)
from workflows.cuts import Place, cut, large_values
from workflows.events import expand, referring, shortened
from workflows.messages import (
    Answered,
    BlobRef,
    Failed,
    Handed,
    HandedOver,
    LegOutcome,
    LegResult,
    Paused,
    RunAgent,
    Stopped,
    Usage,
    as_object,
)

FIRST_BEAT, AFTER_EVENT, BEAT = 0.4, 0.4, 1.0
MAX_DETAILS = 256 * 1024
MAX_TEMP = 32 * 1024
_USED = "used"
_PATIENCE = 5.0
"""Seconds a guest gets to stop a leg that is cancelled."""
_RETRYABLE = frozenset({"internal-error", "cancelled", "project-not-loaded", THREAD_UNREACHABLE, STORE_UNAVAILABLE})

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class Leg:
    """A leg as this attempt of its activity sees it."""

    def __init__(
        self, asked: RunAgent, guests: GuestProcesses, session: ThreadSession, *, attributes: Sequence[str]
    ) -> None:
        self._asked = asked
        self._thread_id = session.thread_id
        self._guests = guests
        self._session = session
        self._attributes = tuple(attributes)
        self._handed: Handed | None = None
        self._events: list[JsonObject] = []
        self._cuts: list[dict[Place, BlobRef]] = []
        """What of each event is in the Store, as far as events were looked at."""
        self._details, self._before = _progress(activity.info().heartbeat_details)
        """What the next attempt can go on from, and what the attempts before this one used."""
        self._spent = Spent()
        self._keeping = asyncio.Lock()
        self._news = asyncio.Event()
        self._yielding: asyncio.Task[None] | None = None

    async def run(self) -> LegResult:
        """Run the leg to its end. Raises ApplicationError where another attempt may do better."""
        beside = [asyncio.create_task(self._beat()), asyncio.create_task(self._yield_when_worker_ends())]
        try:
            end = await self._asked_guest()
        except asyncio.CancelledError:
            return await self._cancelled()
        except Gone:
            text = "The process of this leg ended while it ran. Look at the worker's log for its last words."
            return await self._failed("guest-lost", text, retryable=True)
        except NoGuestError as problem:
            return await self._failed(problem.kind, str(problem), retryable=True)
        except Refused as refused:
            return await self._refused(refused)
        finally:
            for task in (*beside, self._yielding):
                if task:
                    task.cancel()
        return await self._ended(end)

    async def _asked_guest(self) -> LegEnd:
        asked = self._asked
        given = asked.handed or await self._session.handed(asked.base)
        progress = await self._session.whole(expand(self._details, given, run_id=asked.run_id))
        handed = await self._session.whole_input(given)
        self._events, self._handed = progress, handed
        return await self._guests.ask(
            "legs",
            "leg",
            RunLeg(
                thread_id=self._thread_id,
                principal=asked.principal,
                agent=asked.agent,
                run_id=asked.run_id,
                base=Base(count=asked.base.count, head=asked.base.head),
                given=leg_input(handed),
                state=asked.state,
                progress=tuple(self._events),
                temp=asked.temp,
                limits=leg_limits(asked.limits, self._guests.project.config.limits, used=asked.used.plus(self._before)),
            ),
            LegEnd,
            thread_id=self._thread_id,
            on_note=self._noted,
            serve={"session": self._session.serve},
            patience=_PATIENCE,
        )

    # ---- while it runs ---------------------------------------------------------------------------------------------

    def _noted(self, body: JsonObject) -> None:
        note = EventNote.model_validate(body)
        self._events.append(note.event)
        self._spent = note.spent
        self._news.set()

    async def _beat(self) -> None:
        await asyncio.sleep(FIRST_BEAT)
        while True:
            self._news.clear()
            await self._heartbeat()
            with suppress(TimeoutError):
                async with asyncio.timeout(BEAT):
                    await self._news.wait()
                    await asyncio.sleep(AFTER_EVENT)

    async def _heartbeat(self) -> None:
        """Say how far the leg came. What is too much for the next attempt must become a result soon."""
        if self._yielding is None and self._handed is not None:
            details = await self._stripped()
            if _fits(details):
                self._details = details
            else:
                self._yielding = asyncio.create_task(self._yield())
        activity.heartbeat(*self._details, {_USED: self._used.model_dump()})

    @property
    def _used(self) -> Usage:
        """By all attempts, as far as is known."""
        return self._before.plus(Usage.model_validate(self._spent.model_dump()))

    async def _stripped(self) -> list[JsonObject]:
        """The events so far as history takes them."""
        if self._handed is None:
            return self._details
        async with self._keeping:
            events = referring(self._events, self._handed)
            for event in events[len(self._cuts) :]:
                self._cuts.append(await self._kept(event))
        slim = [cut(event, refs) for event, refs in zip(events, self._cuts, strict=False)]
        return shortened(slim, self._handed, run_id=self._asked.run_id)

    async def _kept(self, event: JsonObject) -> dict[Place, BlobRef]:
        """Put what makes the event large into the Store. Without a Store it stays, as far as history can take it."""
        try:
            values = {place: value for place, value in large_values(event, MAX_INLINE).items() if fits_the_store(value)}
            return await self._session.keep(values) if values else {}
        except (Refused, ValueError) as problem:  # ValueError: it is not JSON that can be stored anywhere
            log.warning("event.not-kept", thread=self._thread_id, run=self._asked.run_id, reason=type(problem).__name__)
            return {}

    async def _yield_when_worker_ends(self) -> None:
        await activity.wait_for_worker_shutdown()
        await self._yield()

    async def _yield(self) -> None:
        """Let the leg stop before its next model turn."""
        thread_id = self._thread_id
        with suppress(Gone, Refused, NoGuestError):  # then the leg itself fails, and says why
            await self._guests.ask("legs", "yield_leg", YieldLeg(thread_id=thread_id), Frame, thread_id=thread_id)

    # ---- how it ended ----------------------------------------------------------------------------------------------

    async def _ended(self, end: LegEnd) -> LegResult:
        outcome, self._spent = end.outcome, end.spent
        if isinstance(outcome, LegFailed):
            return await self._failed(outcome.code, outcome.message, retryable=outcome.retryable)
        if _temp_bytes(end.temp) > MAX_TEMP:
            text = f"The temp: state of the run has more than {MAX_TEMP} bytes. Keep big values as artifacts."
            return await self._failed("temp-state-too-large", text, retryable=False)
        if isinstance(outcome, LegAnswered):
            return await self._result(Answered(), temp=end.temp)
        if isinstance(outcome, LegPaused):
            return await self._result(Paused(attributes=self._attributes), temp=end.temp)
        return await self._result(HandedOver(), temp=end.temp)

    async def _cancelled(self) -> LegResult:
        why = activity.cancellation_details()
        if why and (why.paused or why.reset):
            await self._heartbeat()
            raise asyncio.CancelledError
        if why and why.worker_shutdown:
            return await self._result(HandedOver(), temp=self._asked.temp)
        return await self._result(Stopped(), temp=self._asked.temp)

    async def _refused(self, refused: Refused) -> LegResult:
        if refused.kind == THREAD_GONE:
            raise ApplicationError(refused.text, type=THREAD_GONE, non_retryable=True)
        return await self._failed(refused.kind, refused.text, retryable=refused.kind in _RETRYABLE)

    async def _failed(self, code: str, text: str, *, retryable: bool) -> LegResult:
        """Let Temporal try again from the last heartbeat, or end the leg here, with the events it has."""
        attempt = activity.info().attempt
        log.warning("leg.failed", thread=self._thread_id, run=self._asked.run_id, code=code, attempt=attempt)
        if retryable and attempt < self._asked.attempts:
            await self._heartbeat()
            raise ApplicationError(plain(text), type=plain(code))
        return await self._result(Failed(code=plain(code), message=plain(text)))

    async def _result(self, outcome: LegOutcome, *, temp: JsonObject | None = None) -> LegResult:
        events = await self._stripped()
        count, problem = fitting(events)
        if problem:
            outcome, temp = _too_large(problem), None
        return LegResult(outcome=outcome, events=tuple(events[:count]), temp=temp or {}, usage=self._used)


def _progress(heartbeat: Sequence[Any]) -> tuple[list[JsonObject], Usage]:
    """What an earlier attempt told: its events, and what it and those before it used."""
    details = [detail for detail in map(as_object, heartbeat) if detail]
    used = [Usage.model_validate(detail[_USED]) for detail in details if _USED in detail]
    return [detail for detail in details if _USED not in detail], used[-1] if used else Usage()


def _fits(details: list[JsonObject]) -> bool:
    try:
        return stored_bytes(details) <= MAX_DETAILS
    except NotStorableError:
        return False


def _temp_bytes(temp: JsonObject) -> int:
    try:
        return stored_bytes(temp)
    except NotStorableError:
        return MAX_TEMP + 1


def _too_large(problem: str) -> Failed:
    text = (
        f"The run cannot go on: {problem}. The agent's author must make its tools or model return less: "
        "keep big values as artifacts and return a link."
    )
    return Failed(code="result-too-large", message=text)
