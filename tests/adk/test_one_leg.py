"""A leg from its message to its end, in a real guest with a real model client."""

from __future__ import annotations

from agentvisor.local_gemini import LocalGemini
from tests.adk.conftest import thread
from tests.adk.harness import GuestProcess, Guests
from tests.fixtures.effects import Effects
from tests.fixtures.gemini import assert_well_formed, call, transcript


async def test_a_guest_says_what_it_loaded_and_that_it_lives(guest: GuestProcess) -> None:
    hello = await guest.ready()
    assert hello.error is None
    assert hello.pid == guest.pid
    assert {agent.name for agent in hello.agents} >= {"single", "chief", "chain", "pair"}
    single = next(agent for agent in hello.agents if agent.name == "single")
    assert {"pay", "refund", "ask_warehouse", "remember"} <= set(single.tools)


async def test_a_read_tool_runs_in_the_leg(
    guest: GuestProcess, model: LocalGemini, effects: Effects, order: str
) -> None:
    model.script([call("lookup", order=order), "It costs 149."], user=f"{order}!")
    talk = thread("single", order)
    end = await talk.say(guest, f"{order}!")
    assert end.outcome.kind == "answered"
    assert talk.answer_text == "It costs 149."
    assert (end.spent.model_calls, end.spent.tool_calls) == (2, 1)
    assert end.spent.tokens > 0
    assert {event["invocationId"] for event in talk.events} == {"run-1"}
    assert (await effects.all("lookup")).count(order) == 1


async def test_a_write_pauses_and_its_outcome_comes_back_in_a_fresh_guest(
    zoo: Guests, model: LocalGemini, effects: Effects, order: str
) -> None:
    model.script([call("pay", order=order, amount=5), "Paid."], user=f"{order}!")
    talk = thread("single", order)
    async with zoo.fresh() as guest:
        assert (await talk.say(guest, f"{order}!")).outcome.kind == "paused"
    [waiting] = talk.waiting
    assert waiting.pause
    assert waiting.pause.approval
    assert waiting.pause.summary == f"pay {order}"
    assert [order, 5] not in await effects.all("pay")
    async with zoo.fresh() as guest:
        made = await talk.make(guest, waiting)
    assert made.outcome.kind == "done"
    assert made.outcome.state_delta == {"paid": [order]}
    async with zoo.fresh() as guest:
        assert (await talk.answer(guest, waiting.done(made))).outcome.kind == "answered"
    assert talk.answer_text == "Paid."
    assert talk.state["paid"] == [order]
    last = model.requests()[-1]
    assert_well_formed(last.contents)
    assert transcript(last.contents) == [f"USER {order}!", "CALL pay", "RESP pay"]
    assert (await effects.all("pay")).count([order, 5]) == 1
    phases = [seen[0] for seen in await effects.all("after_pay") if order in str(seen) or seen[0] == "waiting"]
    assert "waiting" in phases
    assert "done" in phases
