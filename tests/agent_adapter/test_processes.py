"""Two processes on one SQL store: whatever they do at the same time, a call is made once."""

from __future__ import annotations

import asyncio
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

ROUNDS = [f"r{number}" for number in range(20)]


class Payer:
    """One process."""

    def __init__(self, process: Process) -> None:
        self._process = process

    async def do(self, what: str) -> str:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(f"{what}\n".encode())
        async with asyncio.timeout(60):
            return (await self._process.stdout.readline()).decode().strip()


@asynccontextmanager
async def payer(url: str, effects: Path) -> AsyncGenerator[Payer]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.agent_adapter.payer", url, str(effects), stdin=PIPE, stdout=PIPE
    )
    try:
        yield Payer(process)
    finally:
        assert process.stdin
        process.stdin.close()
        await process.wait()


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "postgresql":
        return request.getfixturevalue("postgresql_url")
    return f"sqlite:///{tmp_path / 'approvals.db'}"


async def test_an_approved_call_that_two_processes_make_at_once_is_made_by_one(url: str, tmp_path: Path) -> None:
    effects = tmp_path / "effects"
    async with AsyncExitStack() as stack:
        one, other = [await stack.enter_async_context(payer(url, effects)) for _ in range(2)]
        for name in ROUNDS:
            assert await one.do(f"pay {name}") == "approval-pending"
            assert await other.do(f"decide-yes {name}") == "approved"
            ended = await asyncio.gather(one.do(f"pay {name}"), other.do(f"pay {name}"))
            assert sorted(ended) == ["approval-already-decided", "paid"]
    assert [line.split()[0] for line in effects.read_text().splitlines()] == ROUNDS


async def test_of_a_yes_and_a_no_at_once_one_counts(url: str, tmp_path: Path) -> None:
    effects = tmp_path / "effects"
    effects.touch()
    paid: list[str] = []
    async with AsyncExitStack() as stack:
        one, other = [await stack.enter_async_context(payer(url, effects)) for _ in range(2)]
        for name in ROUNDS:
            assert await one.do(f"pay {name}") == "approval-pending"
            said = await asyncio.gather(one.do(f"decide-yes {name}"), other.do(f"decide-no {name}"))
            assert sum(word in {"approved", "denied"} for word in said) == 1
            ended = await asyncio.gather(one.do(f"pay {name}"), other.do(f"pay {name}"))
            if "approved" in said:
                paid.append(name)
                assert sorted(ended) == ["approval-already-decided", "paid"]
            else:
                assert ended == ["approval-denied", "approval-denied"]
    assert [line.split()[0] for line in effects.read_text().splitlines()] == paid
