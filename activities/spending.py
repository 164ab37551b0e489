"""At most once, whatever becomes of a history: a call that must not be made twice is spent in the Store first.

Temporal's own history already keeps such a call to one attempt. `temporal workflow reset` and `temporal activity reset`
take history back; the Store's row stays.
"""

from __future__ import annotations

import uuid

import structlog
from temporalio import activity
from temporalio.exceptions import ApplicationError

from activities.caller import owner_of
from agentvisor.host.store import SpentCall, SpentCalls, StoreError
from workflows.messages import RunTool

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class NotSpentError(Exception):
    """The Store cannot say whether the call was made before: it may not begin now."""


class Spending:
    """One attempt at one call."""

    def __init__(self, calls: SpentCalls, thread_id: str, request: RunTool) -> None:
        self._calls = calls
        self._once = request.once
        self._thread = owner_of(thread_id)
        self._key = f"{request.once.thread}/{request.call.key}#{request.once.round}" if request.once else ""
        self._owner = f"{activity.info().workflow_run_id}/{activity.info().activity_id}/{uuid.uuid4()}"

    async def spend(self) -> None:
        """Before the call begins. NotSpentError: try again later; ApplicationError `outcome-unknown`: never."""
        if self._once is None:
            return
        try:
            spent = await self._calls.spend(self._thread, self._key, owner=self._owner)
        except StoreError as problem:
            text = f"The Store cannot say whether the call was made before: {problem}"
            raise NotSpentError(text) from problem
        if not spent.mine:
            raise _made_before(spent)

    async def give_back(self) -> None:
        """The call certainly did not begin. Where the Store cannot be told, a person will be asked about it."""
        if self._once is None:
            return
        try:
            await self._calls.release(self._thread, self._key, owner=self._owner)
        except StoreError as problem:
            log.warning("spent-call.not-released", reason=type(problem).__name__)


def _made_before(spent: SpentCall) -> ApplicationError:
    text = (
        f"This call was begun before, at {spent.at:%Y-%m-%d %H:%M:%S} UTC, in a history that is no more. "
        "It was not begun again."
    )
    return ApplicationError(text, type="outcome-unknown", non_retryable=True)
