from __future__ import annotations

import inspect
import json
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from tests.workflows.adk_events import exact
from tests.workflows.any_message import messages as any_message
from workflows import messages
from workflows.messages import (
    Answer,
    CallView,
    Done,
    Handed,
    LegResult,
    LongRunningAnswer,
    Message,
    Options,
    Paused,
    Position,
    RunAgent,
    RunLimits,
    RunView,
    StartThread,
    Usage,
    View,
)

MESSAGES: list[type[Message]] = [
    found
    for found in vars(messages).values()
    if inspect.isclass(found) and issubclass(found, Message) and found not in (Message, View)
]
NAMES = [message.__name__ for message in MESSAGES]
every_message = pytest.mark.parametrize("message", MESSAGES, ids=NAMES)
any_of_them: st.SearchStrategy[Message] = st.one_of(*map(any_message, MESSAGES))
many = settings(max_examples=200)


@many
@given(any_of_them)
def test_a_message_comes_back_from_json_as_it_was(sent: Message) -> None:
    message = type(sent)
    again = message.model_validate_json(sent.model_dump_json())
    assert again == sent
    assert exact(again.model_dump(mode="json")) == exact(sent.model_dump(mode="json"))
    assert message.model_validate(sent.model_dump()) == sent


@many
@given(any_of_them)
def test_an_older_worker_reads_what_a_newer_one_wrote(sent: Message) -> None:
    message = type(sent)
    newer = json.loads(sent.model_dump_json()) | {"added_later": {"a": 1}}
    assert message.model_validate_json(json.dumps(newer)) == sent


@many
@given(any_of_them)
def test_a_newer_worker_reads_what_an_older_one_wrote(sent: Message) -> None:
    """Fields that were added later have defaults: the fields without one are enough."""
    message = type(sent)
    required = {name for name, field in message.model_fields.items() if field.is_required()}
    older = {name: value for name, value in json.loads(sent.model_dump_json()).items() if name in required}
    read = message.model_validate_json(json.dumps(older))
    assert all(getattr(read, name) == getattr(sent, name) for name in required)


@many
@given(any_of_them)
def test_defaults_are_not_sent_and_views_are_complete(sent: Message) -> None:
    message = type(sent)
    fields = set(json.loads(sent.model_dump_json()))
    if issubclass(message, View) or message is Position:
        assert fields == set(message.model_fields)
        return
    told = {name for name, field in message.model_fields.items() if getattr(sent, name) != field.get_default()}
    assert fields == told | ({"kind"} & set(message.model_fields))


@every_message
def test_a_message_is_frozen_and_ignores_what_it_does_not_know(message: type[Message]) -> None:
    assert message.model_config.get("frozen") is True
    assert message.model_config.get("extra") == "ignore"


def test_every_outcome_says_its_kind() -> None:
    for outcome in (messages.Answered(), Paused(), messages.HandedOver(), Done()):
        assert json.loads(outcome.model_dump_json())["kind"] == outcome.kind


def test_a_short_leg_costs_few_bytes() -> None:
    leg = RunAgent(agent="helper", principal="ana", run_id="r", handed=Handed(message={"a": 1}))
    assert json.loads(leg.model_dump_json()) == {
        "agent": "helper",
        "principal": "ana",
        "run_id": "r",
        "handed": {"message": {"a": 1}},
    }
    assert LegResult(outcome=messages.Answered()).model_dump_json() == '{"outcome":{"kind":"answered"}}'


def test_unlimited_is_not_the_default_limit() -> None:
    unlimited = RunLimits(model_calls=None, tool_calls=None)
    sent = unlimited.model_dump_json()
    assert json.loads(sent) == {"model_calls": None, "tool_calls": None}
    assert RunLimits.model_validate_json(sent) == unlimited


def test_a_run_view_says_what_was_used_even_if_it_was_nothing() -> None:
    view = RunView(run_id="r", status="queued", queued_at="…", calls=(_call_view(),))
    shown = json.loads(view.model_dump_json())
    assert shown["usage"] == {"model_calls": 0, "tool_calls": 0, "tokens": 0, "cost": 0.0}
    assert shown["calls"] == [
        {"id": "1-1", "tool": "pay", "arguments": {}, "status": "waiting", "by": None, "result": None}
    ]


def _call_view() -> CallView:
    return CallView(id="1-1", tool="pay", arguments={}, status="waiting")


def test_usage_adds_up() -> None:
    one, two = Usage(model_calls=1, tokens=5, cost=0.5), Usage(model_calls=2, tool_calls=3, cost=0.25)
    assert one.plus(two) == Usage(model_calls=3, tool_calls=3, tokens=5, cost=0.75)


@pytest.mark.parametrize("kind", ["input", "long_running", "done", "not_done", "run_again"])
def test_an_answer_is_known_by_its_kind(kind: str) -> None:
    given_answer = {"kind": kind, "interrupt_id": "uo-1-1", "value": 1, "result": 1}
    answer = TypeAdapter[Answer](Answer).validate_python(given_answer)
    assert answer.kind == kind
    assert isinstance(answer, get_args(get_args(Answer)[0]))


def test_a_long_running_answer_is_final_unless_it_says_not() -> None:
    assert LongRunningAnswer(interrupt_id="lr-1-1", result=1).final is True


@pytest.mark.parametrize(
    "options",
    [
        *({name: 1e12} for name in ("approval_ttl", "leg_timeout", "tool_timeout", "heartbeat_timeout")),
        *({name: 0} for name in ("approval_ttl", "leg_timeout", "runs_per_execution", "leg_attempts")),
        {"leg_attempts": 2**31},
        {"inline_bytes": 2**21},
        {"limits": {"seconds": 1e12}},
    ],
)
def test_options_are_times_and_numbers_that_temporal_takes(options: Any) -> None:
    with pytest.raises(ValidationError):
        StartThread.model_validate({"agent": "a", "options": options})


def test_an_approval_may_wait_for_ever() -> None:
    assert Options.model_validate_json(Options(approval_ttl=None).model_dump_json()).approval_ttl is None
