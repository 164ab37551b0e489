"""A client process of its own: `python -m tests.faults.decider ADDRESS`.

A line of its input is a list of {thread, approval, approved, edited, by}: decisions that it sends at once. It answers
with a line that says what became of each.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from agentvisor.host.exit import leave
from client import Threads
from client.connection import Connection, connect
from client.errors import Refused


async def decide(threads: Threads, asked: dict[str, Any]) -> dict[str, Any]:
    try:
        receipt = await threads.get(asked["thread"]).decide(
            asked["approval"], asked["approved"], by=asked["by"], edited_args=asked["edited"]
        )
    except Refused as refused:
        return {"by": asked["by"], "refused": refused.kind, "text": str(refused)}
    return {"by": asked["by"], "status": receipt.status, "receipt_by": receipt.by}


async def main(address: str) -> None:
    threads = Threads(await connect(Connection(address=address, namespace="default", tls=False)))
    answer({"ready": True})
    while line := await asyncio.to_thread(sys.stdin.readline):
        answer(await asyncio.gather(*(decide(threads, asked) for asked in json.loads(line))))


def answer(value: Any) -> None:
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
    leave(0)
