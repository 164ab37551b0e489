"""The real google-genai client talks to the local model."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx
import pytest
from google.genai import Client, errors, types

from agentvisor.local_gemini import Fault, LocalGemini, Turn
from tests.fixtures.gemini import assert_well_formed, call, transcript

Contents = list[types.Content]


@pytest.fixture
async def client(gemini: LocalGemini) -> AsyncIterator[Client]:
    client = Client(api_key="key-7", http_options=types.HttpOptions(base_url=gemini.url))
    yield client
    await client.aio.aclose()
    client.close()


def said(text: str) -> types.Content:
    return types.Content(role="user", parts=[types.Part(text=text)])


def answered(name: str, response: dict[str, Any]) -> types.Content:
    return types.Content(role="user", parts=[types.Part.from_function_response(name=name, response=response)])


async def ask(client: Client, contents: Any, *, system: str | None = None) -> types.GenerateContentResponse:
    config = types.GenerateContentConfig(system_instruction=system)
    return await client.aio.models.generate_content(model="gemini-2.5-flash", contents=contents, config=config)


async def stream(client: Client, contents: Any) -> list[types.GenerateContentResponse]:
    chunks = await client.aio.models.generate_content_stream(model="gemini-2.5-flash", contents=contents)
    return [chunk async for chunk in chunks]


def content_of(reply: types.GenerateContentResponse) -> types.Content:
    assert reply.candidates
    assert reply.candidates[0].content
    return reply.candidates[0].content


async def test_a_turn_of_text_is_the_reply(gemini: LocalGemini, client: Client) -> None:
    gemini.script(["Hello."])
    reply = await ask(client, "hi")
    assert reply.text == "Hello."
    assert reply.model_version == "gemini-2.5-flash"


async def test_a_conversation_goes_on_by_its_own_contents(gemini: LocalGemini, client: Client) -> None:
    gemini.script([call("find_order", order_id="A-1"), "Found: {response:find_order.total}."])
    first = await ask(client, [said("order A-1?")])
    assert first.function_calls
    assert first.function_calls[0].args == {"order_id": "A-1"}
    contents: Contents = [said("order A-1?"), content_of(first), answered("find_order", {"total": 12.5})]
    for _ in range(2):
        assert (await ask(client, contents)).text == "Found: 12.5."


async def test_turns_are_counted_from_the_last_thing_the_user_said(gemini: LocalGemini, client: Client) -> None:
    gemini.script(["first", "second"], user="one")
    gemini.script(["other"], user="two")
    contents: Contents = [said("one")]
    contents.append(content_of(await ask(client, contents)))
    contents.append(said("two"))
    assert (await ask(client, contents)).text == "other"
    contents.append(said("one again"))
    assert (await ask(client, contents)).text == "first"


async def test_turns_can_be_counted_from_the_first_text_or_from_the_latest_that_matches(
    gemini: LocalGemini, client: Client
) -> None:
    gemini.script(["f0", "f1", "f2"], user="begin", at="first")
    gemini.script(["a0", "a1"], user="order", at="any")
    model = types.Content(role="model", parts=[types.Part(text="x")])
    assert (await ask(client, [said("begin"), model, said("more"), model, said("more")])).text == "f2"
    assert (await ask(client, [said("hello"), model, said("order"), model, said("by the way")])).text == "a1"


async def test_the_system_instruction_tells_agents_apart(gemini: LocalGemini, client: Client) -> None:
    gemini.script(["I am billing."], system="name is .billing")
    gemini.script(["I am sales."], system="name is .sales")
    assert (await ask(client, "who?", system='Your internal name is "sales".')).text == "I am sales."


async def test_what_the_framework_says_in_the_users_role_is_not_the_user(gemini: LocalGemini, client: Client) -> None:
    gemini.script(["one", "two"], user="^go$")
    quoted = said("For context: below is a transcript of what another agent did")
    model = types.Content(role="model", parts=[types.Part(text="one")])
    on = said("Continue processing previous requests as instructed. Exit or provide a summary.")
    assert (await ask(client, [said("go"), quoted])).text == "one"
    assert (await ask(client, [said("go"), model, on])).text == "two"


async def test_calls_quote_groups_of_the_users_text_and_keep_types_of_responses(
    gemini: LocalGemini, client: Client
) -> None:
    gemini.script(
        [
            call("find_order", order_id="{match:order}"),
            call("send_invoice", order_id="{match:order}", amount="{response:find_order.lines.0.total}", note="{user}"),
        ],
        user=r"(?P<order>A-\d+)",
    )
    contents: Contents = [said("bill A-17")]
    contents.append(content_of(await ask(client, contents)))
    contents.append(answered("find_order", {"lines": [{"total": 99.5}]}))
    reply = await ask(client, contents)
    assert reply.function_calls
    assert reply.function_calls[0].args == {"order_id": "A-17", "amount": 99.5, "note": "bill A-17"}


async def test_alternatives_are_chosen_by_what_the_tools_answered(gemini: LocalGemini, client: Client) -> None:
    gemini.script(
        [
            call("pay"),
            [Turn(when="pay.error", text="Refused: {response:pay.error.kind}"), "Paid: {response:pay.number}"],
        ]
    )
    start: Contents = [said("pay")]
    start.append(content_of(await ask(client, start)))
    refused = await ask(client, [*start, answered("pay", {"error": {"kind": "approval-denied"}})])
    paid = await ask(client, [*start, answered("pay", {"number": "INV-1"})])
    assert (refused.text, paid.text) == ("Refused: approval-denied", "Paid: INV-1")


async def test_responses_of_one_tool_are_told_apart_by_position(gemini: LocalGemini, client: Client) -> None:
    both = Turn(calls=(call("read", n=1), call("read", n=2)))
    gemini.script([both, "{response:read[0].v} then {response:read[1].v}, last {response:read.v}"])
    asked: Contents = [said("read")]
    asked.append(content_of(await ask(client, asked)))
    parts = [types.Part.from_function_response(name="read", response={"v": v}) for v in ("a", "b")]
    assert (await ask(client, [*asked, types.Content(role="user", parts=parts)])).text == "a then b, last b"


async def test_a_repeating_conversation_never_ends(gemini: LocalGemini, client: Client) -> None:
    gemini.script([call("again")], repeat=True)
    contents: Contents = [said("loop")]
    for _ in range(3):
        reply = await ask(client, contents)
        assert reply.function_calls
        contents += [content_of(reply), answered("again", {"ok": True})]


async def test_what_the_script_does_not_answer_is_refused_with_the_way_out(gemini: LocalGemini, client: Client) -> None:
    gemini.script(["only"], user="^known", name="short")
    with pytest.raises(errors.ClientError, match="Add one whose `user` and `system` match"):
        await ask(client, "unknown")
    model = types.Content(role="model", parts=[types.Part(text="only")])
    with pytest.raises(errors.ClientError, match=r"'short' has 1 turns.*Add a turn"):
        await ask(client, [said("known"), model])


async def test_a_template_without_its_value_is_refused(gemini: LocalGemini, client: Client) -> None:
    gemini.script(["{response:pay.number}"])
    with pytest.raises(errors.ClientError, match=r"holds no 'pay\.number'"):
        await ask(client, "x")


async def test_calls_that_are_not_all_answered_are_refused_as_gemini_does(gemini: LocalGemini, client: Client) -> None:
    gemini.script(["never"])
    model = types.Content(role="model", parts=[types.Part.from_function_call(name=n, args={}) for n in ("a", "b")])
    with pytest.raises(errors.ClientError, match="calls a, b, the next content answers a"):
        await ask(client, [said("x"), model, answered("a", {})])
    with pytest.raises(errors.ClientError, match="answers calls that the content before it does not make"):
        await ask(client, [said("x"), answered("a", {})])


async def test_a_call_without_a_name_is_refused_as_gemini_does(gemini: LocalGemini, client: Client) -> None:
    gemini.script(["never"])
    model = types.Content(role="model", parts=[types.Part(function_call=types.FunctionCall(args={}))])
    with pytest.raises(errors.ClientError, match="makes a call without a name"):
        await ask(client, [said("x"), model, answered("a", {})])


async def test_a_scripted_error_strikes_so_often_and_then_the_turn_answers(gemini: LocalGemini, client: Client) -> None:
    faults = (Fault(code=429, times=1, retry_after=2), Fault(code=503, times=1, message="down"))
    gemini.script([Turn(text="at last", faults=faults)])
    with pytest.raises(errors.ClientError) as first:
        await ask(client, "x")
    assert (first.value.code, first.value.status) == (429, "RESOURCE_EXHAUSTED")
    with pytest.raises(errors.ServerError, match="down"):
        await ask(client, "x")
    assert (await ask(client, "x")).text == "at last"
    with pytest.raises(errors.ClientError):
        await ask(client, "x, another request")


async def test_an_error_without_times_stays(gemini: LocalGemini, client: Client) -> None:
    gemini.script([Turn(faults=(Fault(code=500),))])
    for _ in range(3):
        with pytest.raises(errors.ServerError):
            await ask(client, "x")


@pytest.mark.parametrize("how", [ask, stream])
async def test_a_cut_connection_breaks_the_reply(gemini: LocalGemini, client: Client, how: Callable[..., Any]) -> None:
    gemini.script([Turn(text="a long enough reply", chunks=4, faults=(Fault(cut=1, times=1),))])
    with pytest.raises(httpx.RemoteProtocolError):
        await how(client, "x")
    assert await how(client, "x")


async def test_a_body_that_is_not_geminis_reaches_the_client(gemini: LocalGemini, client: Client) -> None:
    gemini.script([Turn(faults=(Fault(body="<html>proxy</html>"),))])
    with pytest.raises(json.JSONDecodeError):
        await ask(client, "x")
    with pytest.raises(errors.UnknownApiResponseError, match="proxy"):
        await stream(client, "x")


async def test_a_stream_comes_in_frames_and_says_the_same(gemini: LocalGemini, client: Client) -> None:
    gemini.script([Turn(text="Hello, world.", calls=(call("greet"),), chunks=3)])
    frames = await stream(client, "x")
    assert [frame.text for frame in frames[:3]] == ["Hello", ", wor", "ld."]
    assert frames[3].function_calls
    finishes = [frame.candidates[0].finish_reason for frame in frames if frame.candidates]
    assert finishes == [None, None, None, types.FinishReason.STOP]


async def test_safety_stops_and_empty_replies_look_like_geminis(gemini: LocalGemini, client: Client) -> None:
    gemini.script([Turn(blocked="SAFETY")], user="blocked")
    gemini.script([Turn(finish="SAFETY", finish_message="no")], user="stopped")
    gemini.script([Turn(no_candidates=True)], user="nothing")
    gemini.script([Turn(parts=())], user="empty")
    blocked, stopped, nothing, empty = [await ask(client, text) for text in ("blocked", "stopped", "nothing", "empty")]
    assert blocked.prompt_feedback
    assert blocked.prompt_feedback.block_reason == types.BlockedReason.SAFETY
    assert stopped.candidates
    assert stopped.candidates[0].finish_reason == types.FinishReason.SAFETY
    assert not nothing.candidates
    assert empty.candidates
    assert not empty.text


async def test_raw_parts_and_ids_are_sent_as_they_are(gemini: LocalGemini, client: Client) -> None:
    signed: dict[str, Any] = {"functionCall": {"name": "f", "args": {}, "id": "c1"}, "thoughtSignature": "//4A"}
    gemini.script([Turn(parts=({"text": "hm", "thought": True}, signed))])
    parts = content_of(await ask(client, "x")).parts
    assert parts
    assert parts[0].thought
    assert parts[1].function_call
    assert (parts[1].function_call.id, parts[1].thought_signature) == ("c1", b"\xff\xfe\x00")


async def test_usage_is_estimated_or_as_scripted(gemini: LocalGemini, client: Client) -> None:
    gemini.script(
        [Turn.model_validate({"text": "x", "usage": {"prompt": 5, "output": 2, "thoughts": 1}})], user="given"
    )
    gemini.script(["four tokens or so"])
    given, estimated = await ask(client, "given"), await ask(client, "hello")
    assert given.usage_metadata
    assert given.usage_metadata.total_token_count == 8
    assert estimated.usage_metadata
    counted = await client.aio.models.count_tokens(model="gemini-2.5-flash", contents="hello")
    assert counted.total_tokens == estimated.usage_metadata.prompt_token_count


async def test_a_held_reply_waits_for_its_release(gemini: LocalGemini, client: Client) -> None:
    gemini.script([Turn(text="late", hold="gate")])
    asked = asyncio.ensure_future(ask(client, "x"))
    await gemini.held("gate")
    assert not asked.done()
    assert gemini.requests()[0].status is None
    gemini.release("gate")
    assert (await asked).text == "late"
    assert (await ask(client, "x")).text == "late"


async def test_a_stream_can_be_held_in_its_middle(gemini: LocalGemini, client: Client) -> None:
    gemini.script([Turn(text="abcd", chunks=2, hold="middle", hold_after=1)])
    chunks = await client.aio.models.generate_content_stream(model="m", contents="x")
    assert (await anext(chunks)).text == "ab"
    await gemini.held("middle")
    gemini.release("middle")
    assert (await anext(chunks)).text == "cd"
    assert [chunk async for chunk in chunks] == []


async def test_a_client_that_hangs_up_leaves_the_gate(gemini: LocalGemini, client: Client) -> None:
    gemini.script([Turn(text="late", hold="gate")])
    asked = asyncio.ensure_future(ask(client, "x"))
    await gemini.held("gate")
    asked.cancel()
    await asyncio.gather(asked, return_exceptions=True)
    await gemini.held("gate", count=0)
    assert gemini.requests()[0].ended == "gone"


async def test_the_log_holds_what_the_model_was_shown(gemini: LocalGemini, client: Client) -> None:
    gemini.script(["Hello."], name="greeting")
    await ask(client, "hi", system="Be kind.")
    async with httpx.AsyncClient(base_url=gemini.url) as http:
        await http.get("/nowhere")
        log = (await http.get("/_log")).json()
        later = (await http.get("/_log", params={"since": log[0]["number"]})).json()
    assert (log[0]["api_key"], log[0]["conversation"], log[0]["turn"], log[0]["status"]) == (
        "key-7",
        "greeting",
        0,
        200,
    )
    assert [(seen["path"], seen["status"], seen["ended"]) for seen in later] == [("/nowhere", 404, "refused")]
    seen = gemini.requests()[0]
    assert (seen.system, seen.user_texts) == ("Be kind.", ["hi"])


async def test_a_transcript_shows_who_said_what(gemini: LocalGemini, client: Client) -> None:
    gemini.script([call("find", id="c1", what="x"), "Done."])
    first = content_of(await ask(client, "go"))
    response = types.Part(function_response=types.FunctionResponse(name="find", id="c1", response={"found": 1}))
    await ask(client, [said("go"), first, types.Content(role="user", parts=[response])])
    contents = gemini.requests()[-1].contents
    assert_well_formed(contents)
    assert transcript(contents) == ["USER go", "CALL find", "RESP find"]
    assert transcript(contents, values=True)[1:] == ['CALL find {"what": "x"}', 'RESP find {"found": 1}']
