"""Plain ADK, one paused call answered several times at once: a token opens the gate once, whoever comes first."""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import PIPE
from pathlib import Path
from typing import Any

import pytest
from google.adk.tools import FunctionTool
from google.genai import types

from agent_adapter import ApprovalDecision, DeferredApproval, MemoryApprovalStore
from agent_adapter.errors import ApprovalAlreadyDecided
from agent_adapter.integrations.adk import resolve_confirmations
from agentvisor.local_gemini import LocalGemini
from tests.adk.plain import Shop, confirm, model, responses, says
from tests.fixtures.gemini import call

__all__ = ["model"]

ROUNDS = 20
pytestmark = [
    pytest.mark.usefixtures("model"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning"),
]


async def test_the_same_answer_sent_twice_at_once_pays_once() -> None:
    shop = Shop()
    for number in range(1, ROUNDS + 1):
        message = await resolve_confirmations(await shop.send("go"), says(True, []), shop.registry)
        await asyncio.gather(*(shop.send(_copy(message)) for _ in range(2)), return_exceptions=True)
        assert len(shop.done) == number
        shop.leave()


async def test_without_a_token_the_same_answer_sent_twice_at_once_pays_twice(model: LocalGemini) -> None:
    """Why there is a token: this is ADK's own gate."""
    paid: list[str] = []

    async def pay_plainly(order: str) -> str:
        """Pay."""
        paid.append(order)
        return "paid"

    model.script([call("pay_plainly", order="A-1"), "Done."], user="^plain$", repeat=True)
    shop = Shop(None, FunctionTool(pay_plainly, require_confirmation=True))
    message = confirm(await shop.send("plain"), {"confirmed": True})
    await asyncio.gather(shop.send(message), shop.send(_copy(message)))
    assert paid == ["A-1", "A-1"]


async def test_a_yes_and_a_no_sent_at_once_pay_at_most_once() -> None:
    shop = Shop()
    paid = 0
    for number in range(ROUNDS):
        paused = await shop.send("go")
        yes = await resolve_confirmations(paused, says(True, []), shop.registry)
        no = confirm(paused, {"confirmed": False})
        answers = [yes, no] if number % 2 else [no, yes]
        await asyncio.gather(*(shop.send(_copy(answer)) for answer in answers), return_exceptions=True)
        assert len(shop.done) - paid <= 1
        paid = len(shop.done)
        shop.leave()


async def test_of_two_that_resolve_one_deferred_approval_at_once_one_gets_a_token() -> None:
    store = MemoryApprovalStore()
    port = DeferredApproval(store)
    shop = Shop(port)
    for number in range(1, ROUNDS + 1):
        paused = await shop.send("go")
        await asyncio.gather(
            resolve_confirmations(paused, port, shop.registry),
            resolve_confirmations(paused, port, shop.registry),
            return_exceptions=True,
        )
        [record] = await store.pending()
        await store.decide(record.id, ApprovalDecision(approved=True))
        found = await asyncio.gather(
            *(resolve_confirmations(paused, port, shop.registry) for _ in range(2)), return_exceptions=True
        )
        [message] = [answer for answer in found if isinstance(answer, types.Content)]
        assert [type(answer) for answer in found if answer is not message] == [ApprovalAlreadyDecided]
        await shop.send(message)
        assert len(shop.done) == number
        shop.leave()


async def test_a_token_of_one_call_does_not_open_another_that_waits(model: LocalGemini) -> None:
    model.script([{"calls": [call("pay", order="A-1"), call("pay", order="A-2")]}, "Done."], user="^both$")
    shop = Shop()
    message = await resolve_confirmations(await shop.send("both"), says(True, []), shop.registry)
    assert message
    assert message.parts
    one, other = (part.function_response for part in message.parts)
    assert one
    assert other
    one.response, other.response = other.response, one.response
    kinds = [found["error"]["kind"] for found in responses(await shop.send(message))]
    assert kinds == ["approval-denied", "approval-denied"]
    assert shop.done == []


async def test_two_processes_that_answer_one_call_on_one_store_pay_once(tmp_path: Path, model: LocalGemini) -> None:
    url = f"sqlite:///{tmp_path / 'approvals.db'}"
    effects = tmp_path / "effects"
    command = [sys.executable, "-m", "tests.adk.plain_payer", url, str(effects)]
    environment = {**os.environ, **model.env()}
    processes = [
        await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE, env=environment) for _ in range(2)
    ]

    async def tell(process: Any, line: str) -> str:
        process.stdin.write(f"{line}\n".encode())
        async with asyncio.timeout(100):
            return (await process.stdout.readline()).decode().strip()

    one, other = processes
    try:
        for number in range(1, ROUNDS + 1):
            session = tmp_path / f"session-{number}.json"
            assert await tell(one, f"start {session}") == "waits"
            said = await asyncio.gather(tell(one, f"yes {session}"), tell(other, f"{_second(number)} {session}"))
            assert sum(word == "decided" for word in said) == 1
            ended = await asyncio.gather(tell(one, f"resume {session}"), tell(other, f"resume {session}"))
            if said[0] == "decided" or _second(number) == "yes":
                assert sorted(ended) == ["approval-already-decided", "paid"]
            else:
                assert ended == ["rejected", "rejected"]
            assert len(effects.read_text().splitlines() if effects.exists() else []) <= number
    finally:
        for process in processes:
            assert process.stdin
            process.stdin.close()
            await process.wait()
    runs = effects.read_text().splitlines()
    assert len(runs) == len(set(runs))


def _second(number: int) -> str:
    """What the other process says at the same time."""
    return "no" if number % 2 else "yes"


def _copy(message: types.Content | None) -> types.Content:
    assert message
    return message.model_copy(deep=True)
