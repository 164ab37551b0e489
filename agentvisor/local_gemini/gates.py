"""Gates: replies that wait until a test lets them go."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict


class Gates:
    """Named gates, closed at first. Belongs to one event loop."""

    def __init__(self) -> None:
        self._open: dict[str, asyncio.Event] = defaultdict(asyncio.Event)
        self._held: Counter[str] = Counter()
        self._changed = asyncio.Condition()

    async def pass_through(self, name: str) -> None:
        """Wait until the gate is open."""
        gate = self._open[name]
        if gate.is_set():
            return
        await self._count(name, 1)
        try:
            await gate.wait()
        finally:
            await self._count(name, -1)

    async def release(self, name: str) -> None:
        """Open a gate: for what is held and for all that comes later, until `close`."""
        self._open[name].set()

    async def close(self, name: str) -> None:
        """Close a gate again."""
        self._open[name].clear()

    async def until_held(self, name: str, count: int) -> None:
        """Wait until exactly so many replies are held at this gate."""
        async with self._changed:
            await self._changed.wait_for(lambda: self._held[name] == count)

    def held(self) -> dict[str, int]:
        """How many replies each gate holds; gates that hold none are left out."""
        return {name: count for name, count in self._held.items() if count}

    async def _count(self, name: str, change: int) -> None:
        self._held[name] += change
        async with self._changed:
            self._changed.notify_all()
