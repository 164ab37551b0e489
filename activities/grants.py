"""Whether a call may be made: by the thread it names, as it stood when it was allowed, under a token spent on it."""

from __future__ import annotations

from temporalio import activity
from temporalio.exceptions import ApplicationError

from activities.questions import Questions
from agent_adapter.approval.digest import call_digest
from client.errors import CallerError, ThreadsError
from client.execution import workflow_id
from workflows.messages import Grant, GrantRequest, GrantView, RunTool

TOKEN_REFUSED = "token-refused"  # noqa: S105 - a kind of error
_WORKFLOW = "ThreadWorkflow"


class UncheckedError(Exception):
    """The thread could not be asked whether the call may be made. kind: `thread-unreachable`."""


class Grants:
    """The permissions of one thread. The thread itself is asked; nothing a request says of itself is believed."""

    def __init__(self, thread: Questions) -> None:
        self._thread = thread

    async def check(self, request: RunTool) -> None:
        """Raises ApplicationError token-refused; UncheckedError."""
        self.check_caller(request.thread_id)
        if _digest(request) != request.digest:
            raise _refused("the call is not the one that was allowed")
        if request.grant is not None:
            await self._check_grant(request.grant, request.digest)

    def check_caller(self, thread_id: str) -> None:
        """Only the thread itself may ask for its calls. Raises ApplicationError token-refused."""
        info = activity.info()
        if info.workflow_type != _WORKFLOW or info.workflow_id != workflow_id(thread_id):
            raise _refused(f"{info.workflow_type} {info.workflow_id!r} is not the thread it speaks for")

    async def _check_grant(self, grant: Grant, digest: str) -> None:
        if grant.digest != digest:
            raise _refused("the token was minted for another call")
        try:
            view = await self._thread.query("grant", GrantRequest(token=grant.token), GrantView)
        except CallerError as problem:
            raise _refused("the thread knows no such token") from problem
        except ThreadsError as problem:
            raise UncheckedError(
                f"The thread could not be asked for the permission of the call: {problem}"
            ) from problem
        if (view.approval_id, view.digest, view.activity_id) != (
            grant.approval_id,
            digest,
            activity.info().activity_id,
        ):
            raise _refused("the token was not spent on this activity")


def _digest(request: RunTool) -> str:
    call = request.call
    try:
        return call_digest(
            thread=request.thread_id,
            run=request.run_id,
            call=call.key,
            tool=call.tool,
            fingerprint=call.fingerprint,
            arguments=call.args,
        )
    except ValueError:
        return ""


def _refused(why: str) -> ApplicationError:
    text = f"The call was not made: {why}. Only a thread makes calls, each under its own permission."
    return ApplicationError(text, type=TOKEN_REFUSED, non_retryable=True)
