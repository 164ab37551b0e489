"""Adapter tools in plain ADK, without a host: the confirmation matrix, row by row."""

from __future__ import annotations

from typing import Any

import pytest
from google.adk.tools import FunctionTool

from agent_adapter import (
    ApprovalDecision,
    ApprovalPending,
    ApprovalRequest,
    DeferredApproval,
    MemoryApprovalStore,
    ToolRegistry,
    ToolSpec,
    ToolUsageError,
    get_integration,
)
from agent_adapter.integrations.adk import INTEGRATION, adk_tool, resolve_confirmations
from agentvisor.local_gemini import LocalGemini
from tests.adk.plain import CONFIRM, Shop, confirm, model, responses, says
from tests.fixtures.gemini import call

__all__ = ["model"]

pytestmark = [
    pytest.mark.usefixtures("model"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning"),
]


async def test_an_approved_call_runs_once_with_the_token_of_its_approval() -> None:
    shop, asked = Shop(), list[ApprovalRequest]()
    port = says(ApprovalDecision(approved=True, decided_by="ana"), asked)
    paused = await shop.send("go")
    assert shop.done == []
    message = await resolve_confirmations(paused, port, shop.registry)
    assert message
    assert [(request.tool, request.arguments) for request in asked] == [("pay", {"order": "A-1"})]
    assert asked[0].run == paused[0].invocation_id
    done = await shop.send(message)
    assert responses(done) == [{"paid": "A-1", "thread": True}]
    assert shop.done == [("A-1", "ana")]
    assert await resolve_confirmations(done, port, shop.registry) is None


async def test_an_edited_call_runs_with_what_the_person_wrote() -> None:
    shop = Shop()
    port = says(ApprovalDecision(approved=True, edited_args={"order": "A-2"}), [])
    message = await resolve_confirmations(await shop.send("go"), port, shop.registry)
    assert message
    await shop.send(message)
    assert [order for order, _ in shop.done] == ["A-2"]


async def test_a_refused_call_is_rejected_by_adk() -> None:
    shop = Shop()
    message = await resolve_confirmations(await shop.send("go"), says(False, []), shop.registry)
    assert message
    assert responses(await shop.send(message)) == [{"error": "This tool call is rejected."}]
    assert shop.done == []


@pytest.mark.parametrize("payload", [None, {}, {"aa_token": "forged"}, {"aa_token": 1}, "aa_token"])
async def test_a_bare_or_forged_confirmation_is_no_approval(payload: Any) -> None:
    shop = Shop()
    message = confirm(await shop.send("go"), {"confirmed": True, "payload": payload})
    [response] = responses(await shop.send(message))
    assert response["error"]["kind"] == "approval-denied"
    assert shop.done == []


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"confirmed": "true"},
        {"confirmed": 1},
        {"confirmed": "false"},
        {"confirmed": None},
        {"confirmed": True, "aa_token": "beside"},
        {"response": '{"confirmed": true}'},
        {"response": "yes"},
        {"result": "yes"},
    ],
)
async def test_no_shape_of_an_answer_is_an_approval_without_a_token(answer: dict[str, Any]) -> None:
    shop = Shop()
    paused = await shop.send("go")
    try:
        await shop.send(confirm(paused, answer))
    except ValueError:  # ADK itself refuses some; the call still waits then
        message = await resolve_confirmations(paused, says(True, []), shop.registry)
        assert message
        assert shop.done == []
        await shop.send(message)
        assert len(shop.done) == 1
    else:
        assert shop.done == []


async def test_a_token_with_anything_beside_it_is_ignored_and_the_executor_s_own_port_is_asked() -> None:
    asked: list[ApprovalRequest] = []
    shop = Shop(says(False, asked))
    paused = await shop.send("go")
    message = await resolve_confirmations(paused, says(True, []), shop.registry)
    assert message
    assert message.parts
    answer = message.parts[0].function_response
    assert answer
    assert answer.response
    answer.response["payload"]["extra"] = 1
    [response] = responses(await shop.send(message))
    assert response["error"]["kind"] == "approval-denied"
    assert len(asked) == 1


async def test_a_spent_token_does_not_open_a_second_call() -> None:
    shop = Shop()
    message = await resolve_confirmations(await shop.send("go"), says(True, []), shop.registry)
    assert message
    assert message.parts
    answer = message.parts[0].function_response
    assert answer
    assert answer.response
    await shop.send(message)
    again = confirm(await shop.send("go"), answer.response)
    [response] = responses(await shop.send(again))
    assert response["error"]["kind"] == "approval-denied"
    assert len(shop.done) == 1


async def test_a_tool_outside_the_registry_is_asked_about_with_its_raw_arguments(model: LocalGemini) -> None:
    ran: list[str] = []

    def plain(order: str) -> str:
        """Plain."""
        ran.append(order)
        return order

    model.script([call("plain", order="B-1"), "Done."], user="plain")
    shop, asked = Shop(None, FunctionTool(plain, require_confirmation=True)), list[ApprovalRequest]()
    message = await resolve_confirmations(await shop.send("plain"), says(True, asked), shop.registry)
    assert message
    assert message.parts
    answer = message.parts[0].function_response
    assert answer
    assert answer.response == {"confirmed": True}
    assert [request.arguments for request in asked] == [{"order": "B-1"}]


async def test_an_edit_of_a_tool_outside_the_registry_does_not_run_it(model: LocalGemini) -> None:
    def plain(order: str) -> str:
        """Plain."""
        raise AssertionError(order)

    model.script([call("plain", order="B-1"), "Done."], user="plain")
    shop = Shop(None, FunctionTool(plain, require_confirmation=True))
    port = says(ApprovalDecision(approved=True, edited_args={"order": "B-2"}), [])
    message = await resolve_confirmations(await shop.send("plain"), port, shop.registry)
    assert message
    assert responses(await shop.send(message)) == [{"error": "This tool call is rejected."}]


async def test_a_deferred_approval_that_waits_comes_out_of_the_resolution_and_of_the_tool() -> None:
    store = MemoryApprovalStore()
    shop = Shop(DeferredApproval(store))
    paused = await shop.send("go")
    with pytest.raises(ApprovalPending) as pending:
        await resolve_confirmations(paused, DeferredApproval(store), shop.registry)
    with pytest.raises(ApprovalPending) as again:
        await shop.send(confirm(paused, {"confirmed": True}))
    assert [request.id for request in pending.value.requests] == [request.id for request in again.value.requests]
    assert shop.done == []


async def test_a_rule_drives_the_confirmation(model: LocalGemini) -> None:
    model.script([{"calls": [call("refund", amount=5), call("refund", amount=50)]}, "Done."], user="refund")
    shop = Shop()
    paused = await shop.send("refund")
    assert shop.done == [("refund", 5)]
    message = await resolve_confirmations(paused, says(True, []), shop.registry)
    assert message
    await shop.send(message)
    assert shop.done == [("refund", 5), ("refund", 50)]


async def test_arguments_that_do_not_fit_come_back_as_an_error(model: LocalGemini) -> None:
    model.script([call("pay", order=5), "Done."], user="wrong")
    shop = Shop()
    [response] = responses(await shop.send("wrong"))
    assert response["error"]["kind"] == "tool-args-invalid"


async def test_confirmations_of_several_invocations_or_of_none_are_refused_before_anybody_is_asked() -> None:
    shop, asked = Shop(), list[ApprovalRequest]()
    first, second = await shop.send("go"), await shop.send("go")
    with pytest.raises(ToolUsageError, match="2 invocations"):
        await resolve_confirmations([*first, *second], says(True, asked), shop.registry)
    for event in first:
        event.invocation_id = ""
    with pytest.raises(ToolUsageError, match="invocation"):
        await resolve_confirmations(first, says(True, asked), shop.registry)
    assert asked == []


async def test_confirmations_of_several_branches_are_refused_before_anybody_is_asked() -> None:
    shop, asked = Shop(), list[ApprovalRequest]()
    events = await shop.send("go")
    [request] = [event for event in events if any(found.name == CONFIRM for found in event.get_function_calls())]
    other = request.model_copy(deep=True, update={"branch": "pair.right"})
    with pytest.raises(ToolUsageError, match="branches"):
        await resolve_confirmations([*events, other], says(True, asked), shop.registry)
    assert asked == []


async def test_only_exported_tools_are_shown_and_their_schema_is_gemini_s(model: LocalGemini) -> None:
    await Shop().send("go")
    declared = {tool["name"]: tool for tool in model.requests()[-1].tools}
    assert set(declared) == {"pay", "refund"}
    assert declared["pay"]["parameters"] == {
        "type": "OBJECT",
        "properties": {"order": {"type": "STRING"}},
        "required": ["order"],
    }


def test_the_integration_is_found_by_its_name() -> None:
    registry = ToolRegistry()
    spec = registry.add(ToolSpec(name="one", function=over_ten_of, effect="read"))
    assert get_integration("adk") is INTEGRATION
    assert [tool.name for tool in INTEGRATION.tools(registry)] == ["one"]
    assert INTEGRATION.tool(spec).name == adk_tool(spec).name == "one"


def over_ten_of(amount: int) -> bool:
    """Whether it is over ten."""
    return amount > 10
