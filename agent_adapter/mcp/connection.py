"""A connection to one MCP server: opened when it is first needed, and anew after it broke."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

from agent_adapter.errors import ToolUsageError

__all__ = ["CONNECTION_CLOSED", "Connection", "McpServer", "mcp", "tools_of"]

_MOST_TOOLS = 1_000

try:
    import httpx2
    import mcp
    from mcp.client.stdio import stdio_client
    from mcp.client.streamable_http import streamable_http_client
    from mcp.types import CONNECTION_CLOSED
except ImportError as problem:
    msg = "MCP servers need the package mcp. Install it: pip install 'agentvisor-temporal[mcp]'."
    raise ToolUsageError(msg) from problem

_HTTP_TIMEOUT = httpx2.Timeout(30, read=300)  # a tool may take its time; how long, its own timeout says


@dataclass(frozen=True, kw_only=True)
class McpServer:
    """Where a server is: a command that is started and spoken to over its pipes, or a URL of streamable HTTP."""

    command: tuple[str, ...] = ()
    env: Mapping[str, str] | None = None
    cwd: str | None = None
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)

    @asynccontextmanager
    async def connected(self) -> AsyncGenerator[mcp.Client]:
        """The server, ready to be asked."""
        if self.url:
            async with (
                httpx2.AsyncClient(headers=dict(self.headers), timeout=_HTTP_TIMEOUT) as http,
                mcp.Client(streamable_http_client(self.url, http_client=http)) as client,
            ):
                yield client
            return
        program, *arguments = self.command
        parameters = mcp.StdioServerParameters(
            command=program, args=arguments, env=None if self.env is None else dict(self.env), cwd=self.cwd
        )
        async with mcp.Client(stdio_client(parameters, errlog=sys.__stderr__ or sys.stderr)) as client:
            yield client


async def tools_of(server: McpServer) -> list[Any]:
    """All tools the server has, as it describes them."""
    found: list[Any] = []
    async with server.connected() as client:
        cursor: str | None = None
        while True:
            page = await client.list_tools(cursor=cursor)
            found += page.tools
            cursor = page.next_cursor
            if cursor is None or len(found) > _MOST_TOOLS:
                return found[:_MOST_TOOLS]


@dataclass
class _Link:
    """One open connection of one event loop; a task of its own opens and closes it."""

    ready: asyncio.Future[Any]
    ended: asyncio.Event
    holder: asyncio.Task[None] | None = None


class Connection:
    """Calls tools of a server over one connection per event loop, shared by all calls there."""

    def __init__(self, server: McpServer, *, patience: float) -> None:
        self._server = server
        self._patience = patience
        self._links: WeakKeyDictionary[asyncio.AbstractEventLoop, _Link] = WeakKeyDictionary()

    async def client(self) -> Any:
        """The open client. Raises whatever opening it raised, TimeoutError after the patience."""
        loop = asyncio.get_running_loop()
        link = self._links.get(loop)
        if link is None or link.holder is None or link.holder.done():
            link = self._links[loop] = _Link(loop.create_future(), asyncio.Event())
            link.holder = asyncio.create_task(self._hold(link))
        return await asyncio.wait_for(asyncio.shield(link.ready), self._patience)

    async def drop(self) -> None:
        """Close this loop's connection; the next call opens another."""
        link = self._links.pop(asyncio.get_running_loop(), None)
        if link is not None and link.holder is not None:
            link.ended.set()
            await asyncio.wait([link.holder], timeout=self._patience)

    async def _hold(self, link: _Link) -> None:
        try:
            async with self._server.connected() as client:
                link.ready.set_result(client)
                await link.ended.wait()
        except Exception as problem:  # noqa: BLE001 - told to those who wait, or to those who call next
            if not link.ready.done():
                link.ready.set_exception(problem)
                link.ready.exception()  # it may be that nobody waits any more
