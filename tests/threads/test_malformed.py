"""Whatever is sent to a thread, by the `temporal` CLI too: no workflow task fails, and the thread works on."""

from __future__ import annotations

import asyncio
import json
import sys
import uuid
from pathlib import Path

import pytest
from temporalio.api.common.v1 import Payload, Payloads, WorkflowExecution
from temporalio.api.enums.v1 import EventType
from temporalio.api.workflowservice.v1 import SignalWorkflowExecutionRequest
from temporalio.client import Client, WorkflowFailureError

from agentvisor.host.dev_server import TemporalServer
from tests.threads.conftest import Scene
from workflows.messages import StartThread
from workflows.thread_state import KEPT_RECORDS

TEMPORAL = Path(sys.executable).with_name("temporal")

SIGNALS: list[tuple[str, list[str]]] = [
    ("run", []),
    ("run", ['"just text"']),
    ("run", ["5"]),
    ("run", ["null"]),
    ("run", ["[]"]),
    ("run", ['{"message": "a"}', '{"message": "b"}']),
    ("run", ['{"message": 5}']),
    ("run", ['{"message": "hi", "run_id": 7}']),
    ("run", ['{"message": "hi", "run_id": "../x"}']),
    ("run", ['{"message": "hi", "state_delta": []}']),
    ("run", ['{"message": "hi", "state_delta": {"temp:x": 1}}']),
    ("run", ['{"message": {"parts": "hi"}}']),
    ("renew", ["1", "2"]),
    ("no_such_signal", ['{"a": 1}']),
]
UPDATES: list[tuple[str, list[str], str]] = [
    ("decide", [], "malformed"),
    ("decide", ['"yes"'], "malformed"),
    ("decide", ['{"approval_id": "ap-1-1"}'], "malformed"),
    ("decide", ['{"approval_id": "ap-1-1", "approved": "true"}'], "malformed"),
    ("decide", ['{"approval_id": "ap-1-1", "approved": 1}'], "malformed"),
    ("decide", ['{"approval_id": "ap-1-1", "approved": null}'], "malformed"),
    ("decide", ['{"approval_id": "ap-1-1", "approved": false, "edited_args": {}}'], "malformed"),
    ("decide", ['{"approval_id": "ap-1-1", "approved": true, "edited_args": []}'], "malformed"),
    ("decide", ['{"approval_id": "ap-9-9", "approved": true}'], "approval-unknown"),
    ("decide", ['{"approval_id": "ap-1-1", "approved": true}', "2"], "malformed"),
    ("answer", [], "malformed"),
    ("answer", ['{"interrupt_id": "ap-1-1", "kind": "done", "result": 1}'], "wrong-answer"),
    ("answer", ['{"interrupt_id": "uo-1-1", "kind": "done", "result": 1}'], "interrupt-unknown"),
    ("cancel_run", ["{}"], "malformed"),
    ("cancel_run", ['{"run_id": "nobody"}'], "run-unknown"),
    ("put_state", ['{"values": {"temp:x": 1}}'], "state-refused"),
    ("put_state", ['{"values": 5}'], "malformed"),
    ("append_events", ['{"events": [], "if_revision": 1}'], "run-active"),
    ("clear", [], "run-active"),
    ("no_such_update", [], "expected but not found"),
]


async def _temporal(server: TemporalServer, *arguments: str) -> str:
    address = server.connection.resolved().address
    process = await asyncio.create_subprocess_exec(
        TEMPORAL,
        *arguments,
        "--address",
        str(address),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    said, _ = await process.communicate()
    return said.decode()


def _inputs(inputs: list[str]) -> list[str]:
    return [word for given in inputs for word in ("--input", given)]


@pytest.mark.timeout(300)
async def test_malformed_signals_and_updates_harm_nothing(scene: Scene, temporal_server: TemporalServer) -> None:
    """Each update is refused with its reason; the approval that waited all the time is decided after them."""
    scene.script(scene.call("pay", amount=5), "Paid.", words="go")
    scene.script("Still here.", words="after")
    thread = await scene.thread()
    run_id, (approval,) = await scene.paused(thread)
    workflow = ("--workflow-id", f"thread-{thread.id}")
    for name, inputs in SIGNALS:
        said = await _temporal(temporal_server, "workflow", "signal", *workflow, "--name", name, *_inputs(inputs))
        assert "Signal workflow succeeded" in said, said
    for name, inputs, reason in UPDATES:
        said = await _temporal(
            temporal_server, "workflow", "update", "execute", *workflow, "--name", name, *_inputs(inputs)
        )
        assert reason in said, (name, inputs, said)
    assert [interrupt.id for interrupt in await thread.interrupts()] == [approval.id]
    await _temporal(
        temporal_server,
        *("workflow", "update", "execute", *workflow, "--name", "decide"),
        *("--input", json.dumps({"approval_id": approval.id, "approved": True})),
    )
    assert (await scene.ended(thread, run_id)).answer == "Paid."
    assert (await scene.answered(thread, "after")).answer == "Still here."
    refused = [run for run in (await thread.view()).recent if run.status == "error"]
    assert len(refused) == KEPT_RECORDS - 2
    assert all(run.error and run.error.message for run in refused)
    await scene.keep_history(thread, "malformed")


@pytest.mark.parametrize("inputs", [[], ['"text"'], ["{}"], ['{"agent": ""}'], ['{"agent": "single"}', "2"]])
async def test_a_thread_started_with_no_proper_input_ends_with_the_reason(
    scene: Scene, temporal_server: TemporalServer, inputs: list[str]
) -> None:
    """The workflow fails at once, with what to send instead, and no workflow task fails."""
    thread_id = f"{scene.mark}-bad"
    await _temporal(
        temporal_server,
        *("workflow", "start", "--type", "ThreadWorkflow", "--task-queue", scene.worker.task_queue),
        *("--workflow-id", f"thread-{thread_id}", *_inputs(inputs)),
    )
    handle = scene.client.get_workflow_handle(f"thread-{thread_id}")
    with pytest.raises(Exception, match="failed") as failed:
        await handle.result()
    assert "shop-helper" in str(failed.value.__cause__)
    history = await handle.fetch_history()
    assert not [event for event in history.events if event.HasField("workflow_task_failed_event_attributes")]


@pytest.mark.parametrize("prefix", ["", "thread_", "thread-thread one-", "Thread-"])
async def test_a_workflow_under_another_id_is_no_thread(scene: Scene, prefix: str) -> None:
    """It would speak for the thread of that name; it fails at once with the reason, and that thread goes on."""
    scene.script("Mine.")
    thread = await scene.thread()
    await scene.answered(thread)
    start = StartThread(agent="single", principal="ana")
    handle = await scene.client.start_workflow(
        "ThreadWorkflow", start, id=f"{prefix}{thread.id}", task_queue=scene.worker.task_queue
    )
    with pytest.raises(WorkflowFailureError) as failed:
        await handle.result()
    assert "is no workflow id of a thread" in str(failed.value.cause)
    assert (await scene.answered(thread)).answer == "Mine."


async def test_a_principal_of_3000_bytes_and_thirty_waiting_tools(scene: Scene) -> None:
    """Search attribute values are cut, so that the server neither terminates nor jams the thread."""
    calls = [scene.call("pay", amount=n) for n in range(1, 31)]
    scene.script({"calls": calls}, "Thirty.")
    thread = await scene.threads.create("single", principal="ü" * 1500)
    run_id, approvals = await scene.paused(thread)
    assert len(approvals) == 30
    for approval in reversed(approvals):
        await thread.decide(approval.id, True, by="x" * 3000)
    assert (await scene.ended(thread, run_id)).answer == "Thirty."
    assert sorted(payload["amount"] for payload in await scene.payloads("pay")) == list(range(1, 31))
    assert (await thread.view()).principal == "ü" * 1500
    await scene.keep_history(thread, "thirty-tools")


@pytest.mark.parametrize(
    "payload",
    [
        Payload(metadata={"encoding": b"json/plain"}, data=b"{not json"),
        Payload(metadata={"encoding": b"json/unheard-of"}, data=b"{}"),
        Payload(metadata={"encoding": b"json/plain", "__temporal_external_storage_reference": b"true"}, data=b"{}"),
        Payload(metadata={"encoding": b"json/external-storage-reference"}, data=b"{}"),
        Payload(data=b"no metadata"),
    ],
    ids=["no-json", "unknown-encoding", "marked-as-reference", "reference", "no-metadata"],
)
async def test_a_payload_that_nobody_can_read_does_not_stop_the_thread(
    scene: Scene, client: Client, payload: Payload
) -> None:
    scene.script("Still here.", words="after")
    thread = await scene.thread()
    await client.workflow_service.signal_workflow_execution(
        SignalWorkflowExecutionRequest(
            namespace=client.namespace,
            workflow_execution=WorkflowExecution(workflow_id=f"thread-{thread.id}"),
            signal_name="run",
            input=Payloads(payloads=[payload]),
            request_id=str(uuid.uuid4()),
        ),
        retry=True,
    )
    assert (await scene.answered(thread, "after")).answer == "Still here."
    history = await client.get_workflow_handle(f"thread-{thread.id}").fetch_history()
    assert EventType.EVENT_TYPE_WORKFLOW_TASK_FAILED not in {event.event_type for event in history.events}
