"""Guests that die, legs that are cancelled or told to yield: what is stored is not done again, and nothing is lost."""

from __future__ import annotations

import asyncio

import pytest

from agentvisor.channel import Gone
from agentvisor.local_gemini import LocalGemini
from agentvisor.protocol import Base, LegEnd, LegInput, RunLeg, SessionWanted
from tests.adk.conftest import thread
from tests.adk.harness import FakeThread, GuestProcess, Guests, parts_of
from tests.fixtures.effects import Effects
from tests.fixtures.gemini import assert_well_formed, call


def requests_of(model: LocalGemini, order: str) -> int:
    return len([seen for seen in model.requests() if order in str(seen.contents)])


async def killed_while_held(
    talk: FakeThread, guest: GuestProcess, model: LocalGemini, gate: str, given: LegInput
) -> None:
    """Start a leg and kill its guest while the model's reply is held."""
    talk.given = given
    leg = asyncio.ensure_future(talk.attempt(guest))
    await model.held(gate)
    guest.kill()
    with pytest.raises(Gone):
        await leg


async def test_after_a_crash_in_the_second_model_call_the_read_call_is_not_repeated(
    zoo: Guests, model: LocalGemini, effects: Effects, order: str
) -> None:
    model.script([call("lookup", order=order), {"text": "There.", "hold": f"crash-{order}"}], user=f"{order}!")
    talk = thread("single", order)
    talk.run = 1
    message = LegInput(message={"role": "user", "parts": [{"text": f"{order}!"}]}, state_delta={"asked": order})
    async with zoo.fresh() as guest:
        await killed_while_held(talk, guest, model, f"crash-{order}", message)
    assert [sorted(parts_of(event)[0]) for event in talk.progress] == [["text"], ["functionCall"], ["functionResponse"]]
    model.release(f"crash-{order}")
    async with zoo.fresh() as guest:
        assert (await talk.attempt(guest)).outcome.kind == "answered"
    assert talk.answer_text == "There."
    assert (await effects.all("lookup")).count(order) == 1
    assert [event["author"] for event in talk.events].count("user") == 1
    assert talk.state == {"asked": order}


async def test_after_a_crash_in_a_resumed_leg_the_answer_is_not_given_twice(
    zoo: Guests, model: LocalGemini, effects: Effects, order: str
) -> None:
    model.script([call("pay", order=order, amount=1), {"text": "Paid.", "hold": f"resumed-{order}"}], user=f"{order}!")
    talk = thread("single", order)
    async with zoo.fresh() as guest:
        assert (await talk.say(guest, f"{order}!")).outcome.kind == "paused"
        [waiting] = talk.waiting
        answer = waiting.done(await talk.make(guest, waiting))
        await killed_while_held(talk, guest, model, f"resumed-{order}", LegInput(answers=(answer,)))
    model.release(f"resumed-{order}")
    async with zoo.fresh() as guest:
        assert (await talk.attempt(guest)).outcome.kind == "answered"
    assert talk.answer_text == "Paid."
    assert_well_formed(model.requests()[-1].contents)
    assert (await effects.all("pay")).count([order, 1]) == 1


@pytest.mark.parametrize("survivor", ["left", "right"])
async def test_after_a_crash_between_two_branches_both_get_their_answer(
    zoo: Guests, model: LocalGemini, order: str, survivor: str
) -> None:
    gate = f"branch-{order}"
    for name in ("left", "right"):
        done = {"text": f"{name} done"} if name == survivor else {"text": f"{name} done", "hold": gate}
        model.script([call("pay", order=order, amount=1), done], user=f"{order}!", system=f'"{name}"')
    talk = thread("pair", order)
    async with zoo.fresh() as guest:
        assert (await talk.say(guest, f"{order}!")).outcome.kind == "paused"
        asked = sorted(talk.waiting, key=lambda waiting: waiting.author == survivor)
        answers = [waiting.done(await talk.make(guest, waiting)) for waiting in asked]
        await killed_while_held(talk, guest, model, gate, LegInput(answers=tuple(answers)))
    model.release(gate)
    async with zoo.fresh() as guest:
        assert (await talk.attempt(guest)).outcome.kind == "answered"
    texts = [part.get("text") for event in talk.events for part in parts_of(event)]
    assert (texts.count("left done"), texts.count("right done")) == (1, 1)


async def test_a_leg_that_ended_but_was_not_reported_calls_no_model_again(
    zoo: Guests, model: LocalGemini, order: str
) -> None:
    model.script(["Hello."], user=f"{order}!")
    talk = thread("single", order)
    async with zoo.fresh() as guest:
        assert (await talk.say(guest, f"{order}!")).outcome.kind == "answered"
    for stored in range(2, len(talk.events) + 1):
        again = thread("single", order)
        again.run, again.given, again.progress = 1, talk.given, talk.events[:stored]
        async with zoo.fresh() as guest:
            assert (await again.attempt(guest)).outcome.kind == "answered"
        assert again.answer_text == "Hello."
    assert requests_of(model, order) == 1


@pytest.mark.parametrize("agent", ["single", "chief", "chain", "circle", "pair"])
async def test_a_paused_leg_that_was_not_reported_pauses_again(
    zoo: Guests, model: LocalGemini, order: str, agent: str
) -> None:
    model.script([call("transfer_to_agent", agent_name="worker")], user=f"{order}!", system='"chief"')
    model.script([call("pay", order=order, amount=1)], user=f"{order}!")
    talk = thread(agent, order)
    async with zoo.fresh() as guest:
        assert (await talk.say(guest, f"{order}!")).outcome.kind == "paused"
        before, asked = len(talk.waiting), requests_of(model, order)
        again = thread(agent, order)
        again.run, again.given, again.progress = 1, talk.given, list(talk.events)
        assert (await again.attempt(guest)).outcome.kind == "paused"
    assert len(again.waiting) == before
    assert requests_of(model, order) == asked


async def test_cancelling_a_leg_reaches_async_tools_and_the_thread_works_on(
    guest: GuestProcess, model: LocalGemini, effects: Effects, order: str
) -> None:
    model.script([call("waits", order=order)], user=f"{order}!")
    model.script(["Going on."], user=f"{order} next")
    talk = thread("single", order)
    await effects.hold(f"{order}.waits")
    leg = asyncio.ensure_future(talk.say(guest, f"{order}!"))
    await effects.wait(f"{order}.waits")
    leg.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leg
    await effects.wait(f"{order}.waits_cancelled")
    await effects.release(f"{order}.waits")
    talk.events += talk.progress
    talk.progress = []
    assert (await talk.say(guest, f"{order} next")).outcome.kind == "answered"
    assert_well_formed(model.requests()[-1].contents)


async def test_cancelling_a_leg_reaches_the_model_call(guest: GuestProcess, model: LocalGemini, order: str) -> None:
    model.script([{"text": "Never.", "hold": f"cancel-{order}"}], user=f"{order}!")
    talk = thread("single", order)
    leg = asyncio.ensure_future(talk.say(guest, f"{order}!"))
    await model.held(f"cancel-{order}")
    leg.cancel()
    await model.held(f"cancel-{order}", count=0)


async def test_a_second_attempt_ends_the_first_one(guest: GuestProcess, model: LocalGemini, order: str) -> None:
    model.script([{"text": "Once.", "hold": f"twice-{order}"}], user=f"{order}!")
    first, second = thread("single", order), thread("single", order)
    leg = asyncio.ensure_future(first.say(guest, f"{order}!"))
    await model.held(f"twice-{order}")
    again = asyncio.ensure_future(second.say(guest, f"{order}!"))
    with pytest.raises(Exception, match="was stopped"):
        await leg
    model.release(f"twice-{order}")
    assert (await again).outcome.kind == "answered"


async def test_a_leg_yields_after_a_stored_response_and_the_next_one_goes_on_without_input(
    zoo: Guests, model: LocalGemini, effects: Effects, order: str
) -> None:
    model.script([call("waits", order=order), "Came through."], user=f"{order}!")
    talk = thread("single", order)
    async with zoo.fresh() as guest:
        await effects.hold(f"{order}.waits")
        leg = asyncio.ensure_future(talk.say(guest, f"{order}!"))
        await effects.wait(f"{order}.waits")
        await talk.yield_leg(guest)
        await effects.release(f"{order}.waits")
        end = await leg
    assert end.outcome.kind == "yielded"
    assert end.spent.model_calls == 1
    assert "functionResponse" in parts_of(talk.events[-1])[0]
    async with zoo.fresh() as guest:
        assert (await talk.leg(guest, LegInput())).outcome.kind == "answered"
    assert talk.answer_text == "Came through."
    assert await effects.count(f"{order}.waits") == 1
    assert requests_of(model, order) == 2


async def test_a_live_session_is_used_again_and_one_that_differs_is_dropped(
    guest: GuestProcess, model: LocalGemini, order: str
) -> None:
    model.script(["Yes."], user=f"{order}!")
    talk = thread("single", order)
    talk.initial = {"greeting": "hi"}
    await talk.say(guest, f"{order}!")
    assert talk.asked == [_wanted(0, "")]
    await talk.say(guest, f"{order}!")
    assert len(talk.asked) == 1  # nothing new, nothing asked
    head = talk.events[-1]["id"]
    count = len(talk.events)
    talk.events.append({"id": "state-1", "author": "user", "actions": {"stateDelta": {"put": 1}}, "timestamp": 1.0})
    await talk.say(guest, f"{order}!")
    assert talk.asked[1:] == [_wanted(count, head)]  # only what is new
    talk.events = talk.events[:2]
    talk.events[-1] = {**talk.events[-1], "id": "another"}
    await talk.say(guest, f"{order}!")
    assert len(model.requests()[-1].user_texts) == 2  # the copy was dropped


async def test_a_small_message_may_stay_with_the_host_until_it_is_asked_for(
    guest: GuestProcess, model: LocalGemini, order: str
) -> None:
    model.script(["Yes."], user=f"{order}!")
    talk = thread("single", order)
    talk.given = LegInput(message={"role": "user", "parts": [{"text": f"{order}!"}]})
    asked = RunLeg(thread_id=talk.thread_id, principal="ana", agent="single", run_id="run-1", base=Base())
    end = await guest.ask("leg", asked, LegEnd, serve={"session": talk.session})
    assert end.outcome.kind == "answered"


async def test_bytes_of_a_thought_signature_come_back_unchanged(zoo: Guests, model: LocalGemini, order: str) -> None:
    signed = {
        "parts": [
            {"functionCall": {"name": "lookup", "args": {"order": order, "odd": None}}, "thoughtSignature": "__4A_w=="}
        ]
    }
    model.script([signed, "One."], user=f"{order} one")
    model.script(["Two."], user=f"{order} two")
    talk = thread("single", order)
    async with zoo.fresh() as guest:
        await talk.say(guest, f"{order} one")
    async with zoo.fresh() as guest:
        await talk.say(guest, f"{order} two")
    seen = [seen for seen in model.requests() if order in str(seen.contents)]
    signatures = [
        part["thoughtSignature"]
        for request in seen
        for content in request.contents
        for part in content["parts"]
        if "thoughtSignature" in part
    ]
    assert len(signatures) == 2
    assert {signature.replace("-", "+").replace("_", "/") for signature in signatures} == {"//4A/w=="}
    assert '"odd": null' in str(seen[-1].body).replace("None", "null").replace("'", '"')


async def test_a_guest_ends_with_its_host_even_when_its_loop_is_blocked(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    project = tmp_path_factory.mktemp("blocking")
    (project / "agent.py").write_text(
        "import time\n"
        "from google.adk.agents import BaseAgent\n"
        "class Blocks(BaseAgent):\n"
        "    async def _run_async_impl(self, ctx):\n"
        "        open('blocked', 'w').close()\n"
        "        time.sleep(300)\n"
        "        yield\n"
        "root_agent = Blocks(name='blocks')\n"
    )
    guest = await GuestProcess.start(project)
    hello = await guest.ready()
    assert hello.error is None
    assert [agent.name for agent in hello.agents] == ["blocks"]
    talk = FakeThread("blocks")
    leg = asyncio.ensure_future(talk.say(guest, "hi"))
    async with asyncio.timeout(30):
        while not (project / "blocked").exists():  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    await guest.end()
    with pytest.raises(Gone):
        await leg


async def test_a_guest_says_each_second_that_it_lives(guest: GuestProcess) -> None:
    before = guest.alive
    async with asyncio.timeout(30):
        while guest.alive < before + 2:  # noqa: ASYNC110
            await asyncio.sleep(0.05)


def _wanted(count: int, head: str) -> object:
    return SessionWanted(since=Base(count=count, head=head))
