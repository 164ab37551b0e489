"""Who asks for an activity: the thread whose workflow scheduled it, whatever its input says."""

from __future__ import annotations

from temporalio import activity
from temporalio.exceptions import ApplicationError

from client.execution import thread_id_of, workflow_id

TOKEN_REFUSED = "token-refused"  # noqa: S105 - a kind of error
_WORKFLOW = "ThreadWorkflow"


def calling_thread() -> str:
    """The id of the thread. Raises ApplicationError token-refused where another workflow asks."""
    info = activity.info()
    thread_id = thread_id_of(info.workflow_id or "")
    if info.workflow_type != _WORKFLOW or not thread_id or info.workflow_id != workflow_id(thread_id):
        raise refused(f"{info.workflow_type} {info.workflow_id!r} is no thread")
    return thread_id


def owner_of(thread_id: str) -> str:
    """What a thread is named by in the Store, which several namespaces may share."""
    return f"{activity.info().namespace}/{thread_id}"


def refused(why: str) -> ApplicationError:
    """What a workflow is told that may not do what it asked for."""
    text = f"The call was not made: {why}. Only a thread makes calls, each under its own permission."
    return ApplicationError(text, type=TOKEN_REFUSED, non_retryable=True)
