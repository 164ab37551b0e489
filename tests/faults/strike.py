"""One kill for many runs: each is held at a seam of its own, one process is killed, and all go on."""

from __future__ import annotations

import asyncio
import signal
import sqlite3
from collections.abc import Awaitable, Callable, Generator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Literal

from tests.faults.case import Case, World
from tests.faults.host import Host, gone, kill, stop
from tests.faults.seams import SEAMS, Seam

Victim = Literal["worker", "guest"]
VICTIMS: tuple[Victim, ...] = ("worker", "guest")
Key = tuple[str, int]
MATRIX: list[Key] = [(name, parallel) for name, seam in SEAMS.items() for parallel in seam.parallel]


class Held:
    """A case at its seam, or what went wrong with it on the way."""

    def __init__(self, world: World, seam: Seam, parallel: int) -> None:
        self.case, self.seam = Case(world, seam.tool, parallel), seam
        self.problem: BaseException | None = None

    async def do(self, act: Callable[[Case], Awaitable[object]]) -> None:
        """Do this with the case, unless something went wrong already."""
        if self.problem is None:
            try:
                await act(self.case)
            except Exception as problem:  # noqa: BLE001 - the test of this case raises it
                self.problem = problem


async def strike(world: World, host: Host, victim: Victim) -> dict[Key, Held]:
    """Bring a run to every seam, kill -9 the victim once, bring every run to its end, and the thread's next one.

    A worker that was killed is started again.
    """
    all_held = {key: Held(world, SEAMS[key[0]], key[1]) for key in MATRIX}
    await _each(all_held, lambda held: held.seam.reach)
    legs, tools = (
        await all_held["in-a-read-tool", 1].case.pid(),
        await all_held["in-a-write-after-its-effect", 1].case.pid(),
    )
    stop(legs)
    await _each(all_held, lambda held: held.seam.leg_guest_stopped)
    with locked(host.store):
        await _each(all_held, lambda held: held.seam.store_locked)
        host.send(signal.SIGSTOP)
        await _each(all_held, lambda held: held.seam.worker_stopped)
        if victim == "worker":
            await host.kill()
            await gone(legs, tools)
        else:
            await kill(legs, tools)
    await _each(all_held, lambda _: Case.release)
    if victim == "worker":
        await host.start()
    else:
        host.send(signal.SIGCONT)
    await _each(all_held, lambda _: Case.to_its_end)
    await _each(all_held, lambda _: Case.goes_on)
    return all_held


@contextmanager
def locked(store: Path) -> Generator[None]:
    """Nobody can write to the Store meanwhile."""
    with closing(sqlite3.connect(store, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield


async def _each(all_held: dict[Key, Held], act: Callable[[Held], Callable[[Case], Awaitable[object]]]) -> None:
    await asyncio.gather(*(held.do(act(held)) for held in all_held.values()))
