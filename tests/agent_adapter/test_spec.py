"""What a tool may be, and what is refused when it is made."""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import Any

import pytest
from pydantic import BaseModel, SecretStr

from agent_adapter import ToolContext, ToolSpec, ToolUsageError
from agent_adapter.values import JsonObject


def send(amount: int) -> str:
    """Send money."""
    return "sent"


async def look(context: ToolContext, what: str = "all") -> str:
    return what


def never(arguments: JsonObject, context: ToolContext) -> bool:
    return False


def amount_of(arguments: JsonObject) -> str:
    return f"Pays {arguments['amount']}"


def broken(arguments: JsonObject) -> str:
    return arguments["missing"]


def number(arguments: JsonObject) -> int:
    return 7


def empty(arguments: JsonObject) -> str:
    return ""


def surrogate(arguments: JsonObject) -> str:
    return "\ud800"


class Other(BaseModel):
    amount: int
    more: str


def test_name_and_description_come_from_the_function() -> None:
    spec = ToolSpec(function=send)
    assert (spec.name, spec.description, spec.effect) == ("send", "Send money.", "write")


def test_the_context_is_no_argument_whatever_its_name() -> None:
    spec = ToolSpec(function=look)
    assert spec.context_parameter == "context"
    assert list(spec.parameters["properties"]) == ["what"]
    assert ToolSpec(function=send).context_parameter is None


def no_annotation(amount) -> None: ...  # pyright: ignore[reportUnknownParameterType, reportMissingParameterType]


def variadic(*amounts: int) -> None: ...


def by_position(amount: int, /) -> None: ...


def two_contexts(a: ToolContext, b: ToolContext) -> None: ...


def wrong_default(amount: int = "much") -> None: ...  # pyright: ignore[reportArgumentType]


def secret(password: SecretStr) -> None: ...


def unreadable(thing: object | ToolSpec) -> None: ...


REFUSED: list[tuple[Any, dict[str, Any], str]] = [
    (no_annotation, {}, "'amount' has no annotation"),
    (variadic, {}, "'amounts' cannot be passed by name"),
    (by_position, {}, "'amount' cannot be passed by name"),
    (two_contexts, {}, "takes a ToolContext as a, b"),
    (wrong_default, {}, "default of 'amount' is not a valid argument"),
    (unreadable, {}, "no argument schema can be made"),
    (send, {"arguments": Other}, "differ in more"),
    (secret, {}, "an argument is a secret type"),
    (send, {"arguments": dict}, "no pydantic model"),
    (send, {"effect": "delete"}, "effect is 'delete'"),
    (send, {"confirm": "yes"}, "confirm is 'yes'"),
    (send, {"retries": 1}, "would make a write run twice"),
    (send, {"effect": "read", "retries": -1}, "retries is negative"),
    (send, {"timeout": 0}, "timeout is 0"),
    (send, {"timeout": float("nan")}, "timeout is nan"),
    (send, {"cost": -1}, "cost is -1"),
    (send, {"expires": "soon"}, "expires is 'soon'"),
    (send, {"expires": 0}, "expires is 0"),
    ("send", {"name": "send"}, "is of type str"),
]


@pytest.mark.parametrize(("function", "options", "told"), REFUSED)
def test_what_cannot_work_is_refused_by_name(function: Any, options: dict[str, Any], told: str) -> None:
    with pytest.raises(ToolUsageError) as refused:
        ToolSpec(function=function, **options)
    assert told in refused.value.message
    assert f"'{options.get('name') or function.__name__}'" in refused.value.message


def test_an_unresolved_annotation_is_named() -> None:
    def local(thing: Missing) -> None: ...  # pyright: ignore[reportUndefinedVariable, reportUnknownParameterType]  # noqa: F821

    with pytest.raises(ToolUsageError, match=r"'Missing' cannot be resolved.*top of the module"):
        ToolSpec(function=local)  # pyright: ignore[reportUnknownArgumentType]


def test_retries_go_with_repeatable_tools() -> None:
    assert ToolSpec(function=send, effect="read", retries=2).retries == 2
    assert ToolSpec(function=send, idempotent=True, retries=2).retries == 2


@pytest.mark.parametrize(
    ("options", "pauses"),
    [
        ({}, True),
        ({"effect": "read"}, False),
        ({"idempotent": True}, False),
        ({"effect": "read", "confirm": True}, True),
        ({"effect": "read", "confirm": never}, True),
    ],
)
def test_a_tool_may_pause_for_a_person_or_because_it_must_not_run_twice(options: dict[str, Any], pauses: bool) -> None:
    assert ToolSpec(function=send, **options).may_pause is pauses


def test_the_fingerprint_is_the_same_for_the_same_tool() -> None:
    assert ToolSpec(function=send).fingerprint == ToolSpec(function=send, timeout=3, cost=1).fingerprint


@pytest.mark.parametrize(
    "options",
    [
        {"name": "other"},
        {"version": "2"},
        {"effect": "read"},
        {"idempotent": True},
        {"confirm": True},
        {"confirm": never},
    ],
    ids=["name", "version", "effect", "idempotent", "confirm", "rule"],
)
def test_the_fingerprint_changes_with_what_a_person_approves(options: dict[str, Any]) -> None:
    assert ToolSpec(function=send, **options).fingerprint != ToolSpec(function=send).fingerprint


def test_the_fingerprint_changes_with_the_schema() -> None:
    def wider(amount: int | str) -> str:
        return "sent"

    assert ToolSpec(function=wider, name="send").fingerprint != ToolSpec(function=send).fingerprint


def test_a_spec_can_be_varied() -> None:
    varied = dataclasses.replace(ToolSpec(function=send), version="2")
    assert varied.validate({"amount": 1}) == {"amount": 1}


def test_a_partial_is_a_function_too() -> None:
    assert ToolSpec(function=partial(look, what="x"), name="look").is_async


@pytest.mark.parametrize(
    ("summary", "shown"),
    [
        (None, None),
        ("Pays", "Pays"),
        ("  two\nlines ", "two lines"),
        ("x" * 300, "x" * 199 + "…"),
        (amount_of, "Pays 5"),
        (broken, None),
        (number, None),
        (empty, None),
        (surrogate, "?"),
    ],
)
def test_the_summary_is_a_short_line_or_nothing(summary: Any, shown: str | None) -> None:
    assert ToolSpec(function=send, summary=summary).summary_of({"amount": 5}) == shown


def test_a_summary_cannot_change_the_arguments() -> None:
    arguments = {"amount": 5}
    spec = ToolSpec(function=send, summary=lambda given: str(given.pop("amount")))
    assert spec.summary_of(arguments) == "5"
    assert arguments == {"amount": 5}


def test_export_takes_one_name_or_several() -> None:
    assert ToolSpec(function=send).is_exported_to("adk")
    assert ToolSpec(function=send, export="adk").is_exported_to("adk")
    assert not ToolSpec(function=send, export=["other"]).is_exported_to("adk")
    assert not ToolSpec(function=send, export=()).is_exported_to("adk")
