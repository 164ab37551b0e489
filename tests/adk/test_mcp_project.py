"""The same MCP tools in a project under the host: reads run in the leg, writes pause it and are made once."""

from __future__ import annotations

import sys
from pathlib import Path

from agentvisor.local_gemini import Call, LocalGemini
from tests.adk.harness import FakeThread, Guests

ROOT = Path(__file__).parents[2]
AGENT = """
from google.adk.agents import LlmAgent
from agent_adapter import ToolRegistry
from agent_adapter.integrations.adk import adk_tools
from agentvisor.adk import register_agent

registry = ToolRegistry()
registry.add_mcp({server!r}, cwd={root!r}, include=["find order", "send", "delete"])
register_agent(LlmAgent(name="stock", model="gemini-2.5-flash", tools=adk_tools(registry)))
"""


async def test_tools_of_an_mcp_server_pause_a_thread_and_run_once(
    zoo: Guests, model: LocalGemini, tmp_path: Path
) -> None:
    file = tmp_path / "effects"
    server = [sys.executable, "-m", "tests.agent_adapter.mcp_server", str(file)]
    project = tmp_path / "stock"
    project.mkdir()
    (project / "agent.py").write_text(AGENT.format(server=server, root=str(ROOT)))
    calls = [Call(name=name, args={"id": "A-1"}) for name in ("find_order", "send", "delete")]
    model.script([{"calls": calls}, "All done."], user="^clear the stock$")
    async with zoo.fresh(project) as guest:
        assert (await guest.ready()).error is None
        talk = FakeThread("stock", thread_id="thread-stock")
        assert (await talk.say(guest, "clear the stock")).outcome.kind == "paused"
        assert not file.exists()
        send, delete = talk.waiting
        assert send.pause
        assert delete.pause
        assert (send.pause.approval, delete.pause.approval) == (False, True)
        made = [await talk.make(guest, send), await talk.make(guest, delete)]
        assert [end.outcome.kind for end in made] == ["done", "done"]
        end = await talk.answer(guest, send.done(made[0]), delete.done(made[1]))
        assert end.outcome.kind == "answered"
        assert talk.answer_text == "All done."
        assert file.read_text().splitlines() == ["send A-1", "delete A-1"]
