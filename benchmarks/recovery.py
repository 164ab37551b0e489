"""`kill -9` of the worker or a guest in the middle of a model call: how long until the answer is there after all."""

from __future__ import annotations

import asyncio
import os
import signal
import time
import uuid
from collections.abc import Callable, Coroutine
from statistics import median

from benchmarks.peers import PRODUCT_READ
from benchmarks.process import MeasureFailed
from benchmarks.result import Result
from benchmarks.stage import Stage
from benchmarks.throughput import GUESTS

ROUNDS = 3
MODEL_SECONDS = 2.0
"""What the scripted model takes over a slow answer."""
_IN_THE_CALL = 1.0
_PATIENCE = 60.0


async def measure(stage: Stage) -> Result:
    """Seconds from the kill to the answer, without the model's own.

    A model call that was cut is made again as a whole. A supervisor starts the worker again at once.
    """
    worker = await stage.started_product()
    readings: dict[str, list[float]] = {"guest": [], "worker": []}
    try:
        for _ in range(stage.size(ROUNDS, 1)):
            await worker.settled(GUESTS)
            readings["guest"].append(await _recovery(stage, _kill_guest))
            await worker.settled(GUESTS)

            async def restart(_guest: int) -> None:
                nonlocal worker
                await worker.kill()
                worker = await stage.started_product()

            readings["worker"].append(await _recovery(stage, restart))
            stage.say(f"recovery after kill -9: {readings}")
    finally:
        await worker.end()
    result = Result()
    for who, seconds in readings.items():
        result.number(f"{who}_kill_recovery_s", median(seconds), seconds)
    return result


async def _kill_guest(guest: int) -> None:
    os.kill(guest, signal.SIGKILL)


async def _recovery(stage: Stage, kill: Callable[[int], Coroutine[None, None, None]]) -> float:
    order = f"A-{uuid.uuid4().hex[:12]}"
    talk = await PRODUCT_READ.begin(stage)
    await talk.say(PRODUCT_READ.say(f"find my order {order} slow"))
    guest = await _in_model_call(stage, order)
    killed = time.perf_counter()
    killing = asyncio.create_task(kill(guest))
    await talk.until_done(PRODUCT_READ.steps)
    seconds = time.perf_counter() - killed
    await killing
    calls = len(stage.noted(order, "model"))
    if calls != 2:
        raise MeasureFailed(f"The slow model call was made {calls} times, not twice")
    return seconds - MODEL_SECONDS


async def _in_model_call(stage: Stage, order: str) -> int:
    """The guest that is in the middle of the slow call."""
    async with asyncio.timeout(_PATIENCE):
        while not (noted := stage.noted(order, "model")):  # noqa: ASYNC110 - another process notes it
            await asyncio.sleep(0.01)
    await asyncio.sleep(_IN_THE_CALL)
    return noted[0][1]
