"""At most once, also where history is taken back, or the Store is away."""

from __future__ import annotations

import os
import uuid
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.history.v1 import HistoryEvent
from temporalio.api.workflowservice.v1 import ResetWorkflowExecutionRequest
from temporalio.client import Client

from agentvisor.host.fork_server import ForkServer
from agentvisor.host.settings import Settings
from agentvisor.local_gemini import LocalGemini
from agentvisor.project import read_project
from client import Thread
from tests.fixtures.effects import Effects
from tests.threads.conftest import Scene
from worker import running_worker
from workflows.messages import UnknownOutcomeDone, UnknownOutcomeRunAgain


@pytest.mark.parametrize("tool", ["note", "pay"])
async def test_a_reset_of_the_workflow_repeats_no_effect(scene: Scene, tool: str) -> None:
    """History is taken back to before the call; the Store remembers it, and a person says what is true."""
    given: dict[str, Any] = {"text": "n"} if tool == "note" else {"amount": 5}
    scene.script(scene.call(tool, **given), "Done.")
    thread = await scene.thread()
    run_id = await thread.run(scene.say())
    view = await thread.wait(run_id, timeout=60)
    for approval in view.interrupts:
        await thread.decide(approval.id, True, by="ben")
    await scene.ended(thread, run_id)
    assert await scene.effects(tool) == 1

    await _reset_to_before(scene, thread, "run_tool")
    view = await thread.wait(run_id, timeout=60)
    (unknown,) = view.interrupts
    assert unknown.kind == "unknown_outcome"
    assert unknown.detail
    assert "begun before" in unknown.detail
    assert await scene.effects(tool) == 1
    await thread.answer(UnknownOutcomeDone(interrupt_id=unknown.id, result={"known": True}), by="cleo")
    await scene.ended(thread, run_id)
    assert await scene.effects(tool) == 1


async def test_after_a_reset_a_person_may_want_the_call_again(scene: Scene) -> None:
    """`run_again` is another round: one more effect, no more."""
    scene.script(scene.call("note", text="n"), "Done.")
    thread = await scene.thread()
    run_id = await thread.run(scene.say())
    await scene.ended(thread, run_id)
    await _reset_to_before(scene, thread, "run_tool")
    (unknown,) = (await thread.wait(run_id, timeout=60)).interrupts
    await thread.answer(UnknownOutcomeRunAgain(interrupt_id=unknown.id), by="cleo")
    await scene.ended(thread, run_id)
    assert await scene.effects("note") == 2


async def test_without_the_store_writes_wait_and_everything_else_goes_on(
    client: Client, model: LocalGemini, counter: Effects, clerk: Path, fork_server: ForkServer
) -> None:
    """A worker whose database does not answer starts, reads, queries and cancels; a write does not begin."""
    settings = Settings(
        task_queue=f"storeless-{uuid.uuid4()}",
        workflow_sandbox=True,
        leg_guests=1,
        graceful_shutdown=5,
        store=SecretStr("postgresql://nobody@127.0.0.1:1/none"),
    )
    environment = {**os.environ, **model.env(), **counter.env()}
    async with running_worker(
        client, settings, [read_project(clerk)], environment=environment, fork_server=fork_server
    ) as worker:
        scene = Scene(client, worker, model, counter)
        scene.script(scene.call("note", text="n"), "Noted.", words="write")
        scene.script(scene.call("look"), "Seen.", words="read")
        writer, reader = await scene.thread(), await scene.thread()
        run_id = await writer.run(scene.say("write"))
        assert (await scene.answered(reader, "read")).answer == "Seen."
        view = await writer.run_view(run_id)
        assert view.status == "running"
        await writer.cancel_run(run_id, by="ana")
        await scene.ended(writer, run_id, "cancelled")
        assert await scene.effects("note") == 0


async def _reset_to_before(scene: Scene, thread: Thread, activity: str) -> None:
    """`temporal workflow reset` to the workflow task that scheduled this activity."""
    history = await scene.history(thread)
    task = next(event for event in history.events if _schedules(event, activity))
    completed = task.activity_task_scheduled_event_attributes.workflow_task_completed_event_id
    await scene.client.workflow_service.reset_workflow_execution(
        ResetWorkflowExecutionRequest(
            namespace=scene.client.namespace,
            workflow_execution=WorkflowExecution(workflow_id=f"thread-{thread.id}"),
            reason="a test",
            workflow_task_finish_event_id=completed,
            request_id=str(uuid.uuid4()),
        ),
        retry=True,
    )


def _schedules(event: HistoryEvent, activity: str) -> bool:
    return event.activity_task_scheduled_event_attributes.activity_type.name == activity
