"""`python -m benchmarks.least_guest`: ADK for `least_worker`.

Lines of JSON: [number, what, conversation, value] comes in, [number, answer] goes out.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import orjson
import tools
import uvloop
from google.genai import types

from benchmarks.adk_agent import Agent


class Guest:
    """Answers whatever comes, many at a time."""

    def __init__(self) -> None:
        self._agent = Agent()
        self._known: set[str] = set()

    async def answer(self, what: str, conversation: str, value: Any) -> Any:
        """What an activity returns."""
        if what == "note":
            return await tools.add_note(**value["args"])
        if what == "tell":
            call = types.FunctionCall(**value["call"])
            return await self._agent.tell(conversation, call, value["result"])
        if conversation not in self._known:
            self._known.add(conversation)
            await self._agent.begin(conversation)
        (call,) = await self._agent.say(conversation, value)
        return {"id": call.id, "name": call.name, "args": call.args}


async def _serve() -> None:
    loop, guest, lines = asyncio.get_running_loop(), Guest(), asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    at_work: set[asyncio.Task[None]] = set()

    async def one(number: int, *asked: Any) -> None:
        answer = await guest.answer(*asked)
        sys.stdout.buffer.write(orjson.dumps([number, answer]) + b"\n")
        sys.stdout.buffer.flush()

    while line := await lines.readline():
        task = asyncio.create_task(one(*orjson.loads(line)))
        at_work.add(task)
        task.add_done_callback(at_work.discard)


if __name__ == "__main__":
    uvloop.run(_serve())
