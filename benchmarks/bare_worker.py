"""`python -m benchmarks.bare_worker`: a worker of the bare workflow, all settings the SDK's, the sandbox on."""

from __future__ import annotations

import asyncio
import os
import sys

from temporalio.client import Client
from temporalio.worker import Worker

from agentvisor.host.exit import leave
from benchmarks.bare_thread import BareThread, nothing
from benchmarks.stage import BARE_QUEUE


async def _work(address: str) -> None:
    client = await Client.connect(address)
    async with Worker(client, task_queue=BARE_QUEUE, workflows=[BareThread], activities=[nothing]):
        sys.stderr.write("worker.ready\n")
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_work(os.environ["TEMPORAL_ADDRESS"]))
    leave(0)
