"""What a run may use holds over its legs, over processes that die and workers that are replaced."""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from temporalio.client import Client

from agentvisor.host.fork_server import ForkServer
from agentvisor.local_gemini import LocalGemini
from client import Thread
from tests.fixtures.effects import Effects
from tests.threads.conftest import Scene
from tests.threads.gated import Gates
from worker import RunningWorker
from workflows.messages import Interrupt, RunLimits, RunView, UnknownOutcomeDone, UnknownOutcomeRunAgain

REFUSED = '"kind": "run-limit-exceeded"'


@pytest.fixture(scope="module")
def gates(
    client: Client,
    model: LocalGemini,
    counter: Effects,
    fork_server: ForkServer,
    tmp_path_factory: pytest.TempPathFactory,
) -> Gates:
    return Gates(tmp_path_factory.mktemp("limits"), client, model, counter, fork_server)


@pytest_asyncio.fixture(scope="module")
async def gates_worker(gates: Gates) -> AsyncGenerator[RunningWorker]:
    async with gates.worker() as worker:
        yield worker


@pytest.fixture
def scene(gates: Gates, gates_worker: RunningWorker) -> Scene:
    return gates.scene(gates_worker)


def used(view: RunView) -> tuple[int, int, float]:
    return view.usage.model_calls, view.usage.tool_calls, view.usage.cost


@pytest.mark.parametrize("limits", [{"tool_calls": 2}, {"cost": 2.0}, {"cost": 2.9}], ids=str)
async def test_a_call_beyond_a_limit_is_refused_to_the_model_which_may_answer(scene: Scene, limits: Any) -> None:
    """In one turn, and in a later leg: what is waited for counts, nothing refused runs, nobody is asked about it."""
    turn = {"calls": [scene.call("look"), scene.call("buy"), scene.call("buy"), scene.call("look")]}
    scene.script(turn, scene.call("look"), "With what I have.", words="go")
    scene.script(scene.call("look"), "Seen.", words="next")
    thread = await scene.thread("spender", limits=RunLimits(**limits))
    run_id, (approval,) = await scene.paused(thread)
    await thread.decide(approval.id, True, by="ben")
    view = await scene.ended(thread, run_id)
    assert (view.answer, used(view)) == ("With what I have.", (3, 2, 2.0))
    answers = [line for line in scene.heard(values=True) if line.startswith("RESP")]
    assert [REFUSED in line for line in answers] == [False, False, True, True, True]
    assert (await scene.effects("look"), await scene.effects("buy")) == (1, 1)
    view = await scene.answered(thread, "next")
    assert (view.answer, used(view)) == ("Seen.", (2, 1, 1.0))


async def test_a_denied_call_uses_nothing_up(scene: Scene) -> None:
    scene.script(scene.call("buy"), scene.call("look"), scene.call("look"), "Enough.")
    thread = await scene.thread("spender", limits=RunLimits(tool_calls=1))
    run_id, (approval,) = await scene.paused(thread)
    await thread.decide(approval.id, False, by="ben")
    view = await scene.ended(thread, run_id)
    assert (used(view), await scene.effects("look")) == ((4, 1, 1.0), 1)
    assert REFUSED in scene.heard(values=True)[-1]


async def test_a_long_running_call_beyond_a_limit_ends_the_run(scene: Scene) -> None:
    """It would wait for an answer that nobody can give."""
    scene.script(scene.call("ask_supplier"), "never", words="go")
    scene.script("Hello.", words="next")
    thread = await scene.thread("spender", limits=RunLimits(tool_calls=0))
    view = await scene.ended(thread, await thread.run(scene.say()), "error")
    assert view.error
    assert (view.error.code, view.interrupts, await scene.effects("ask_supplier")) == ("run-limit-exceeded", (), 0)
    assert (await scene.answered(thread, "next")).answer == "Hello."


async def test_a_call_whose_outcome_nobody_knows_counts_and_a_person_may_want_it_again(scene: Scene) -> None:
    """What a person decides goes before the limit; what the model wants does not."""
    scene.script(scene.call("crash"), scene.call("look"), "Stopped.")
    thread = await scene.thread("spender", limits=RunLimits(tool_calls=1))
    run_id, (unknown,) = await scene.paused(thread)
    await thread.answer(UnknownOutcomeRunAgain(interrupt_id=unknown.id), by="ben")
    await scene.effect("crash", count=2)
    (again,) = (await thread.wait(run_id, timeout=60)).interrupts
    assert again.id != unknown.id
    await thread.answer(UnknownOutcomeDone(interrupt_id=again.id, result={"found": 2}), by="ben")
    view = await scene.ended(thread, run_id)
    assert used(view) == (3, 2, 2.0)
    assert await scene.effects("look") == 0
    assert REFUSED in scene.heard(values=True)[-1]
    await scene.keep_history(thread, "limit-after-unknown-outcome")


async def test_what_a_lost_attempt_used_counts(scene: Scene) -> None:
    """The process of the agent is killed between two model turns: the next attempt goes on, and so do the counts."""
    held = {"text": "Seen.", "hold": scene.mark}
    scene.script(scene.call("look"), scene.call("look"), held, words="go")
    thread = await scene.thread("spender", limits=RunLimits(model_calls=3, tool_calls=2))
    run_id = await thread.run(scene.say())
    await scene.held(scene.mark)
    for pid in scene.worker.guests["gates"].pids("legs"):
        os.kill(pid, signal.SIGKILL)
    scene.release(scene.mark)
    view = await scene.ended(thread, run_id)
    assert (view.answer, used(view)) == ("Seen.", (3, 2, 2.0))


async def test_limits_hold_over_a_restart_of_the_worker(
    client: Client, model: LocalGemini, counter: Effects, fork_server: ForkServer, tmp_path: Path
) -> None:
    """A run that waits, and one whose agent is at work, when their worker ends: another one goes on counting."""
    gates = Gates(tmp_path, client, model, counter, fork_server)
    ten = {"prompt": 4, "output": 6}
    limits: dict[str, dict[str, Any]] = {
        "models": {"model_calls": 3},
        "tokens": {"tokens": 30},
        "tools": {"tool_calls": 2},
        "costs": {"cost": 2.0},
        "seconds": {"seconds": 8.0},
    }
    async with gates.worker() as worker:
        scene = gates.scene(worker)
        scene.script("Hello.", words="hi")
        threads: dict[str, Thread] = {}
        runs: dict[str, str] = {}
        approvals: dict[str, Interrupt] = {}
        for words, limit in limits.items():
            turns = [{"calls": [scene.call(tool)], "usage": ten} for tool in ("buy", "look", "look")]
            scene.script(*turns, "Done.", words=words)
            threads[words] = await scene.thread("spender", limits=RunLimits(**limit))
            runs[words], (approvals[words],) = await scene.paused(threads[words], words)
        scene.script(scene.call("look"), {"text": "Seen.", "hold": scene.mark}, words="busy")
        busy = await scene.thread("spender")
        busy_run = await busy.run(scene.say("busy"))
        await scene.held(scene.mark)
    scene.release(scene.mark)
    async with gates.worker():
        view = await scene.ended(busy, busy_run)
        assert (view.answer, used(view)) == ("Seen.", (2, 1, 1.0))
        late = await scene.ended(threads["seconds"], runs["seconds"], "timeout")
        assert late.error
        assert late.error.code == "run-limit-exceeded"
        for words in ("models", "tokens", "tools", "costs"):
            await threads[words].decide(approvals[words].id, True, by="ben")
        for words in ("models", "tokens"):
            view = await scene.ended(threads[words], runs[words], "error")
            assert view.error
            assert view.error.code == "run-limit-exceeded"
            assert (view.usage.model_calls, view.usage.tokens) == (3, 30)
        for words in ("tools", "costs"):
            view = await scene.ended(threads[words], runs[words])
            assert (view.answer, used(view)) == ("Done.", (4, 2, 2.0))
        for thread in threads.values():
            assert (await scene.answered(thread, "hi")).answer == "Hello."
    assert await scene.effects("buy") == 4
