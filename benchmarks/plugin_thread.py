"""The same agent hosted by Temporal's own ADK plugin: a conversation is a workflow, and ADK runs inside it.

Written as the plugin's own documents show: model and tools are activities, a confirmation is an update; data converter
and sandbox settings are the plugin's.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    import scripted
    from google.adk.agents import LlmAgent
    from google.adk.runners import Runner
    from google.adk.sessions import InMemorySessionService
    from google.adk.tools.function_tool import FunctionTool
    from google.genai import types

    from benchmarks.plugin_library import activity_as_tool, google_adk
    from benchmarks.plugin_tools import add_note, find_order, send_invoice

_WITHIN = {"start_to_close_timeout": timedelta(seconds=300)}


def _agent() -> LlmAgent:
    return LlmAgent(
        name="bench",
        model=google_adk.TemporalModel(scripted.MODEL),
        instruction="You help a shop.",
        tools=[
            activity_as_tool(find_order, **_WITHIN),
            activity_as_tool(add_note, **_WITHIN),
            FunctionTool(activity_as_tool(send_invoice, **_WITHIN), require_confirmation=True),
        ],
    )


@workflow.defn
class PluginThread:
    """Runs what it is told, one message after the other, until it is closed."""

    def __init__(self) -> None:
        self._queue: list[str] = []
        self._closed = False
        self._confirmed: bool | None = None

    @workflow.signal
    def run(self, text: str) -> None:
        """Queue a message."""
        self._queue.append(text)

    @workflow.signal
    def close(self) -> None:
        """End once nothing is queued."""
        self._closed = True

    @workflow.update
    def decide(self, confirmed: bool) -> str:
        """Settle the confirmation the agent waits for."""
        self._confirmed = confirmed
        return "confirmed" if confirmed else "rejected"

    @workflow.run
    async def talk(self) -> None:
        """Go on until closed."""
        sessions: Any = InMemorySessionService()
        runner = Runner(app_name="bench", agent=_agent(), session_service=sessions)
        session = await sessions.create_session(app_name="bench", user_id="ana")
        while True:
            await workflow.wait_condition(lambda: bool(self._queue) or self._closed)
            if not self._queue:
                return
            part = types.Part(text=self._queue.pop(0))
            while part is not None:
                part = await self._turn(runner, session.id, part)

    async def _turn(self, runner: Runner, session_id: str, part: types.Part) -> types.Part | None:
        """One message to the agent; the answer to a confirmation it asks for, if it does."""
        message = types.Content(role="user", parts=[part])
        asked: list[Any] = []
        async for event in runner.run_async(user_id="ana", session_id=session_id, new_message=message):
            asked += google_adk.pending_hitl_requests(event)
        if not asked:
            return None
        await workflow.wait_condition(lambda: self._confirmed is not None)
        confirmed, self._confirmed = self._confirmed, None
        return google_adk.hitl_confirmation_response(asked[0].interrupt_id, confirmed=bool(confirmed))
