"""What is refused before anything is sent."""

from __future__ import annotations

import string
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from client import Threads
from client.checks import checked_thread_id
from client.errors import CallerError, InvalidThreadId, InvalidValue, Refused, TooLarge
from client.labels import cut
from workflows.door import MAX_BYTES

_LETTERS = string.ascii_letters + string.digits


@given(st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}", fullmatch=True))
def test_letters_digits_dots_and_dashes_make_a_thread_id(thread_id: str) -> None:
    assert checked_thread_id(thread_id) == thread_id


@given(st.text(max_size=150))
def test_any_text_is_a_thread_id_or_refused(text: str) -> None:
    legal = 0 < len(text) <= 128 and text[0] in _LETTERS and all(letter in _LETTERS + "._-" for letter in text)
    if legal:
        checked_thread_id(text)
    else:
        with pytest.raises(InvalidThreadId):
            checked_thread_id(text)


@pytest.mark.parametrize("thread_id", ["", "a b", "-a", ".a", "a/b", "a\n", "ä", "a" * 129, "../x"])
async def test_no_call_gets_out_with_a_bad_thread_id(threads: Threads, thread_id: str) -> None:
    with pytest.raises(InvalidThreadId):
        await threads.create("agent", thread_id=thread_id)
    with pytest.raises(InvalidThreadId):
        threads.get(thread_id)


@pytest.mark.parametrize("kind", ["message", "state_delta", "both"])
async def test_a_run_above_one_mebibyte_is_refused_with_its_size(threads: Threads, kind: str) -> None:
    """Temporal refuses 2 MiB and jams on larger updates; the limit counts bytes, not letters."""
    thread = await threads.create("agent")
    message = {"message": "é" * (MAX_BYTES // 2), "state_delta": "hi", "both": "x" * (MAX_BYTES // 2)}[kind]
    value = {"message": "", "state_delta": "x" * MAX_BYTES, "both": "x" * (MAX_BYTES // 2)}[kind]
    with pytest.raises(TooLarge, match=r"\d{7} bytes"):
        await thread.run(message, state_delta={"key": value})


async def test_updates_above_one_mebibyte_are_refused_too(threads: Threads) -> None:
    thread, big = await threads.create("agent"), "x" * MAX_BYTES
    with pytest.raises(TooLarge):
        await thread.decide("ap-1-1", True, by="ana", edited_args={"text": big})
    with pytest.raises(TooLarge):
        await thread.put_state({"key": big})
    with pytest.raises(TooLarge):
        await thread.append_events([{"id": "e", "text": big}], if_revision=0)
    with pytest.raises(TooLarge):
        await threads.create("agent", state={"key": big})


@pytest.mark.parametrize("value", [float("nan"), b"bytes", {1, 2}, object(), "\ud800", "a\x00b"])
async def test_what_is_not_json_is_never_sent(threads: Threads, value: Any) -> None:
    thread = await threads.create("agent")
    with pytest.raises(CallerError):
        await thread.run("hi", state_delta={"key": value})
    with pytest.raises(CallerError):
        await thread.put_state({"key": value})
    with pytest.raises(CallerError):
        await threads.create("agent", state={"key": value})


_MESSAGES: list[Any] = [
    "",
    None,
    b"bytes",
    {"role": "model", "parts": [{"text": "hi"}]},
    {"parts": [{"functionCall": {"name": "pay", "args": {}}}]},
    {"parts": [{"functionResponse": {"name": "adk_request_confirmation", "response": {"confirmed": True}}}]},
]


@pytest.mark.parametrize("message", _MESSAGES)
async def test_a_message_that_no_person_could_say_is_refused_at_once(threads: Threads, message: Any) -> None:
    thread = await threads.create("agent")
    with pytest.raises(Refused) as refused:
        await thread.run(message)
    assert refused.value.kind == "message-refused"


async def test_an_approval_is_a_strict_boolean(threads: Threads) -> None:
    thread = await threads.create("agent")
    for approved in ("true", 1, None):
        with pytest.raises(InvalidValue, match="approved"):
            await thread.decide("ap-1-1", approved, by="ana")  # pyright: ignore[reportArgumentType]
    with pytest.raises(InvalidValue, match="edited_args go with"):
        await thread.decide("ap-1-1", False, by="ana", edited_args={})


@given(st.text())
def test_labels_fit_what_the_server_takes(value: str) -> None:
    assert len(cut(value).encode()) <= 220


@given(st.text(min_size=201), st.text(min_size=201))
def test_labels_that_were_cut_differ_as_their_values_do(one: str, other: str) -> None:
    assert (cut(one) == cut(other)) == (one.encode("utf-8", "replace") == other.encode("utf-8", "replace"))
