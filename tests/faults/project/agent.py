"""One agent. Each tool reports when it is entered, its effect, and when it is left; a test may hold it at each.

`seconds`: how long a tool takes before its effect, and again after it.
"""

from __future__ import annotations

import asyncio
import os
from typing import Any

from effects_client import areport
from google.adk.agents import LlmAgent

from agent_adapter import Allow, CallableGuard, ToolContext, ToolRegistry
from agent_adapter.integrations.adk import adk_tools
from agentvisor.adk import register_agent

registry = ToolRegistry()


async def _act(tool: str, mark: str, slot: int, seconds: float, **payload: Any) -> dict[str, Any]:
    name, told = f"{mark}.{tool}.{slot}", {"pid": os.getpid(), **payload}
    await areport(f"{name}.entered", told)
    await asyncio.sleep(seconds)
    count = await areport(name, told)
    await asyncio.sleep(seconds)
    await areport(f"{name}.left", told)
    return {"slot": slot, "count": count}


async def _looked_at(arguments: dict[str, Any], _context: ToolContext) -> Allow:
    await areport(f"{arguments['mark']}.guard.{arguments['slot']}")
    return Allow()


@registry.tool(effect="read")
async def look(mark: str, slot: int, seconds: float = 0.0) -> dict[str, Any]:
    """Look something up."""
    return await _act("look", mark, slot, seconds)


@registry.tool
async def note(mark: str, slot: int, seconds: float = 0.0, size: int = 0) -> dict[str, Any]:
    """Write a note; nobody is asked."""
    return {**await _act("note", mark, slot, seconds), "text": "x" * size}


@registry.tool(confirm=True, guards=[CallableGuard(_looked_at)])
async def pay(mark: str, slot: int, seconds: float = 0.0, amount: int = 5) -> dict[str, Any]:
    """Pay an amount; a person approves it."""
    return await _act("pay", mark, slot, seconds, amount=amount)


@registry.tool(idempotent=True)
async def book(mark: str, slot: int, context: ToolContext, seconds: float = 0.0) -> dict[str, Any]:
    """Book under the call's key; nobody is asked."""
    return await _act("book", mark, slot, seconds, key=context.idempotency_key)


@registry.tool(idempotent=True, confirm=True)
async def reserve(mark: str, slot: int, context: ToolContext, seconds: float = 0.0) -> dict[str, Any]:
    """Reserve under the call's key; a person approves it."""
    return await _act("reserve", mark, slot, seconds, key=context.idempotency_key)


root_agent = LlmAgent(
    name="cashier", model="gemini-2.5-flash", instruction="You keep the books.", tools=[*adk_tools(registry)]
)
register_agent(root_agent)
