"""Tools of MCP servers as tools of a registry: checked, confirmed, guarded and accounted for like any other."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from agent_adapter.causes import log_cause
from agent_adapter.errors import ToolError, ToolUsageError
from agent_adapter.guards import Guard
from agent_adapter.mcp.connection import CONNECTION_CLOSED, Connection, McpServer, mcp, tools_of
from agent_adapter.schema.names import legal_names
from agent_adapter.spec import ConfirmRule, Effect, ToolSpec
from agent_adapter.values import Json, JsonObject

if TYPE_CHECKING:
    from agent_adapter.registry import ToolRegistry

Result = TypeVar("Result")


@dataclass(frozen=True, kw_only=True)
class McpTools:
    """What came of adding a server."""

    added: tuple[ToolSpec, ...]
    refused: Mapping[str, ToolUsageError]
    """By the server's own name: why a tool could not be added. Also in the log."""
    names: Mapping[str, str]
    """The server's own name of each tool that was added, by the name it has here."""
    _connection: Connection = field(repr=False)

    async def close(self) -> None:
        """End the connection of this event loop. The next call opens another."""
        await self._connection.drop()


def add_mcp(
    registry: ToolRegistry,
    server: str | Sequence[str],
    *,
    prefix: str = "",
    include: Collection[str] | None = None,
    trust: bool = True,
    confirm: bool | ConfirmRule | None = None,
    guards: Sequence[Guard] = (),
    options: Mapping[str, Mapping[str, Any]] | None = None,
    headers: Mapping[str, str] | None = None,
    env: Mapping[str, str] | None = None,
    cwd: str | None = None,
    timeout: float = 30.0,
) -> McpTools:
    """See `ToolRegistry.add_mcp`."""
    where = _where(server, headers=headers, env=env, cwd=cwd)
    told = {tool.name: tool for tool in _listed(where, timeout) if include is None or tool.name in include}
    said = options or {}
    _check_known({*said, *(include or ())}, told)
    names = legal_names(f"{prefix}{name}" for name in told)
    connection = Connection(where, patience=timeout)
    added: dict[str, ToolSpec] = {}
    refused: dict[str, ToolUsageError] = {}
    for name, tool in told.items():
        spoken: dict[str, Any] = {"name": names[f"{prefix}{name}"], "guards": guards, **_by_hints(tool, trust=trust)}
        if confirm is not None:
            spoken["confirm"] = confirm
        try:
            added[name] = registry.add(_spec(tool, connection, {**spoken, **said.get(name, {})}))
        except ToolUsageError as problem:
            log_cause("mcp.tool_refused", problem, tool=name)
            refused[name] = problem
    return McpTools(
        added=tuple(added.values()),
        refused=refused,
        names={spec.name: name for name, spec in added.items()},
        _connection=connection,
    )


def _where(
    server: str | Sequence[str], *, headers: Mapping[str, str] | None, env: Mapping[str, str] | None, cwd: str | None
) -> McpServer:
    if isinstance(server, str):
        if not server.startswith(("http://", "https://")):
            msg = f"{server!r} is no URL of an MCP server. Use https://…, or a command as a list of its words."
            raise ToolUsageError(msg)
        return McpServer(url=server, headers=headers or {})
    if not server:
        msg = "The command of an MCP server has no words. Use a list such as ['python', '-m', 'my_server']."
        raise ToolUsageError(msg)
    return McpServer(command=tuple(server), env=env, cwd=cwd)


def _listed(where: McpServer, timeout: float) -> list[Any]:
    async def listed() -> list[Any]:
        async with asyncio.timeout(timeout):
            return await tools_of(where)

    try:
        return _in_a_thread(listed)
    except Exception as problem:
        log_cause("mcp.server_unreachable", problem)
        name = repr(where.url) if where.url else repr(where.command[0])
        msg = (
            f"The MCP server {name} did not tell its tools within {timeout:g} seconds "
            f"({type(problem).__name__}; the log has the cause). Start it, or correct its address."
        )
        raise ToolUsageError(msg) from problem


def _in_a_thread(work: Callable[[], Coroutine[Any, Any, Result]]) -> Result:
    """Run it to its end, whether or not an event loop runs here."""
    with ThreadPoolExecutor(1, thread_name_prefix="mcp") as pool:
        return pool.submit(lambda: asyncio.run(work())).result()


def _check_known(named: Collection[str], told: Collection[str]) -> None:
    if unknown := sorted(set(named) - set(told)):
        msg = f"The MCP server has no tool {unknown[0]!r}. It has: {', '.join(map(repr, told)) or 'none'}."
        raise ToolUsageError(msg)


def _by_hints(tool: Any, *, trust: bool) -> dict[str, Any]:
    """Effect and confirmation by the server's own words; what it does not say counts as destructive, as MCP has it."""
    hints = tool.annotations if trust else None
    reads = bool(hints and hints.read_only_hint)
    effect: Effect = "read" if reads else "write"
    harmless = reads or bool(hints and hints.destructive_hint is False)
    return {
        "effect": effect,
        "idempotent": not reads and bool(hints and hints.idempotent_hint),
        "confirm": not harmless,
    }


def _spec(tool: Any, connection: Connection, options: dict[str, Any]) -> ToolSpec:
    effect = options["effect"]

    async def call(arguments: dict[str, Any]) -> Json:
        return await _called(connection, tool.name, arguments, effect=effect)

    described = {"description": tool.description or tool.title or tool.name, "arguments": tool.input_schema, **options}
    try:
        return ToolSpec(function=call, **described)
    except TypeError as problem:
        msg = f"Tool {tool.name!r}: {problem}. Its options are fields of ToolSpec."
        raise ToolUsageError(msg) from problem


async def _called(connection: Connection, name: str, arguments: JsonObject, *, effect: str) -> Json:
    try:
        client = await connection.client()
    except Exception as problem:  # noqa: BLE001 - of whatever kind: the call was not made
        log_cause("mcp.server_unreachable", problem, tool=name)
        await connection.drop()
        msg = f"The MCP server of {name!r} cannot be reached. Nothing was run."
        raise ToolError(msg) from None
    try:
        result = await client.call_tool(name, arguments)
    except mcp.MCPError as problem:
        if problem.code != CONNECTION_CLOSED:
            log_cause("mcp.call_refused", problem, tool=name)
            msg = f"The MCP server refused the call of {name!r} (code {problem.code})."
            raise ToolError(msg) from None
        raise await _lost(connection, problem, name, effect) from None
    except Exception as problem:  # noqa: BLE001 - of whatever kind, nobody knows what the server did
        raise await _lost(connection, problem, name, effect) from None
    if result.is_error:
        raise ToolError(_text(result.content) or f"{name!r} failed and did not say why.")
    return _value(result)


async def _lost(connection: Connection, problem: Exception, name: str, effect: str) -> ToolError:
    log_cause("mcp.call_lost", problem, tool=name)
    await connection.drop()
    msg = f"The connection to the MCP server broke before {name!r} had answered."
    if effect == "read":
        return ToolError(msg)
    return ToolError(f"{msg} It may or may not have taken effect: find out first.", outcome_unknown=True)


def _value(result: Any) -> Json:
    """Structured content where there is some; else the text; else the blocks of content."""
    if result.structured_content is not None:
        return result.structured_content
    blocks: list[Any] = list(result.content)
    if all(block.type == "text" for block in blocks):
        return _text(blocks)
    return [block.model_dump(mode="json", by_alias=True, exclude_none=True) for block in blocks]


def _text(blocks: Sequence[Any]) -> str:
    return "\n".join(block.text for block in blocks if block.type == "text")
