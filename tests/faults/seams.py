"""The moments of a run at which a process is killed: how a run comes there, and what becomes of its calls."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from temporalio.api.enums.v1 import EventType, PendingActivityState
from temporalio.client import WorkflowExecutionDescription

from tests.faults.case import END, NEXT, OPTIONS, Case

Act = Callable[[Case], Awaitable[None]]


async def _nothing(_case: Case) -> None:
    pass


def _known(_case: Case) -> Mapping[int, int]:
    return {}


@dataclass(frozen=True)
class Seam:
    """A moment. `reach` brings a case there and holds it.

    What must happen at the very last, while nothing else moves any more, happens in three phases: the guest of legs
    stands still; the Store is locked, too; the worker stands still, too.
    """

    reach: Act
    tool: str = ""
    leg_guest_stopped: Act = _nothing
    store_locked: Act = _nothing
    worker_stopped: Act = _nothing
    afterwards: Act = _nothing
    """What is true of this seam after the run, beyond the promise."""
    unknown_by_worker: Callable[[Case], Mapping[int, int]] = _known
    """The calls whose outcome nobody knows when the worker was killed, by slot, and how many effects they had."""
    unknown_by_guest: Callable[[Case], Mapping[int, int]] = _known

    @property
    def parallel(self) -> tuple[int, ...]:
        return (1, 2, 3) if self.tool else (1,)


def held(case: Case) -> list[int]:
    """The slots that are struck: of three calls the second one is done before."""
    return [slot for slot in case.slots if (case.parallel, slot) != (3, 2)]


def _without_effect(case: Case) -> Mapping[int, int]:
    return dict.fromkeys(held(case), 0)


def _with_effect(case: Case) -> Mapping[int, int]:
    return dict.fromkeys(held(case), 1)


def _all_without_effect(case: Case) -> Mapping[int, int]:
    return dict.fromkeys(case.slots, 0)


# ---- legs ------------------------------------------------------------------------------------------------------------


async def _in_a_model_call(case: Case) -> None:
    await case.begin(last={"text": END, "hold": case.mark})
    await case.model_held()


async def _after_a_model_turn(case: Case) -> None:
    await case.begin(last={"text": END, "hold": case.mark})
    await case.model_held()
    await case.described(lambda seen: _progress(seen) >= 3)  # the message, the calls, their responses


async def _the_turn_before_did_not_come_again(case: Case) -> None:
    assert [await case.effects(slot) for slot in case.slots] == [1] * case.parallel
    assert len(case.heard) == 3


async def _in_a_tool_of_the_turn(case: Case) -> None:
    await case.hold(*held(case))
    await case.begin()
    await case.reported(*held(case))
    await case.described(lambda seen: _progress(seen) >= 2)  # the message and the calls


async def _made_again(case: Case) -> None:
    """Each struck call has a second attempt; that keys are the same, every case asserts."""
    assert [await case.effects(slot) for slot in held(case)] == [2] * len(held(case))


def _progress(seen: WorkflowExecutionDescription) -> int:
    """How many events the leg has told."""
    told = [activity.heartbeat_details.payloads for activity in seen.raw_description.pending_activities]
    return max((sum(b'"id"' in payload.data for payload in payloads) for payloads in told), default=0)


# ---- calls -----------------------------------------------------------------------------------------------------------


async def _before_the_effect(case: Case) -> None:
    await _in_a_write(case, at="entered")


async def _after_the_effect(case: Case) -> None:
    await _in_a_write(case)


async def _in_a_write(case: Case, *, at: str = "") -> None:
    await case.hold(*held(case), at=at)
    await case.begin()
    await case.reported(*held(case), at=at)
    await case.happened(EventType.EVENT_TYPE_ACTIVITY_TASK_COMPLETED, count=1 + case.parallel - len(held(case)))


async def _the_tool_answers(case: Case) -> None:
    """The worker that stands still does not hear it."""
    await case.release()
    await case.reported(*held(case), at="left")


async def _in_an_idempotent_call(case: Case) -> None:
    await case.hold(*held(case))
    await case.begin()
    await case.paused()
    await case.approve()
    await case.reported()


# ---- approvals -------------------------------------------------------------------------------------------------------


async def _waiting(case: Case) -> None:
    await case.begin()
    await case.paused()


async def _one_is_done(case: Case) -> None:
    await _waiting(case)
    await case.approve(1)
    await case.happened(EventType.EVENT_TYPE_ACTIVITY_TASK_COMPLETED, count=2)


async def _edits_are_checked(case: Case) -> None:
    await _waiting(case)
    looked = await case.hold_guards()
    case.decide(amount=7)
    await case.reported(at="guard", count=looked + 1)


async def _decided_and_not_let_in(case: Case) -> None:
    """Each call is spent, and in the guest; its guard holds it before its body."""
    await _waiting(case)
    looked = await case.hold_guards()
    await case.approve()
    await case.reported(at="guard", count=looked + 1)


async def _a_decision_comes(case: Case) -> None:
    case.decide()
    await case.described(lambda seen: seen.raw_description.HasField("pending_workflow_task"))


async def _the_call_is_spent(case: Case) -> None:
    """`run_tool` has begun; the Store does not say whether the call may be made."""
    await case.approve()
    await case.described(lambda seen: _at_work(seen, "run_tool") == case.parallel)


async def _the_next_leg_begins(case: Case) -> None:
    await case.approve()
    await case.happened(EventType.EVENT_TYPE_ACTIVITY_TASK_COMPLETED, count=1 + case.parallel)
    await case.described(lambda seen: _at_work(seen, "run_agent"))


def _at_work(seen: WorkflowExecutionDescription, activity: str) -> int:
    started = PendingActivityState.PENDING_ACTIVITY_STATE_STARTED
    pending = seen.raw_description.pending_activities
    return sum(one.activity_type.name == activity and one.state == started for one in pending)


# ---- continue-as-new -------------------------------------------------------------------------------------------------


async def _renewed(case: Case) -> None:
    await _waiting(case)
    await case.thread.renew()
    await _is_another_execution(case)


async def _renew(case: Case) -> None:
    await case.thread.renew()


async def _is_another_execution(case: Case) -> None:
    await case.described(lambda seen: seen.run_id != seen.raw_description.workflow_execution_info.first_run_id)


async def _before_others(case: Case) -> None:
    once = OPTIONS.model_copy(update={"runs_per_execution": 1})
    await case.begin(last={"text": END, "hold": case.mark}, options=once)
    case.queued = [await case.say("next") for _ in range(2)]
    await case.model_held()


async def _the_others_came_after_it(case: Case) -> None:
    views = [await case.thread.wait(run, until="ended", timeout=60) for run in case.queued]
    assert [(view.status, view.answer) for view in views] == [("success", NEXT)] * 2
    assert [case.view.number, *(view.number for view in views)] == [1, 2, 3]
    await _is_another_execution(case)


SEAMS = {
    "during-a-model-call": Seam(_in_a_model_call),
    "after-a-model-turn": Seam(_after_a_model_turn, "look", afterwards=_the_turn_before_did_not_come_again),
    "in-a-read-tool": Seam(_in_a_tool_of_the_turn, "look", afterwards=_made_again),
    "in-an-idempotent-tool": Seam(_in_a_tool_of_the_turn, "book", afterwards=_made_again),
    "in-an-approved-idempotent-tool": Seam(_in_an_idempotent_call, "reserve", afterwards=_made_again),
    "in-a-write-before-its-effect": Seam(
        _before_the_effect, "note", unknown_by_worker=_without_effect, unknown_by_guest=_without_effect
    ),
    "in-a-write-after-its-effect": Seam(
        _after_the_effect, "note", unknown_by_worker=_with_effect, unknown_by_guest=_with_effect
    ),
    # What a guest answered before it died, a worker that lives hears afterwards.
    "before-the-result-is-stored": Seam(
        _after_the_effect, "note", worker_stopped=_the_tool_answers, unknown_by_worker=_with_effect
    ),
    "waiting-for-approvals": Seam(_waiting, "pay"),
    "one-call-done-others-waiting": Seam(_one_is_done, "pay"),
    "while-edits-are-checked": Seam(_edits_are_checked, "pay"),
    "when-a-decision-comes": Seam(_waiting, "pay", worker_stopped=_a_decision_comes),
    # A guest that dies before a call is sent to it is replaced first.
    "while-a-call-is-spent": Seam(
        _waiting, "pay", store_locked=_the_call_is_spent, unknown_by_worker=_all_without_effect
    ),
    "between-decide-and-the-tool": Seam(
        _decided_and_not_let_in,
        "pay",
        unknown_by_worker=_all_without_effect,
    ),
    "before-the-next-leg": Seam(_waiting, "pay", leg_guest_stopped=_the_next_leg_begins),
    "before-continue-as-new": Seam(_waiting, "pay", worker_stopped=_renew, afterwards=_is_another_execution),
    "after-continue-as-new": Seam(_renewed, "pay"),
    "between-runs-that-continue-as-new": Seam(_before_others, afterwards=_the_others_came_after_it),
}
"""By name. A turn makes one, two or three calls where a seam has a tool."""
