"""The guard for personal data and secrets: what it finds, what it does about it, and what it leaves alone."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_adapter import (
    CallbackApproval,
    Executor,
    GuardrailBlocked,
    InputGuard,
    OutputGuard,
    ToolContext,
    ToolRegistry,
    ToolSpec,
    ToolUsageError,
)
from agent_adapter.guards.base import Allow, Ask, Block, Replace
from agent_adapter.guards.sensitive import MAX_CHARACTERS, SensitiveDataGuard
from agent_adapter.values import Json

SECRETS = {
    "email": ["ana@example.com", "o'neil+tag@mail.example.co.uk", "jörg@müller.example", "a@b.io"],
    "card": ["4111111111111111", "4111 1111 1111 1111", "5500-0000-0000-0004", "378282246310005", "6011000990139424"],
    "iban": ["DE89370400440532013000", "DE89 3704 0044 0532 0130 00", "fr1420041010050500013M02606"],
    "phone": ["+49 30 901820", "+1 (415) 555-2671", "+442079460958"],
    "secret": [
        "AKIAIOSFODNN7EXAMPLE",
        "AIza" + "Sy" * 17 + "A",
        "ghp_" + "a1" * 18,
        "sk-ant-" + "api03-" + "x" * 24,
        "xoxb-" + "1234567890-abc",
        "sk_live_" + "4eC39HqLyjWDarjtT1",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.SflKxwRJSMeKKF2QT4",
        "-----BEGIN RSA PRIVATE KEY-----\nMIIEow==\n-----END RSA PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY-----\ncut off",
    ],
}
EACH = [(kind, secret) for kind, secrets in SECRETS.items() for secret in secrets]
INNOCENT = [
    "order 12345 of 2026-02-01",
    "4111111111111112",
    "DE88370400440532013000",
    "XX89370400440532013000",
    "me@home",
    "@handle and a@",
    "+49",
    "sk-short",
    "0.30000000000000004",
    "https://example.com:8080/a@b",
]
guard = SensitiveDataGuard()
CONTEXT = ToolContext()


def tell(to: str) -> str:
    """Tell somebody."""
    return f"sent to {to}"


TOOL = ToolSpec(name="send", function=tell)
plain_text = st.text(st.characters(whitelist_categories=["Ll", "Zs"], max_codepoint=0x2FF), max_size=20)


async def redacted(value: Json) -> Json:
    match await guard.check_output(TOOL, value, CONTEXT):
        case Replace(found):
            return found
        case Allow():
            return value
        case other:
            raise AssertionError(other)


@pytest.mark.parametrize(("kind", "secret"), EACH)
async def test_what_it_looks_for_is_cut_out_of_the_text_around_it(kind: str, secret: str) -> None:
    after = "" if secret.endswith("cut off") else " after"
    assert await redacted(f"before {secret}{after}") == f"before [{kind}]{after}"


@pytest.mark.parametrize("value", INNOCENT)
async def test_what_only_looks_like_it_stays(value: str) -> None:
    assert await redacted(value) == value


async def test_national_numbers_count_where_their_region_is_named() -> None:
    text = "call 030 901820"
    assert await redacted(text) == text
    verdict = await SensitiveDataGuard(regions=["DE"]).check_output(TOOL, text, CONTEXT)
    assert verdict == Replace("call [phone]")


async def test_only_the_kinds_that_were_asked_for_are_found() -> None:
    only = SensitiveDataGuard(find=["card"])
    verdict = await only.check_output(TOOL, "ana@example.com 4111111111111111", CONTEXT)
    assert verdict == Replace("ana@example.com [card]")


async def test_numbers_and_names_of_properties_are_looked_at_too() -> None:
    value = {"ana@example.com": 1, "bo@example.com": 2, "[email]": 3, "card": 4111111111111111, "n": [1, 2.5, True]}
    found = await redacted(value)
    assert sorted(map(str, found.values())) == sorted(["1", "2", "3", "[card]", "[1, 2.5, True]"])
    assert "example.com" not in json.dumps(found)
    assert found["[email]"] == 3


@pytest.mark.parametrize(
    "text",
    [
        "\uff41\uff4e\uff41\uff20\uff45\uff58\uff41\uff4d\uff50\uff4c\uff45\uff0e\uff43\uff4f\uff4d",
        "ana\u200b@\u200bexample.com",
        "4111\u200b1111\u200b1111\u200b1111",
    ],
)
async def test_other_ways_to_write_the_same_signs_do_not_hide_it(text: str) -> None:
    assert await redacted(text) in ("[email]", "[card]")


@settings(max_examples=60)
@given(
    found=st.sampled_from([pair for pair in EACH if not pair[1].startswith("-----BEGIN PRIVATE")]),
    before=plain_text,
    after=plain_text,
    shape=st.sampled_from(["text", "list", "value", "key", "deep"]),
)
async def test_nothing_of_it_remains_and_everything_else_does(
    found: tuple[str, str], before: str, after: str, shape: str
) -> None:
    kind, secret = found
    text, clean = f"{before} {secret} {after}", f"{before} [{kind}] {after}"
    shapes: dict[str, Callable[[str], Any]] = {
        "text": lambda text: text,
        "list": lambda text: [before, text, None, 5],
        "value": lambda text: {"a": text, "b": after},
        "key": lambda text: {text: before},
        "deep": lambda text: {"a": [{"b": [[text]], "c": after}], "d": False},
    }
    assert await redacted(shapes[shape](text)) == shapes[shape](clean)


@settings(max_examples=60)
@given(
    value=st.recursive(
        plain_text | st.booleans() | st.none(), lambda inner: st.lists(inner) | st.dictionaries(plain_text, inner)
    )
)
async def test_a_value_without_any_of_it_is_left_as_it_is(value: Json) -> None:
    assert await guard.check_output(TOOL, value, CONTEXT) == Allow()


async def test_it_asks_blocks_or_redacts_and_tells_kinds_alone() -> None:
    arguments = {"to": "ana@example.com", "text": "cards 4111111111111111 and 5500000000000004"}
    asks = await guard.check_input(TOOL, arguments, CONTEXT)
    assert asks == Ask("It holds an e-mail address and 2 card numbers.")
    blocks = await SensitiveDataGuard(inputs="block").check_input(TOOL, arguments, CONTEXT)
    assert blocks == Block("it holds an e-mail address and 2 card numbers")
    replaces = await SensitiveDataGuard(inputs="redact").check_input(TOOL, arguments, CONTEXT)
    assert replaces == Replace({"to": "[email]", "text": "cards [card] and [card]"})
    assert await SensitiveDataGuard(inputs="allow").check_input(TOOL, arguments, CONTEXT) == Allow()


async def test_a_person_approves_what_it_found_and_the_result_is_redacted() -> None:
    registry, reasons = ToolRegistry([TOOL]), list[str | None]()

    def review(request: Any) -> bool:
        reasons.append(request.reason)
        return True

    executor = Executor(registry, guards=[guard], approval=CallbackApproval(review))
    assert await executor.run("send", {"to": "ana@example.com"}) == "sent to [email]"
    assert await executor.run("send", {"to": "you"}) == "sent to you"
    assert reasons == ["It holds an e-mail address."]


async def test_redacted_arguments_that_no_longer_fit_do_not_run() -> None:
    registry = ToolRegistry()

    @registry.tool(guards=[SensitiveDataGuard(inputs="redact")])
    def charge(card: int) -> None:
        raise AssertionError(card)

    with pytest.raises(Exception, match="'charge' are not valid"):
        await Executor(registry).run("charge", {"card": 4111111111111111})


async def test_what_it_cannot_check_it_blocks_and_says_nothing_of_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    registry = ToolRegistry()

    @registry.tool(guards=[guard])
    def note(text: str) -> None:
        raise AssertionError(text)

    with pytest.raises(GuardrailBlocked, match="200,000 characters"):
        await Executor(registry).run("note", {"text": "a" * MAX_CHARACTERS})

    def breaks(text: str) -> Any:
        raise ValueError(text)

    broken = SensitiveDataGuard()
    monkeypatch.setattr(broken, "_detectors", {"email": breaks})
    assert await broken.check_input(TOOL, {"text": "marker-4711"}, CONTEXT) == Block("it could not be checked")
    assert "4711" not in "".join(capsys.readouterr())


@pytest.mark.parametrize(
    "options",
    [{"inputs": "log"}, {"outputs": "ask"}, {"find": ["names"]}, {"regions": ["Germany"]}, {"regions": ["de"]}],
)
def test_an_option_that_does_not_exist_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ToolUsageError):
        SensitiveDataGuard(**options)


def test_it_is_a_guard_of_both_sides() -> None:
    assert isinstance(guard, InputGuard)
    assert isinstance(guard, OutputGuard)
