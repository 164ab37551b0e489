"""One agent. Each tool reports when it is entered, its effect, and when it is left; a test may hold it at each."""

from __future__ import annotations

import os
from typing import Any

from effects_client import areport
from google.adk.agents import LlmAgent

from agent_adapter import Allow, CallableGuard, ToolContext, ToolRegistry
from agent_adapter.integrations.adk import adk_tools
from agentvisor.adk import register_agent

registry = ToolRegistry()


async def _act(tool: str, mark: str, slot: int, **payload: Any) -> dict[str, Any]:
    name, told = f"{mark}.{tool}.{slot}", {"pid": os.getpid(), **payload}
    await areport(f"{name}.entered", told)
    count = await areport(name, told)
    await areport(f"{name}.left", told)
    return {"slot": slot, "count": count}


async def _looked_at(arguments: dict[str, Any], _context: ToolContext) -> Allow:
    await areport(f"{arguments['mark']}.guard.{arguments['slot']}")
    return Allow()


@registry.tool(effect="read")
async def look(mark: str, slot: int) -> dict[str, Any]:
    """Look something up."""
    return await _act("look", mark, slot)


@registry.tool
async def note(mark: str, slot: int, size: int = 0) -> dict[str, Any]:
    """Write a note; nobody is asked."""
    return {**await _act("note", mark, slot), "text": "x" * size}


@registry.tool(confirm=True, guards=[CallableGuard(_looked_at)])
async def pay(mark: str, slot: int, amount: int = 5) -> dict[str, Any]:
    """Pay an amount; a person approves it."""
    return await _act("pay", mark, slot, amount=amount)


@registry.tool(idempotent=True)
async def book(mark: str, slot: int, context: ToolContext) -> dict[str, Any]:
    """Book under the call's key; nobody is asked."""
    return await _act("book", mark, slot, key=context.idempotency_key)


@registry.tool(idempotent=True, confirm=True)
async def reserve(mark: str, slot: int, context: ToolContext) -> dict[str, Any]:
    """Reserve under the call's key; a person approves it."""
    return await _act("reserve", mark, slot, key=context.idempotency_key)


root_agent = LlmAgent(
    name="cashier", model="gemini-2.5-flash", instruction="You keep the books.", tools=[*adk_tools(registry)]
)
register_agent(root_agent)
