"""Hears that a turn was answered: whoever gives an answer says so by a datagram, which costs nobody anything."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any


class Ear(asyncio.DatagramProtocol):
    """Counts what is said, by conversation. Datagrams may be lost: nothing may depend on one."""

    def __init__(self) -> None:
        self._heard: Counter[str] = Counter()
        self._news: dict[str, asyncio.Event] = {}

    @classmethod
    @asynccontextmanager
    async def open(cls) -> AsyncGenerator[tuple[Ear, int]]:
        """An ear, and its port on the loopback address."""
        transport, ear = await asyncio.get_running_loop().create_datagram_endpoint(cls, ("127.0.0.1", 0))
        try:
            yield ear, int(transport.get_extra_info("sockname")[1])
        finally:
            transport.close()

    def datagram_received(self, data: bytes, addr: Any) -> None:  # noqa: ARG002 - the base class names it
        """Somebody says the last characters of a conversation's id."""
        name = data.decode()
        self._heard[name] += 1
        if name in self._news:
            self._news[name].set()

    async def hear(self, conversation: str, times: int, *, patience: float) -> None:
        """Wait until it was said so often since the last time; not for longer than `patience` seconds."""
        name = conversation[-8:]
        try:
            async with asyncio.timeout(patience):
                while self._heard[name] < times:
                    self._news[name] = asyncio.Event()
                    await self._news[name].wait()
        except TimeoutError:
            pass
        self._heard.pop(name, None)
        self._news.pop(name, None)
