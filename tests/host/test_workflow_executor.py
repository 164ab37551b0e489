"""Short tasks of workflows run in the worker's event loop, all others in threads."""

from __future__ import annotations

import asyncio
import contextvars
import threading
import uuid

import pytest
from temporalio import workflow
from temporalio.client import Client
from temporalio.worker import UnsandboxedWorkflowRunner, Worker, WorkflowRunner
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions

from agentvisor.host.workflow_executor import SHORT, WorkflowExecutor

RUNNERS = {
    "sandboxed": SandboxedWorkflowRunner(restrictions=SandboxRestrictions.default.with_passthrough_all_modules()),
    "unsandboxed": UnsandboxedWorkflowRunner(),
}
around: contextvars.ContextVar[str] = contextvars.ContextVar("around", default="nothing")
ran_in: dict[str, tuple[int, str]] = {}


def _note(name: str) -> None:
    ran_in[name] = threading.get_ident(), around.get()


@workflow.defn
class Noting:
    """Notes in which thread each of its tasks ran. Ends when it is told so."""

    def __init__(self) -> None:
        _note("begun")
        self._told: list[str] = []

    @workflow.run
    async def run(self) -> list[str]:
        await workflow.wait_condition(lambda: "end" in self._told)
        return [text[:4] for text in self._told]

    @workflow.signal
    async def tell(self, text: str) -> None:
        await asyncio.create_task(asyncio.sleep(0))
        _note(text[:4])
        self._told.append(text)

    @workflow.update
    async def ask(self, text: str) -> str:
        _note(text)
        return text


@pytest.mark.parametrize("runner", RUNNERS.values(), ids=RUNNERS.keys())
async def test_the_news_of_a_workflow_that_is_known_are_taken_in_the_loop_and_all_else_in_threads(
    client: Client, task_queue: str, runner: WorkflowRunner
) -> None:
    ran_in.clear()
    around.set("the worker's")
    executor = WorkflowExecutor()
    async with Worker(
        client,
        task_queue=task_queue,
        workflows=[Noting],
        workflow_runner=runner,
        workflow_task_executor=executor,
    ):
        handle = await client.start_workflow(Noting.run, id=str(uuid.uuid4()), task_queue=task_queue)
        assert await handle.execute_update(Noting.ask, "first") == "first"
        assert await handle.execute_update(Noting.ask, "next") == "next"
        await handle.signal(Noting.tell, "tell")
        await handle.signal(Noting.tell, "huge" + "x" * SHORT)
        await handle.signal(Noting.tell, "end")
        assert await handle.result() == ["tell", "huge", "end"]
    here = threading.get_ident()
    assert {name for name, (thread, _) in ran_in.items() if thread == here} >= {"next"}
    assert {name for name, (thread, _) in ran_in.items() if thread != here} >= {"begun", "huge"}
    assert {context for _, context in ran_in.values()} == {"nothing"}
    assert asyncio.get_running_loop().is_running()


@workflow.defn
class Failing:
    """The task in which it is told to end fails, once."""

    has_failed = False

    def __init__(self) -> None:
        self._ends = False

    @workflow.run
    async def run(self) -> str:
        await workflow.wait_condition(lambda: self._ends)
        return "ended"

    @workflow.update
    async def greet(self) -> None:
        """Nothing but a task of its own."""

    @workflow.signal
    def end(self) -> None:
        if not Failing.has_failed:
            Failing.has_failed = True
            raise RuntimeError("a task that fails")
        self._ends = True


async def test_a_short_task_that_fails_is_tried_again(client: Client, task_queue: str) -> None:
    async with Worker(
        client,
        task_queue=task_queue,
        workflows=[Failing],
        workflow_runner=UnsandboxedWorkflowRunner(),
        workflow_task_executor=WorkflowExecutor(),
    ):
        handle = await client.start_workflow(Failing.run, id=str(uuid.uuid4()), task_queue=task_queue)
        await handle.execute_update(Failing.greet)
        await handle.signal(Failing.end)
        assert await handle.result() == "ended"
    assert Failing.has_failed
