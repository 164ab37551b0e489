"""What cannot work under the host is refused when the project loads, by name and before any model call."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import structlog
from google.adk.agents import BaseAgent, LlmAgent
from google.adk.apps import App
from google.adk.tools import AgentTool, BaseTool, FunctionTool, LongRunningFunctionTool
from google.adk.tools.base_toolset import BaseToolset

from agent_adapter.errors import ToolUsageError
from agent_adapter.integrations.adk.tool import AdapterTool
from agent_adapter.registry import check_name
from agentvisor.adk.agents import all_agents, static_tools
from agentvisor.adk.hosted_tool import FRAMEWORK_TOOLS, is_framework_tool
from agentvisor.adk.project_rules import NOTHING_SAID, ProjectRules, speaks_for_itself

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class Refusal(Exception):
    """The agent cannot be served. The text names the agent and tool, and the way out."""


def check_app(app: App, rules: ProjectRules) -> None:
    """Raise Refusal for the first thing in the app that cannot work under these rules."""
    for agent in all_agents(app.root_agent):
        _check_tools(agent)
        _check_live(agent)
        for tool in static_tools(agent):
            if isinstance(tool, AgentTool) and not any(tool.agent is sub for sub in agent.sub_agents):
                _check_agent_tool(agent, tool, rules)


def check_rules(rules: ProjectRules, apps: Iterable[App]) -> None:
    """Raise Refusal for the first tool that agentvisor.yaml cannot speak of."""
    roots: list[Any] = [app.root_agent for app in apps]
    tools = [tool for root in roots for agent in all_agents(root) for tool in static_tools(agent)]
    # A toolset names its tools when it is asked, and a workflow may make its agents as it runs.
    more_to_come = not all(isinstance(root, BaseAgent) for root in roots) or any(
        isinstance(tool, BaseToolset) for tool in tools
    )
    for name in rules.tools:
        named = [tool for tool in tools if _name(tool) == name]
        for tool in named:
            _check_spoken_of(name, tool)
        if named:
            continue
        if not more_to_come:
            raise Refusal(_unknown(name, {known for tool in tools if (known := _name(tool))}))
        log.warning("project.tool_unseen", tool=name)


def _unknown(name: str, known: set[str]) -> str:
    return (
        f"agentvisor.yaml speaks under `tools` of {name!r}, but no agent has such a tool; "
        f"they have: {', '.join(sorted(known)) or 'none'}. Correct the name, or remove it."
    )


def _check_spoken_of(name: str, tool: Any) -> None:
    if isinstance(tool, AdapterTool):
        way_out = "a tool of agent_adapter. Say it where the tool is defined: ToolSpec has these options, too."
    elif isinstance(tool, BaseTool) and speaks_for_itself(tool):
        way_out = "a long-running tool, which waits for its answer anyway. Remove it there."
    elif name in FRAMEWORK_TOOLS or (isinstance(tool, BaseTool) and is_framework_tool(tool)):
        way_out = "one that ADK steers the agent with. Remove it there."
    else:
        return
    raise Refusal(f"agentvisor.yaml speaks under `tools` of {name!r}, {way_out}")


def _check_tools(agent: BaseAgent) -> None:
    tools = static_tools(agent)
    names = [name for tool in tools if (name := _name(tool))]
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        text = f"Agent {agent.name!r} has two tools named {repeated[0]!r}, of which ADK would run the last. Rename one."
        raise Refusal(text)
    for tool in tools:
        if not _is_adks_own(tool):
            _check_name(agent, tool)


def _check_name(agent: BaseAgent, tool: Any) -> None:
    name = _name(tool)
    if name is None:
        return  # a toolset names its tools when it is asked
    try:
        check_name(name)
    except ToolUsageError as problem:
        raise Refusal(f"Agent {agent.name!r}: {problem}") from problem


def _is_adks_own(tool: Any) -> bool:
    """ADK's own tools bear the names that are reserved for them."""
    function = tool.func if isinstance(tool, FunctionTool) else tool
    module = str(getattr(function, "__module__", type(tool).__module__))
    return module.startswith("google.adk.")


def _check_live(agent: BaseAgent) -> None:
    model: Any = agent.model if isinstance(agent, LlmAgent) else None
    name = model if isinstance(model, str) else str(getattr(model, "model", ""))
    if "-live-" in name or name.endswith("-live") or "native-audio" in name:
        text = (
            f"Agent {agent.name!r} uses the live model {name!r}; live (bidi) sessions are not hosted. Use a text model."
        )
        raise Refusal(text)


def _check_agent_tool(agent: BaseAgent, tool: AgentTool, rules: ProjectRules) -> None:
    for inner in all_agents(tool.agent):
        for used in static_tools(inner):
            if _may_pause(used, rules):
                text = (
                    f"Agent {agent.name!r} wraps {tool.agent.name!r} in an AgentTool, and its tool {_name(used)!r} "
                    "may pause: ADK cannot resume what an AgentTool runs. List the agent under sub_agents instead, "
                    "with mode='single_turn' or mode='task' to call it like a tool."
                )
                raise Refusal(text)


def _may_pause(tool: Any, rules: ProjectRules) -> bool:
    said = rules.tools.get(_name(tool) or "", NOTHING_SAID)
    if said.effect == "write" or said.confirm is not None:
        return said.effect == "write" or said.confirm is True
    if isinstance(tool, AdapterTool):
        return tool.may_pause
    if isinstance(tool, LongRunningFunctionTool):
        return True
    if isinstance(tool, FunctionTool):
        rule: Any = tool._require_confirmation  # pyright: ignore[reportPrivateUsage]
        return bool(rule)
    gated = (
        isinstance(tool, BaseTool) and type(tool).check_require_confirmation is not BaseTool.check_require_confirmation
    )
    return gated or bool(getattr(tool, "is_long_running", False))


def _name(tool: Any) -> str | None:
    if isinstance(tool, BaseTool):
        return tool.name
    return str(getattr(tool, "__name__", type(tool).__name__)) if callable(tool) else None
