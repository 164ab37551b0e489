"""A guest that says Hello and then does to its host whatever it is asked to. Run as a process."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from agentvisor.channel import Channel, JsonObject, Request
from agentvisor.protocol import AgentInfo, Alive, Hello


class Value(BaseModel):
    value: Any = None


def die(value: Any) -> None:
    os._exit(3)


def flood(value: Any) -> None:
    channel = int(sys.argv[2])
    os.set_blocking(channel, True)
    while True:
        os.write(channel, b"\x00\x00\x00\x0d" + b'["note",0,{}]')


def shout(value: Any) -> None:
    for _ in range(value):
        print("x" * 100_000)  # noqa: T201
        print("short\n" * 2_000, file=sys.stderr)  # noqa: T201


FAULTS: dict[str, Callable[[Any], Any]] = {
    "die": die,
    "block": time.sleep,
    "flood": flood,
    "shout": shout,
    "fork": lambda _: subprocess.Popen(["sleep", "1000"]).pid,
    "environment": lambda _: dict(os.environ),
    "stdin": lambda _: sys.stdin.read(),
    "pid": lambda _: os.getpid(),
}


async def handle(op: str, body: JsonObject, request: Request) -> BaseModel:
    if op == "sleep":
        await asyncio.sleep(body["value"])
        return Value(value=os.getpid())
    return Value(value=FAULTS[op](body["value"]))


async def main(fd: int, folder: Path) -> None:
    channel = await Channel.over(socket.socket(fileno=fd), handle)
    if (folder / "broken").exists():
        channel.note(Hello(pid=os.getpid(), error=(folder / "broken").read_text()))
    elif (folder / "dies").exists():
        print("no such module: pandas", file=sys.stderr, flush=True)  # noqa: T201
        sys.exit(1)
    else:
        channel.note(Hello(pid=os.getpid(), agents=(AgentInfo(name="hostile"),)))
    while not channel.closed.done():
        channel.note(Alive())
        await asyncio.sleep(0.2)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[2]), Path(sys.argv[4])))
