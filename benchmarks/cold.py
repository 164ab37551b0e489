"""A long conversation on a worker that has never seen it."""

from __future__ import annotations

import asyncio
from statistics import median

from benchmarks.peers import PRODUCT_READ
from benchmarks.result import Result
from benchmarks.stage import Stage
from benchmarks.throughput import GUESTS

TURNS = 210
COLD, WARM = 3, 5


async def measure(stage: Stage) -> Result:
    """Seconds that a turn takes longer on a fresh worker, whose guests are warm.

    The turns end with number 210: the thread continues as new after every 30 runs, so nearly 30 are replayed, the worst
    that can be of read turns.
    """
    peer, turns = PRODUCT_READ, stage.size(TURNS, 12)
    talk = await peer.begin(stage)
    async with stage.product() as product:
        await product.settled(GUESTS)
        took = [await peer.turn(talk, number) for number in range(turns - COLD)]
    warm = took[-WARM:]
    cold: list[float] = []
    for number in range(turns - COLD, turns):
        async with stage.product() as product:
            await product.settled(GUESTS)
            await _warmed(stage)
            cold.append(await peer.turn(talk, number))
    stage.say(f"turn on a fresh worker: {cold}, on the old one: {warm}")
    result = Result()
    result.number("warm_turn_s", median(warm), warm)
    result.number("cold_turn_s", median(cold), cold)
    result.number("cold_vs_warm_turn", median(cold) - median(warm))
    return result


async def _warmed(stage: Stage) -> None:
    """Let every guest have had a turn: of so many threads some fall to each."""
    talks = await asyncio.gather(*(PRODUCT_READ.begin(stage) for _ in range(8)))
    await asyncio.gather(*(PRODUCT_READ.turn(talk, number) for talk in talks for number in range(1)))
    await asyncio.gather(*(PRODUCT_READ.close(stage.client, talk) for talk in talks))
