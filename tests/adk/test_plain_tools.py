"""Plain ADK: what a model is shown of tools and of their errors, and what it is not shown."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.apps import App
from google.adk.runners import InMemoryRunner
from pydantic import WithJsonSchema

from agent_adapter import (
    Ask,
    CallableGuard,
    CallbackApproval,
    Executor,
    GuardrailBlocked,
    Replace,
    RunLimits,
    ToolArgsInvalid,
    ToolContext,
    ToolError,
    ToolRegistry,
    ToolSchemaError,
    ToolSpec,
)
from agent_adapter.integrations.adk import RunLimitsPlugin, adk_tool, adk_tools, resolve_confirmations
from agent_adapter.integrations.adk.tool import paused_call
from agentvisor.local_gemini import Call, LocalGemini
from tests.adk.plain import Shop, confirm, model, responses, says
from tests.fixtures.gemini import call

__all__ = ["model"]

MARKER = "marker-4711"
Outside = Annotated[str, WithJsonSchema({"$ref": "https://example.com/schema.json"})]
pytestmark = [
    pytest.mark.usefixtures("model"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning"),
]


class Counter(Shop):
    """A shop with a registry of the test's own."""

    def __init__(self, registry: ToolRegistry, **options: Any) -> None:
        super().__init__()
        self.registry = registry
        self.executor = Executor(registry, **options)
        agent = LlmAgent(name="shop", model=self.model, tools=[*adk_tools(registry, executor=self.executor)])
        app = App(name="shop", root_agent=agent, plugins=[RunLimitsPlugin(self.executor)])
        self.runner = InMemoryRunner(app=app)

    async def session_text(self) -> str:
        session = await self.runner.session_service.get_session(
            app_name="shop", user_id="u", session_id=self.session_id
        )
        assert session
        return session.model_dump_json()


def explode(*_: Any) -> Any:
    raise RuntimeError(MARKER)


class Explosive:
    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(MARKER)


def explosive() -> Explosive:
    return Explosive()


REGISTRIES: dict[str, dict[str, Any]] = {
    "function": {"function": None, "is_async": False},
    "async-function": {"function": None, "is_async": True},
    "confirm-rule": {"function": lambda: None, "confirm": explode},
    "input-guard": {"function": lambda: None, "guards": [CallableGuard(explode)]},
    "result": {"function": explosive},
    "port": {"function": lambda: None, "confirm": True},
    "observer": {"function": lambda: "fine"},
}


@pytest.mark.parametrize("where", REGISTRIES)
@pytest.mark.parametrize("effect", ["read", "write"])
async def test_no_text_of_an_unexpected_exception_reaches_model_or_session(
    where: str, effect: Any, model: LocalGemini
) -> None:
    async def raises() -> None:
        explode()

    def raises_in_a_thread() -> None:
        explode()

    options = dict(REGISTRIES[where])
    if "is_async" in options:
        options["function"] = raises if options.pop("is_async") else raises_in_a_thread
    registry = ToolRegistry([ToolSpec(name="fragile", description="Breaks.", effect=effect, **options)])
    model.script([call("fragile"), "Done."], user="^break$")
    port = CallbackApproval(explode)
    shop = Counter(registry, approval=port, on_event=explode)
    events = await shop.send("break")
    if where == "port":
        events += await shop.send(confirm(events, {"confirmed": True}))
    assert responses(events)
    assert MARKER not in await shop.session_text()
    assert MARKER not in "".join(str(request.contents) for request in model.requests())


async def test_what_is_for_the_model_comes_back_as_a_result_and_all_else_propagates(model: LocalGemini) -> None:
    registry = ToolRegistry()

    @registry.tool(effect="read")
    def says_why() -> None:
        """Fails."""
        raise ToolError("There is no order A-9.")

    @registry.tool(effect="read", guards=[CallableGuard(lambda arguments, context: False)])
    def blocked() -> None:
        """Is blocked."""

    @registry.tool(effect="read")
    def typed(number: int) -> int:
        """Takes a number."""
        return number

    calls = [call("says_why"), call("blocked"), call("typed", number="1"), call("typed", number=1)]
    model.script([{"calls": calls}, "Done."], user="^all$")
    shop = Counter(registry, limits=RunLimits(tool_calls=1))
    found = responses(await shop.send("all"))
    errors = [response.get("error", {}) for response in found]
    assert errors[0] == {"kind": ToolError.kind, "message": "There is no order A-9."}
    assert [error.get("kind") for error in errors[1:]] == [
        GuardrailBlocked.kind,
        ToolArgsInvalid.kind,
        "run-limit-exceeded",
    ]


async def test_an_approved_call_runs_with_what_a_guard_put_in_place(model: LocalGemini) -> None:
    ran: list[str] = []
    registry = ToolRegistry()

    @registry.tool(confirm=True, guards=[CallableGuard(lambda arguments, context: Replace({"text": "clean"}))])
    def post(text: str) -> str:
        """Post."""
        ran.append(text)
        return "posted"

    model.script([call("post", text="dirty"), "Done."], user="^post$")
    shop = Counter(registry)
    message = await resolve_confirmations(await shop.send("post"), says(True, []), registry)
    assert message
    assert responses(await shop.send(message)) == [{"result": "posted"}]
    assert ran == ["clean"]


@pytest.mark.parametrize(
    "limits", [RunLimits(model_calls=3), RunLimits(tokens=40), RunLimits(tool_calls=2, model_calls=3)]
)
async def test_an_endless_loop_of_tools_ends_at_the_limit_and_the_session_goes_on(
    limits: RunLimits, model: LocalGemini
) -> None:
    registry = ToolRegistry([ToolSpec(name="again", description="Again.", function=lambda: "more", effect="read")])
    turn = {"calls": [call("again")], "usage": {"prompt": 10, "output": 5}}
    model.script([turn] * 30, user="^loop$")
    model.script(["Hello."], user="^hello$")
    shop = Counter(registry, limits=limits)
    events = await shop.send("loop")
    assert events[-1].error_code == "run-limit-exceeded"
    assert len([event for event in events if event.get_function_calls()]) == 3
    [said] = (await shop.send("hello"))[-1:]
    assert said.content
    assert said.content.parts
    assert said.content.parts[0].text == "Hello."


async def test_a_person_reads_why_a_guard_wants_the_call_approved() -> None:
    asks = CallableGuard(lambda arguments, context: Ask("It holds an e-mail address."))
    summaries = {None: "It holds an e-mail address.", "A note": "A note: It holds an e-mail address."}
    for summary, shown in summaries.items():
        spec = ToolSpec(name="note", function=lambda: None, summary=summary, guards=[asks])
        prepared = await Executor(ToolRegistry([spec])).prepare(spec, {}, ToolContext())
        assert paused_call(prepared, {}).summary == shown


@pytest.mark.parametrize("key", ["$ref", "$defs", "$schema"])
async def test_a_result_that_looks_like_a_schema_is_sent_as_text(key: str, model: LocalGemini) -> None:
    registry = ToolRegistry()
    result = {"schemas": [{key: "#/x"}]}
    registry.add(ToolSpec(name="schema_of", description="A schema.", function=lambda: result, effect="read"))
    model.script([call("schema_of"), "Done."], user="^schema$")
    [response] = responses(await Counter(registry).send("schema"))
    assert response == {"result": f'{{"schemas":[{{"{key}":"#/x"}}]}}'}


async def test_one_tool_that_cannot_be_shown_takes_no_other_down(
    model: LocalGemini, capsys: pytest.CaptureFixture[str]
) -> None:
    def bad(value: Outside) -> str:
        """Cannot be shown."""
        return value

    registry = ToolRegistry()
    spec = registry.add(ToolSpec(function=bad, effect="read"))
    registry.add(ToolSpec(name="good", description="Good.", function=lambda: "fine", effect="read"))
    with pytest.raises(ToolSchemaError, match="'bad'"):
        adk_tool(spec)
    model.script([call("good"), "Done."], user="^go on$")
    assert responses(await Counter(registry).send("go on")) == [{"result": "fine"}]
    assert [tool["name"] for tool in model.requests()[-1].tools] == ["good"]
    told = capsys.readouterr().out
    assert "tool.left_out" in told
    assert "tool=bad" in told


async def test_a_tool_of_an_mcp_server_is_a_tool_like_any_other(model: LocalGemini, tmp_path: Path) -> None:
    registry, file = ToolRegistry(), tmp_path / "effects"
    server = [sys.executable, "-m", "tests.agent_adapter.mcp_server", str(file)]
    found = registry.add_mcp(server, cwd=str(Path(__file__).parents[2]), include=["delete"])
    model.script([Call(name="delete", args={"id": "A-1"}), "Deleted."], user="^delete$", repeat=True)
    shop = Counter(registry)
    message = await resolve_confirmations(await shop.send("delete"), says(False, []), registry)
    assert message
    assert responses(await shop.send(message)) == [{"error": "This tool call is rejected."}]
    assert not file.exists()
    message = await resolve_confirmations(await shop.send("delete"), says(True, []), registry)
    assert message
    assert responses(await shop.send(message)) == [{"result": "delete done\ntwice"}]
    assert file.read_text() == "delete A-1\n"
    await found.close()
