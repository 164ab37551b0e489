"""At most once, whatever becomes of a history: a call that must not be made twice is spent in the Store first.

Temporal's own history already keeps such a call to one attempt. `temporal workflow reset` and `temporal activity reset`
take history back; the Store's row stays.
"""

from __future__ import annotations

import asyncio
import uuid
from contextlib import suppress

import structlog
from pydantic import BaseModel
from temporalio import activity
from temporalio.exceptions import ApplicationError

from activities.caller import owner_of
from activities.thread_session import STORE_UNAVAILABLE
from agentvisor.channel import JsonObject, Refused
from agentvisor.host.store import SpentCall, SpentCalls, StoreError
from agentvisor.protocol import Frame
from workflows.messages import RunTool

OUTCOME_UNKNOWN = "outcome-unknown"

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class NotSpentError(Exception):
    """The Store cannot say whether the call was made before: it may not begin now."""


class Spending:
    """One attempt at one call. The Store is asked while the guest prepares the call, which asks to begin it then."""

    def __init__(self, calls: SpentCalls, thread_id: str, request: RunTool) -> None:
        self._calls = calls
        self._once = request.once
        self._thread = owner_of(thread_id)
        self._key = f"{request.once.thread}/{request.call.key}#{request.once.round}" if request.once else ""
        self._owner = f"{activity.info().workflow_run_id}/{activity.info().activity_id}/{uuid.uuid4()}"
        self._spending = asyncio.create_task(self._spend()) if self._once else None
        self._begun = False

    @property
    def is_needed(self) -> bool:
        return self._once is not None

    @property
    def may_have_begun(self) -> bool:
        """Whether the guest was told to begin, or may begin without being told."""
        return self._begun or self._once is None

    async def serve(self, body: JsonObject) -> BaseModel:
        """Answer a guest's `begin`: once, and only when the call is spent. Raises Refused."""
        del body
        if self._spending is None or self._begun:
            raise Refused("not-allowed", "This call does not begin, or has begun.")
        try:
            await asyncio.shield(self._spending)
        except NotSpentError as problem:
            raise Refused(STORE_UNAVAILABLE, str(problem)) from problem
        except ApplicationError as problem:
            raise Refused(OUTCOME_UNKNOWN, str(problem)) from problem
        self._begun = True
        return Frame()

    def refused(self) -> BaseException | None:
        """Why the call may not begin, as far as that is known: NotSpentError, ApplicationError `outcome-unknown`."""
        return self._spending.exception() if self._spending and self._spending.done() else None

    async def give_back(self) -> None:
        """The call certainly did not begin. Where the Store cannot be told, a person will be asked about it."""
        if self._spending is None:
            return
        with suppress(NotSpentError, ApplicationError):
            await self._spending
        try:
            await self._calls.release(self._thread, self._key, owner=self._owner)
        except StoreError as problem:
            log.warning("spent-call.not-released", reason=type(problem).__name__)

    async def _spend(self) -> None:
        """NotSpentError: try again later; ApplicationError `outcome-unknown`: never."""
        try:
            spent = await self._calls.spend(self._thread, self._key, owner=self._owner)
        except StoreError as problem:
            text = f"The Store cannot say whether the call was made before: {problem}"
            raise NotSpentError(text) from problem
        if not spent.mine:
            raise _made_before(spent)


def _made_before(spent: SpentCall) -> ApplicationError:
    text = (
        f"This call was begun before, at {spent.at:%Y-%m-%d %H:%M:%S} UTC, in a history that is no more. "
        "It was not begun again."
    )
    return ApplicationError(text, type=OUTCOME_UNKNOWN, non_retryable=True)
