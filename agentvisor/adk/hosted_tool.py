"""Tools in a guest: calls are counted, whatever a tool raises is an outcome, gated plain tools pause their turn."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from types import CoroutineType
from typing import Any

import structlog
from google.adk.tools import AgentTool, BaseTool, ToolContext
from google.genai import types

from agent_adapter.approval.pause import PausedCall
from agent_adapter.errors import ModelError, RunLimitExceeded
from agent_adapter.integrations.adk.context import bind_context
from agent_adapter.integrations.adk.hosted import asks_by_itself, has_outcome, is_waiting, outcome, pause
from agent_adapter.integrations.adk.tool import AdapterTool
from agent_adapter.integrations.adk.tool import paused_call as adapter_call
from agentvisor.adk.json_values import as_json, flaw
from agentvisor.adk.plain_tool import checked_arguments, judged, paused_call
from agentvisor.adk.project_rules import NOTHING_SAID, ProjectRules
from agentvisor.adk.running_leg import RunningLeg, running_leg
from agentvisor.project import PlainTool
from agentvisor.protocol import JsonObject, LegFailed

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

FRAMEWORK_TOOLS = frozenset({"transfer_to_agent", "finish_task", "set_model_response", "exit_loop"})
Run = Callable[..., "CoroutineType[Any, Any, Any]"]
Rule = Callable[..., "CoroutineType[Any, Any, bool]"]
_HOSTED = "_agentvisor_hosted"


class ToolStopped(Exception):
    """The tool raised CancelledError, SystemExit or the like, although nobody cancelled it."""


@dataclass(frozen=True)
class Own:
    """A tool's own methods, before a host changed the object; and what the project's file says of it."""

    run: Run
    rule: Rule
    said: PlainTool = NOTHING_SAID


def is_framework_tool(tool: BaseTool) -> bool:
    """ADK steers with it: it is neither counted nor gated."""
    deferred: bool = tool._defers_response  # pyright: ignore[reportPrivateUsage]
    return tool.name in FRAMEWORK_TOOLS or isinstance(tool, AgentTool) or deferred


def host_tool(tool: BaseTool, rules: ProjectRules) -> None:
    """Make this tool object run under the host's rules from now on.

    The object itself is changed, since callbacks and ADK must see the user's own tool, and toolsets make theirs late.
    """
    if _HOSTED in vars(tool) or is_framework_tool(tool):
        return
    said = rules.about(tool)
    rule = tool.check_require_confirmation if said.confirm is None else _constant(said.confirm)
    own = Own(tool.run_async, rule, said)
    setattr(tool, _HOSTED, own)
    if isinstance(tool, AdapterTool):
        tool.run_async = _counted(tool, own.run, cost=tool.spec.cost)
    else:
        tool.run_async = _counted(tool, _gated(tool, own))
        tool.check_require_confirmation = _constant(False)  # the host is the gate


def own_of(tool: BaseTool) -> Own:
    """What the tool does without a host, as the project's file would have it."""
    own: Own | None = getattr(tool, _HOSTED, None)
    return own or Own(tool.run_async, tool.check_require_confirmation)


def _constant(answer: bool) -> Rule:
    async def rule(args: JsonObject, tool_context: ToolContext) -> bool:  # noqa: ARG001 - the signature of ADK
        return answer

    return rule


def _gated(tool: BaseTool, own: Own) -> Run:
    async def run_async(*, args: JsonObject, tool_context: ToolContext) -> Any:
        if has_outcome(tool_context):
            return outcome(tool_context)
        leg = running_leg()
        if leg and ((asks := await _asks(tool, own.rule, args, tool_context, leg)) or own.said.effect == "write"):
            try:
                checked = checked_arguments(tool, args)
            except ModelError as error:
                return error.as_result()
            return pause(tool_context, paused_call(tool, args, checked, approval=asks, said=own.said))
        return await own.run(args=args, tool_context=tool_context)

    return run_async


async def pause_what_asks(tool: BaseTool, args: JsonObject, tool_context: ToolContext) -> None:
    """A call whose own code asked for its confirmation pauses like any other: it is made once, outside its turn."""
    if is_framework_tool(tool) or not asks_by_itself(tool_context):
        return
    try:
        paused = await _paused(tool, args, tool_context)
    except ModelError:
        return  # a person is asked all the same, and told what is wrong when the call is made
    hint = tool_context.actions.requested_tool_confirmations[tool_context.function_call_id or ""].hint
    pause(tool_context, paused.model_copy(update={"approval": True, "summary": hint or paused.summary}))


async def _paused(tool: BaseTool, args: JsonObject, tool_context: ToolContext) -> PausedCall:
    if isinstance(tool, AdapterTool):
        prepared = await tool.executor.prepare(tool.spec, args, bind_context(tool_context))
        return adapter_call(prepared, args)
    return paused_call(tool, args, checked_arguments(tool, args), approval=True, said=own_of(tool).said)


async def _asks(
    tool: BaseTool,
    rule: Rule,
    args: JsonObject,
    tool_context: ToolContext,
    leg: RunningLeg,
) -> bool:
    try:
        return await judged(rule, args, tool_context)
    except Exception as error:
        log.exception("confirm_rule.failed", tool=tool.name)
        text = (
            f"The confirmation rule of tool {tool.name!r} failed with {type(error).__name__}; the tool did not run. "
            "Mend the rule, then send the message again."
        )
        leg.stop(LegFailed(code="confirm-rule-failed", message=text))
        await leg.stand_still()


def _counted(tool: BaseTool, run: Run, *, cost: float = 0.0) -> Run:
    async def run_async(*, args: JsonObject, tool_context: ToolContext) -> Any:
        leg = None if has_outcome(tool_context) else running_leg()
        if leg:
            if (refusal := await leg.before_tool(cost)) is not None:
                return await _refused(tool, leg, refusal)
            leg.count_tool(cost)
        result = await own_outcome(run(args=args, tool_context=tool_context))
        if leg and is_waiting(tool_context):
            leg.uncount_tool(cost)
        if (refusal := refuse_unfit_state(tool_context)) is not None:
            return refusal
        if tool.is_long_running and not result:
            return {"status": "pending"}  # holds the call's place among the responses of its turn
        return result_as_json(result)

    return run_async


async def _refused(tool: BaseTool, leg: RunningLeg, refusal: RunLimitExceeded) -> JsonObject:
    """The model is told, and may answer. A long-running call would wait for an answer that nobody has: the run ends."""
    if tool.is_long_running:
        leg.exceed("tool calls, tokens or cost")
        await leg.stand_still()
    return refusal.as_result()


async def own_outcome(work: Awaitable[Any]) -> Any:
    """The result of a tool. What it raises to stop more than itself becomes ToolStopped; a real cancellation stays."""
    try:
        return await work
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        raise ToolStopped from error
    except (SystemExit, KeyboardInterrupt, GeneratorExit) as error:
        raise ToolStopped from error


def refuse_unfit_state(tool_context: ToolContext) -> JsonObject | None:
    """Take state out of a call that cannot be stored; the call's other effects stay. Returns what the model is told."""
    state, delta = tool_context.state, tool_context.actions.state_delta
    state.has_delta()  # records what was changed in place
    unfit = {key: reason for key, value in delta.items() if not key.startswith("temp:") and (reason := flaw(value))}
    for key in unfit:
        del delta[key]
        tool_context.session.state.pop(key, None)
    if not unfit:
        return None
    told = "; ".join(f"{key!r}: {reason}" for key, reason in unfit.items())
    message = f"The tool ran, but state it wrote cannot be stored ({told}). Only JSON values can."
    return {"error": {"kind": "state-not-json", "message": message}}


def result_as_json(result: Any) -> Any:
    """What a tool returned, as it will be read back from the session; media parts stay for ADK to take out."""
    return result if _has_media(result) else as_json(result)


def _has_media(result: Any) -> bool:
    items: list[Any] = [result]
    if isinstance(result, dict):
        items = [*result.values()]  # pyright: ignore[reportUnknownArgumentType]
    elif isinstance(result, list | tuple):
        items = [*result]  # pyright: ignore[reportUnknownArgumentType]
    return any(isinstance(item, types.Part | types.FunctionResponse) for item in items)
