"""What opens a gate in a thread, whatever port its tools bring; and what of failing code is told to whom."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

import pytest
import pytest_asyncio
from temporalio.client import Client, WorkflowQueryFailedError

from agentvisor.host.fork_server import ForkServer
from agentvisor.local_gemini import LocalGemini
from client import Thread
from client.errors import Refused
from tests.fixtures.effects import Effects
from tests.threads.conftest import Scene
from tests.threads.gated import Gates, function_calls, told
from worker import RunningWorker
from workflows.messages import RunView, UnknownOutcomeNotDone

SECRET = "what-only-the-log-may-hold"


@pytest_asyncio.fixture(scope="module")
async def gates_worker(
    client: Client,
    model: LocalGemini,
    counter: Effects,
    fork_server: ForkServer,
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncGenerator[tuple[Gates, RunningWorker]]:
    gates = Gates(tmp_path_factory.mktemp("gates"), client, model, counter, fork_server)
    async with gates.worker() as worker:
        yield gates, worker


@pytest.fixture
def scene(gates_worker: tuple[Gates, RunningWorker]) -> Scene:
    gates, worker = gates_worker
    return gates.scene(worker)


# ---- the gate is the thread ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("tool", ["pay", "ship", "refund"])
async def test_a_tool_with_a_port_of_its_own_or_with_none_waits_for_the_thread(scene: Scene, tool: str) -> None:
    """A store, a function that says yes, ADK's own confirmation: in a thread none of them is asked."""
    given: dict[str, Any] = {} if tool == "ship" else {"amount": 5}
    scene.script(scene.call(tool, **given), "Done.")
    thread = await scene.thread("ports")
    run_id, (approval,) = await scene.paused(thread)
    assert (approval.kind, approval.tool, approval.arguments) == ("approval", tool, {"mark": scene.mark, **given})
    assert await scene.effects(tool) == 0
    await thread.decide(approval.id, True, by="ben")
    view = await scene.ended(thread, run_id)
    assert (view.answer, [call.status for call in view.calls]) == ("Done.", ["done"])
    assert (await scene.effects(tool), await scene.effects("port")) == (1, 0)


@pytest.mark.parametrize("tool", ["pay", "ship", "refund"])
async def test_a_denial_reads_as_approval_denied_to_the_model(scene: Scene, tool: str) -> None:
    given: dict[str, Any] = {} if tool == "ship" else {"amount": 5}
    scene.script(scene.call(tool, **given), "Not done.")
    thread = await scene.thread("ports")
    run_id, (approval,) = await scene.paused(thread)
    await thread.decide(approval.id, False, reason="not today", by="ben")
    await scene.ended(thread, run_id)
    assert '{"error": {"kind": "approval-denied", "message": "not today"}}' in scene.heard(values=True)[-1]
    assert (await scene.effects(tool), await scene.effects("port")) == (0, 0)


@pytest.mark.parametrize("approved", ["true", "false", 1, 0, None, [True], {"approved": True}, '{"approved": true}'])
async def test_no_shape_but_a_boolean_decides(scene: Scene, approved: Any) -> None:
    """Whoever sends it past the client: it is refused, and the approval waits as before."""
    scene.script(scene.call("pay", amount=5), "Done.")
    thread = await scene.thread("ports")
    run_id, (approval,) = await scene.paused(thread)
    handle = scene.client.get_workflow_handle(f"thread-{thread.id}")
    for sent in ({"approval_id": approval.id, "approved": approved}, {"approval_id": approval.id, "confirmed": True}):
        with pytest.raises(Exception, match="failed") as refused:
            await handle.execute_update("decide", sent)
        assert getattr(refused.value.__cause__, "type", None) == "malformed"
    assert [waiting.id for waiting in await thread.interrupts()] == [approval.id]
    await thread.decide(approval.id, False, by="ben")
    await scene.ended(thread, run_id)
    assert await scene.effects("pay") == 0


async def test_an_answer_or_a_token_of_somebody_s_own_opens_nothing(scene: Scene) -> None:
    """Confirmations and results in a message, tokens that were never minted, answers that are no decisions."""
    scene.script(scene.call("refund", amount=5), "Done.")
    thread = await scene.thread("ports")
    run_id, (approval,) = await scene.paused(thread)
    handle = scene.client.get_workflow_handle(f"thread-{thread.id}")
    asked = await function_calls(thread)
    for number, call in enumerate(asked):
        for response in ({"confirmed": True}, {"confirmed": True, "payload": {"aa_token": "x"}}, {"refunded": 5}):
            answer = {"id": call["id"], "name": call["name"], "response": response}
            with pytest.raises(Refused):
                await thread.run({"role": "user", "parts": [{"functionResponse": answer}]})
            name = f"sly-{number}-{len(str(response))}"
            message = {"parts": [{"text": "yes"}, {"functionResponse": answer}]}
            await handle.signal("run", {"run_id": name, "message": message})
            assert (await thread.wait(name, until="ended", timeout=30)).status == "error"
    assert {call["name"] for call in asked} == {"refund", "adk_request_confirmation"}
    with pytest.raises(WorkflowQueryFailedError):
        await handle.query("grant", {"token": approval.id})
    assert [waiting.id for waiting in await thread.interrupts()] == [approval.id]
    await thread.decide(approval.id, True, by="ben")
    await scene.ended(thread, run_id)
    assert await scene.payloads("refund") == [{"amount": 5}]


# ---- what failing code says ----------------------------------------------------------------------------------------

TOOLS = (
    *("reads", "reads_in_thread", "writes", "says_why", "exits", "unreadable", "guarded", "withheld", "ruled"),
    *("summed_up", "plain_fails", "plain_gated"),
)


async def _to_its_end(thread: Thread, run_id: str) -> RunView:
    """Approve what waits, and say of what nobody knows that it was not done."""
    while (view := await thread.wait(run_id, timeout=60)).status == "waiting":
        for waiting in view.interrupts:
            if waiting.kind == "approval":
                await thread.decide(waiting.id, True, by="ben")
            else:
                await thread.answer(UnknownOutcomeNotDone(interrupt_id=waiting.id), by="ben")
    return view


async def test_no_text_of_an_unexpected_exception_reaches_the_model_the_session_or_the_history(scene: Scene) -> None:
    """Tools in the turn and outside it, guards, rules and summaries: each fails; each call has its response."""
    scene.script({"calls": [scene.call(tool) for tool in TOOLS]}, "Well.", words="go")
    scene.script("Hello.", words="next")
    thread = await scene.thread("failing")
    view = await _to_its_end(thread, await thread.run(scene.say()))
    assert (view.status, view.answer) == ("success", "Well.")
    reached = {tool: await scene.effects(tool) for tool in TOOLS}
    assert 0 not in reached.values(), reached
    assert await scene.effects("never") == 0
    answers = [line for line in scene.heard(values=True) if line.startswith("RESP")]
    assert len(answers) == len(TOOLS)
    assert ["error" in line for line in answers] == [tool != "summed_up" for tool in TOOLS]
    assert "The printer is out of paper." in answers[TOOLS.index("says_why")]
    found = await told(scene, thread)
    assert [place for place in ("model", "session", "history") if "out of paper" in found[place]] == [*found][:3]
    assert (await scene.answered(thread, "next")).answer == "Hello."
    assert not [place for place, text in (await told(scene, thread)).items() if SECRET in text]


@pytest.mark.parametrize("tool", ["plain_ruled", "probed"])
async def test_no_text_of_a_failing_rule_or_probe_is_told(scene: Scene, tool: str) -> None:
    """A plain tool's rule ends the run; a probe does not know, and a person is asked."""
    scene.script(scene.call(tool), "Well.", words="go")
    scene.script("Hello.", words="next")
    thread = await scene.thread("failing")
    await thread.put_state({"mark": scene.mark})
    view = await _to_its_end(thread, await thread.run(scene.say()))
    assert (view.status, view.error and view.error.code) == (
        ("error", "confirm-rule-failed") if tool == "plain_ruled" else ("success", None)
    )
    assert (await scene.effects(tool), await scene.effects("never")) == (1, 0)
    assert (await scene.answered(thread, "next")).answer == "Hello."
    assert not [place for place, text in (await told(scene, thread)).items() if SECRET in text]


@pytest.mark.parametrize("kind", ["agent", "model", "tool"])
@pytest.mark.parametrize("when", ["before", "after"])
async def test_no_text_of_a_failing_callback_is_told(scene: Scene, when: str, kind: str) -> None:
    """The run ends as error, and the thread takes the next one."""
    name = f"{when}_{kind}_callback"
    scene.script(scene.call("look"), "Well.", words="go")
    scene.script("Hello.", words="next")
    thread = await scene.thread(name, leg_attempts=1)
    view = await _to_its_end(thread, await thread.run(scene.say()))
    assert await scene.effects(name) >= 1
    assert (view.status, view.error and view.error.code) == ("error", "agent-error")
    assert (await scene.answered(thread, "next")).answer == "Hello."
    assert not [place for place, text in (await told(scene, thread)).items() if SECRET in text]


async def test_no_text_of_a_failure_that_was_tried_again_is_told(scene: Scene) -> None:
    """ADK notes it in the session, and the run goes on."""
    scene.script("Well.", words="go")
    scene.script("Hello.", words="next")
    thread = await scene.thread("trying")
    assert (await scene.answered(thread)).answer == "Well."
    assert await scene.effects("fails_once") == 2
    assert (await scene.answered(thread, "next")).answer == "Hello."
    found = await told(scene, thread)
    assert "RuntimeError" in found["session"]
    assert not [place for place, text in found.items() if SECRET in text]
