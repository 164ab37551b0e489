"""What happened before what is asked: updates of a workflow task are taken after the task's other news.

Temporal's SDK hands a workflow the news of one task in one order when it happens, and may hand them over in another one
when the task is replayed: a query that is answered between two tasks makes the workflow take in what is in history by
then, and an update comes later, alone; on replay both come at once, and the SDK runs updates first. A decision that
followed such a query would leave a history that nobody can replay, and a thread that is stuck for ever. This runner
always takes updates last, in a step of their own, so that both orders are the same one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from temporalio.bridge.proto.workflow_activation import WorkflowActivation
from temporalio.bridge.proto.workflow_completion import WorkflowActivationCompletion
from temporalio.worker import WorkflowInstance, WorkflowInstanceDetails, WorkflowRunner
from temporalio.workflow import Info

from workflows.held_updates import held_updates

_LAST_COMMANDS = frozenset(
    {
        "complete_workflow_execution",
        "continue_as_new_workflow_execution",
        "fail_workflow_execution",
        "cancel_workflow_execution",
    }
)


class UpdatesLast(WorkflowRunner):
    """Runs workflows as `runner` does, except for the order within a task. Use it in workers and in replays alike."""

    def __init__(self, runner: WorkflowRunner) -> None:
        self._runner = runner

    def prepare_workflow(self, defn: Any) -> None:
        self._runner.prepare_workflow(defn)

    def create_instance(self, det: WorkflowInstanceDetails) -> WorkflowInstance:
        return _Instance(self._runner.create_instance(det))

    def set_worker_level_failure_exception_types(self, types: Sequence[type[BaseException]]) -> None:
        self._runner.set_worker_level_failure_exception_types(types)


class _Instance(WorkflowInstance):
    def __init__(self, instance: WorkflowInstance) -> None:
        self._instance = instance

    def activate(self, act: WorkflowActivation) -> WorkflowActivationCompletion:
        updates = [job for job in act.jobs if job.HasField("do_update")]
        if not updates or len(updates) == len(act.jobs):
            return self._instance.activate(act)
        news = [job for job in act.jobs if not job.HasField("do_update")]
        with held_updates(act.run_id):
            first = self._instance.activate(_with_jobs(act, news))
        if first.HasField("failed") or _ends(first):
            return first
        second = self._instance.activate(_with_jobs(act, updates))
        if second.HasField("failed"):
            return second
        first.MergeFrom(second)
        return first

    def get_serialization_context(self, command_info: Any) -> Any:
        return self._instance.get_serialization_context(command_info)

    def get_external_store_context(self, command_info: Any) -> Any:
        return self._instance.get_external_store_context(command_info)

    def get_info(self) -> Info:
        return self._instance.get_info()

    def get_thread_id(self) -> int | None:
        return self._instance.get_thread_id()


def _with_jobs(act: WorkflowActivation, jobs: Sequence[Any]) -> WorkflowActivation:
    part = WorkflowActivation()
    part.CopyFrom(act)
    del part.jobs[:]
    part.jobs.extend(jobs)
    return part


def _ends(completion: WorkflowActivationCompletion) -> bool:
    commands = completion.successful.commands
    return any(command.WhichOneof("variant") in _LAST_COMMANDS for command in commands)
