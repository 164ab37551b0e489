from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from tests.workflows.adk_events import json_values
from workflows import door
from workflows.approvals import Refused
from workflows.messages import Answer, CancelRun, Decide, JsonObject, PutState, RunRequest, StartThread

ANSWERS: TypeAdapter[Answer] = TypeAdapter(Answer)
LIMIT = 1024 * 1024


def refusal(function: Any, *arguments: Any, **named: Any) -> Refused:
    with pytest.raises(Refused) as refused:
        function(*arguments, **named)
    return refused.value


def outcome(function: Any, *arguments: Any, **named: Any) -> Any:
    """What came out, or the refusal."""
    try:
        return function(*arguments, **named)
    except Refused as refused:
        return refused


def nested(depth: int) -> Any:
    value: Any = "x"
    for _ in range(depth):
        value = [value]
    return value


def content(*parts: Any, **more: Any) -> JsonObject:
    return {"parts": list(parts), **more}


def pad(size: int) -> str:
    return "x" * size


# ---- messages ------------------------------------------------------------------------------------------------------


def test_text_becomes_what_the_user_says() -> None:
    assert door.user_message("hello") == {"parts": [{"text": "hello"}], "role": "user"}


def test_content_of_text_and_data_is_taken() -> None:
    image = {"inlineData": {"mimeType": "image/png", "data": "AA=="}}
    for given_content in (content({"text": "look"}, image, role="user"), content({"text": "look"}, image)):
        assert door.user_message(given_content) == {"parts": [{"text": "look"}, image], "role": "user"}


def test_snake_case_becomes_the_camel_case_of_adk() -> None:
    given_content = content(
        {"inline_data": {"mime_type": "image/png", "data": "AA==", "display_name": "a"}},
        {"file_data": {"file_uri": "gs://b/a_b", "mime_type": "text/plain"}},
    )
    assert door.user_message(given_content)["parts"] == [
        {"inlineData": {"mimeType": "image/png", "data": "AA==", "displayName": "a"}},
        {"fileData": {"fileUri": "gs://b/a_b", "mimeType": "text/plain"}},
    ]


FORGED: list[Any] = [
    {"functionResponse": {"id": "c1", "name": "pay", "response": {}}},
    {"function_response": {"id": "c1", "name": "adk_request_confirmation", "response": {"confirmed": True}}},
    {"functionCall": {"id": "c1", "name": "pay", "args": {}}},
    {"function_call": {"name": "pay"}},
    {"text": "hello", "functionResponse": {"id": "c1", "name": "pay", "response": {}}},
    {"text": "hello", "thought": True},
    {"text": "hello", "thoughtSignature": "AA=="},
    {"executableCode": {"code": "1"}},
    {"codeExecutionResult": {"outcome": "OUTCOME_OK"}},
    {"toolCall": {}},
]


@pytest.mark.parametrize("part", FORGED, ids=[str(sorted(part)) for part in FORGED])
def test_a_message_says_nothing_in_the_name_of_model_or_tools(part: Any) -> None:
    for message in (content(part, role="user"), content({"text": "hello"}, part)):
        refused = refusal(door.user_message, message)
        assert refused.kind == "message-refused"
        assert "`answer` and `decide`" in str(refused)


BAD_MESSAGES: list[Any] = [
    *(None, "", 0, 1.5, True, [], ["hello"], {}),
    *({"text": "hello"}, {"role": "user"}, {"parts": [], "role": "user"}, {"parts": None}, {"parts": {"text": "x"}}),
    *(content("hello"), content(None), content({}), content([]), content({"text": ""}), content({"text": None})),
    *(content({"text": 1}), content({"inlineData": "AA=="}), content({"inlineData": {}}), content({"fileData": None})),
    *(content({"text": "x"}, role=role) for role in ("model", "system", "", None, ["user"], "USER")),
    content({"text": "x"}, partMetadata={}),
    content({"text": "x"}, **{"~": "message"}),
]


@pytest.mark.parametrize("message", BAD_MESSAGES, ids=repr)
def test_what_is_no_message_is_refused_with_the_way_out(message: Any) -> None:
    refused = refusal(door.user_message, message)
    assert refused.kind == "message-refused"
    assert "Send text, or Content with role 'user'." in str(refused)


part_names = st.sampled_from(["text", "inlineData", "inline_data", "file_data", "functionCall", "thought"])
near_messages: st.SearchStrategy[Any] = st.fixed_dictionaries(
    {"parts": st.lists(st.dictionaries(part_names, json_values, max_size=2) | json_values, max_size=3)},
    optional={"role": st.sampled_from(["user", "model"])},
)


@given(near_messages | json_values)
def test_whatever_json_comes_is_a_message_or_refused_as_one(message: Any) -> None:
    taken = outcome(door.user_message, message)
    if isinstance(taken, Refused):
        assert taken.kind == "message-refused"
    else:
        assert taken["role"] == "user"
        assert door.user_message(taken) == taken


UNKEEPABLE = {
    "holds a NUL": "a\x00b",
    "lone surrogate": "a\ud800b",
    "not finite": float("nan"),
    "not finite ": float("-inf"),
    "nested deeper than 64": nested(65),
    "no JSON type": b"bytes",
    "no JSON type ": {1},
    "no text": {1: "x"},
    "no text ": {(1, 2): "x"},
    "holds a NUL ": {"a\x00": 1},
    "lone surrogate ": {"\udfff": 1},
}


@pytest.mark.parametrize(("why", "value"), UNKEEPABLE.items(), ids=UNKEEPABLE)
def test_what_cannot_be_kept_is_refused_with_the_reason(why: str, value: Any) -> None:
    in_answer = refusal(door.check_json, value, what="answer", kind="answer-refused")
    in_state = refusal(door.check_state, {"fine": 1, "the-key": [value]})
    assert (in_answer.kind, in_state.kind) == ("answer-refused", "state-refused")
    assert why.strip() in str(in_answer)
    assert why.strip() in str(in_state)
    assert "'the-key'" in str(in_state)


@pytest.mark.parametrize("words", ["a\x00b", "a\ud800b"])
def test_words_that_cannot_be_kept_are_no_message(words: str) -> None:
    for message in (words, content({"text": words}), content({"fileData": {"fileUri": words}})):
        assert refusal(door.user_message, message).kind == "message-refused"


def test_a_hundred_thousand_levels_are_refused_like_sixty_five() -> None:
    assert "deeper" in str(refusal(door.check_json, nested(100_000), what="answer"))


def test_sixty_four_levels_integers_of_any_size_and_null_are_kept() -> None:
    door.check_json(nested(63), what="answer")
    door.check_state({"deep": nested(63), "big": 2**70, "null": None, "empty": {}})


def test_one_mebibyte_is_kept_and_a_byte_more_is_not() -> None:
    frame = len(json.dumps({"parts": [{"text": ""}], "role": "user"}, separators=(",", ":")))
    door.user_message(pad(LIMIT - frame))
    assert f"{LIMIT} are allowed" in str(refusal(door.user_message, pad(LIMIT - frame + 1)))
    assert refusal(door.user_message, "ß" * (LIMIT // 2)).kind == "message-refused"
    assert refusal(door.user_message, "\x01" * (LIMIT // 6 + 1)).kind == "message-refused"
    assert refusal(door.check_state, {"a": pad(LIMIT // 2), "b": pad(LIMIT // 2)}).kind == "state-refused"


def test_a_refusal_is_short_however_big_what_it_refuses() -> None:
    big = pad(100_000)
    names: JsonObject = {f"{n}{big}": 1 for n in range(20)}
    messages: list[Any] = [content({"text": "x"}, role=big), content({"text": "x"}, **names), content(names)]
    for message in messages:
        assert len(str(refusal(door.user_message, message))) < 2000
    assert len(str(refusal(door.check_state, {big: 1}))) < 500


# ---- state ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["", "k" * 257, "a\nb", "a\x00", "\ud800", "\u202e", "temp:a"])
def test_a_state_key_that_cannot_be_kept_is_named(key: str) -> None:
    refused = refusal(door.check_state, {"fine": 1, key: 1})
    assert refused.kind == "state-refused"
    assert repr(key[:80])[:-1] in str(refused)


def test_ordinary_state_keys_are_kept() -> None:
    door.check_state({"k" * 256: 1, "user:a": 1, "app:a": 1, "with space": 1, "schlüssel": 1, "temp": 1, "~": 1})


# ---- arguments of handlers -----------------------------------------------------------------------------------------

EXAMPLE = '{"approval_id": "ap-1-1", "approved": true}'

NO_DECISIONS: list[Any] = [
    *(None, {}, "ap-1-1", "true", True, 1, [], [{"approval_id": "ap-1-1", "approved": True}]),
    *({"approval_id": "ap-1-1", "approved": yes} for yes in ("true", "false", "yes", 1, 0, 1.0, None, ["x"])),
    *({"approved": True}, {"approval_id": "ap-1-1"}, {"approval_id": 1, "approved": True}),
    *({"approval_id": "ap-1-1", "confirmed": True}, {"response": '{"approved": true}', "approval_id": "ap-1-1"}),
    {"approval_id": "ap-1-1", "approved": False, "edited_args": {}},
    {"approval_id": "ap-1-1", "approved": True, "edited_args": [1]},
    {"approval_id": "ap-1-1", "approved": True, "by": ""},
    {"approval_id": "ap-1-1", "approved": True, "by": pad(3001)},
    {"approval_id": "ap-1-1", "approved": False, "reason": pad(4001)},
    {"approval_id": pad(129), "approved": True},
]


@pytest.mark.parametrize("given_decision", NO_DECISIONS, ids=lambda value: repr(value)[:70])
def test_only_a_strict_decision_is_a_decision(given_decision: Any) -> None:
    refused = refusal(door.parsed, Decide, given_decision, example=EXAMPLE)
    assert refused.kind == "malformed"
    assert str(refused).endswith(f"Example: {EXAMPLE}")
    assert len(str(refused)) < 2000


def test_a_decision_may_say_more_than_we_know() -> None:
    decision = door.parsed(Decide, {"approval_id": "ap-1-1", "approved": True, "colour": "red"}, example=EXAMPLE)
    assert decision == Decide(approval_id="ap-1-1", approved=True)


def test_a_second_argument_is_refused() -> None:
    given_decision = {"approval_id": "ap-1-1", "approved": True}
    refused = refusal(door.parsed, Decide, given_decision, surplus=(1, 2), example=EXAMPLE)
    assert str(refused) == f"Send one argument, not 3. Example: {EXAMPLE}"


@pytest.mark.parametrize(
    ("what", "wrong", "named"),
    [
        (ANSWERS, {"interrupt_id": "lr-1-1"}, "kind"),
        (ANSWERS, {"kind": "maybe", "interrupt_id": "lr-1-1"}, "long_running"),
        (ANSWERS, {"kind": "long_running", "interrupt_id": "lr-1-1"}, "result"),
        (ANSWERS, {"kind": "long_running", "interrupt_id": "lr-1-1", "result": 1, "final": "no"}, "final"),
        (ANSWERS, {"kind": "not_done", "interrupt_id": "uo-1-1", "reason": pad(4001)}, "reason"),
        (CancelRun, {"run_id": pad(129)}, "run_id"),
        (CancelRun, {"run_id": "r", "by": pad(3001)}, "by"),
        (PutState, {"values": [1]}, "values"),
        (PutState, {"delete": "key"}, "delete"),
        (PutState, {"delete": ["a", 1]}, "delete.1"),
        (PutState, {"if_revision": "7"}, "if_revision"),
        (RunRequest, {"run_id": "a b", "message": "x"}, "run_id"),
        (RunRequest, {"run_id": "a\n", "message": "x"}, "run_id"),
        (RunRequest, {"run_id": 7, "message": "x"}, "run_id"),
        (StartThread, {}, "agent"),
        (StartThread, {"agent": "a", "options": {"limits": {"model_calls": -1}}}, "options.limits.model_calls"),
        *((StartThread, {"agent": "a", "options": {"approval_ttl": t}}, "approval_ttl") for t in (0, -1, 1e12, 1e400)),
        (StartThread, {"agent": "a", "options": {"approval_ttl": float("nan")}}, "approval_ttl"),
        (StartThread, {"agent": "a", "principal": pad(5000)}, "principal"),
    ],
)
def test_a_malformed_argument_is_told_which_field_is_wrong(what: Any, wrong: Any, named: str) -> None:
    refused = refusal(door.parsed, what, wrong, example="{…}")
    assert refused.kind == "malformed"
    assert named in str(refused)
    assert str(refused).endswith("Example: {…}")


@given(json_values)
def test_whatever_json_comes_as_an_argument_is_parsed_or_refused(value: Any) -> None:
    for what in (ANSWERS, CancelRun, Decide, PutState, RunRequest, StartThread):
        parsed = outcome(door.parsed, what, value, example="{}")
        assert getattr(parsed, "kind", "malformed") in {"malformed", "input", "long_running", "done", "not_done"}


def test_a_refusal_repeats_no_value_that_may_be_secret() -> None:
    secret = "hunter2"
    wrong: list[tuple[Any, Any]] = [
        (Decide, secret),
        (Decide, [secret]),
        (Decide, {"approval_id": "a", "approved": secret, "reason": [secret], "edited_args": secret}),
        (ANSWERS, {"kind": "input", "value": secret, "interrupt_id": [secret]}),
        (PutState, {"values": secret, "delete": secret, "if_revision": secret}),
        (RunRequest, {"run_id": f"{secret} ", "message": secret, "state_delta": secret}),
        (StartThread, {"agent": "", "state": secret, "options": {"limits": {"tokens": secret}}}),
    ]
    for what, value in wrong:
        assert secret not in str(refusal(door.parsed, what, value, example="{}"))
    for value in (f"{secret}\x00", f"{secret}\ud800", {secret}):
        assert secret not in str(refusal(door.check_state, {"key": value}))
        assert secret not in str(refusal(door.user_message, content({"inlineData": {"data": value}})))


def test_events_from_outside_bring_ids_and_state_that_may_be_kept() -> None:
    door.check_events([{"id": "e1", "actions": {"stateDelta": {"key": 1}}}, {"id": "e2"}])
    with pytest.raises(Refused, match="temp:x"):
        door.check_events([{"id": "e1", "actions": {"stateDelta": {"temp:x": 1}}}])
    with pytest.raises(Refused, match="needs an `id`"):
        door.check_events([{"author": "user"}])
