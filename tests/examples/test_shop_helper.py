"""The shop helper in plain ADK, as `adk run` and `adk web` load it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from importlib import import_module
from pathlib import Path

import pytest
from google.adk.agents import LlmAgent
from google.adk.cli.utils.agent_loader import AgentLoader
from google.adk.models.google_llm import Gemini
from google.adk.runners import InMemoryRunner
from google.genai import types

from agent_adapter import ApprovalDecision, ApprovalRequest, CallbackApproval
from agent_adapter.integrations.adk import resolve_confirmations
from agentvisor.adk import registration
from agentvisor.local_gemini import LocalGemini, load_script
from tests.fixtures.gemini import assert_well_formed, transcript

EXAMPLES = Path(__file__).parents[2] / "examples"
SHOP = EXAMPLES / "shop_helper"


class Conversation:
    """A session in plain ADK, whose approvals are settled by `decision`."""

    def __init__(self, runner: InMemoryRunner) -> None:
        self._runner = runner
        self.decision = ApprovalDecision(approved=True)
        self.asked: list[ApprovalRequest] = []

    async def say(self, text: str) -> str:
        """The agent's answer, in a new session."""
        session = await self._runner.session_service.create_session(app_name="shop_helper", user_id="u")
        registry = import_module("shop_helper.agent").registry
        message: types.Content | None = types.Content(role="user", parts=[types.Part(text=text)])
        said: list[str] = []
        while message is not None:
            run = self._runner.run_async(user_id="u", session_id=session.id, new_message=message)
            events = [event async for event in run]
            parts = [part for event in events if event.content for part in event.content.parts or []]
            said += [part.text for part in parts if part.text]
            message = await resolve_confirmations(events, CallbackApproval(self._decide), registry)
        return said[-1]

    def _decide(self, request: ApprovalRequest) -> ApprovalDecision:
        self.asked.append(request)
        return self.decision


@pytest.fixture
def shop_model(monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalGemini]:
    """The local model with the shop helper's script, and this process told to use it."""
    with LocalGemini(load_script(SHOP / "shop.yaml")) as server:
        for name, value in server.env().items():
            monkeypatch.setenv(name, value)
        yield server


@pytest.fixture
async def conversation(shop_model: LocalGemini, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Conversation]:
    monkeypatch.setattr(registration, "_registered", [])
    agent = AgentLoader(str(EXAMPLES)).load_agent("shop_helper")
    assert isinstance(agent, LlmAgent)
    runner = InMemoryRunner(agent=agent, app_name="shop_helper")
    yield Conversation(runner)
    await runner.close()
    model = agent.canonical_model
    assert isinstance(model, Gemini)
    await model.api_client.aio.aclose()
    for name in [name for name in sys.modules if name.split(".")[0] == "shop_helper"]:
        del sys.modules[name]


async def test_an_approved_invoice_is_sent(conversation: Conversation, shop_model: LocalGemini) -> None:
    answer = await conversation.say("Send the invoice for order A-1001.")
    assert answer == "Invoice INV-A-1001 over EUR 149.00 went to ana@example.com."
    assert [request.tool for request in conversation.asked] == ["send_invoice"]
    shown = shop_model.requests()[-1].contents
    assert_well_formed(shown)
    calls = ["CALL find_order", "RESP find_order", "CALL send_invoice", "RESP send_invoice"]
    assert transcript(shown) == ["USER Send the invoice for order A-1001.", *calls]


async def test_an_edited_invoice_is_sent_as_edited(conversation: Conversation) -> None:
    conversation.decision = ApprovalDecision(approved=True, edited_args={"order_id": "A-1001", "amount": "99.00"})
    answer = await conversation.say("Send the invoice for order A-1001.")
    assert answer == "Invoice INV-A-1001 over EUR 99.00 went to ana@example.com."


async def test_a_denied_invoice_is_not_sent(conversation: Conversation) -> None:
    conversation.decision = ApprovalDecision(approved=False, reason="not today")
    answer = await conversation.say("Send the invoice for order A-1001.")
    assert answer.startswith("The invoice for order A-1001 was not sent: ")


async def test_reading_asks_nobody(conversation: Conversation) -> None:
    assert await conversation.say("Which orders are open?") == "Without an invoice: A-1001, A-1002."
    order = await conversation.say("What is A-1003?")
    assert order == "Order A-1003 of Ana Moreno is 6 cups for EUR 54.00."
    assert (await conversation.say("Hello")).startswith("I look up orders")
    assert conversation.asked == []


async def test_an_unknown_order_is_said_to_be_unknown(conversation: Conversation) -> None:
    answer = await conversation.say("Send the invoice for order Z-9.")
    assert answer.startswith("I did not send an invoice: There is no order Z-9.")
    assert conversation.asked == []


async def test_the_model_is_told_the_tools_and_its_instruction(
    conversation: Conversation, shop_model: LocalGemini
) -> None:
    await conversation.say("Hello")
    seen = shop_model.requests()[0]
    assert [tool["name"] for tool in seen.tools] == ["list_orders", "find_order", "send_invoice"]
    assert "a person sees and approves every call of send_invoice" in seen.system
    assert seen.model == "gemini-2.5-flash"


def test_adk_run_takes_the_folder_as_it_is(shop_model: LocalGemini, tmp_path: Path) -> None:
    """In plain ADK, without an approval port, ADK's own "yes" opens nothing."""
    adk = Path(sys.executable).parent / "adk"
    said = "Which orders are open?\nSend the invoice for order A-1001.\nyes\nexit\n"
    folder = tmp_path / "shop_helper"
    folder.mkdir()
    (folder / "agent.py").write_text((SHOP / "agent.py").read_text())
    done = subprocess.run(
        [str(adk), "run", str(folder)],
        input=said,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(EXAMPLES.parent)},
    )
    assert done.returncode == 0, done.stderr
    assert "Without an invoice: A-1001, A-1002." in done.stdout
    assert "The invoice for order A-1001 was not sent" in done.stdout
