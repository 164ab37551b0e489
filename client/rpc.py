"""Errors of the Temporal client, as errors of this package."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import timedelta

from temporalio.client import (
    RPCTimeoutOrCancelledError,
    WorkflowQueryFailedError,
    WorkflowUpdateFailedError,
)
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError, RPCStatusCode

from client.errors import Refused, TemporalUnavailable, ThreadClosed, ThreadNotFound, ThreadStuck, TooLarge

PATIENCE = 2.0
"""Seconds within which a worker that is there, and not busy, answers."""
SERVER_PATIENCE = 5.0
"""Seconds within which the server answers."""
RPC_DEADLINE = timedelta(seconds=SERVER_PATIENCE)
_CONNECTING = 0.5
"""Seconds for connecting again, on top of the deadline of the call itself."""


class Unanswered(TemporalUnavailable):
    """The deadline of a call passed. For queries and updates that means a worker, not the server."""

    def __init__(self) -> None:
        super().__init__("Temporal did not answer in time. Check the server and --address.")


class TakenBack(TemporalUnavailable):
    """The workflow task that had taken the update was taken back, and the update with it: send it again."""

    def __init__(self) -> None:
        super().__init__("The thread moved on before it could take this. Send it again.")


@asynccontextmanager
async def within(thread_id: str = "", *, patience: float = SERVER_PATIENCE) -> AsyncGenerator[None]:
    """Raise what Temporal's client raises as a ThreadsError, and TemporalUnavailable when it takes too long.

    The calls inside have deadlines of their own; this one ends the attempts to connect again.
    """
    try:
        async with asyncio.timeout(patience + _CONNECTING):
            yield
    except (RPCError, WorkflowQueryFailedError, WorkflowUpdateFailedError, RPCTimeoutOrCancelledError) as problem:
        raise _translation(problem, thread_id) from problem
    except TimeoutError as problem:
        raise Unanswered from problem


def _translation(problem: Exception, thread_id: str) -> Exception:
    match problem:
        case RPCError():
            return _of_rpc(problem, thread_id)
        case WorkflowQueryFailedError():
            return Refused("refused", problem.message)  # the server does not say the type of a failed query
        case WorkflowUpdateFailedError():
            return _of_update(problem)
        case _:
            return Unanswered()


def _of_update(problem: WorkflowUpdateFailedError) -> Exception:
    cause = problem.cause
    if isinstance(cause, ApplicationError):
        return Refused(cause.type or "refused", cause.message)
    return Refused("refused", str(cause))


def _of_rpc(problem: RPCError, thread_id: str) -> Exception:
    text = problem.message
    match problem.status:
        case RPCStatusCode.DEADLINE_EXCEEDED | RPCStatusCode.CANCELLED:
            return Unanswered()
        case RPCStatusCode.NOT_FOUND:
            return _not_found(text, thread_id)
        case RPCStatusCode.FAILED_PRECONDITION:
            return _failed_precondition(text, thread_id)
        case RPCStatusCode.INVALID_ARGUMENT if "size exceeds" in text:
            return TooLarge(f"Temporal refused the value as too large: {text} Send less.")
        case _:
            return _unavailable(problem)


def _not_found(text: str, thread_id: str) -> Exception:
    if text.startswith("Namespace"):
        return TemporalUnavailable(f"{text} Check --namespace and the server.")
    if "already completed" in text:
        return ThreadClosed(thread_id)
    return ThreadNotFound(thread_id)


def _failed_precondition(text: str, thread_id: str) -> Exception:
    if "unexpected workflow task failure" in text:
        return TakenBack()
    if "failed state" in text:
        return ThreadStuck(thread_id)
    if "closed before" in text:
        return ThreadClosed(thread_id)
    if "no poller" in text:
        return Unanswered()
    return Refused("refused", text)


def _unavailable(problem: RPCError) -> TemporalUnavailable:
    """The server is not there, not ours to use, or overloaded."""
    status = problem.status.name.lower().replace("_", " ")
    return TemporalUnavailable(
        f"The Temporal server cannot serve this ({status}: {problem.message}). "
        "Check the server, --address and --namespace."
    )
