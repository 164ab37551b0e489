"""An agent of plain functions; what they are is said in agentvisor.yaml."""

from __future__ import annotations

from typing import Any

from effects_client import areport, report
from google.adk.agents import LlmAgent
from google.adk.tools import FunctionTool

from agent_adapter import ToolRegistry
from agent_adapter.integrations.adk import adk_tools

registry = ToolRegistry()


@registry.tool(confirm=True)
async def pay(mark: str) -> dict[str, Any]:
    """Pay; a person approves it."""
    return {"count": await areport(f"{mark}.pay")}


@registry.tool(confirm=True, expires=60)
async def pay_soon(mark: str) -> dict[str, Any]:
    """Pay; a person approves it within a minute."""
    return {"count": await areport(f"{mark}.pay_soon")}


def send(mark: str) -> dict[str, Any]:
    """Send something."""
    return {"count": report(f"{mark}.send")}


def erase(mark: str) -> dict[str, Any]:
    """Erase something."""
    return {"count": report(f"{mark}.erase")}


def refund(mark: str) -> dict[str, Any]:
    """Refund something."""
    return {"count": report(f"{mark}.refund")}


def peek(mark: str) -> dict[str, Any]:
    """Look at something."""
    return {"count": report(f"{mark}.peek")}


root_agent = LlmAgent(
    name="declared",
    model="gemini-2.5-flash",
    instruction="You are declared.",
    tools=[*adk_tools(registry), send, erase, FunctionTool(refund, require_confirmation=True), peek],
)
