"""The published example of an agent with approvals runs as it stands; our page about it is where it is kept."""

from __future__ import annotations

import os
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm
from google.adk.models.google_llm import Gemini
from google.adk.runners import InMemoryRunner, Runner
from google.genai import types

from agent_adapter import ApprovalDecision, ApprovalRequest, CallbackApproval, Executor, ToolRegistry
from agent_adapter.integrations.adk import adk_tools, resolve_confirmations
from agentvisor.local_gemini import LocalGemini
from tests.fixtures.gemini import call, gemini

__all__ = ["gemini"]

PAGE = Path(__file__).parents[2] / "docs" / "adapter" / "adk.md"
FIRST = "port = CallbackApproval(reviewer)\n"
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")


def kept() -> str:
    """The example on our page."""
    [code] = [
        block
        for block in re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
        if FIRST in block
    ]
    return code.strip()


def published() -> str:
    """The example in the document itself, where SEED_DOCS names the folder it is in; else the copy we keep."""
    folder = os.environ.get("SEED_DOCS")
    if not folder:
        return kept()
    [text] = [text for path in sorted(Path(folder).iterdir()) if FIRST in (text := path.read_text())]
    section = text.split("\nTools and approval\n", 1)[1]
    return section[section.index(FIRST) : section.index("\nA confirm rule drives")].strip()


class Shop:
    """What the example leaves to its reader: a registry and a reviewer."""

    def __init__(self, answer: bool | ApprovalDecision) -> None:
        self.answer = answer
        self.asked: list[dict[str, Any]] = []
        self.sent: list[tuple[str, str]] = []
        self.registry = ToolRegistry()
        self.registry.tool(effect="read")(self.find_order)
        self.registry.tool(confirm=True)(self.send_invoice)

    def find_order(self, order_id: str) -> dict[str, str]:
        """Look up one order."""
        return {"id": order_id, "total": "149.00"}

    def send_invoice(self, order_id: str, amount: str) -> dict[str, str]:
        """Send the customer the invoice for an order."""
        self.sent.append((order_id, amount))
        return {"number": f"INV-{order_id}"}

    def review(self, request: ApprovalRequest) -> bool | ApprovalDecision:
        self.asked.append(request.arguments)
        return self.answer


@pytest.fixture
async def model(gemini: LocalGemini, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Gemini]:
    for name, value in gemini.env().items():
        monkeypatch.setenv(name, value)
    found = call("find_order", order_id="A-1")
    gemini.script([found, call("send_invoice", order_id="A-1", amount="{response:find_order.total}"), "Done."])
    model = Gemini(model="gemini-2.5-flash")
    yield model
    await model.api_client.aio.aclose()


async def run(shop: Shop, model: Gemini) -> list[Any]:
    names: dict[str, Any] = {
        "Any": Any,
        "BaseLlm": BaseLlm,
        "CallbackApproval": CallbackApproval,
        "Executor": Executor,
        "LlmAgent": LlmAgent,
        "Runner": Runner,
        "adk_tools": adk_tools,
        "registry": shop.registry,
        "resolve_confirmations": resolve_confirmations,
        "reviewer": shop.review,
        "types": types,
    }
    exec(compile(published(), "example", "exec"), names)
    runner = InMemoryRunner(agent=names["build_agent"](model), app_name="shop")
    session = await runner.session_service.create_session(app_name="shop", user_id="u")
    try:
        return await names["run_with_approvals"](runner, session.id, "Send the invoice for A-1.")
    finally:
        await runner.close()


def test_our_page_has_the_published_example_word_for_word() -> None:
    assert kept() == published()


async def test_the_published_example_sends_the_invoice_that_was_approved(model: Gemini) -> None:
    shop = Shop(answer=True)
    results = await run(shop, model)
    assert shop.asked == [{"order_id": "A-1", "amount": "149.00"}]
    assert shop.sent == [("A-1", "149.00")]
    assert results[0] == ("find_order", {"id": "A-1", "total": "149.00"})
    assert results[-1] == ("send_invoice", {"number": "INV-A-1"})


async def test_the_published_example_sends_nothing_that_was_denied(model: Gemini) -> None:
    shop = Shop(answer=False)
    results = await run(shop, model)
    assert shop.sent == []
    assert results[-1] == ("send_invoice", {"error": "This tool call is rejected."})


async def test_the_published_example_sends_what_the_reviewer_wrote(model: Gemini) -> None:
    shop = Shop(answer=ApprovalDecision(approved=True, edited_args={"order_id": "A-1", "amount": "140.00"}))
    await run(shop, model)
    assert shop.sent == [("A-1", "140.00")]
