"""Where a worker runs the tasks of its workflows: short ones in its event loop, long ones in threads.

The SDK gives each to a thread, to notice one that hangs. The news of a thread take a millisecond or two, and the way to
another thread and back about one more. What may take long goes to a thread as ever: the first task of an execution, a
replay, an eviction, large messages.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import Context
from typing import Any

from temporalio.bridge.proto.workflow_activation import WorkflowActivation

SHORT = 64 * 1024
"""Bytes of an activation: what Temporal tells a workflow at once."""


class WorkflowExecutor(ThreadPoolExecutor):
    """For one worker; used from its event loop."""

    def __init__(self) -> None:
        super().__init__(max_workers=max(4, os.cpu_count() or 4), thread_name_prefix="workflow")

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Run it soon, where it is short outside of every asyncio task: a workflow runs tasks of its own."""
        match args:
            case [WorkflowActivation() as activation] if _is_short(activation):
                future: Future[Any] = Future()
                asyncio.get_running_loop().call_soon(_run, future, fn, activation, context=Context())
                return future
            case _:
                return super().submit(fn, *args, **kwargs)


def _is_short(activation: WorkflowActivation) -> bool:
    return (
        not activation.is_replaying
        and not any(job.HasField("initialize_workflow") or job.HasField("remove_from_cache") for job in activation.jobs)
        and activation.ByteSize() <= SHORT
    )


def _run(future: Future[Any], fn: Callable[..., Any], activation: WorkflowActivation) -> None:
    """While a workflow is at work its own loop is the running one, and none is afterwards."""
    loop = asyncio.get_running_loop()
    try:
        future.set_result(fn(activation))
    except BaseException as problem:  # noqa: BLE001 - as in a thread: whoever waits for the future gets it
        future.set_exception(problem)
    finally:
        asyncio._set_running_loop(loop)
