"""A process that pays what it is told, over one SQL store: `python -m tests.agent_adapter.payer URL FILE`.

Each line of its input is a round, `decide-yes NAME`, `decide-no NAME` or `pay NAME`; it answers with one line. A
payment adds a line to FILE, which any number of processes may share.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from agent_adapter import (
    ApprovalAlreadyDecided,
    ApprovalDecision,
    ApprovalDenied,
    ApprovalPending,
    DeferredApproval,
    Executor,
    ToolContext,
    ToolRegistry,
)
from agent_adapter.approval.sql import SqlApprovalStore

registry = ToolRegistry()
file = Path(sys.argv[2])


@registry.tool(confirm=True)
def pay(name: str) -> str:
    """Pay."""
    with file.open("ab", buffering=0) as effects:
        effects.write(f"{name} {os.getpid()}\n".encode())
    return "paid"


async def main() -> None:
    async with SqlApprovalStore.open(sys.argv[1]) as store:
        executor = Executor(registry, approval=DeferredApproval(store))
        while line := await asyncio.to_thread(sys.stdin.readline):
            word, name = line.split()
            print(await act(executor, store, word, name), flush=True)  # noqa: T201


async def act(executor: Executor, store: SqlApprovalStore, word: str, name: str) -> str:
    try:
        if word == "pay":
            return await executor.run("pay", {"name": name}, ToolContext(run=name, call="c1"))
        pending = {record.request.run: record.id for record in await store.pending()}
        if name not in pending:
            return "none-waits"
        record = await store.decide(pending[name], ApprovalDecision(approved=word == "decide-yes"))
    except (ApprovalPending, ApprovalAlreadyDecided, ApprovalDenied) as problem:
        return problem.kind
    return record.status


asyncio.run(main())
