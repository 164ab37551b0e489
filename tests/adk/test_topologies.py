"""Every shape of agent, paused by a tool, goes on in a fresh guest from the stored events alone."""

from __future__ import annotations

import pytest

from agentvisor.local_gemini import LocalGemini
from tests.adk.conftest import thread
from tests.adk.harness import FakeThread, Guests, parts_of
from tests.fixtures.effects import Effects
from tests.fixtures.gemini import assert_well_formed, call, transcript


async def settle(talk: FakeThread, zoo: Guests) -> str:
    """Make every call that waits and hand all outcomes over, in a fresh guest. Returns how the leg ended."""
    async with zoo.fresh() as guest:
        answers = [waiting.done(await talk.make(guest, waiting)) for waiting in talk.waiting]
        outcome = (await talk.answer(guest, *answers)).outcome
        assert outcome.kind != "failed", outcome
        return outcome.kind


async def start(talk: FakeThread, zoo: Guests, text: str) -> str:
    async with zoo.fresh() as guest:
        return (await talk.say(guest, text)).outcome.kind


def requests(model: LocalGemini, order: str, agent: str) -> list[list[str]]:
    """What this agent's model was shown, one transcript per request; each is well formed."""
    seen = [seen for seen in model.requests() if order in str(seen.contents) and f'"{agent}"' in seen.system]
    for request in seen:
        assert_well_formed(request.contents)
    return [transcript(request.contents) for request in seen]


async def test_after_a_transfer_the_agent_that_asked_goes_on(
    zoo: Guests, model: LocalGemini, effects: Effects, order: str
) -> None:
    model.script([call("transfer_to_agent", agent_name="worker")], user=f"{order}!", system='"chief"')
    model.script([call("pay", order=order, amount=1), "Paid by the worker."], user=f"{order}!", system='"worker"')
    talk = thread("chief", order)
    assert await start(talk, zoo, f"{order}!") == "paused"
    assert [waiting.author for waiting in talk.waiting] == ["worker"]
    assert await settle(talk, zoo) == "answered"
    assert talk.answer_text == "Paid by the worker."
    assert len(requests(model, order, "chief")) == 1
    assert len(requests(model, order, "worker")) == 2
    assert (await effects.all("pay")).count([order, 1]) == 1


async def test_a_task_agent_goes_on_and_its_result_reaches_its_chief(
    zoo: Guests, model: LocalGemini, order: str
) -> None:
    model.script(
        [call("task_worker", request=f"pay {order}"), "The task is done."], user=f"{order}!", system='"task_chief"'
    )
    model.script(
        [call("pay", order=order, amount=2), call("finish_task", result="paid it")], system='"task_worker"', user=order
    )
    talk = thread("task_chief", order)
    assert await start(talk, zoo, f"{order}!") == "paused"
    assert await settle(talk, zoo) == "answered"
    assert talk.answer_text == "The task is done."
    assert len(requests(model, order, "task_worker")) == 2
    assert requests(model, order, "task_chief")[-1][-2:] == ["CALL task_worker", "RESP task_worker"]


async def test_a_single_turn_agent_goes_on_and_its_result_reaches_its_chief(
    zoo: Guests, model: LocalGemini, order: str
) -> None:
    model.script(
        [call("turn_worker", request=f"pay {order}"), "The turn is done."], user=f"{order}!", system='"turn_chief"'
    )
    model.script([call("pay", order=order, amount=3), "turn result"], system='"turn_worker"', user=order)
    talk = thread("turn_chief", order)
    assert await start(talk, zoo, f"{order}!") == "paused"
    assert await settle(talk, zoo) == "answered"
    assert talk.answer_text == "The turn is done."
    assert requests(model, order, "turn_chief")[-1][-2:] == ["CALL turn_worker", "RESP turn_worker"]


async def test_a_sequence_goes_on_with_its_second_agent_which_sees_temp_state_from_before_the_pause(
    zoo: Guests, model: LocalGemini, order: str
) -> None:
    model.script(
        [call("remember", order=order), call("pay", order=order, amount=4), f"first-{order}"],
        user=f"{order}!",
        system='"first"',
    )
    model.script([call("note", order=order), "The chain is done."], user=f"{order}!", system='"second"')
    talk = thread("chain", order)
    assert await start(talk, zoo, f"{order}!") == "paused"
    assert talk.temp == {"temp:order": order}
    assert await settle(talk, zoo) == "paused"
    assert talk.temp == {"temp:order": order, "temp:first_said": f"first-{order}"}
    assert await settle(talk, zoo) == "answered"
    assert talk.answer_text == "The chain is done."
    seconds = [seen for seen in model.requests() if order in str(seen.contents) and '"second"' in seen.system]
    assert len(seconds) == 2
    assert all(f"<first-{order}>" in seen.system for seen in seconds)
    assert "temp:" not in str(talk.events)
    assert talk.state["kept"] == order


async def test_a_loop_goes_on_with_its_next_round(
    zoo: Guests, model: LocalGemini, effects: Effects, order: str
) -> None:
    model.script(
        [call("pay", order=order, amount=5), "round one", call("pay", order=order, amount=6), "round two"],
        user=f"{order}!",
        system='"round"',
    )
    talk = thread("circle", order)
    assert await start(talk, zoo, f"{order}!") == "paused"
    assert await settle(talk, zoo) == "paused"
    assert [waiting.args["amount"] for waiting in talk.waiting] == [6]
    assert await settle(talk, zoo) == "answered"
    assert talk.answer_text == "round two"
    assert [amount for paid, amount in await effects.all("pay") if paid == order] == [5, 6]


@pytest.mark.parametrize("later", ["left", "right"])
async def test_parallel_branches_that_both_paused_go_on_together(
    zoo: Guests, model: LocalGemini, order: str, later: str
) -> None:
    for number, name in enumerate(("left", "right")):
        model.script([call("pay", order=order, amount=number), f"{name} done"], user=f"{order}!", system=f'"{name}"')
    talk = thread("pair", order)
    assert await start(talk, zoo, f"{order}!") == "paused"
    asked = {waiting.author: waiting for waiting in talk.waiting}
    assert set(asked) == {"left", "right"}
    first = next(name for name in asked if name != later)
    async with zoo.fresh() as guest:
        answers = [asked[first].done(await talk.make(guest, asked[first])), asked[later].denied("not this one")]
    assert len(requests(model, order, "left")) == len(requests(model, order, "right")) == 1
    async with zoo.fresh() as guest:
        assert (await talk.answer(guest, *answers)).outcome.kind == "answered"
    for name in ("left", "right"):
        shown = requests(model, order, name)
        assert len(shown) == 2
        assert shown[-1] == [f"USER {order}!", "CALL pay", "RESP pay"]
    denied = [seen for seen in model.requests() if order in str(seen.contents) and f'"{later}"' in seen.system][-1]
    assert "not this one" in str(denied.contents)
    texts = [part.get("text") for event in talk.events for part in parts_of(event)]
    assert {"left done", "right done"} <= set(texts)


async def test_a_workflow_goes_on_with_its_next_node(
    zoo: Guests, model: LocalGemini, effects: Effects, order: str
) -> None:
    model.script([call("pay", order=order, amount=7), f"source {order}"], user=f"{order}!", system='"source"')
    model.script(["The flow is done."], system='"sink"')
    talk = thread("flowing", order)
    assert await start(talk, zoo, f"{order}!") == "paused"
    assert await settle(talk, zoo) == "answered"
    assert talk.answer_text == "The flow is done."
    assert (await effects.all("pay")).count([order, 7]) == 1


async def test_a_chief_s_next_run_sees_what_its_worker_did(zoo: Guests, model: LocalGemini, order: str) -> None:
    model.script([call("pay", order=order, amount=8), "One."], user=f"{order} first")
    model.script(["Two."], user=f"{order} second")
    talk = thread("single", order)
    assert await start(talk, zoo, f"{order} first") == "paused"
    async with zoo.fresh() as guest:
        [waiting] = talk.waiting
        assert (await talk.answer(guest, waiting.denied("too dear"))).outcome.kind == "answered"
        assert (await talk.say(guest, f"{order} second")).outcome.kind == "answered"
    shown = requests(model, order, "single")[-1]
    assert shown == [f"USER {order} first", "CALL pay", "RESP pay", "TEXT One.", f"USER {order} second"]
    assert "too dear" in str(model.requests()[-1].contents)
