"""`python -m benchmarks.adk_process`: what a turn costs in ADK, whoever hosts it.

Prints a JSON object: milliseconds of CPU of one turn by kind, conversations of five turns in memory. `one_run`: a
message, a model call, a tool, a model call. `two_runs`: the same, but the call is made elsewhere.
"""

from __future__ import annotations

import json
import sys
import time
import uuid

import uvloop

from agentvisor.host.exit import leave
from benchmarks.adk_agent import Agent
from benchmarks.throughput import TURNS

_CONVERSATIONS, _WARM = 40, 4


async def _conversation(agent: Agent, word: str) -> None:
    name = uuid.uuid4().hex
    await agent.begin(name)
    for number in range(TURNS):
        text = f"{word} my order A-{number} please, and tell me all about it ({name[:8]})"
        for call in await agent.say(name, text):
            await agent.tell(name, call, {"order_id": "A", "noted": "twice"})


async def _milliseconds(word: str) -> float:
    agent = Agent()
    for _ in range(_WARM):
        await _conversation(agent, word)
    began = time.process_time()
    for _ in range(_CONVERSATIONS):
        await _conversation(agent, word)
    return (time.process_time() - began) / (_CONVERSATIONS * TURNS) * 1000


async def _measured() -> dict[str, float]:
    return {"one_run": await _milliseconds("find"), "two_runs": await _milliseconds("note")}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(uvloop.run(_measured())) + "\n")
    sys.stdout.flush()
    leave(0)
