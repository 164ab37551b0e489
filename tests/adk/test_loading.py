"""A project that cannot be served says what is wrong, where, and the way out; its guest stays up and refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentvisor.channel import Refused
from agentvisor.protocol import Hello
from tests.adk.harness import FakeThread, Guests

HEAD = """
from google.adk.agents import LlmAgent, SequentialAgent
from google.adk.apps import App
from google.adk.tools import AgentTool, FunctionTool, LongRunningFunctionTool
from agent_adapter import ToolRegistry
from agent_adapter.integrations.adk import adk_tools
from agentvisor.adk import register_agent
MODEL = "gemini-2.5-flash"
registry = ToolRegistry()
@registry.tool
def write_it(text: str) -> str:
    "Write."
    return text
@registry.tool(effect="read")
def read_it(text: str) -> str:
    "Read."
    return text
def plain(text: str) -> str:
    "Plain."
    return text
WRITE, READ = adk_tools(registry)
def agent(name="helper", **more): return LlmAgent(name=name, model=MODEL, **more)
"""


async def loaded(zoo: Guests, folder: Path, code: str | None) -> Hello:
    if code is not None:
        (folder / "agent.py").write_text(HEAD + code)
    async with zoo.fresh(folder) as guest:
        hello = await guest.ready()
        if hello.error:
            with pytest.raises(Refused) as refused:
                await FakeThread("helper").say(guest, "hi")
            assert refused.value.kind == "project-not-loaded"
            assert refused.value.text == hello.error
        return hello


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ("root_agent = agent(tools=[plain, WRITE])", "helper"),
        ("root_agent = register_agent(agent())", "helper"),
        ("register_agent(agent('only_registered'))", "only_registered"),
        ("app = App(name='my-app', root_agent=agent('in_app'))\nroot_agent = agent('not_this')", "in_app"),
        ("root_agent = agent(tools=[AgentTool(agent('inner', tools=[READ, plain]))])", "helper"),
        ("root_agent = agent(sub_agents=[agent('inner', mode='single_turn', tools=[WRITE])])", "helper"),
        ("print('to stdout')\nroot_agent = agent()", "helper"),
    ],
)
async def test_what_agent_py_offers_is_served(zoo: Guests, tmp_path: Path, code: str, name: str) -> None:
    hello = await loaded(zoo, tmp_path, code)
    assert hello.error is None
    assert [agent.name for agent in hello.agents] == [name]


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (None, ["agent.py", "root_agent"]),
        ("", ["root_agent", "register_agent"]),
        ("root_agent = 5", ["int", "LlmAgent"]),
        ("import not_installed_anywhere", ["agent.py, line", "not_installed_anywhere", "requirements.txt"]),
        ("from agent import gone", ["agent.py, line", "import"]),
        ("def broken(:", ["agent.py, line", "syntax"]),
        ("1 / 0", ["agent.py, line", "ZeroDivisionError"]),
        ("raise SystemExit(1)", ["agent.py, line", "exit"]),
        ("root_agent = agent('my-agent')", ["agent.py, line", "my-agent", "my_agent", "agent.yaml"]),
        ("root_agent = agent('user')", ["user", "name"]),
        ("root_agent = agent(tools=[plain, FunctionTool(plain)])", ["'helper'", "'plain'", "Rename"]),
        ("def exit_loop(): ...\nroot_agent = agent(tools=[exit_loop])", ["'helper'", "'exit_loop'", "reserved"]),
        ("def adk_request_confirmation(): ...\nroot_agent = agent(tools=[adk_request_confirmation])", ["reserved"]),
        ("root_agent = LlmAgent(name='live', model='gemini-live-2.5-flash-live')", ["'live'", "live model"]),
        (
            "root_agent = agent(tools=[AgentTool(agent('inner', tools=[WRITE]))])",
            ["'helper'", "'inner'", "'write_it'", "sub_agents"],
        ),
        (
            "gated = FunctionTool(plain, require_confirmation=True)\n"
            "root_agent = agent(tools=[AgentTool(agent('inner', tools=[gated]))])",
            ["'inner'", "'plain'", "sub_agents"],
        ),
        (
            "root_agent = agent(tools=[AgentTool(SequentialAgent(name='s', sub_agents=[agent('deep', tools=["
            "LongRunningFunctionTool(plain)])]))])",
            ["'s'", "'plain'", "sub_agents"],
        ),
        ("register_agent(agent('twin'))\nregister_agent(agent('twin'))", ["'twin'", "another name"]),
    ],
)
async def test_a_project_that_cannot_be_served_says_why(
    zoo: Guests, tmp_path: Path, code: str | None, words: list[str]
) -> None:
    hello = await loaded(zoo, tmp_path, code)
    assert hello.error is not None
    assert hello.agents == ()
    for word in words:
        assert word in hello.error


async def test_a_folder_with_an_init_file_is_a_package(zoo: Guests, tmp_path: Path) -> None:
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "words.py").write_text("NAME = 'from_words'\n")
    (folder / "agent.py").write_text(
        "from google.adk.agents import LlmAgent\nfrom .words import NAME\nroot_agent = LlmAgent(name=NAME, model='m')\n"
    )
    hello = await loaded(zoo, folder, None)
    assert [agent.name for agent in hello.agents] == ["from_words"]


async def test_a_project_s_own_modules_go_before_the_host_s(zoo: Guests, tmp_path: Path) -> None:
    (tmp_path / "client.py").write_text("NAME = 'own_client'\n")
    hello = await loaded(zoo, tmp_path, "import client\nroot_agent = agent(client.NAME)")
    assert [agent.name for agent in hello.agents] == ["own_client"]
