"""What the Web UI shows of a thread that waits."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from workflows import display
from workflows.messages import Answer, Decide, Interrupt, InterruptKind

_ARGUMENTS = st.dictionaries(st.text(), st.none() | st.booleans() | st.integers() | st.text() | st.lists(st.text()))


def interrupt(**given_: Any) -> Interrupt:
    usual = {
        "kind": "approval",
        "id": "ap-1-1",
        "thread_id": "t",
        "run_id": "r",
        "agent": "shop-helper",
        "principal": "ana",
        "tool": "send_invoice",
        "arguments": {"order_id": "A-1001"},
        "since": "2026-01-02T03:04:05.678Z",
        "deadline": "2026-01-09T03:04:05.678Z",
    }
    return Interrupt.model_validate({**usual, **given_})


def blocks(markdown: str) -> list[str]:
    """The fenced blocks, as a reader of Markdown finds them."""
    return re.findall(r"^```json\n(.*?)\n^```$", markdown, re.MULTILINE | re.DOTALL)


def test_an_approval_says_what_waits_since_when_until_when_and_what_to_send() -> None:
    shown = display.details([interrupt(summary="Invoice for A-1001")])
    assert shown.startswith("### Waits for a decision: `send_invoice` (ap-1-1)\n\nInvoice for A\\-1001\n\n")
    assert "Since 2026-01-02 03:04:05 UTC, until 2026-01-09 03:04:05 UTC." in shown
    arguments, yes, no, edited = map(json.loads, blocks(shown))
    assert arguments == {"order_id": "A-1001"}
    decisions = [Decide.model_validate(sent) for sent in (yes, no, edited)]
    assert [decision.approval_id for decision in decisions] == ["ap-1-1"] * 3
    assert [decision.approved for decision in decisions] == [True, False, True]
    assert decisions[2].edited_args == {"order_id": "A-1001"}


def test_what_cannot_be_edited_is_not_shown_to_be() -> None:
    assert len(blocks(display.details([interrupt(editable=False)]))) == 3


@pytest.mark.parametrize(
    ("kind", "kinds"),
    [
        ("input", ["input"]),
        ("long_running", ["long_running"]),
        ("unknown_outcome", ["done", "not_done", "run_again"]),
    ],
)
def test_every_other_interrupt_shows_the_answers_it_takes(kind: InterruptKind, kinds: list[str]) -> None:
    shown = display.details([interrupt(kind=kind, deadline=None, detail="The worker was lost.")])
    assert "without a deadline" in shown
    assert "The worker was lost\\." in shown
    sent = [TypeAdapter[Answer](Answer).validate_json(block) for block in blocks(shown)[1:]]
    assert [answer.kind for answer in sent] == kinds
    assert {answer.interrupt_id for answer in sent} == {"ap-1-1"}


@given(_ARGUMENTS)
def test_arguments_are_shown_as_they_are_and_nothing_in_them_is_invisible(arguments: dict[str, Any]) -> None:
    shown = display.details([interrupt(arguments=arguments)])
    assert all(letter.isprintable() or letter == "\n" for letter in shown)
    found = blocks(shown)
    assert len(found) == 4
    if "cut; the query" not in found[0]:
        assert json.loads(found[0]) == arguments
        assert json.loads(found[3])["edited_args"] == arguments


@given(st.text() | st.sampled_from(["```json\n{}\n```", "\n### Waits", "![](http://x)", "<b>", "\u202eevil"]))
def test_no_word_of_a_model_passes_for_ours(summary: str) -> None:
    shown = display.details([interrupt(summary=summary)])
    assert len(blocks(shown)) == 4
    assert all(letter.isprintable() or letter == "\n" for letter in shown)
    added = set(shown.split("\n\n")) - set(display.details([interrupt()]).split("\n\n"))
    assert len(added) <= 1
    for paragraph in added:
        assert "\n" not in paragraph
        assert not re.search(r"(?<!\\)[`*_<>\[\]#!&]", paragraph.replace("\\\\", ""))


def test_long_arguments_are_cut_and_it_says_where_the_rest_is() -> None:
    shown = display.details([interrupt(arguments={"text": "x" * 50_000})])
    assert "the query `interrupts` has all" in shown
    assert len(shown) < 4_000


@given(st.lists(st.text(min_size=1), max_size=20) | st.just([f"{n}" + "\U0001f600" * 100 for n in range(20)]))
def test_pending_tools_fit_into_a_search_attribute(tools: list[str]) -> None:
    names = display.pending_tools([interrupt(tool=tool) for tool in tools])
    assert len(names) == len(set(names)) <= 10
    assert len(json.dumps(names)) < 2048
    assert all(name.isprintable() for name in names)


def test_pending_tools_names_each_tool_once_in_order() -> None:
    assert display.pending_tools([interrupt(tool=tool) for tool in ("b", "a", "b")]) == ["b", "a"]


def test_labels_of_activities_and_timers_are_short() -> None:
    assert display.call_summary("pay", None) == "pay"
    assert display.call_summary("pay", "9 EUR to Ana") == "pay: 9 EUR to Ana"
    assert display.approval_summary("pay", "ap-1-1") == "approval of pay (ap-1-1)"
    assert len(display.call_summary("x" * 1000, "y" * 1000)) == 200
