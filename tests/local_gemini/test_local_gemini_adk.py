"""Real ADK agents talk to the local model."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from google.adk.agents import (
    BaseAgent,
    LlmAgent,
    LoopAgent,  # pyright: ignore[reportDeprecated]
    SequentialAgent,  # pyright: ignore[reportDeprecated]
)
from google.adk.agents._streaming_mode import StreamingMode
from google.adk.agents.run_config import RunConfig
from google.adk.events import Event
from google.adk.models.google_llm import Gemini
from google.adk.runners import InMemoryRunner
from google.genai import types

from agentvisor.local_gemini import LocalGemini, Turn
from tests.fixtures.gemini import assert_well_formed, call, transcript

pytestmark = pytest.mark.filterwarnings("ignore:.* is deprecated in favor of Workflow:DeprecationWarning")


class Session:
    """One conversation with agents of a test."""

    def __init__(self) -> None:
        self._models: list[Gemini] = []
        self._runners: dict[str, InMemoryRunner] = {}

    def agent(self, name: str, **more: Any) -> LlmAgent:
        model = Gemini(model="gemini-2.5-flash")
        self._models.append(model)
        return LlmAgent(name=name, model=model, **more)

    async def say(self, agent: BaseAgent, text: str, *, streaming: StreamingMode = StreamingMode.NONE) -> list[Event]:
        if agent.name not in self._runners:
            self._runners[agent.name] = runner = InMemoryRunner(agent=agent, app_name="tests")
            await runner.session_service.create_session(app_name="tests", user_id="u", session_id="s")
        message = types.Content(role="user", parts=[types.Part(text=text)])
        run = self._runners[agent.name].run_async(
            user_id="u", session_id="s", new_message=message, run_config=RunConfig(streaming_mode=streaming)
        )
        return [event async for event in run]

    async def close(self) -> None:
        for runner in self._runners.values():
            await runner.close()
        for model in self._models:
            await model.api_client.aio.aclose()


@pytest.fixture
async def session(gemini: LocalGemini, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Session]:
    for name, value in gemini.env().items():
        monkeypatch.setenv(name, value)
    session = Session()
    yield session
    await session.close()


def texts(events: list[Event]) -> list[str]:
    parts = [part for event in events if event.content and not event.partial for part in event.content.parts or []]
    return [part.text for part in parts if part.text]


def add(a: int, b: int) -> dict[str, int]:
    """Add two numbers."""
    return {"sum": a + b}


async def test_a_tool_turn_of_adk_is_answered_and_well_formed(gemini: LocalGemini, session: Session) -> None:
    both = Turn(calls=(call("add", a=1, b=2), call("add", a=3, b=4)))
    gemini.script([both, "{response:add[0].sum} and {response:add[1].sum}"])
    assert texts(await session.say(session.agent("adder", tools=[add]), "add")) == ["3 and 7"]
    contents = gemini.requests()[-1].contents
    assert_well_formed(contents)
    assert transcript(contents) == ["USER add", "CALL add", "CALL add", "RESP add", "RESP add"]


async def test_a_long_conversation_is_answered_by_what_was_said_last(gemini: LocalGemini, session: Session) -> None:
    gemini.script([call("add", a=1, b=1), "{response:add.sum}"], user="one")
    gemini.script([call("add", a=2, b=2), "{response:add.sum}"], user="two")
    adder = session.agent("adder", tools=[add])
    answers = [texts(await session.say(adder, said)) for said in ("one", "two", "one")]
    assert answers == [["2"], ["4"], ["2"]]


async def test_a_transfer_goes_to_the_agent_whose_name_is_in_the_instruction(
    gemini: LocalGemini, session: Session
) -> None:
    gemini.script([call("transfer_to_agent", agent_name="billing")], system="name is .root.")
    gemini.script(["Billing here.", "never"], system="name is .billing.")
    root = session.agent("root", sub_agents=[session.agent("billing", description="bills")])
    assert texts(await session.say(root, "my bill")) == ["Billing here."]
    assert texts(await session.say(root, "and now?")) == ["Billing here."]


async def test_agents_in_sequence_see_the_same_user_text(gemini: LocalGemini, session: Session) -> None:
    gemini.script(["draft"], system="name is .first.", user="^write$")
    gemini.script(["final"], system="name is .second.", user="^write$")
    sequence = SequentialAgent(  # pyright: ignore[reportDeprecated]
        name="sequence", sub_agents=[session.agent("first"), session.agent("second")]
    )
    assert texts(await session.say(sequence, "write")) == ["draft", "final"]
    assert [line.split()[0] for line in transcript(gemini.requests()[-1].contents)] == ["USER", "NOTE", "NOTE"]


async def test_a_loop_goes_on_in_the_script(gemini: LocalGemini, session: Session) -> None:
    gemini.script(["one", "two", "three"], user="^count$")
    loop = LoopAgent(  # pyright: ignore[reportDeprecated]
        name="loop", max_iterations=3, sub_agents=[session.agent("counter")]
    )
    assert texts(await session.say(loop, "count")) == ["one", "two", "three"]


async def test_a_stream_reaches_adk_in_pieces(gemini: LocalGemini, session: Session) -> None:
    gemini.script([Turn(text="Hello, world.", chunks=3)])
    events = await session.say(session.agent("greeter"), "hi", streaming=StreamingMode.SSE)
    assert [bool(event.partial) for event in events] == [True, True, True, False]
    assert texts(events) == ["Hello, world."]
