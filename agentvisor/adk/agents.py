"""The agents of a project: walking their tree, finding one and its tools."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from google.adk.agents import BaseAgent, LlmAgent
from google.adk.tools import AgentTool, BaseTool
from google.adk.workflow import Workflow


def all_agents(root: Any) -> Iterator[BaseAgent]:
    """Every agent of the tree, of workflows in it, and those that AgentTools wrap; each once."""
    seen: set[int] = set()
    waiting: list[Any] = [root]
    while waiting:
        node = waiting.pop(0)
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, BaseAgent):
            yield node
        waiting += _children(node)


def _children(node: Any) -> list[Any]:
    if isinstance(node, Workflow):
        return list(node.graph.nodes) if node.graph else []
    if not isinstance(node, BaseAgent):
        return []
    return [*node.sub_agents, *(tool.agent for tool in static_tools(node) if isinstance(tool, AgentTool))]


def static_tools(agent: Any) -> list[Any]:
    """What stands in the agent's `tools`: tools, functions, toolsets."""
    return cast("list[Any]", agent.tools) if isinstance(agent, LlmAgent) else []


def find_agent(root: Any, name: str) -> BaseAgent | None:
    """The agent of this name in the tree."""
    return next((agent for agent in all_agents(root) if agent.name == name), None)


async def find_tool(agent: BaseAgent, name: str) -> BaseTool | None:
    """The agent's tool of this name, toolsets included; of several the last one, as ADK would run it."""
    if not isinstance(agent, LlmAgent):
        return None
    return next((tool for tool in reversed(await agent.canonical_tools()) if tool.name == name), None)
