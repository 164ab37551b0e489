"""`python -m benchmarks.adk_process`: the agent in ADK alone, without Temporal: what a turn costs whoever hosts it.

ADK gets what a guest does for it (`prepare_adk`, no telemetry for nobody, one RunConfig, uvloop), so that only hosting
is missing. Prints a JSON object: milliseconds of CPU of one turn by kind, conversations of five turns in memory.

`one_run`: a message, a model call, a tool, a model call. `two_runs`: the same, but ADK is left for the call and comes
back with its result in another run, as it must where the call is made elsewhere.
"""

from __future__ import annotations

import json
import sys
import time
import uuid
from typing import Any

import uvloop

from agentvisor.adk.runner import prepare_adk
from agentvisor.host.exit import leave

prepare_adk()

import scripted  # noqa: E402 - ADK is imported after it was prepared
import tools  # noqa: E402
from google.adk.agents import LlmAgent  # noqa: E402
from google.adk.runners import Runner  # noqa: E402
from google.adk.sessions import InMemorySessionService  # noqa: E402
from google.adk.tools.long_running_tool import LongRunningFunctionTool  # noqa: E402
from google.genai import types  # noqa: E402

from agentvisor.adk.hosted_runner import run_config  # noqa: E402
from agentvisor.adk.inference_telemetry import tell_listeners_only  # noqa: E402
from benchmarks.throughput import TURNS  # noqa: E402

_CONVERSATIONS, _WARM = 40, 4


async def add_note(order_id: str, text: str) -> None:
    """Write a note on an order."""


def _runner() -> Runner:
    agent = LlmAgent(
        name="bench",
        model=scripted.MODEL,
        instruction="You help a shop.",
        tools=[tools.find_order, LongRunningFunctionTool(add_note)],
    )
    sessions: Any = InMemorySessionService()
    return Runner(app_name="bench", agent=agent, session_service=sessions)


async def _run(runner: Runner, session_id: str, part: types.Part) -> list[types.FunctionCall]:
    """The calls that are left to be made elsewhere."""
    message = types.Content(role="user", parts=[part])
    left: list[types.FunctionCall] = []
    async for event in runner.run_async(
        user_id="ana", session_id=session_id, new_message=message, run_config=run_config()
    ):
        left += [call for call in event.get_function_calls() if call.id in (event.long_running_tool_ids or ())]
    return left


async def _conversation(runner: Runner, word: str) -> None:
    session = await runner.session_service.create_session(app_name="bench", user_id="ana")
    for number in range(TURNS):
        text = f"{word} my order A-{number} please, and tell me all about it ({uuid.uuid4().hex[:8]})"
        for call in await _run(runner, session.id, types.Part(text=text)):
            response = types.FunctionResponse(id=call.id, name=call.name, response={"order_id": "A", "noted": "twice"})
            if await _run(runner, session.id, types.Part(function_response=response)):
                raise RuntimeError("the second run left a call, too")


async def _milliseconds(word: str) -> float:
    runner = _runner()
    for _ in range(_WARM):
        await _conversation(runner, word)
    began = time.process_time()
    for _ in range(_CONVERSATIONS):
        await _conversation(runner, word)
    return (time.process_time() - began) / (_CONVERSATIONS * TURNS) * 1000


async def _measured() -> dict[str, float]:
    tell_listeners_only()
    return {"one_run": await _milliseconds("find"), "two_runs": await _milliseconds("note")}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(uvloop.run(_measured())) + "\n")
    sys.stdout.flush()
    leave(0)
