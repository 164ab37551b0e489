"""A collection in the middle of a workflow's task does not bring anything into the workflow."""

from __future__ import annotations

import asyncio
import gc
import uuid
from typing import Any

import pytest
from google.genai import Client as Gemini
from temporalio import workflow
from temporalio.client import Client
from temporalio.worker import UnsandboxedWorkflowRunner, Worker, WorkflowRunner
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions

from agentvisor.host.finalizers import keep_finalizers_off_workflows

RUNNERS = {
    "sandboxed": SandboxedWorkflowRunner(restrictions=SandboxRestrictions.default.with_passthrough_all_modules()),
    "unsandboxed": UnsandboxedWorkflowRunner(),
}
seen: list[Any] = []


class LeftBehind:
    """Reachable only from itself: nothing but the collector ends it. Looks for a loop then, as Google's client does."""

    def __init__(self) -> None:
        self.itself = self
        self.client = Gemini(api_key="none").aio

    def __del__(self) -> None:
        seen.append(asyncio._get_running_loop())


@workflow.defn
class Collecting:
    @workflow.run
    async def run(self) -> int:
        """How many tasks a collection adds to those of the workflow."""
        before = len(asyncio.all_tasks())
        gc.collect()
        return len(asyncio.all_tasks()) - before


@pytest.mark.parametrize("runner", RUNNERS.values(), ids=RUNNERS.keys())
async def test_what_is_finalized_in_a_workflow_s_task_finds_no_loop(
    client: Client, task_queue: str, runner: WorkflowRunner
) -> None:
    keep_finalizers_off_workflows()
    keep_finalizers_off_workflows()
    seen.clear()
    async with Worker(client, task_queue=task_queue, workflows=[Collecting], workflow_runner=runner):
        gc.disable()
        try:
            LeftBehind()
            added = await client.execute_workflow(Collecting.run, id=str(uuid.uuid4()), task_queue=task_queue)
        finally:
            gc.enable()
    assert (added, seen) == (0, [None])


async def test_elsewhere_it_finds_the_loop_there_is() -> None:
    keep_finalizers_off_workflows()
    gc.collect()
    seen.clear()
    LeftBehind()
    gc.collect()
    await asyncio.sleep(0)  # Google's client closes its connections
    assert seen == [asyncio.get_running_loop()]
