"""What agentvisor.yaml says of plain tools: refused where it cannot hold; the same for the turn and for the call."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from agentvisor.local_gemini import Call, LocalGemini, Turn
from agentvisor.protocol import CallNeedsApproval, LegLimits
from tests.adk.harness import FakeThread, GuestProcess, Guests

AGENT = """
from google.adk.agents import LlmAgent
from google.adk.tools import AgentTool, FunctionTool, LongRunningFunctionTool, ToolContext, exit_loop
from google.adk.tools.base_toolset import BaseToolset
from google.adk.workflow import START, Workflow
from agent_adapter import ToolRegistry
from agent_adapter.integrations.adk import adk_tools
registry = ToolRegistry()
@registry.tool
def adapted(n: int) -> int:
    "Adapted."
    return n
def send(n: int) -> dict[str, int]:
    "Send."
    return {"sent": n}
def wire(n: int, tool_context: ToolContext) -> dict[str, int]:
    "Wire; asks by itself."
    if tool_context.tool_confirmation is None:
        tool_context.request_confirmation(hint=f"Wire {n}?")
        return {}
    return {"wired": n}
class Shelf(BaseToolset):
    async def get_tools(self, readonly_context=None): return [FunctionTool(send)]
    async def close(self): pass
GATED = FunctionTool(send, require_confirmation=True)
def agent(*tools, name="helper"): return LlmAgent(name=name, model="gemini-2.5-flash", tools=list(tools))
"""
PLAIN = "root_agent = agent(send, wire, *adk_tools(registry))"


@pytest.fixture
def project(zoo: Guests, tmp_path: Path) -> Project:
    """A project of its own for one test."""
    return Project(zoo, tmp_path)


class Project:
    """A folder whose files may change from guest to guest."""

    def __init__(self, guests: Guests, folder: Path) -> None:
        self._guests = guests
        self._folder = folder

    @asynccontextmanager
    async def guest(self, file: str, code: str = PLAIN) -> AsyncGenerator[GuestProcess]:
        """A fresh guest of the project with this agentvisor.yaml."""
        (self._folder / "agent.py").write_text(AGENT + code)
        (self._folder / "agentvisor.yaml").write_text(file)
        async with self._guests.fresh(self._folder) as guest:
            yield guest


async def paused(guest: GuestProcess, model: LocalGemini, order: str, tool: str = "send") -> FakeThread:
    model.script([Call(name=tool, args={"n": 5}), "Done."], user=f"{order}!")
    talk = FakeThread("helper", thread_id=order)
    end = await talk.say(guest, f"{order}!")
    assert end.outcome.kind == "paused"
    assert end.spent.tool_calls == 0
    return talk


@pytest.mark.parametrize(
    ("file", "code", "words"),
    [
        (
            "tools: {sent: {effect: write}}",
            PLAIN,
            ["'sent'", "no agent has", "adapted, send, wire", "Correct the name"],
        ),
        ("tools: {sent: {effect: write}}", "root_agent = agent()", ["they have: none"]),
        ("tools: {adapted: {confirm: true}}", PLAIN, ["'adapted'", "agent_adapter", "where the tool is defined"]),
        (
            "tools: {send: {effect: write}}",
            "root_agent = agent(LongRunningFunctionTool(send))",
            ["'send'", "long-running", "Remove it"],
        ),
        ("tools: {exit_loop: {effect: write}}", "root_agent = agent(exit_loop)", ["'exit_loop'", "Remove it"]),
        (
            "tools: {inner: {confirm: true}}",
            "root_agent = agent(AgentTool(agent(name='inner')))",
            ["'inner'", "Remove it"],
        ),
        (
            "tools: {send: {effect: write}}",
            "root_agent = agent(AgentTool(agent(send, name='inner')))",
            ["'inner'", "'send'", "sub_agents"],
        ),
        ("tools: {send: {effect: maybe}}", PLAIN, ["agentvisor.yaml", "'tools.send.effect'", "Mend the file"]),
    ],
)
async def test_what_cannot_hold_is_refused_when_the_project_loads(
    project: Project, file: str, code: str, words: list[str]
) -> None:
    async with project.guest(file, code) as guest:
        error = (await guest.ready()).error
    assert error
    for word in words:
        assert word in error


@pytest.mark.parametrize(
    ("file", "code"),
    [
        ("tools: {later: {effect: write}}", "root_agent = agent(Shelf())"),
        ("tools: {later: {effect: write}}", "root_agent = Workflow(name='flow', edges=[(START, agent(send))])"),
        ("tools: {send: {confirm: false}}", "root_agent = agent(AgentTool(agent(GATED, name='inner')))"),
        ("proxy: {policy: open}", PLAIN),
    ],
)
async def test_what_may_hold_is_served(project: Project, file: str, code: str) -> None:
    async with project.guest(file, code) as guest:
        assert (await guest.ready()).error is None


async def test_a_tool_of_a_toolset_is_spoken_of_by_its_name(project: Project, model: LocalGemini, order: str) -> None:
    async with project.guest("tools: {send: {effect: write, timeout: 7}}", "root_agent = agent(Shelf())") as guest:
        talk = await paused(guest, model, order)
        (waiting,) = talk.waiting
        assert waiting.pause
        assert (waiting.pause.approval, waiting.pause.timeout, waiting.pause.expires) == (False, 7, None)
        end = await talk.make(guest, waiting, approved=False)
        assert end.outcome.kind == "done"
        assert end.outcome.result == {"sent": 5}
        assert end.spent.tool_calls == 1


async def test_a_read_that_a_person_approved_may_be_made_again(
    project: Project, model: LocalGemini, order: str
) -> None:
    async with project.guest("tools: {send: {effect: read, confirm: true}}") as guest:
        talk = await paused(guest, model, order)
        (waiting,) = talk.waiting
        assert waiting.pause
        assert (waiting.pause.approval, waiting.pause.effect) == (True, "read")
        end = await talk.make(guest, waiting, attempt=2)
        assert end.outcome.kind == "done"


async def test_a_confirmation_of_the_code_can_be_taken_back(project: Project, model: LocalGemini, order: str) -> None:
    async with project.guest("tools: {send: {effect: write, confirm: false}}", "root_agent = agent(GATED)") as guest:
        talk = await paused(guest, model, order)
        (waiting,) = talk.waiting
        assert waiting.pause
        assert not waiting.pause.approval
        end = await talk.make(guest, waiting, approved=False)
        assert end.outcome.kind == "done"
        assert end.outcome.result == {"sent": 5}


@pytest.mark.parametrize("later", ["tools: {send: {effect: write, confirm: true}}", "tools: {}"])
async def test_a_call_that_waits_is_asked_again_when_the_file_changed(
    project: Project, model: LocalGemini, order: str, later: str
) -> None:
    async with project.guest("tools: {send: {effect: write}}") as guest:
        talk = await paused(guest, model, order)
        (waiting,) = talk.waiting
    async with project.guest(f"{later}\napprovals: {{expires: 60}}") as guest:
        end = await talk.make(guest, waiting, approved=False)
    assert isinstance(end.outcome, CallNeedsApproval)
    assert end.outcome.pause["expires"] == 60
    assert waiting.pause
    assert end.outcome.fingerprint != waiting.pause.fingerprint


async def test_a_write_that_asks_by_itself_is_asked_about_before_it_acts(
    project: Project, model: LocalGemini, order: str
) -> None:
    async with project.guest("tools: {wire: {effect: write}}") as guest:
        talk = await paused(guest, model, order, "wire")
        (waiting,) = talk.waiting
        asked = await talk.make(guest, waiting, approved=False)
        assert asked.outcome.kind == "needs_approval"
        assert asked.spent.tool_calls == 0
        made = await talk.make(guest, waiting, approved=True)
        assert made.outcome.kind == "done"
        assert made.outcome.result == {"wired": 5}


async def test_calls_that_wait_count_against_what_a_leg_has_left(
    project: Project, model: LocalGemini, order: str
) -> None:
    calls = [Call(name="adapted", args={"n": 1}), Call(name="send", args={"n": 2}), Call(name="adapted", args={"n": 3})]
    model.script([Turn(calls=tuple(calls)), "never"], user=f"{order}!")
    async with project.guest("tools: {send: {effect: write}}") as guest:
        talk = FakeThread("helper", thread_id=order)
        talk.limits = LegLimits(tool_calls=2)
        end = await talk.say(guest, f"{order}!")
    assert end.outcome.kind == "paused"
    assert [waiting.tool for waiting in talk.waiting] == ["adapted", "send"]
    assert "run-limit-exceeded" in str(talk.events)
