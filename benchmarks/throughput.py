"""Runs per second of many short conversations at once, of every peer in turn, in rounds."""

from __future__ import annotations

import asyncio
import time
from statistics import median

from benchmarks.peers import BARE_READ, BARE_WRITE, LEAST_WRITE, PLUGIN, PRODUCT_READ, PRODUCT_WRITE, Peer
from benchmarks.process import MeasureFailed, WorkerProcess, cpu_seconds
from benchmarks.result import Result
from benchmarks.stage import Stage
from benchmarks.talk import Talk

THREADS, TURNS, ROUNDS = 200, 5, 3
GUESTS = 4
_STARTS_AT_ONCE = 20
_LOOKED_INTO = 10
_READS = 4.0
"""Seconds that the client reads an answer before it goes on."""
_RATIOS = {
    "runs_per_s_read_vs_plugin": (PRODUCT_READ, PLUGIN),
    "runs_per_s_write_vs_plugin": (PRODUCT_WRITE, PLUGIN),
    "runs_per_s_read_vs_bare": (PRODUCT_READ, BARE_READ),
    "runs_per_s_write_vs_bare": (PRODUCT_WRITE, BARE_WRITE),
    "runs_per_s_least_vs_plugin": (LEAST_WRITE, PLUGIN),
}


async def measure(stage: Stage) -> Result:
    """Rates of each peer, and their ratios within a round."""
    result = Result()
    async with stage.product() as product, stage.plugin() as plugin, stage.bare() as bare, stage.least() as least:
        await product.settled(GUESTS)
        await least.settled(GUESTS)
        workers = {
            PRODUCT_READ: product,
            PRODUCT_WRITE: product,
            PLUGIN: plugin,
            BARE_READ: bare,
            BARE_WRITE: bare,
            LEAST_WRITE: least,
        }
        for peer, worker in workers.items():
            await _rate(stage, peer, worker, threads=8, turns=2)
        rates: dict[Peer, list[float]] = {peer: [] for peer in workers}
        for number in range(stage.size(ROUNDS, 1)):
            for peer in _rotated(list(workers), number):
                rate, cost = await _rate(stage, peer, workers[peer], threads=stage.size(THREADS, 10), turns=TURNS)
                rates[peer].append(rate)
                stage.say(f"round {number + 1}, {peer.name}: {rate:.1f} runs/s; per run, CPU in ms: {cost}")
                result.spread(f"per_run_{_key(peer)}", cost)
    for peer, measured in rates.items():
        result.number(f"runs_per_s_{_key(peer)}", median(measured), measured)
    for key, (ours, theirs) in _RATIOS.items():
        ratios = [a / b for a, b in zip(rates[ours], rates[theirs], strict=True)]
        result.number(key, median(ratios), ratios)
    return result


def _key(peer: Peer) -> str:
    return peer.name.replace("-", "_")


def _rotated(peers: list[Peer], by: int) -> list[Peer]:
    return peers[by:] + peers[:by]


async def _rate(
    stage: Stage, peer: Peer, worker: WorkerProcess, *, threads: int, turns: int
) -> tuple[float, dict[str, float]]:
    """Runs per second, from the start of the first conversation to the end of the last turn; CPU ms and events a run.

    The events of a start, 4, are divided among the runs.
    """
    before, began = _cpu(stage, worker), time.perf_counter()
    starting = asyncio.Semaphore(_STARTS_AT_ONCE)

    async def one() -> tuple[Talk, int]:
        async with starting:
            talk = await peer.begin(stage)
        for turn in range(turns):
            await asyncio.sleep(_READS if turn else 0)
            await peer.turn_among_many(stage, talk, turn)
        return talk, await talk.come_to_rest()

    talks, events = zip(*await asyncio.gather(*(one() for _ in range(threads))), strict=True)
    seconds, after = time.perf_counter() - began, _cpu(stage, worker)
    for talk in talks[:_LOOKED_INTO]:
        if await talk.steps_so_far() != peer.steps * turns:
            raise MeasureFailed(f"{talk.id} has not the activities of {turns} turns")
    await asyncio.gather(*(peer.close(stage.client, talk) for talk in talks))
    runs = threads * turns
    cost = {name: round((after[name] - before[name]) / runs * 1000, 1) for name in before}
    return runs / seconds, {**cost, "events": round(sum(events) / runs, 2)}


def _cpu(stage: Stage, worker: WorkerProcess) -> dict[str, float]:
    guests = sum(map(cpu_seconds, worker.below()))
    server = cpu_seconds(stage.server.pid) if stage.server.pid else 0.0
    return {"worker": cpu_seconds(worker.pid), "guests": guests, "server": server, "client": time.process_time()}
