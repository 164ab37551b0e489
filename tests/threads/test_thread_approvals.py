"""A thread as the approval store of its calls: listed, decided and looked up in the terms of `agent_adapter`."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from agent_adapter import (
    ApprovalAlreadyDecided,
    ApprovalDecision,
    ApprovalRequest,
    ApprovalStore,
    ApprovalUnknown,
    ToolUsageError,
)
from client import Thread, ThreadApprovals
from client.errors import Refused, TemporalUnavailable
from tests.threads.conftest import Scene

YES = ApprovalDecision(approved=True, decided_by="ana")
NO = ApprovalDecision(approved=False, decided_by="bo", reason="not now")


async def asked(scene: Scene, tool: str = "pay") -> tuple[Thread, ApprovalStore, str]:
    """A thread that asks about one call, its approvals, and the run."""
    scene.script(scene.call(tool, amount=5), "Done.")
    thread = await scene.thread()
    return thread, ThreadApprovals(thread), (await scene.paused(thread))[0]


async def test_what_waits_is_listed_and_an_approval_is_used_once(scene: Scene) -> None:
    thread, store, run_id = await asked(scene)
    [pending] = await store.pending()
    assert (pending.status, pending.request.tool, pending.request.run) == ("pending", "pay", run_id)
    assert pending.request.arguments == {"mark": scene.mark, "amount": 5}
    assert (pending.request.principal, pending.request.summary) == ("ana", "pays 5")
    assert pending.expires_at == pending.recorded_at + timedelta(days=7)
    assert await store.get(pending.id) == pending
    decided = await store.decide(pending.id, YES)
    assert (decided.status, decided.request) == ("approved", pending.request)
    assert decided.decision
    assert (decided.decision.approved, decided.decision.decided_by) == (True, "ana")
    assert (await scene.ended(thread, run_id)).answer == "Done."
    assert await store.pending() == []
    used = await store.get(pending.id)
    assert (used.status, used.decision and used.decision.decided_by) == ("consumed", "ana")
    assert await scene.effects("pay") == 1


async def test_edited_arguments_are_checked_before_anything_is_decided(scene: Scene) -> None:
    thread, store, run_id = await asked(scene)
    [pending] = await store.pending()
    with pytest.raises(Refused) as refused:
        await store.decide(pending.id, YES.model_copy(update={"edited_args": {"amount": "many"}}))
    assert refused.value.kind == "tool-args-invalid"
    assert await store.pending() == [pending]
    edited = {"mark": scene.mark, "amount": 50}
    await store.decide(pending.id, YES.model_copy(update={"edited_args": edited}))
    await scene.ended(thread, run_id)
    assert await scene.payloads("pay") == [{"amount": 50}]


@pytest.mark.parametrize("second", [YES, NO])
@pytest.mark.parametrize("how", ["denied", "expired", "withdrawn"])
async def test_what_has_its_end_is_not_decided_again(scene: Scene, how: str, second: ApprovalDecision) -> None:
    """A person's no, the clock and a run that was cancelled are ends of their own."""
    thread, store, run_id = await asked(scene, "pay_soon" if how == "expired" else "pay")
    name = "ap-1-1"
    if how == "denied":
        assert (await store.decide(name, NO)).status == "denied"
    if how == "withdrawn":
        await thread.cancel_run(run_id, by="ana")
    await thread.wait(run_id, until="ended", timeout=60)
    with pytest.raises(ApprovalAlreadyDecided) as refused:
        await store.decide(name, second)
    by = {"denied": "bo", "expired": None, "withdrawn": None}[how]
    assert (refused.value.status, refused.value.decided_by) == (how, by)
    for action in (store.withdraw(name), store.consume([name])):
        with pytest.raises(ApprovalAlreadyDecided):
            await action
    assert (await store.get(name)).status == how
    assert await scene.effects("pay") == 0


async def test_an_id_that_was_never_given_out_is_refused_everywhere(scene: Scene) -> None:
    _, store, _ = await asked(scene)
    for name in ("ap-9-9", "x", "uo-1-1"):
        for action in (store.get(name), store.decide(name, YES), store.withdraw(name), store.consume([name])):
            with pytest.raises(ApprovalUnknown, match=name):
                await action


async def test_a_thread_asks_and_uses_up_by_itself(scene: Scene) -> None:
    """Nobody else records questions in its name, or takes an approval for a call of their own."""
    _, store, _ = await asked(scene)
    [pending] = await store.pending()
    assert await store.record(pending.request, lifetime=None) == pending
    other = ApprovalRequest(id="ap-7-7", run="r", call="c", tool="pay", arguments={})
    with pytest.raises(ToolUsageError, match="records what it asks"):
        await store.record(other, lifetime=None)
    with pytest.raises(ToolUsageError, match="when its run is cancelled"):
        await store.withdraw(pending.id)
    with pytest.raises(ApprovalAlreadyDecided):
        await store.consume([pending.id])
    assert await store.consume([]) == []
    assert await store.pending() == [pending]


async def test_of_many_that_decide_at_once_one_wins(scene: Scene) -> None:
    thread, store, run_id = await asked(scene)
    outcomes = await asyncio.gather(
        *(store.decide("ap-1-1", decision) for decision in (YES, NO, YES, NO)), return_exceptions=True
    )
    won = [outcome for outcome in outcomes if not isinstance(outcome, ApprovalAlreadyDecided)]
    assert len(won) == 1
    await scene.ended(thread, run_id)
    assert await scene.effects("pay") == (1 if outcomes.index(won[0]) in {0, 2} else 0)


class ThreadMachine(RuleBasedStateMachine):
    """Three calls of one turn wait; whatever is decided or cancelled in whatever order, store and table agree."""

    def __init__(self, scene: Scene, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self.scene, self.loop = scene, loop
        self.expected: dict[str, set[str]] = {}

    def run(self, action: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(action, self.loop).result(90)

    async def _begun(self) -> Thread:
        """A thread; a server that is busy with other tests is asked again, since Hypothesis takes that for a fault."""
        for _ in range(5):
            with suppress(TemporalUnavailable):
                return await self.scene.thread()
        raise AssertionError("the server never answered")

    @initialize()
    def ask(self) -> None:
        self.thread: Thread = self.run(self._begun())
        self.store = ThreadApprovals(self.thread)
        self.run_id, approvals = self.run(self.scene.paused(self.thread))
        self.expected = {approval.id: {"pending"} for approval in approvals}

    @rule(number=st.integers(1, 3), decision=st.sampled_from([YES, NO]))
    def decide(self, number: int, decision: ApprovalDecision) -> None:
        name = f"ap-1-{number}"
        if self.expected[name] == {"pending"}:
            self.run(self.store.decide(name, decision))
            self.expected[name] = {"approved", "consumed"} if decision.approved else {"denied"}
        else:
            with pytest.raises(ApprovalAlreadyDecided) as refused:
                self.run(self.store.decide(name, decision))
            assert refused.value.status in self.expected[name]

    @rule()
    def cancel(self) -> None:
        if {"pending"} in self.expected.values():
            self.run(self.thread.cancel_run(self.run_id, by="ana"))
            self.run(self.thread.wait(self.run_id, until="ended", timeout=60))
            self.expected = {
                name: {"withdrawn"} if statuses == {"pending"} else statuses for name, statuses in self.expected.items()
            }

    @invariant()
    def agree(self) -> None:
        for name, statuses in self.expected.items():
            assert self.run(self.store.get(name)).status in statuses
        pending = {name for name, statuses in self.expected.items() if statuses == {"pending"}}
        if self.expected:
            assert {record.id for record in self.run(self.store.pending())} == pending


@pytest.mark.timeout(240)
async def test_a_thread_is_a_state_machine(scene: Scene) -> None:
    scene.script({"calls": [scene.call("pay", amount=n) for n in (1, 2, 3)]}, "Done.")
    loop = asyncio.get_running_loop()
    some = settings(
        max_examples=4,
        stateful_step_count=5,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
        database=None,
    )
    await asyncio.to_thread(
        run_state_machine_as_test,
        lambda: ThreadMachine(scene, loop),  # pyright: ignore[reportArgumentType]
        settings=some,
    )
