"""History that an operator takes back, and a Store that is away: the truth stays the same."""

from __future__ import annotations

import asyncio
import uuid

import pytest
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import EventType, ResetReapplyExcludeType
from temporalio.api.workflowservice.v1 import ResetActivityRequest, ResetWorkflowExecutionRequest

from tests.faults.case import END, Case, World
from tests.faults.host import Host
from tests.faults.seams import SEAMS
from tests.faults.strike import locked


async def _at(world: World, seam: str, parallel: int) -> Case:
    case = Case(world, SEAMS[seam].tool, parallel)
    await SEAMS[seam].reach(case)
    return case


@pytest.mark.parametrize("parallel", [1, 2])
async def test_a_call_whose_activity_is_reset_is_not_made_again(world: World, parallel: int) -> None:
    """`temporal activity reset` while the tool is at work, after its effect: nobody knows, and a person is asked."""
    case = await _at(world, "in-a-write-after-its-effect", parallel)
    for slot in case.slots:
        await _reset_activity(case, f"call-1-{slot}.1")
    await case.to_its_end()
    await case.release()
    assert case.unknown == dict.fromkeys(case.slots, 1)
    await case.check()
    await case.goes_on()


async def test_a_leg_whose_activity_is_reset_repeats_one_model_turn(world: World) -> None:
    """`temporal activity reset` during the second model call: the first one, and the read calls, come no more."""
    case = await _at(world, "after-a-model-turn", 2)
    await _reset_activity(case, "1")
    await case.described(lambda _: len(case.requests()) > 2)
    await case.release()
    await case.to_its_end()
    assert [await case.effects(slot) for slot in case.slots] == [1, 1]
    await case.check()
    await case.goes_on()


@pytest.mark.parametrize("parallel", [1, 2])
async def test_a_reset_of_the_workflow_while_tools_are_at_work_repeats_nothing(world: World, parallel: int) -> None:
    """`temporal workflow reset` to before the calls, which have had their effects and have not ended."""
    case = await _at(world, "in-a-write-after-its-effect", parallel)
    await _reset_workflow(case, before=EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED, number=2)
    await case.to_its_end()
    await case.release()
    assert case.unknown == dict.fromkeys(case.slots, 1)
    await case.check()
    await case.goes_on()


@pytest.mark.parametrize("parallel", [1, 2])
async def test_a_call_that_is_approved_again_after_a_reset_is_not_made_again(world: World, parallel: int) -> None:
    """`temporal workflow reset` to before the decision, which is forgotten; the Store is not."""
    case = Case(world, "pay", parallel)
    await case.begin()
    await case.paused()
    await case.approve()
    await case.to_its_end()
    assert [await case.effects(slot) for slot in case.slots] == [1] * parallel
    assert not case.unknown
    await _reset_workflow(case, before=EventType.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED, number=1)
    await case.to_its_end()
    assert case.unknown == dict.fromkeys(case.slots, 1)
    await case.check()
    await case.goes_on()


@pytest.mark.timeout(180)
async def test_a_store_that_is_away_delays_writes_and_hides_no_outcome(world: World, host: Host) -> None:
    """It goes away while two calls are at work, and another two are approved: these do not begin, and reads go on."""
    at_work, approved, reads = Case(world, "note", 2), Case(world, "pay", 2), Case(world, "look", 2)
    await at_work.hold()
    await asyncio.gather(at_work.begin(size=200_000), approved.begin())
    await asyncio.gather(at_work.reported(), approved.paused())
    with locked(host.store):
        await at_work.release()
        await approved.approve()
        await reads.begin()
        await reads.to_its_end()
        await at_work.reported(at="left")
        await approved.happened(EventType.EVENT_TYPE_ACTIVITY_TASK_COMPLETED, count=2)
        assert (await approved.thread.run_view(approved.run_id)).status == "running"
        assert [await approved.effects(slot) for slot in approved.slots] == [0, 0]
    await asyncio.gather(at_work.to_its_end(), approved.to_its_end())
    assert not approved.unknown
    for case in (at_work, approved, reads):
        assert case.view.answer == END
        await case.check()
        await case.goes_on()


# ---- what an operator does -------------------------------------------------------------------------------------------


async def _reset_activity(case: Case, activity_id: str) -> None:
    """`temporal activity reset`."""
    request = ResetActivityRequest(
        namespace=case.world.client.namespace,
        execution=WorkflowExecution(workflow_id=f"thread-{case.thread.id}"),
        id=activity_id,
    )
    await case.world.client.workflow_service.reset_activity(request, retry=True)


async def _reset_workflow(case: Case, *, before: EventType.ValueType, number: int) -> None:
    """`temporal workflow reset` to the task before the event of this number and type; updates are not kept."""
    handle = case.world.client.get_workflow_handle(f"thread-{case.thread.id}")
    events = list((await handle.fetch_history()).events)
    event = [each for each in events if each.event_type == before][number - 1]
    completed = EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED
    task = max(each.event_id for each in events if each.event_type == completed and each.event_id < event.event_id)
    request = ResetWorkflowExecutionRequest(
        namespace=case.world.client.namespace,
        workflow_execution=WorkflowExecution(workflow_id=f"thread-{case.thread.id}"),
        reason="a test",
        workflow_task_finish_event_id=task,
        request_id=str(uuid.uuid4()),
        reset_reapply_exclude_types=[ResetReapplyExcludeType.RESET_REAPPLY_EXCLUDE_TYPE_UPDATE],
    )
    await case.world.client.workflow_service.reset_workflow_execution(request, retry=True)
