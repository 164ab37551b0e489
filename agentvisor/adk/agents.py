"""The agents of a project: walking their tree, finding one and its tools."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from google.adk.agents import BaseAgent, LlmAgent
from google.adk.tools import AgentTool, BaseTool


def all_agents(root: Any) -> Iterator[BaseAgent]:
    """Every agent of the tree and those that AgentTools wrap, each once."""
    seen: set[int] = set()
    waiting = [root]
    while waiting:
        agent = waiting.pop(0)
        if id(agent) in seen or not isinstance(agent, BaseAgent):
            continue
        seen.add(id(agent))
        yield agent
        waiting += agent.sub_agents
        waiting += [tool.agent for tool in static_tools(agent) if isinstance(tool, AgentTool)]


def static_tools(agent: Any) -> list[Any]:
    """What stands in the agent's `tools`: tools, functions, toolsets."""
    return cast("list[Any]", agent.tools) if isinstance(agent, LlmAgent) else []


def find_agent(root: Any, name: str) -> BaseAgent | None:
    """The agent of this name in the tree."""
    return next((agent for agent in all_agents(root) if agent.name == name), None)


async def find_tool(agent: BaseAgent, name: str) -> BaseTool | None:
    """The agent's tool of this name, toolsets included."""
    if not isinstance(agent, LlmAgent):
        return None
    return next((tool for tool in await agent.canonical_tools() if tool.name == name), None)
