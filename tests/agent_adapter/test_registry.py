"""Which tools a registry takes."""

from __future__ import annotations

import pytest

from agent_adapter import ToolRegistry, ToolSpec, ToolUsageError


def look(what: str) -> str:
    return what


def test_tools_come_in_the_order_they_were_added() -> None:
    registry = ToolRegistry()

    @registry.tool
    def second_to_none() -> None: ...

    @registry.tool(effect="read", name="named")
    def other() -> None: ...

    registry.add(ToolSpec(function=look, export=["elsewhere"]))
    assert [spec.name for spec in registry] == ["second_to_none", "named", "look"]
    assert [spec.name for spec in registry.exported_to("adk")] == ["second_to_none", "named"]
    assert registry["named"].effect == "read"
    assert len(registry) == 3
    assert "look" in registry


def test_a_decorated_function_stays_a_function() -> None:
    registry = ToolRegistry()
    assert registry.tool(look) is look
    assert registry.tool(name="again")(look) is look
    assert look("x") == "x"


def test_a_name_is_taken_once() -> None:
    registry = ToolRegistry([ToolSpec(function=look)])
    with pytest.raises(ToolUsageError, match=r"'look' is in the registry already\. Give"):
        registry.tool(look)


@pytest.mark.parametrize(
    "name",
    [
        "adk_request_confirmation",
        "adk_request_input",
        "adk_request_credential",
        "adk_anything",
        "aa_driver",
        "transfer_to_agent",
        "finish_task",
        "set_model_response",
        "exit_loop",
        "load_memory",
        "load_artifacts",
        "google_search",
    ],
)
def test_names_of_frameworks_are_reserved(name: str) -> None:
    with pytest.raises(ToolUsageError, match=rf"'{name}' is reserved.*another"):
        ToolRegistry([ToolSpec(function=look, name=name)])


@pytest.mark.parametrize("name", ["1abc", "a b", "a/b", "é", "a" * 65, "a:b", "a\n", "<lambda>", "-a", "."])
def test_names_that_a_model_api_refuses_are_illegal(name: str) -> None:
    with pytest.raises(ToolUsageError, match="is not legal") as refused:
        ToolRegistry([ToolSpec(function=look, name=name)])
    assert repr(name) in refused.value.message


@pytest.mark.parametrize("name", ["a", "_a", "a.b", "a-b", "A1", "a" * 64])
def test_other_names_are_legal(name: str) -> None:
    assert name in ToolRegistry([ToolSpec(function=look, name=name)])


def test_an_unknown_name_is_a_usage_error_that_lists_the_known_ones() -> None:
    with pytest.raises(ToolUsageError, match=r"No tool 'lok'.*'look'"):
        ToolRegistry([ToolSpec(function=look)])["lok"]


def test_an_unknown_option_is_named() -> None:
    with pytest.raises(ToolUsageError, match=r"Tool 'look': no option confrim"):
        ToolRegistry().tool(confrim=True)(look)
