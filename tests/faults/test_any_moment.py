"""Kills that hit many runs at once, each at another moment: runs begin one after the other, and none is held."""

from __future__ import annotations

import asyncio

import pytest

from tests.faults.case import KEYED, ONCE, READS, Case, World
from tests.faults.host import Host, kill

TOOLS = (*ONCE, *KEYED, *READS)
RUNS, APART, SECONDS = 25, 0.1, 0.3


@pytest.mark.timeout(240)
@pytest.mark.parametrize("victim", ["worker", "guests"])
async def test_a_kill_at_any_moment_repeats_no_effect(world: World, host: Host, victim: str) -> None:
    """Five kinds of tools, one to three calls in the turn; the kill comes when the first run has ended."""
    cases = [Case(world, TOOLS[n % 5], 1 + n % 3) for n in range(RUNS)]
    lives = [asyncio.create_task(_life(case, after=n * APART)) for n, case in enumerate(cases)]
    await asyncio.wait(lives, return_when=asyncio.FIRST_COMPLETED)
    if victim == "worker":
        await host.kill()
        await host.start()
    else:
        await kill(*await _pids(cases))
    await asyncio.gather(*lives)
    await asyncio.gather(*(case.check(fast=True) for case in cases))
    await asyncio.gather(*(case.goes_on() for case in cases))


async def _life(case: Case, *, after: float) -> None:
    await asyncio.sleep(after)
    await case.begin(seconds=SECONDS)
    await case.to_its_end()


async def _pids(cases: list[Case]) -> set[int]:
    """The guests that have run tools so far."""
    reports = [await case.world.counter.all(case.name(1, "entered")) for case in cases]
    return {report["pid"] for reported in reports for report in reported}
