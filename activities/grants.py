"""Whether a call may be made: as it stood when it was allowed, under a token that its thread spent on it."""

from __future__ import annotations

from temporalio import activity

from activities.caller import refused
from activities.questions import Questions
from agent_adapter.approval.digest import call_digest
from agentvisor.host.scheduled_calls import ScheduledCalls
from client.errors import CallerError, ThreadsError
from workflows.messages import Grant, GrantRequest, GrantView, RunTool


class UncheckedError(Exception):
    """The thread could not be asked whether the call may be made. kind: `thread-unreachable`."""


class Grants:
    """The permissions of one thread. Nothing a request says of itself is believed.

    The thread itself is asked, unless this worker has just seen it schedule this very call under this very token.
    """

    def __init__(self, thread: Questions, seen: ScheduledCalls) -> None:
        self._thread = thread
        self._seen = seen

    async def check(self, request: RunTool) -> None:
        """Raises ApplicationError token-refused; UncheckedError."""
        if request.grant is not None:
            await self._check(request.grant, self._digest(request))

    async def _check(self, grant: Grant, digest: str) -> None:
        if grant.digest != digest:
            raise refused("the token was minted for another call")
        info = activity.info()
        if self._seen.take(info.workflow_run_id or "", info.activity_id) == grant:
            return
        try:
            view = await self._thread.query("grant", GrantRequest(token=grant.token), GrantView)
        except CallerError as problem:
            raise refused("the thread knows no such token") from problem
        except ThreadsError as problem:
            raise UncheckedError(
                f"The thread could not be asked for the permission of the call: {problem}"
            ) from problem
        if (view.approval_id, view.digest, view.activity_id) != (
            grant.approval_id,
            digest,
            info.activity_id,
        ):
            raise refused("the token was not spent on this activity")

    def _digest(self, request: RunTool) -> str:
        call = request.call
        try:
            return call_digest(
                thread=self._thread.thread_id,
                run=request.run_id,
                call=call.key,
                tool=call.tool,
                fingerprint=call.fingerprint,
                arguments=call.args,
            )
        except ValueError:
            return ""
