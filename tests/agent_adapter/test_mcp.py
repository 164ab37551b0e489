"""Tools of a real MCP server, over stdio and over streamable HTTP."""

from __future__ import annotations

import asyncio
import socket
import sys
from asyncio.subprocess import DEVNULL
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio

from agent_adapter import (
    ApprovalDenied,
    CallbackApproval,
    Executor,
    GuardrailBlocked,
    MemoryLedger,
    SensitiveDataGuard,
    ToolArgsInvalid,
    ToolContext,
    ToolError,
    ToolRegistry,
    ToolSchemaError,
    ToolUsageError,
    to_gemini_parameters,
)
from agent_adapter.mcp import McpTools
from agent_adapter.values import JsonObject

ROOT = Path(__file__).parents[2]
MODULE = [sys.executable, "-m", "tests.agent_adapter.mcp_server"]
ORDER = {"id": "A-1"}


class Shop:
    """A registry with the server's tools, and what they did."""

    def __init__(self, registry: ToolRegistry, found: McpTools, file: Path) -> None:
        self.registry, self.found, self._file = registry, found, file
        self.asked: list[str] = []
        self.ledger = MemoryLedger()
        self.executor = Executor(registry, approval=CallbackApproval(self._review), ledger=self.ledger)

    @property
    def effects(self) -> list[str]:
        return self._file.read_text().splitlines() if self._file.exists() else []

    def _review(self, request: Any) -> bool:
        self.asked.append(request.tool)
        return request.arguments["id"] != "A-no"

    async def run(self, name: str, arguments: JsonObject = ORDER) -> Any:
        return await self.executor.run(name, arguments, ToolContext(call=name))


@pytest_asyncio.fixture(scope="module")
async def shop(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Shop]:
    file = tmp_path_factory.mktemp("mcp") / "effects"
    registry = ToolRegistry()
    found = registry.add_mcp([*MODULE, str(file)], cwd=str(ROOT), options={"send": {"cost": 2.5}})
    yield Shop(registry, found, file)
    await found.close()


def test_its_tools_are_there_under_legal_names_and_one_bad_one_takes_no_other_down(shop: Shop) -> None:
    assert shop.found.names == {
        "find_order": "find order",
        **{name: name for name in ("save", "send", "delete", "blocks", "fails", "breaks", "dies", "dies_reading")},
    }
    assert [spec.name for spec in shop.found.added] == list(shop.found.names) == [spec.name for spec in shop.registry]
    [(name, problem)] = shop.found.refused.items()
    assert name == "bad"
    assert isinstance(problem, ToolSchemaError)


def test_effect_repetition_and_approval_follow_its_hints(shop: Shop) -> None:
    found = {spec.name: (spec.effect, spec.idempotent, spec.confirm) for spec in shop.found.added}
    assert found["find_order"] == ("read", False, False)
    assert found["save"] == ("write", True, False)
    assert found["send"] == ("write", False, False)
    assert found["delete"] == ("write", False, True)
    assert shop.registry["send"].cost == 2.5


def test_a_model_is_shown_its_schema(shop: Shop) -> None:
    assert to_gemini_parameters(shop.registry["find_order"].parameters) == {
        "type": "OBJECT",
        "properties": {"id": {"type": "STRING", "pattern": "^A-"}},
        "required": ["id"],
    }


async def test_a_call_is_made_over_one_connection_and_gives_structured_content_text_or_blocks(shop: Shop) -> None:
    one, other = await asyncio.gather(shop.run("find_order"), shop.run("find_order"))
    assert one["total"] == 149
    assert one["pid"] == other["pid"]
    assert await shop.run("save") == "save done\ntwice"
    text, picture = await shop.run("blocks")
    assert text == {"type": "text", "text": "a"}
    assert picture == {"type": "image", "data": "aGk=", "mimeType": "image/png"}


async def test_arguments_are_checked_before_the_server_is_asked(shop: Shop) -> None:
    before = shop.effects
    with pytest.raises(ToolArgsInvalid):
        await shop.run("save", {"id": "B-1"})
    assert shop.effects == before


async def test_what_it_does_not_call_harmless_needs_approval(shop: Shop) -> None:
    await shop.run("delete")
    assert shop.asked == ["delete"]
    with pytest.raises(ApprovalDenied):
        await shop.run("delete", {"id": "A-no"})
    assert [line for line in shop.effects if line.startswith("delete")] == ["delete A-1"]


async def test_guards_look_at_its_tools_too(shop: Shop) -> None:
    executor = Executor(shop.registry, guards=[SensitiveDataGuard(inputs="block")])
    with pytest.raises(GuardrailBlocked, match="e-mail"):
        await executor.run("save", {"id": "A-ana@example.com"})
    assert not [line for line in shop.effects if "example" in line]


async def test_what_the_server_says_reaches_the_model_and_what_it_throws_does_not(shop: Shop) -> None:
    with pytest.raises(ToolError, match=r"There is no order A-9\."):
        await shop.run("fails")
    with pytest.raises(ToolError, match="refused the call of 'breaks'") as refused:
        await shop.run("breaks")
    assert "4711" not in refused.value.message


async def test_of_a_write_whose_server_dies_nobody_knows_the_outcome_and_the_next_call_finds_another_server(
    shop: Shop,
) -> None:
    before = (await shop.run("find_order"))["pid"]
    with pytest.raises(ToolError, match="may or may not") as lost:
        await shop.run("dies")
    assert lost.value.outcome_unknown
    assert shop.ledger.entries[-1].outcome == "unknown"
    assert (await shop.run("find_order"))["pid"] != before
    with pytest.raises(ToolError) as read:
        await shop.run("dies_reading")
    assert not read.value.outcome_unknown


def test_without_trust_every_tool_is_a_write_that_needs_approval(tmp_path: Path) -> None:
    registry = ToolRegistry()
    server = [*MODULE, str(tmp_path / "effects")]
    found = registry.add_mcp(server, cwd=str(ROOT), prefix="shop.", include=["find order", "send"], trust=False)
    assert [(spec.name, spec.effect, spec.confirm) for spec in found.added] == [
        ("shop.find_order", "write", True),
        ("shop.send", "write", True),
    ]
    with pytest.raises(ToolUsageError, match="no tool 'nope'"):
        registry.add_mcp(server, cwd=str(ROOT), options={"nope": {}})
    again = registry.add_mcp(server, cwd=str(ROOT), prefix="shop.", include=["send"], confirm=False)
    assert "in the registry already" in again.refused["send"].message


@pytest.mark.parametrize("server", [[], "shop", "ftp://x", [sys.executable, "-c", "pass"], ["/no/such/program"]])
def test_a_server_that_is_none_is_named(server: Any) -> None:
    with pytest.raises(ToolUsageError, match="MCP server"):
        ToolRegistry().add_mcp(server, timeout=20)


async def test_streamable_http_with_headers(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [*MODULE, str(tmp_path / "effects"), str(port)]
    process = await asyncio.create_subprocess_exec(*command, cwd=ROOT, stdin=DEVNULL)
    url = f"http://127.0.0.1:{port}/mcp/"
    try:
        async with asyncio.timeout(60), httpx.AsyncClient() as client:
            while not await _answers(client, url):
                assert process.returncode is None
                await asyncio.sleep(0.05)
        registry = ToolRegistry()
        found = await asyncio.to_thread(registry.add_mcp, url, headers={"x-key": "k1"})
        shop = Shop(registry, found, tmp_path / "effects")
        assert (await shop.run("find_order"))["total"] == 149
        await shop.run("delete")
        assert shop.effects == ["delete A-1"]
        assert shop.asked == ["delete"]
        await found.close()
        with pytest.raises(ToolUsageError, match="did not tell its tools"):
            await asyncio.to_thread(ToolRegistry().add_mcp, url)
    finally:
        process.terminate()
        await process.wait()


async def _answers(client: httpx.AsyncClient, url: str) -> bool:
    try:
        return (await client.get(url)).status_code == 401
    except httpx.TransportError:
        return False
