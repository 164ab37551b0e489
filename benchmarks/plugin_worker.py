"""`python -m benchmarks.plugin_worker`: a worker with Temporal's ADK plugin, its settings as the plugin leaves them.

With `--replay FILE` it replays a history instead and prints the CPU seconds of that.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import time
from pathlib import Path

from temporalio.client import Client, WorkflowHistory
from temporalio.worker import Replayer, Worker

from agentvisor.host.exit import leave
from benchmarks.plugin_library import google_adk
from benchmarks.plugin_thread import PluginThread
from benchmarks.plugin_tools import add_note, find_order, send_invoice
from benchmarks.stage import PLUGIN_QUEUE


async def _work(address: str) -> None:
    client = await Client.connect(address, plugins=[google_adk.GoogleAdkPlugin()])
    async with Worker(
        client,
        task_queue=PLUGIN_QUEUE,
        workflows=[PluginThread],
        activities=[find_order, add_note, send_invoice],
    ):
        sys.stderr.write("worker.ready\n")
        await asyncio.Event().wait()


async def _replay(text: str) -> None:
    history = WorkflowHistory.from_json("replayed", json.loads(text))
    # Without debug mode the SDK takes a task of more than 2 s for a deadlock; the sandbox stays on.
    replayer = Replayer(workflows=[PluginThread], plugins=[google_adk.GoogleAdkPlugin()], debug_mode=True)
    began = time.process_time()
    await replayer.replay_workflow(history)
    sys.stdout.write(f"{time.process_time() - began:.3f}\n")


def main() -> None:
    """A worker until it is killed, or one replay."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--replay", type=Path)
    options = parser.parse_args()
    asyncio.run(_replay(options.replay.read_text()) if options.replay else _work(os.environ["TEMPORAL_ADDRESS"]))
    leave(0)


if __name__ == "__main__":
    main()
