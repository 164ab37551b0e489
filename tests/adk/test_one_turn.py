"""Many calls in one model turn: each gets its own outcome, and the model sees each answered once, in order."""

from __future__ import annotations

from agentvisor.local_gemini import LocalGemini
from tests.adk.conftest import thread
from tests.adk.harness import GuestProcess, Guests
from tests.fixtures.effects import Effects
from tests.fixtures.gemini import assert_well_formed, call, transcript


async def test_approvals_a_read_a_gated_plain_tool_and_a_long_running_one_come_back_in_call_order(
    zoo: Guests, model: LocalGemini, effects: Effects, order: str
) -> None:
    turn = {
        "calls": [
            call("pay", order=order, amount=1),
            call("ask_warehouse", order=order),
            call("lookup", order=order),
            call("refund", order=order, amount=2),
            call("pay", order=order, amount=3),
        ]
    }
    model.script([turn, "All done."], user=f"{order}!")
    talk = thread("single", order)
    async with zoo.fresh() as guest:
        assert (await talk.say(guest, f"{order}!")).outcome.kind == "paused"
    waiting = {(open_.tool, open_.args.get("amount")): open_ for open_ in talk.waiting}
    assert set(waiting) == {("pay", 1), ("refund", 2), ("pay", 3), ("ask_warehouse", None)}
    last, refund, first = waiting["pay", 3], waiting["refund", 2], waiting["pay", 1]
    assert refund.pause
    assert refund.pause.approval
    assert refund.pause.editable
    async with zoo.fresh() as guest:  # decided in reverse order, one edited, one denied
        answers = [
            last.done(await talk.make(guest, last, args={"order": order, "amount": 30})),
            refund.done(await talk.make(guest, refund)),
            first.denied("too early"),
            waiting["ask_warehouse", None].answer({"shelf": 9}),
        ]
        assert (await talk.answer(guest, *answers)).outcome.kind == "answered"
    shown = model.requests()[-1].contents
    assert_well_formed(shown)
    calls = ["pay", "ask_warehouse", "lookup", "refund", "pay"]
    assert transcript(shown) == [f"USER {order}!", *(f"CALL {c}" for c in calls), *(f"RESP {c}" for c in calls)]
    responses = [part["functionResponse"]["response"] for part in shown[-1]["parts"]]
    assert responses[0] == {"error": {"kind": "approval-denied", "message": "too early"}}
    assert responses[1] == {"shelf": 9}
    assert responses[2] == {"order": order, "total": 149}
    assert responses[3] == {"refunded": order, "amount": 2}
    assert responses[4]["amount"] == 30
    assert [paid for paid in await effects.all("pay") if paid[0] == order] == [[order, 30]]
    assert (await effects.all("lookup")).count(order) == 1
    assert (talk.state["paid"], talk.state["refunded"]) == ([order], order)
    assert len([seen for seen in model.requests() if f"USER {order}!" in transcript(seen.contents)]) == 2


async def test_two_long_running_answers_of_one_tool_keep_their_places(
    zoo: Guests, model: LocalGemini, order: str
) -> None:
    turn = {"calls": [call("ask_warehouse", order=f"{order}a"), call("ask_warehouse", order=f"{order}b")]}
    model.script([turn, "Got both."], user=f"{order}!")
    talk = thread("single", order)
    async with zoo.fresh() as guest:
        assert (await talk.say(guest, f"{order}!")).outcome.kind == "paused"
    first, second = talk.waiting
    async with zoo.fresh() as guest:
        end = await talk.answer(guest, second.answer({"place": "second"}), first.answer({"place": "first"}))
    assert end.outcome.kind == "answered"
    shown = model.requests()[-1].contents
    assert_well_formed(shown)
    assert [part["functionResponse"]["response"]["place"] for part in shown[-1]["parts"]] == ["first", "second"]


async def test_a_call_id_that_the_model_repeats_names_two_calls(
    zoo: Guests, model: LocalGemini, effects: Effects, order: str
) -> None:
    turn = {"calls": [call("lookup", id="call_0", order=order), call("pay", id="call_0", order=order, amount=1)]}
    again = {"calls": [call("pay", id="call_0", order=order, amount=99)]}
    model.script([turn, again, "Enough."], user=f"{order}!")
    talk = thread("single", order)
    async with zoo.fresh() as guest:
        assert (await talk.say(guest, f"{order}!")).outcome.kind == "paused"
        [waiting] = talk.waiting
        assert (waiting.tool, waiting.args["amount"]) == ("pay", 1)
        made = await talk.make(guest, waiting)
        assert (await talk.answer(guest, waiting.done(made))).outcome.kind == "paused"
        [waiting] = talk.waiting
        assert waiting.args["amount"] == 99
        assert (await talk.answer(guest, waiting.denied())).outcome.kind == "answered"
    assert [paid for paid in await effects.all("pay") if paid[0] == order] == [[order, 1]]
    assert_well_formed(model.requests()[-1].contents)


async def test_arguments_that_do_not_fit_go_back_to_the_model_and_nobody_is_asked(
    guest: GuestProcess, model: LocalGemini, order: str
) -> None:
    turn = {
        "calls": [
            call("pay", order=order, amount="many"),
            call("refund", order=order, amount="many"),
            call("refund", order=order),
            call("refund", order=order, amount=1, more=2),
        ]
    }
    model.script([turn, "I see."], user=f"{order}!")
    talk = thread("single", order)
    assert (await talk.say(guest, f"{order}!")).outcome.kind == "answered"
    responses = [part["functionResponse"]["response"] for part in model.requests()[-1].contents[-1]["parts"]]
    assert [response["error"]["kind"] for response in responses] == ["tool-args-invalid"] * 4


async def test_a_rule_asks_only_for_the_calls_it_names(guest: GuestProcess, model: LocalGemini, order: str) -> None:
    turn = {"calls": [call("credit", order=order, amount=1), call("credit", order=order, amount=11)]}
    model.script([turn, "Credited."], user=f"{order}!")
    talk = thread("single", order)
    assert (await talk.say(guest, f"{order}!")).outcome.kind == "paused"
    [waiting] = talk.waiting
    assert waiting.args["amount"] == 11
    assert (await talk.answer(guest, waiting.done(await talk.make(guest, waiting)))).outcome.kind == "answered"


async def test_a_write_without_approval_pauses_too_and_asks_nobody(
    guest: GuestProcess, model: LocalGemini, effects: Effects, order: str
) -> None:
    model.script([call("note", order=order), "Noted."], user=f"{order}!")
    talk = thread("single", order)
    assert (await talk.say(guest, f"{order}!")).outcome.kind == "paused"
    [waiting] = talk.waiting
    assert waiting.pause
    assert not waiting.pause.approval
    made = await talk.make(guest, waiting, approved=False)
    assert made.outcome.kind == "done"
    assert (await talk.answer(guest, waiting.done(made))).outcome.kind == "answered"
    assert (await effects.all("note")).count(order) == 1
