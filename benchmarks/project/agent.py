"""The agent of the benchmarks, as this host runs it."""

from __future__ import annotations

import scripted
import tools
from google.adk.agents import LlmAgent

from agent_adapter import ToolRegistry
from agent_adapter.integrations.adk import adk_tools
from agentvisor.adk import register_agent

registry = ToolRegistry()
registry.tool(effect="read")(tools.find_order)
registry.tool(effect="write")(tools.add_note)
registry.tool(effect="write", confirm=True)(tools.send_invoice)

register_agent(
    LlmAgent(name="bench", model=scripted.MODEL, instruction="You help a shop.", tools=list(adk_tools(registry)))
)
