"""Workflow code of today replays what workflow code of every release did. Stored histories stay for ever.

`RECORD_HISTORIES=1 pytest tests/threads` stores those of tests that name one and have none stored yet.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from temporalio.client import WorkflowHistory
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.worker import Replayer

from workflows.thread import ThreadWorkflow

HISTORIES = sorted((Path(__file__).parent / "histories").glob("*.json"))

WANTED = {
    "answered",
    "approved-with-edit",
    "cancelled-in-a-leg",
    "cancelled-while-waiting",
    "closed",
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
    """In Temporal's sandbox, with the plain pydantic converter."""
    history = WorkflowHistory.from_json(f"thread-{path.stem}", path.read_text())
    await Replayer(workflows=[ThreadWorkflow], data_converter=pydantic_data_converter).replay_workflow(history)


def test_every_way_of_a_thread_has_a_stored_history() -> None:
    """Nothing was removed."""
    assert {path.stem for path in HISTORIES} >= WANTED
