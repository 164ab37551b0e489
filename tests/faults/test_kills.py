"""Kill -9 of the worker, and of its guests, at every seam of a run, with one, two and three calls in the turn.

All runs of the matrix are struck by one kill per victim; each test looks at one of them.
"""

from __future__ import annotations

import asyncio

import pytest

from tests.faults.case import World
from tests.faults.host import Host
from tests.faults.strike import MATRIX, VICTIMS, Held, Key, Victim, strike

pytestmark = pytest.mark.timeout(300)  # the first test of a victim makes the kill for all others


class Strikes:
    """The two kills, each made when the first test wants to look at it."""

    def __init__(self, world: World, host: Host) -> None:
        self._world, self._host = world, host
        self._made: dict[Victim, asyncio.Task[dict[Key, Held]]] = {}

    async def of(self, victim: Victim) -> dict[Key, Held]:
        if victim not in self._made:
            self._made[victim] = asyncio.create_task(strike(self._world, self._host, victim))
        return await self._made[victim]


@pytest.fixture(scope="session")
def strikes(world: World, host: Host) -> Strikes:
    return Strikes(world, host)


@pytest.mark.parametrize("victim", VICTIMS)
@pytest.mark.parametrize(("seam", "parallel"), MATRIX)
async def test_a_kill_repeats_no_effect_and_hides_none(
    strikes: Strikes, victim: Victim, seam: str, parallel: int
) -> None:
    """The run ends, and the next one.

    Writes were made at most once, and what nobody knows was asked about and not called a failure.
    """
    held = (await strikes.of(victim))[seam, parallel]
    if held.problem:
        raise held.problem
    unknown = held.seam.unknown_by_worker if victim == "worker" else held.seam.unknown_by_guest
    assert held.case.unknown == unknown(held.case)
    await held.case.check()
    await held.seam.afterwards(held.case)
