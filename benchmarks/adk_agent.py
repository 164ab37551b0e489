"""The agent in ADK alone: what ADK does for a turn, and nothing around it.

ADK gets what a guest does for it (`prepare_adk`, no telemetry for nobody, one RunConfig). A note is a call that is
made elsewhere: ADK is left for it, and comes back with its result in another run.
"""

from __future__ import annotations

from typing import Any

from agentvisor.adk.runner import prepare_adk

prepare_adk()

import scripted  # noqa: E402 - ADK is imported after it was prepared
import tools  # noqa: E402
from google.adk.agents import LlmAgent  # noqa: E402
from google.adk.runners import Runner  # noqa: E402
from google.adk.sessions import InMemorySessionService  # noqa: E402
from google.adk.tools.long_running_tool import LongRunningFunctionTool  # noqa: E402
from google.genai import types  # noqa: E402

from agentvisor.adk.hosted_runner import run_config  # noqa: E402
from agentvisor.adk.inference_telemetry import tell_listeners_only  # noqa: E402

_NAME, _USER = "bench", "ana"


async def add_note(order_id: str, text: str) -> None:
    """Write a note on an order."""


class Agent:
    """Conversations with it, in memory."""

    def __init__(self) -> None:
        tell_listeners_only()
        agent = LlmAgent(
            name=_NAME,
            model=scripted.MODEL,
            instruction="You help a shop.",
            tools=[tools.find_order, LongRunningFunctionTool(add_note)],
        )
        sessions: Any = InMemorySessionService()
        self._runner = Runner(app_name=_NAME, agent=agent, session_service=sessions)

    async def begin(self, conversation: str) -> None:
        """A new conversation."""
        await self._runner.session_service.create_session(app_name=_NAME, user_id=_USER, session_id=conversation)

    async def say(self, conversation: str, text: str) -> list[types.FunctionCall]:
        """Say something. The calls that are left to be made elsewhere."""
        return await self._run(conversation, types.Part(text=text))

    async def tell(self, conversation: str, call: types.FunctionCall, result: dict[str, Any]) -> None:
        """Tell the result of such a call."""
        response = types.FunctionResponse(id=call.id, name=call.name, response=result)
        if await self._run(conversation, types.Part(function_response=response)):
            raise RuntimeError("the second run left a call, too")

    async def _run(self, conversation: str, part: types.Part) -> list[types.FunctionCall]:
        message = types.Content(role="user", parts=[part])
        left: list[types.FunctionCall] = []
        async for event in self._runner.run_async(
            user_id=_USER, session_id=conversation, new_message=message, run_config=run_config()
        ):
            left += [call for call in event.get_function_calls() if call.id in (event.long_running_tool_ids or ())]
        return left
