"""The host's two ADK plugins: one before the user's own, one after them."""

from __future__ import annotations

import asyncio
from typing import Any

import structlog
from google.adk.agents.callback_context import CallbackContext
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.plugins import BasePlugin
from google.adk.tools import BaseTool, ToolContext

from agentvisor.adk.call_order import in_call_order, with_own_ids
from agentvisor.adk.hosted_tool import host_tool, pause_what_asks
from agentvisor.adk.project_rules import ProjectRules
from agentvisor.adk.running_leg import running_leg

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class FirstPlugin(BasePlugin):
    """Stands first and never answers: sees every model response, whatever the user's plugins make of it."""

    def __init__(self) -> None:
        super().__init__("agentvisor_first")

    async def after_model_callback(self, *, callback_context: CallbackContext, llm_response: LlmResponse) -> None:
        leg, usage = running_leg(), llm_response.usage_metadata
        if leg and usage and not llm_response.partial:
            leg.count_tokens(usage.total_token_count or 0)
        if _is_empty(llm_response):
            llm_response.error_code = "MODEL_RETURNED_NO_CONTENT"
            llm_response.error_message = "no candidates"
        elif _has_nameless_call(llm_response):
            llm_response.content = None
            llm_response.error_code = "MALFORMED_FUNCTION_CALL"
            llm_response.error_message = "a function call without a name"
        with_own_ids(llm_response, callback_context.session.events)


def _is_empty(response: LlmResponse) -> bool:
    """No candidates at all, which ADK takes for an answer."""
    said = response.content and response.content.parts
    return not (said or response.partial or response.error_code or response.finish_reason or response.interrupted)


def _has_nameless_call(response: LlmResponse) -> bool:
    """Stored, such a call would be refused by the model's API in every later request of the thread."""
    parts = (response.content and response.content.parts) or []
    return any(part.function_call and not part.function_call.name for part in parts)


class LastPlugin(BasePlugin):
    """Stands last, so that the user's plugins answer first: limits, pausing calls, tool errors, order of responses."""

    def __init__(self, rules: ProjectRules) -> None:
        super().__init__("agentvisor_last")
        self._rules = rules

    async def before_model_callback(self, *, callback_context: CallbackContext, llm_request: LlmRequest) -> None:
        del callback_context
        if leg := running_leg():
            await leg.before_model()
        llm_request.contents = in_call_order(llm_request.contents)

    async def on_model_error_callback(
        self, *, callback_context: CallbackContext, llm_request: LlmRequest, error: Exception
    ) -> None:
        del callback_context, llm_request
        if leg := running_leg():
            leg.model_error = error

    async def before_tool_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext
    ) -> None:
        del tool_args, tool_context
        host_tool(tool, self._rules)

    async def after_tool_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext, result: Any
    ) -> None:
        del result
        await pause_what_asks(tool, tool_args, tool_context)

    async def on_tool_error_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext, error: BaseException
    ) -> dict[str, Any] | None:
        """Without it ADK keeps the results of a raising call's siblings and never speaks of the call again."""
        del tool_args, tool_context
        if isinstance(error, asyncio.CancelledError):
            return None
        if isinstance(error, ValueError) and str(error).startswith(f"Tool '{tool.name}' not found"):
            return None  # ADK tells the model which tools there are
        log.error("tool.failed", tool=tool.name, exc_info=error)
        return {"error": {"kind": "tool-error", "message": f"The tool {tool.name!r} failed. It may have had effects."}}
