"""A worker gives back the memory of what it has done with, also where Python's collector does not look for it."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Iterator

import pytest

from agentvisor.host.memory import give_memory_back
from tests.host.processes import until


class Ring:
    def __init__(self) -> None:
        self.itself = self


@pytest.fixture(autouse=True)
def the_collector_rests() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()
    gc.unfreeze()


async def test_a_ring_that_was_kept_for_a_while_is_freed_soon_after_its_last_use() -> None:
    work = asyncio.create_task(give_memory_back(every=0.01))
    await asyncio.sleep(0)  # what lives before it begins is taken to live for ever
    for _ in range(2):
        ring = Ring()
        gc.collect(1)
        gone = weakref.ref(ring)
        del ring
        gc.collect(0)  # only looks at what is young
        assert gone() is not None
        await until(lambda gone=gone: gone() is None)
    work.cancel()
    await asyncio.wait([work])
