"""Workflow code of today replays what workflow code of every release did. Stored histories stay for ever.

`RECORD_HISTORIES=1 pytest tests/threads` stores those of tests that name one and have none stored yet.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from temporalio.client import WorkflowHistory
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.worker import Replayer
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner
from temporalio.workflow import NondeterminismError

from agentvisor.host.workflow_runner import UpdatesLast
from workflows.thread import ThreadWorkflow


def replayer() -> Replayer:
    """As a worker runs threads, in the sandbox."""
    runner = UpdatesLast(SandboxedWorkflowRunner())
    return Replayer(workflows=[ThreadWorkflow], data_converter=pydantic_data_converter, workflow_runner=runner)


HISTORIES = sorted((Path(__file__).parent / "histories").glob("*.json"))

WANTED = {
    "answered",
    "approved-with-edit",
    "cancelled-in-a-leg",
    "cancelled-while-waiting",
    "closed",
    "decided-in-the-task-of-the-pause",
    "continued-as-new-while-waiting",
    "denied",
    "expired",
    "loop",
    "malformed",
    "many-answers-in-one-turn",
    "parallel",
    "sequence-with-temp-state",
    "thirty-tools",
    "transfer",
    "unknown-outcome",
}


@pytest.mark.parametrize("path", HISTORIES, ids=lambda path: path.stem)
async def test_a_stored_history_replays(path: Path) -> None:
    """In Temporal's sandbox, with the plain pydantic converter, and updates last as in a worker."""
    history = WorkflowHistory.from_json(f"thread-{path.stem}", path.read_text())
    await replayer().replay_workflow(history)


async def test_a_decision_in_the_very_task_of_its_pause_replays_only_with_updates_last() -> None:
    """A query had shown the pause before the task was done; the SDK alone takes the decision first."""
    path = Path(__file__).parent / "histories" / "decided-in-the-task-of-the-pause.json"
    history = WorkflowHistory.from_json(f"thread-{path.stem}", path.read_text())
    alone = Replayer(workflows=[ThreadWorkflow], data_converter=pydantic_data_converter)
    with pytest.raises(NondeterminismError):
        await alone.replay_workflow(history)
    await replayer().replay_workflow(history)


def test_every_way_of_a_thread_has_a_stored_history() -> None:
    """Nothing was removed."""
    assert {path.stem for path in HISTORIES} >= WANTED
