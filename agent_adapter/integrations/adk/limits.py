"""Model calls and tokens of an ADK run, counted where the run's tool calls are."""

from __future__ import annotations

from google.adk.agents.callback_context import CallbackContext
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.plugins.base_plugin import BasePlugin

from agent_adapter.errors import RunLimitExceeded
from agent_adapter.executor import Executor
from agent_adapter.limits import RunMeter


class RunLimitsPlugin(BasePlugin):
    """Charges the model calls and tokens of every agent of an app to the executor's limits.

    Beyond a limit the model is not called: the run ends with an event whose error code is `run-limit-exceeded`, and the
    session takes the next message.
    """

    def __init__(self, executor: Executor, *, name: str = "agent_adapter_run_limits") -> None:
        super().__init__(name)
        self._executor = executor

    async def before_model_callback(
        self,
        *,
        callback_context: CallbackContext,
        llm_request: LlmRequest,  # noqa: ARG002
    ) -> LlmResponse | None:
        try:
            self._meter(callback_context).charge_model_call()
        except RunLimitExceeded as exceeded:
            return LlmResponse(error_code=exceeded.kind, error_message=exceeded.message)
        return None

    async def after_model_callback(
        self, *, callback_context: CallbackContext, llm_response: LlmResponse
    ) -> LlmResponse | None:
        usage = llm_response.usage_metadata
        if usage is not None and usage.total_token_count and not llm_response.partial:
            self._meter(callback_context).charge_tokens(usage.total_token_count)
        return None

    def _meter(self, context: CallbackContext) -> RunMeter:
        return self._executor.meters.of(thread=context.session.id, run=context.invocation_id)
