"""A real MCP server: `python -m tests.agent_adapter.mcp_server FILE [PORT]`, over stdio, or over HTTP on a port.

Writes add a line to FILE.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import uvicorn
from mcp import types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Mount

FILE = Path(sys.argv[1])
ORDER = {"type": "object", "properties": {"id": {"type": "string", "pattern": "^A-"}}, "required": ["id"]}


def tool(name: str, schema: dict[str, Any] | None = None, **hints: Any) -> types.Tool:
    annotations = types.ToolAnnotations(**hints) if hints else None
    return types.Tool(name=name, description=f"The tool {name}.", input_schema=schema or ORDER, annotations=annotations)


TOOLS = [
    tool("find order", read_only_hint=True),
    tool("save", destructive_hint=False, idempotent_hint=True),
    tool("send", destructive_hint=False),
    tool("delete"),
    tool("blocks", read_only_hint=True),
    tool("fails", read_only_hint=True),
    tool("breaks", read_only_hint=True),
    tool("dies", destructive_hint=False),
    tool("dies_reading", read_only_hint=True),
    tool("bad", {"type": "object", "properties": {"p": {"$ref": "https://example.com/schema.json"}}}),
]


async def list_tools(context: Any, params: Any) -> types.ListToolsResult:
    """Two pages."""
    first = params is None or params.cursor is None
    return types.ListToolsResult(tools=TOOLS[:5] if first else TOOLS[5:], next_cursor="2" if first else None)


def text(*texts: str, **more: Any) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=text) for text in texts], **more)


def note(effect: str) -> None:
    with FILE.open("a") as effects:
        effects.write(f"{effect}\n")


async def call_tool(context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
    name, arguments = params.name, params.arguments or {}
    if name in {"save", "send", "delete", "dies"}:
        note(f"{name} {arguments['id']}")
    if name.startswith("dies"):
        os._exit(1)
    if name == "find order":
        return text('{"total": 149}', structured_content={"total": 149, "pid": os.getpid()})
    if name == "blocks":
        picture = types.ImageContent(type="image", data="aGk=", mime_type="image/png")
        return types.CallToolResult(content=[types.TextContent(type="text", text="a"), picture])
    if name == "fails":
        return text("There is no order A-9.", is_error=True)
    if name == "breaks":
        raise RuntimeError("marker-4711")
    return text(f"{name} done", "twice")


server = Server("shop", on_list_tools=list_tools, on_call_tool=call_tool)


async def over_stdio() -> None:
    async with stdio_server() as (reads, writes):
        await server.run(reads, writes, server.create_initialization_options())


def over_http(port: int) -> None:
    manager = StreamableHTTPSessionManager(server)

    async def let_in(scope: Any, receive: Any, send: Any) -> None:
        """Only who has the key."""
        if dict(scope["headers"]).get(b"x-key") != b"k1":
            await Response(status_code=401)(scope, receive, send)
        else:
            await manager.handle_request(scope, receive, send)

    app = Starlette(routes=[Mount("/mcp", app=let_in)], lifespan=lambda app: manager.run())
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="error")


if len(sys.argv) > 2:
    over_http(int(sys.argv[2]))
else:
    asyncio.run(over_stdio())
