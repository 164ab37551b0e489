"""A shop in plain ADK: tools that need approval, an agent that has them, and one conversation with it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.events import Event
from google.adk.models.google_llm import Gemini
from google.adk.runners import InMemoryRunner
from google.genai import types

from agent_adapter import (
    ApprovalDecision,
    ApprovalRequest,
    CallbackApproval,
    Executor,
    ToolContext,
    ToolRegistry,
    ToolSpec,
)
from agent_adapter.integrations.adk import adk_tools
from agentvisor.local_gemini import LocalGemini
from tests.fixtures.gemini import call

CONFIRM = "adk_request_confirmation"

_open: list[Shop] = []


class Shop:
    """Close it at the end: the fixture `model` does."""

    def __init__(self, port: Any = None, *plain_tools: Any) -> None:
        self.done: list[tuple[str, Any]] = []
        self.registry = ToolRegistry()
        self.registry.add(ToolSpec(name="pay", description="Pay.", function=self.pay, confirm=True))
        self.registry.add(ToolSpec(name="refund", description="Refund.", function=self.refund, confirm=over_ten))
        self.registry.add(ToolSpec(name="hidden", description="Hidden.", function=self.refund, export=("other",)))
        tools = adk_tools(self.registry, executor=Executor(self.registry, approval=port))
        self.model = Gemini(model="gemini-2.5-flash")
        agent = LlmAgent(name="shop", model=self.model, tools=[*tools, *plain_tools])
        self.runner = InMemoryRunner(agent=agent, app_name="shop")
        self.session_id = ""
        self.has_spoken = False
        _open.append(self)

    def leave(self) -> None:
        """What is said next begins another conversation."""
        self.session_id = ""

    async def close(self) -> None:
        await self.runner.close()
        if self.has_spoken:
            await self.model.api_client.aio.aclose()

    def pay(self, order: str, context: ToolContext) -> dict[str, Any]:
        self.done.append((order, context.approval and context.approval.decided_by))
        context.state["paid"] = order
        return {"paid": order, "thread": context.thread == self.session_id}

    def refund(self, amount: int) -> str:
        self.done.append(("refund", amount))
        return "refunded"

    async def send(self, message: str | types.Content) -> list[Event]:
        self.has_spoken = True
        if not self.session_id:
            session = await self.runner.session_service.create_session(app_name="shop", user_id="u")
            self.session_id = session.id
        content = types.Content(role="user", parts=[types.Part(text=message)]) if isinstance(message, str) else message
        run = self.runner.run_async(user_id="u", session_id=self.session_id, new_message=content)
        return [event async for event in run]


def over_ten(arguments: dict[str, Any], context: ToolContext) -> bool:
    del context
    return arguments["amount"] > 10


def confirm(events: list[Event], response: dict[str, Any]) -> types.Content:
    [request] = [found for event in events for found in event.get_function_calls() if found.name == CONFIRM]
    answer = types.FunctionResponse(id=request.id, name=CONFIRM, response=response)
    return types.Content(role="user", parts=[types.Part(function_response=answer)])


def responses(events: list[Event]) -> list[Any]:
    return [found.response for event in events for found in event.get_function_responses()]


def says(answer: bool | ApprovalDecision, asked: list[ApprovalRequest]) -> CallbackApproval:
    def review(request: ApprovalRequest) -> bool | ApprovalDecision:
        asked.append(request)
        return answer

    return CallbackApproval(review)


@pytest.fixture
async def model(gemini: LocalGemini, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[LocalGemini]:
    """The shop's agent talks to this model."""
    for name, value in gemini.env().items():
        monkeypatch.setenv(name, value)
    gemini.script([call("pay", order="A-1"), "Done."], user="^go$", repeat=True)
    yield gemini
    while _open:
        await _open.pop().close()
