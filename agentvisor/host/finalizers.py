"""What Python's collector finalizes while a workflow is at work sees no event loop.

A collection begins wherever an object is made, also in workflow code, and finalizes what others left behind. Google's
client makes a task in the running loop to close its connections then: a workflow's loop would run it, in the middle of
what history has to repeat. With no loop in sight it lets them go.
"""

from __future__ import annotations

import asyncio
import gc
from typing import Any

from temporalio import workflow

_hidden: list[asyncio.AbstractEventLoop] = []
"""The workflow's loop while a collection goes on. There is never more than one of those in a process."""


def keep_finalizers_off_workflows() -> None:
    """In this process, for all workers. To do it twice is as good as once."""
    if _around_a_collection not in gc.callbacks:
        gc.callbacks.append(_around_a_collection)


def _around_a_collection(phase: str, _: dict[str, Any]) -> None:
    if phase == "stop":
        while _hidden:
            asyncio._set_running_loop(_hidden.pop())
        return
    _hidden.clear()  # what the SDK cut off, with the workflow's task
    if workflow.in_workflow():
        _hidden.append(asyncio.get_running_loop())
        asyncio._set_running_loop(None)
