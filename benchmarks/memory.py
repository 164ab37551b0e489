"""What idle guests weigh, and what idle threads add to the worker."""

from __future__ import annotations

import asyncio
from statistics import median

from agentvisor.host.memory import EVERY
from benchmarks.peers import PRODUCT_READ
from benchmarks.process import WorkerProcess, pss_mb
from benchmarks.result import Result
from benchmarks.stage import Stage
from benchmarks.throughput import GUESTS

THREADS, CACHED = 1000, 200
_AT_ONCE = 40
_WARM, _WARM_TURNS = 40, 6
_IDLE = 2 * EVERY
"""Seconds after which a worker has given back what it does not need."""


async def measure(stage: Stage) -> Result:
    """MiB of proportional set size: what processes share is divided among them."""
    result = Result()
    async with stage.product(max_cached_threads=str(CACHED)) as product:
        await product.settled(GUESTS)
        await _threads(stage, _WARM, turns=stage.size(_WARM_TURNS, 1))
        await _idle(stage, product)
        guests = [pss_mb(pid) for pid in product.guests()]
        result.number("idle_guest_pss_mb", max(guests), guests)
        result.number("idle_processes_pss_mb", _weight(product))
        worker, below = [pss_mb(product.pid)], _below(product)
        quarter = stage.size(THREADS, 100) // 4
        for _ in range(4):
            await _threads(stage, quarter)
            await _idle(stage, product)
            worker.append(pss_mb(product.pid))
        thousands = 4 * quarter / 1000
        result.number("worker_mb_per_1000_idle_threads", (worker[-1] - worker[0]) / thousands, worker)
        result.number("guests_mb_per_1000_idle_threads", (_below(product) - below) / thousands)
        stage.say(f"guests {median(guests):.0f} MiB each; worker after each quarter of the threads: {worker}")
    return result


async def _idle(stage: Stage, product: WorkerProcess) -> None:
    await product.settled(GUESTS)
    await asyncio.sleep(stage.size(int(_IDLE), 0))


async def _threads(stage: Stage, count: int, *, turns: int = 1) -> None:
    """So many threads with so many runs each, which then stay idle."""
    free = asyncio.Semaphore(_AT_ONCE)

    async def one() -> None:
        async with free:
            talk = await PRODUCT_READ.begin(stage)
            for turn in range(turns):
                await PRODUCT_READ.turn_among_many(stage, talk, turn)

    await asyncio.gather(*(one() for _ in range(count)))


def _weight(product: WorkerProcess) -> float:
    return pss_mb(product.pid) + _below(product)


def _below(product: WorkerProcess) -> float:
    return sum(pss_mb(pid) for pid in product.below())
