from __future__ import annotations

import os
import subprocess
import sys

from agentvisor.host.dev_server import TemporalServer

CONNECT = """
import asyncio, sys
from agentvisor.host.exit import leave
from client.connection import Connection, connect
async def main():
    client = await connect(Connection(address=sys.argv[1], tls=False))
    print(client.namespace)
asyncio.run(main())
leave(0)
"""


async def test_a_process_that_used_temporal_leaves_with_the_code_it_chose_every_time(
    temporal_server: TemporalServer,
) -> None:
    address = temporal_server.connection.address
    assert address
    for _ in range(5):
        ended = subprocess.run(  # noqa: ASYNC221
            [sys.executable, "-c", CONNECT, address], capture_output=True, text=True, timeout=60, check=False
        )
        assert (ended.returncode, ended.stdout) == (0, "default\n"), ended.stderr


def test_what_was_printed_and_logged_arrives_before_it_leaves() -> None:
    program = (
        "import logging, sys; from agentvisor.host.exit import leave; print('out' * 10_000); "
        "print('err', file=sys.stderr); leave(7)"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (ended.returncode, len(ended.stdout), ended.stderr) == (7, 30_001, "err\n")


def test_a_reader_that_has_left_does_not_matter() -> None:
    program = (
        "import os; from agentvisor.host.exit import leave; reader, writer = os.pipe(); os.close(reader); "
        "os.dup2(writer, 1); print('nobody reads this'); leave(0)"
    )
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    ended = subprocess.run([sys.executable, "-c", program], env=buffered, capture_output=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, b"")
