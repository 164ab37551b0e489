"""Two ends of a socketpair in one loop; hostile peers write raw bytes."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from agentvisor.channel import Bounds, Channel, Gone, Handler, JsonObject, Refused, Request


class Value(BaseModel):
    value: Any = None


async def _echo(op: str, body: JsonObject, request: Request) -> BaseModel:
    return Value(**body)


@asynccontextmanager
async def pair(handler: Handler = _echo, **bounds: Any) -> AsyncGenerator[tuple[Channel, Channel]]:
    left, right = socket.socketpair()
    asker = await Channel.over(left, bounds=Bounds(**bounds))
    server = await Channel.over(right, handler, bounds=Bounds(**bounds))
    try:
        yield asker, server
    finally:
        asker.abort()
        server.abort()
        await asyncio.wait_for(asyncio.gather(asker.closed, server.closed), 5)


@asynccontextmanager
async def hostile(**bounds: Any) -> AsyncGenerator[tuple[Channel, Callable[[bytes], Awaitable[None]]]]:
    """A channel and a way to send it any bytes."""
    left, right = socket.socketpair()
    right.setblocking(False)
    channel = await Channel.over(left, bounds=Bounds(**bounds))

    async def send(data: bytes) -> None:
        await asyncio.get_running_loop().sock_sendall(right, data)

    try:
        yield channel, send
    finally:
        channel.abort()
        right.close()


def frame(*fields: Any) -> bytes:
    data = json.dumps(fields).encode()
    return len(data).to_bytes(4, "big") + data


async def within(awaitable: Awaitable[Any]) -> Any:
    return await asyncio.wait_for(awaitable, 10)


async def test_many_requests_are_in_flight_at_once_and_answered_in_any_order() -> None:
    gates = [asyncio.Event() for _ in range(20)]

    async def handler(op: str, body: JsonObject, request: Request) -> BaseModel:
        await gates[body["value"]].wait()
        return Value(**body)

    async with pair(handler) as (asker, _):
        asked = [asyncio.create_task(asker.ask("wait", Value(value=i), Value)) for i in range(20)]
        for i in reversed(range(20)):
            gates[i].set()
            assert (await within(asked[i])).value == i


async def test_both_sides_ask() -> None:
    async with pair() as (asker, server):
        assert (await within(asker.ask("echo", Value(value=1), Value))).value == 1
        with pytest.raises(Refused) as refused:
            await within(server.ask("echo", Value(), Value))
        assert refused.value.kind == "not-allowed"


async def test_notes_of_a_request_arrive_before_its_answer_in_order() -> None:
    async def handler(op: str, body: JsonObject, request: Request) -> BaseModel:
        for i in range(5):
            request.note(Value(value=i))
        return Value(value="end")

    seen: list[Any] = []
    async with pair(handler) as (asker, _):
        await within(asker.ask("count", Value(), Value, on_note=lambda body: seen.append(body["value"])))
        assert seen == [0, 1, 2, 3, 4]


async def test_notes_arrive_while_their_request_goes_on_and_before_whatever_is_sent_after_them() -> None:
    async def handler(op: str, body: JsonObject, request: Request) -> BaseModel:
        for i in range(3):
            request.note(Value(value=i))
        if op == "ask-back":
            request.note(await request.ask("more", Value(value="asked"), Value))
        await asyncio.Event().wait()
        return Value()

    for op, expected in (("wait", [0, 1, 2]), ("ask-back", [0, 1, 2, "asked", "told"])):
        seen: list[Any] = []
        heard = asyncio.Semaphore(0)

        def hear(value: Any, seen: list[Any] = seen, heard: asyncio.Semaphore = heard) -> None:
            seen.append(value)
            heard.release()

        async def tell(body: JsonObject, hear: Callable[[Any], None] = hear) -> BaseModel:
            hear(body["value"])
            return Value(value="told")

        async with pair(handler) as (asker, _):
            asked = asyncio.create_task(
                asker.ask(
                    op,
                    Value(),
                    Value,
                    on_note=lambda body, hear=hear: hear(body["value"]),
                    serve={"more": tell},
                )
            )
            for _ in expected:
                await within(heard.acquire())
            assert seen == expected
            asked.cancel()


async def test_what_was_noted_is_sent_before_the_connection_is_closed() -> None:
    async def handler(op: str, body: JsonObject, request: Request) -> BaseModel:
        request.note(Value(value="last words"))
        server.close()
        return Value()

    seen: list[Any] = []
    async with pair(handler) as (asker, server):
        with pytest.raises(Gone):
            await within(asker.ask("end", Value(), Value, on_note=lambda body: seen.append(body["value"])))
        assert seen == ["last words"]


async def test_a_note_without_a_request_goes_to_on_note() -> None:
    async with pair() as (asker, server):
        heard: asyncio.Future[JsonObject] = asyncio.get_running_loop().create_future()
        asker.on_note = heard.set_result
        server.note(Value(value="hello"))
        assert await within(heard) == {"value": "hello"}


async def test_what_a_nested_request_may_do_is_decided_by_its_parent() -> None:
    async def handler(op: str, body: JsonObject, request: Request) -> BaseModel:
        return await request.ask(body["value"], Value(value="nested"), Value)

    async def serve(body: JsonObject) -> BaseModel:
        return Value(value=[body["value"], "of this parent"])

    async with pair(handler) as (asker, _):
        answer = await within(asker.ask("leg", Value(value="session"), Value, serve={"session": serve}))
        assert answer.value == ["nested", "of this parent"]
        with pytest.raises(Refused) as refused:
            await within(asker.ask("leg", Value(value="other"), Value, serve={"session": serve}))
        assert refused.value.kind == "not-allowed"


async def test_a_cancelled_request_stops_the_work_on_the_other_side() -> None:
    stopped = asyncio.Event()
    started = asyncio.Event()

    async def handler(op: str, body: JsonObject, request: Request) -> BaseModel:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()
        return Value()

    async with pair(handler) as (asker, _):
        asked = asyncio.create_task(asker.ask("wait", Value(), Value))
        await within(started.wait())
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked
        await within(stopped.wait())


async def test_with_patience_the_answer_of_a_stopped_request_is_returned() -> None:
    started = asyncio.Event()

    async def handler(op: str, body: JsonObject, request: Request) -> BaseModel:
        started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            if body["value"] == "leave":
                raise
        return Value(value="finished")

    async with pair(handler) as (asker, _):
        for wish in ("finish", "leave"):
            started.clear()
            asked = asyncio.create_task(asker.ask("wait", Value(value=wish), Value, patience=10))
            await within(started.wait())
            asked.cancel()
            if wish == "finish":
                assert (await within(asked)).value == "finished"
            else:
                with pytest.raises(asyncio.CancelledError):
                    await asked


async def test_a_request_stopped_before_its_handler_began_is_answered() -> None:
    left, right = socket.socketpair()
    right.setblocking(False)
    channel = await Channel.over(left, _echo)
    loop = asyncio.get_running_loop()
    await loop.sock_sendall(right, frame("ask", 1, "echo", {}, None) + frame("stop", 1))
    data = await within(loop.sock_recv(right, 1000))
    assert json.loads(data[4:])[:3] == ["err", 1, "cancelled"]
    channel.abort()
    await within(channel.closed)
    right.close()


async def test_a_request_lost_after_it_was_sent_says_so() -> None:
    async def handler(op: str, body: JsonObject, request: Request) -> BaseModel:
        server.abort()
        return Value()

    async with pair(handler) as (asker, server):
        with pytest.raises(Gone) as gone:
            await within(asker.ask("die", Value(), Value))
        assert gone.value.sent
        await within(asker.closed)
        with pytest.raises(Gone) as gone:
            await within(asker.ask("more", Value(), Value))
        assert not gone.value.sent


async def test_a_request_that_waits_for_a_reader_was_not_sent() -> None:
    left, right = socket.socketpair()
    channel = await Channel.over(left)
    first = asyncio.create_task(channel.ask("big", Value(value="x" * 8_000_000), Value))
    await asyncio.sleep(0)
    second = asyncio.create_task(channel.ask("small", Value(), Value))
    await asyncio.sleep(0)
    right.close()
    with pytest.raises(Gone) as gone:
        await within(second)
    assert not gone.value.sent
    with pytest.raises(Gone) as gone:
        await within(first)
    assert gone.value.sent


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "\ud800", object(), b"\xff"])
async def test_what_is_not_json_fails_its_own_request_only(value: Any) -> None:
    async def handler(op: str, body: JsonObject, request: Request) -> BaseModel:
        return Value(value=value if op == "bad" else "good")

    async with pair(handler) as (asker, _):
        for bad in (asker.ask("echo", Value(value=value), Value), asker.ask("bad", Value(), Value)):
            with pytest.raises(Refused) as refused:
                await within(bad)
            assert refused.value.kind == "not-json"
        assert (await within(asker.ask("echo", Value(), Value))).value == "good"


async def test_nesting_beyond_what_json_libraries_take_fails_its_own_request_only() -> None:
    deep: Any = 1
    for _ in range(100_000):
        deep = [deep]
    async with pair() as (asker, _):
        with pytest.raises(Refused) as refused:
            await within(asker.ask("echo", Value(value=deep), Value))
        assert refused.value.kind == "not-json"
        assert (await within(asker.ask("echo", Value(value=2), Value))).value == 2


async def test_a_message_beyond_the_frame_limit_fails_its_own_request_only() -> None:
    async with pair(frame=1000) as (asker, _):
        with pytest.raises(Refused) as refused:
            await within(asker.ask("echo", Value(value="x" * 1000), Value))
        assert refused.value.kind == "too-large"
        assert (await within(asker.ask("echo", Value(value=2), Value))).value == 2


async def test_a_failing_handler_tells_its_type_and_no_text() -> None:
    async def handler(op: str, body: JsonObject, request: Request) -> BaseModel:
        raise RuntimeError("the password is hunter2")

    async with pair(handler) as (asker, _):
        with pytest.raises(Refused) as refused:
            await within(asker.ask("fail", Value(), Value))
        assert refused.value.kind == "internal-error"
        assert "RuntimeError" in refused.value.text
        assert "hunter2" not in refused.value.text


async def test_an_answer_of_the_wrong_shape_is_refused() -> None:
    class Number(BaseModel):
        value: int

    async with pair() as (asker, _):
        with pytest.raises(Refused) as refused:
            await within(asker.ask("echo", Value(value="x"), Number))
        assert refused.value.kind == "bad-answer"


@pytest.mark.parametrize(
    "data",
    [
        b"\x00\x00\x00\x03{{{",
        b"\xff\xff\xff\xff",
        b"\x00\x00\x00\x05\xff\xff\xff\xff\xff",
        frame(),
        frame("ask"),
        frame("nonsense", 1),
        frame(["ask"], 1, {}),
        frame("ok", "1", {}),
        frame("ok", 1, []),
        frame("err", 1, None, "x"),
        frame("ask", 1, "op", "body", None),
        frame("note", 0, float("nan")),
        frame("note", 0, {"value": float("inf")}),
        b"\x00\x00\x27\x10" + b"[" * 10_000,
        b"\x00\x00\x27\x10" + b"1" * 10_000,
    ],
)
async def test_a_malformed_frame_closes_the_channel_and_fails_its_requests(data: bytes) -> None:
    async with hostile() as (channel, send):
        asked = asyncio.create_task(channel.ask("x", Value(), Value))
        await asyncio.sleep(0)
        await send(data)
        with pytest.raises(Gone):
            await within(asked)
        assert channel.closed.done()


async def test_a_flood_of_notes_for_one_request_is_cut_off() -> None:
    kept: list[JsonObject] = []
    async with hostile(per_request=10_000) as (channel, send):
        asked = asyncio.create_task(channel.ask("x", Value(), Value, on_note=kept.append))
        await asyncio.sleep(0)
        await send(frame("note", 1, {"value": "x" * 1000}) * 20)
        with pytest.raises(Gone):
            await within(asked)
        assert len(kept) < 10


@pytest.mark.parametrize(
    "data", [frame("note", 0, {"x": "y" * 90}), frame("ok", 99, {}), frame("ask", 99, "x", {}, None), frame("stop", 9)]
)
async def test_a_flood_of_frames_that_belong_to_no_request_is_cut_off(data: bytes) -> None:
    async with hostile(stray=5_000) as (channel, send):
        await send(data * 1000)
        await within(channel.closed)


async def test_notes_of_a_request_that_is_over_are_ignored() -> None:
    async with hostile() as (channel, send):
        asked = asyncio.create_task(channel.ask("x", Value(), Value))
        await asyncio.sleep(0)
        await send(frame("ok", 1, {"value": 1}) + frame("note", 1, {}) + frame("ok", 1, {}) + frame("note", 0, {}))
        assert (await within(asked)).value == 1
        assert not channel.closed.done()


async def test_too_many_nested_requests_at_once_are_cut_off() -> None:
    async def never(body: JsonObject) -> BaseModel:
        await asyncio.Event().wait()
        return Value()

    async with hostile() as (channel, send):
        asked = asyncio.create_task(channel.ask("x", Value(), Value, serve={"s": never}))
        await asyncio.sleep(0)
        await send(b"".join(frame("ask", i, "s", {}, 1) for i in range(100)))
        with pytest.raises(Gone):
            await within(asked)


async def test_a_peer_that_never_reads_is_cut_off() -> None:
    left, right = socket.socketpair()
    with right:
        channel = await Channel.over(left, bounds=Bounds(unread=1_000_000))
        for _ in range(30):
            channel.note(Value(value="x" * 100_000))
        await within(channel.closed)


async def test_a_sender_that_floods_is_told_before_the_other_side_cuts_it_off() -> None:
    async def handler(op: str, body: JsonObject, request: Request) -> BaseModel:
        while True:
            request.note(Value(value="x" * 1000))

    async with pair(handler, per_request=10_000) as (asker, _):
        with pytest.raises(Refused) as refused:
            await within(asker.ask("flood", Value(), Value))
        assert refused.value.kind == "too-much"
        assert not asker.closed.done()


async def test_closing_stops_what_was_being_served() -> None:
    stopped = asyncio.Event()
    started = asyncio.Event()

    async def handler(op: str, body: JsonObject, request: Request) -> BaseModel:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()
        return Value()

    async with pair(handler) as (asker, _):
        asked = asyncio.create_task(asker.ask("wait", Value(), Value))
        await within(started.wait())
        asker.abort()
        with pytest.raises(Gone):
            await within(asked)
        await within(stopped.wait())


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8")),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner, max_size=4)
    ),
    max_leaves=10,
)


@settings(max_examples=60, deadline=None)
@given(json_values)
def test_every_json_value_arrives_as_it_was_sent(value: Any) -> None:
    async def once() -> Any:
        async with pair() as (asker, _):
            return (await within(asker.ask("echo", Value(value=value), Value))).value

    assert asyncio.run(once()) == value


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(1, 60), max_size=10))
def test_frames_arrive_whole_however_the_stream_is_cut(cuts: list[int]) -> None:
    async def once() -> list[JsonObject]:
        seen: list[JsonObject] = []
        async with hostile() as (channel, send):
            channel.on_note = seen.append
            data = b"".join(frame("note", 0, {"i": i}) for i in range(5))
            for cut in cuts:
                await send(data[:cut])
                data = data[cut:]
                await asyncio.sleep(0)
            await send(data + frame("stop", "end"))
            await within(channel.closed)
        return seen

    assert asyncio.run(once()) == [{"i": i} for i in range(5)]
