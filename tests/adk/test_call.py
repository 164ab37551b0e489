"""Single calls outside their turn: made once, with what was approved, or not at all."""

from __future__ import annotations

import asyncio

import pytest

from agentvisor.channel import Refused
from agentvisor.protocol import CallEnd, CheckEnd, ProbeEnd, RunCall
from tests.adk.conftest import thread
from tests.adk.harness import FakeThread, GuestProcess
from tests.fixtures.effects import Effects


@pytest.fixture
def talk(order: str) -> FakeThread:
    """A thread of the single agent, with state."""
    talk = thread("single", order)
    talk.run = 1
    talk.initial = {"paid": ["before"]}
    return talk


async def asked(talk: FakeThread, guest: GuestProcess, tool: str, **more: object) -> RunCall:
    """A call as it would come from the host, with the fingerprint that the tool has."""
    values = {
        "thread_id": talk.thread_id,
        "principal": "ana",
        "agent": "single",
        "run_id": "run-1",
        "key": "run-1/c1",
        "call_id": "c1",
        "tool": tool,
        "args": {"order": talk.thread_id, "amount": 1},
        "idempotency_key": "key-1",
        "author": "single",
        "approved": True,
        **more,
    }
    call = RunCall.model_validate(values)
    checked = await guest.ask("check", call, CheckEnd, serve={"session": talk.session})
    return call.model_copy(update={"fingerprint": checked.fingerprint} if "fingerprint" not in more else {})


async def made(talk: FakeThread, guest: GuestProcess, call: RunCall) -> CallEnd:
    return await guest.ask("call", call, CallEnd, serve={"session": talk.session})


async def test_a_tool_sees_its_call_the_thread_s_state_and_the_idempotency_key(
    guest: GuestProcess, talk: FakeThread
) -> None:
    end = await made(talk, guest, await asked(talk, guest, "pay"))
    assert end.outcome.kind == "done"
    assert end.outcome.result == {"paid": talk.thread_id, "amount": 1, "key": "key-1", "by": "ana"}
    assert end.outcome.state_delta == {"paid": ["before", talk.thread_id]}
    assert end.spent.tool_calls == 1


async def test_the_state_is_asked_for_only_where_a_tool_wants_it(
    guest: GuestProcess, talk: FakeThread, order: str
) -> None:
    end = await made(talk, guest, await asked(talk, guest, "note", args={"order": order}))
    assert end.outcome.kind == "done"
    assert talk.asked == []


async def test_a_plain_adk_tool_runs_with_a_real_context(
    guest: GuestProcess, talk: FakeThread, effects: Effects
) -> None:
    end = await made(talk, guest, await asked(talk, guest, "refund"))
    assert end.outcome.kind == "done"
    assert end.outcome.result == {"refunded": talk.thread_id, "amount": 1}
    assert end.outcome.state_delta == {"refunded": talk.thread_id}
    assert (await effects.all("refund")).count([talk.thread_id, 1]) == 1


@pytest.mark.parametrize("tool", ["pay", "refund"])
async def test_a_call_that_needs_an_approval_and_has_none_does_not_run(
    guest: GuestProcess, talk: FakeThread, effects: Effects, tool: str
) -> None:
    end = await made(talk, guest, await asked(talk, guest, tool, approved=False))
    assert end.outcome.kind == "needs_approval"
    assert end.outcome.args == {"order": talk.thread_id, "amount": 1}
    assert [talk.thread_id, 1] not in await effects.all(tool)


@pytest.mark.parametrize("tool", ["pay", "refund"])
async def test_a_tool_that_changed_since_it_was_approved_does_not_run(
    guest: GuestProcess, talk: FakeThread, effects: Effects, tool: str
) -> None:
    end = await made(talk, guest, await asked(talk, guest, tool, fingerprint="of-yesterday"))
    assert end.outcome.kind == "needs_approval"
    assert "changed" in end.outcome.reason
    assert [talk.thread_id, 1] not in await effects.all(tool)


async def test_a_rule_that_asks_now_stops_a_call_that_nobody_approved(guest: GuestProcess, talk: FakeThread) -> None:
    args = {"order": talk.thread_id, "amount": 11}
    end = await made(talk, guest, await asked(talk, guest, "credit", args=args, approved=False))
    assert end.outcome.kind == "needs_approval"


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ({"tool": "gone"}, "tool-not-found"),
        ({"tool": "pay", "author": "renamed"}, "tool-not-found"),
        ({"tool": "pay", "args": {"order": 5}}, "tool-args-invalid"),
        ({"tool": "refund", "args": {"order": "x", "amount": "1"}}, "tool-args-invalid"),
        ({"tool": "credit", "args": {"order": "x", "amount": -1}}, "confirm-rule-failed"),
    ],
)
async def test_a_call_that_cannot_run_fails_before_it_starts(
    guest: GuestProcess, talk: FakeThread, more: dict[str, object], code: str
) -> None:
    tool = str(more.pop("tool"))
    call = await asked(talk, guest, tool, **more)
    end = await made(talk, guest, call)
    assert end.outcome.kind == "failed"
    assert (end.outcome.code, end.outcome.started) == (code, False)
    assert "secret" not in end.outcome.message
    checked = await guest.ask("check", call, CheckEnd, serve={"session": talk.session})
    assert (checked.args, checked.code) == (None, code)


async def test_checked_arguments_come_back_as_the_tool_gets_them(guest: GuestProcess, talk: FakeThread) -> None:
    call = await asked(talk, guest, "pay", args={"order": "x", "amount": 5.0})
    checked = await guest.ask("check", call, CheckEnd, serve={"session": talk.session})
    assert checked.args == {"order": "x", "amount": 5}
    assert checked.code is None
    assert checked.fingerprint


async def test_what_a_tool_says_itself_reaches_the_model(guest: GuestProcess, talk: FakeThread) -> None:
    end = await made(talk, guest, await asked(talk, guest, "probed", args={"order": "x"}))
    assert end.outcome.kind == "failed"
    assert (end.outcome.code, end.outcome.message, end.outcome.started) == ("tool-error", "no such order: x", True)


async def test_a_probe_finds_out_by_the_idempotency_key(guest: GuestProcess, talk: FakeThread) -> None:
    call = await asked(talk, guest, "probed", args={"order": "x"})
    probed = await guest.ask("probe", call, ProbeEnd, serve={"session": talk.session})
    assert (probed.outcome, probed.result) == ("done", {"found": "key-1"})


@pytest.mark.parametrize("tool", ["pay", "refund", "gone"])
async def test_a_tool_without_a_probe_does_not_know(guest: GuestProcess, talk: FakeThread, tool: str) -> None:
    call = await asked(talk, guest, tool)
    probed = await guest.ask("probe", call, ProbeEnd, serve={"session": talk.session})
    assert probed.outcome == "unknown"


async def test_a_cancelled_call_of_an_async_tool_stops(
    guest: GuestProcess, talk: FakeThread, effects: Effects, order: str
) -> None:
    call = await asked(talk, guest, "slow_write", args={"order": order})
    await effects.hold("slow_write")
    running = asyncio.ensure_future(made(talk, guest, call))
    await effects.wait("slow_write")
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await effects.release("slow_write")


async def test_a_cancelled_call_of_a_sync_tool_tells_its_true_outcome(
    guest: GuestProcess, talk: FakeThread, effects: Effects, order: str
) -> None:
    call = await asked(talk, guest, "slow_sync_write", args={"order": order})
    await effects.hold("slow_sync_write")
    running = asyncio.ensure_future(
        guest.channel.ask("call", call, CallEnd, serve={"session": talk.session}, patience=30)
    )
    await effects.wait("slow_sync_write")
    running.cancel()
    await asyncio.sleep(0)
    await effects.release("slow_sync_write")
    end = await running
    assert end.outcome.kind == "done"
    assert end.outcome.result == order


async def test_a_call_may_ask_for_the_session_of_its_own_thread_only(guest: GuestProcess, talk: FakeThread) -> None:
    call = await asked(talk, guest, "pay")
    with pytest.raises(Refused, match="session"):
        await guest.ask("call", call, CallEnd)


async def test_an_unknown_operation_is_refused(guest: GuestProcess, talk: FakeThread) -> None:
    with pytest.raises(Refused) as refused:
        await guest.ask("shutdown", RunCall.model_validate({**(await asked(talk, guest, "pay")).model_dump()}), CallEnd)
    assert refused.value.kind == "unknown-operation"
