"""Memory of threads that left a worker's cache is given back.

Each is a ring of objects, which Python's collector looks for seldom in a process that makes few objects that last; and
what Python frees the C library keeps.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
from collections.abc import Callable
from typing import NoReturn

EVERY = 15.0


async def give_memory_back(*, every: float = EVERY) -> NoReturn:
    """Every so many seconds in which something was done. What lives now is taken to live for ever."""
    gc.collect()
    gc.freeze()
    trim, before = _trim(), -1
    while True:
        await asyncio.sleep(every)
        if (done := gc.get_stats()[0]["collections"]) != before:
            gc.collect()
            await asyncio.to_thread(trim)
            before = done


def _trim() -> Callable[[], object]:
    """What makes the C library give back what it does not use, where it can be told to."""
    try:
        trim = ctypes.CDLL(None).malloc_trim
    except (OSError, TypeError, AttributeError):  # no glibc
        return lambda: None
    return lambda: trim(0)
