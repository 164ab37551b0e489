"""A tool that no model can be shown takes no other down, and whoever starts the worker is told of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from structlog.testing import capture_logs

from agentvisor.host.guests import GuestProcesses
from agentvisor.host.settings import Settings
from agentvisor.local_gemini import LocalGemini
from agentvisor.project import read_project
from tests.adk.harness import FakeThread, Guests

AGENT = """
from typing import Annotated
from google.adk.agents import LlmAgent
from pydantic import WithJsonSchema
from agent_adapter import ToolRegistry
from agent_adapter.integrations.adk import adk_tools

Outside = Annotated[str, WithJsonSchema({"$ref": "https://example.com/schema.json"})]
registry = ToolRegistry()

@registry.tool(effect="read")
def bad(value: Outside) -> str:
    "Cannot be shown."
    return value

@registry.tool(effect="read")
def good() -> str:
    "Can be shown."
    return "fine"

root_agent = LlmAgent(name="helper", model="gemini-2.5-flash", instruction="Help.", tools=adk_tools(registry))
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "agent.yaml").write_text("name: helper\n")
    (tmp_path / "agent.py").write_text(AGENT)
    return tmp_path


async def test_a_guest_names_the_tool_it_leaves_out_and_serves_the_others(
    zoo: Guests, folder: Path, model: LocalGemini, order: str
) -> None:
    model.script([{"calls": [{"name": "good"}]}, "Done."], user=f"{order}!")
    async with zoo.fresh(folder) as guest:
        hello = await guest.ready()
        end = await FakeThread("helper", thread_id=order).say(guest, f"{order}!")
    assert [agent.tools for agent in hello.agents] == [("good",)]
    [left_out] = hello.left_out
    assert left_out.tool == "bad"
    assert "'bad'" in left_out.reason
    assert "example.com" in left_out.reason
    assert end.outcome.kind == "answered"
    shown = [tool["name"] for seen in model.requests() if order in str(seen.contents) for tool in seen.tools]
    assert shown == ["good", "good"]


async def test_the_host_logs_it_as_an_error_when_it_starts(folder: Path, zoo: Guests) -> None:
    settings = Settings(leg_guests=1)
    with capture_logs() as logs:
        async with GuestProcesses.of(read_project(folder), settings, zoo.environment, fork_server=zoo.fork_server):
            pass
    told = [entry for entry in logs if entry["event"] == "tool.left_out"]
    assert {(entry["log_level"], entry["project"], entry["tool"]) for entry in told} == {("error", "helper", "bad")}
    assert all("Mend its schema." in entry["reason"] for entry in told)
