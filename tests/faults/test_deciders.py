"""Ten clients in two processes decide one approval at once: one of them does, and the others are told who."""

from __future__ import annotations

import asyncio
import json
import random
import sys
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from agentvisor.host.dev_server import TemporalServer
from tests.faults.case import END, Case, World

ROUNDS, CLIENTS = 20, 10
ROOT = Path(__file__).parents[2]


class Clients:
    """A process with half of the clients."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    @classmethod
    async def start(cls, address: str) -> Clients:
        command = [sys.executable, "-m", "tests.faults.decider", address]
        pipe = asyncio.subprocess.PIPE
        clients = cls(await asyncio.create_subprocess_exec(*command, cwd=ROOT, stdin=pipe, stdout=pipe, limit=2**20))
        assert await clients._read() == {"ready": True}
        return clients

    async def decide(self, round_: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """Send all of these at once; what became of each."""
        assert self._process.stdin
        self._process.stdin.write(json.dumps(round_).encode() + b"\n")
        return await self._read()

    async def end(self) -> None:
        assert self._process.stdin
        self._process.stdin.close()
        assert await self._process.wait() == 0

    async def _read(self) -> Any:
        assert self._process.stdout
        async with asyncio.timeout(60):
            return json.loads(await self._process.stdout.readline())


@pytest_asyncio.fixture(scope="module")
async def processes(temporal_server: TemporalServer) -> AsyncGenerator[list[Clients]]:
    address = temporal_server.connection.address
    assert address
    processes = [await Clients.start(address) for _ in range(2)]
    yield processes
    for process in processes:
        await process.end()


@pytest.mark.timeout(240)
async def test_one_of_ten_decisions_counts_and_the_others_are_told_whose(
    world: World, processes: list[Clients]
) -> None:
    """Twenty rounds of approvals, denials and edits: the effect is the accepted one's, and nobody else's."""
    cases = [Case(world, "pay") for _ in range(ROUNDS)]
    await asyncio.gather(*(case.begin() for case in cases))
    await asyncio.gather(*(case.paused() for case in cases))
    for number, case in enumerate(cases):
        decisions = _decisions(case, random.Random(number))
        halves = decisions[::2], decisions[1::2]
        told = await asyncio.gather(*(process.decide(half) for process, half in zip(processes, halves, strict=True)))
        accepted = _the_accepted(decisions, [one for half in told for one in half])
        await _is_what_happened(case, accepted)


def _decisions(case: Case, order: random.Random) -> list[dict[str, Any]]:
    """Four approvals, three denials and three edits, each by another person."""
    kinds = [(True, None)] * 4 + [(False, None)] * 3 + [(True, amount) for amount in (11, 12, 13)]
    order.shuffle(kinds)
    here = {"thread": case.thread.id, "approval": case.waiting[1].id}
    return [
        {
            **here,
            "approved": approved,
            "edited": amount and {"mark": case.mark, "slot": 1, "amount": amount},
            "by": f"person-{n}",
        }
        for n, (approved, amount) in enumerate(kinds)
    ]


def _the_accepted(decisions: list[dict[str, Any]], told: list[dict[str, Any]]) -> dict[str, Any]:
    """The one decision that was accepted; every other one was refused, by a text that names a person to ask."""
    (receipt,) = [one for one in told if "refused" not in one]
    (accepted,) = [decision for decision in decisions if decision["by"] == receipt["by"]]
    status = "approved" if accepted["approved"] else "denied"
    assert (receipt["status"], receipt["receipt_by"]) == (status, accepted["by"])
    refused = [one for one in told if "refused" in one]
    assert len(refused) == CLIENTS - 1
    editors = [decision["by"] for decision in decisions if decision["edited"]]
    for one in refused:
        if one["refused"] == "already-decided":
            assert f"was already {status} by {accepted['by']!r}" in one["text"]
        else:
            assert one["refused"] == "being-decided"
            assert any(f"by {editor!r} is being checked" in one["text"] for editor in editors)
    return accepted


async def _is_what_happened(case: Case, accepted: dict[str, Any]) -> None:
    view = await case.thread.wait(case.run_id, until="ended", timeout=60)
    assert (view.status, view.answer) == ("success", END)
    (call,) = view.calls
    assert (call.status, call.by) == ("done" if accepted["approved"] else "denied", accepted["by"])
    amount = (accepted["edited"] or {"amount": 5})["amount"]
    effects = [effect["amount"] for effect in await case.world.counter.all(case.name(1))]
    assert effects == ([amount] if accepted["approved"] else [])
