"""Single calls: only the thread itself gets them made, and what happens to them is told as it was."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncGenerator
from datetime import timedelta
from typing import Any

import pytest
import pytest_asyncio
from temporalio import workflow
from temporalio.client import Client, WorkflowFailureError, WorkflowHandle
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError, ApplicationError
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from agent_adapter.approval.digest import call_digest
from tests.activities.conftest import Hosted
from tests.fixtures.gemini import call as model_call
from workflows.messages import (
    CheckArgs,
    CheckedArgs,
    Done,
    Grant,
    GrantView,
    Message,
    NeedsApproval,
    NotStarted,
    Probed,
    ProbeTool,
    RunTool,
    ToolCall,
    ToolFailed,
    ToolOutcome,
    ToolResult,
)

WHO: dict[str, Any] = {"agent": "shop", "principal": "ana", "run_id": "r1"}
RESULTS: dict[str, type[Message]] = {"run_tool": ToolResult, "check_args": CheckedArgs, "probe_tool": Probed}


class _Caller:
    """A workflow that asks for one activity on the queue of a real worker, and says of its grant what it is told to."""

    def __init__(self, plan: dict[str, Any]) -> None:
        self._plan = plan

    async def call(self) -> Any:
        plan = self._plan
        return await workflow.execute_activity(
            plan["activity"],
            plan["input"],
            task_queue=plan["task_queue"],
            activity_id=plan.get("activity_id", "call-1"),
            result_type=RESULTS[plan["activity"]],
            start_to_close_timeout=timedelta(seconds=60),
            heartbeat_timeout=timedelta(seconds=10),
            retry_policy=RetryPolicy(maximum_attempts=plan.get("attempts", 1)),
            cancellation_type=workflow.ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
        )

    def told(self) -> GrantView:
        view = self._plan.get("grant")
        if view is None:
            raise ApplicationError("no such token", type="token-refused")
        return GrantView.model_validate(view)


@workflow.defn(name="ThreadWorkflow")
class Pretender(_Caller):
    """Calls itself a thread; whoever may run such a worker owns the namespace."""

    @workflow.init
    def __init__(self, plan: dict[str, Any]) -> None:
        super().__init__(plan)

    @workflow.run
    async def run(self, plan: dict[str, Any]) -> Any:
        return await self.call()

    @workflow.query
    def grant(self, request: Any) -> GrantView:
        return self.told()

    @workflow.query
    def session(self, request: Any) -> dict[str, Any]:
        start = {"count": 0, "head": ""}
        return {"base": start, "end": start, "head": start, "state": {"value": "before"}}


@workflow.defn
class Stranger(_Caller):
    @workflow.init
    def __init__(self, plan: dict[str, Any]) -> None:
        super().__init__(plan)

    @workflow.run
    async def run(self, plan: dict[str, Any]) -> Any:
        return await self.call()


class Caller:
    """Starts such workflows."""

    def __init__(self, client: Client, hosted: Hosted, queue: str) -> None:
        self._client, self._hosted, self._queue = client, hosted, queue
        self.thread_id = str(uuid.uuid4())

    async def start(
        self,
        request: Message,
        activity: str = "run_tool",
        *,
        kind: str = "ThreadWorkflow",
        workflow_id: str = "",
        **plan: Any,
    ) -> WorkflowHandle[Any, Any]:
        plan |= {
            "activity": activity,
            "input": request.model_dump(mode="json"),
            "task_queue": self._hosted.settings.task_queue,
        }
        id_ = workflow_id or f"thread-{self.thread_id}"
        return await self._client.start_workflow(
            kind, plan, id=id_, task_queue=self._queue, result_type=RESULTS[activity]
        )

    async def outcome(self, request: Message, **how: Any) -> ToolOutcome:
        return (await (await self.start(request, **how)).result()).outcome

    async def failure(self, request: Message, **how: Any) -> ApplicationError:
        with pytest.raises(WorkflowFailureError) as failed:
            await (await self.start(request, **how)).result()
        assert isinstance(failed.value.cause, ActivityError)
        assert isinstance(failed.value.cause.cause, ApplicationError)
        return failed.value.cause.cause

    async def fingerprint(self, tool: str, args: dict[str, Any]) -> str:
        request = CheckArgs(**WHO, call=ToolCall(key="k", call_id="c", tool=tool, args=args))
        checked = await (await self.start(request, "check_args")).result()
        assert checked.code is None, checked
        return checked.fingerprint

    async def request(self, tool: str, args: dict[str, Any], *, key: str = "k1") -> RunTool:
        """What a thread would ask for a call that needs no approval."""
        fingerprint = await self.fingerprint(tool, args)
        call = ToolCall(key=key, call_id="c1", tool=tool, args=args, fingerprint=fingerprint)
        return RunTool(**WHO, call=call)

    async def granted(self, tool: str, args: dict[str, Any], *, digest: str = "") -> RunTool:
        """What a thread would ask for a call that was approved."""
        request = await self.request(tool, args)
        grant = Grant(token="t1", approval_id="ap-1-1", digest=digest or self.digest(request))
        return request.model_copy(update={"grant": grant})

    def digest(self, request: RunTool) -> str:
        call = request.call
        return call_digest(
            thread=self.thread_id,
            run=request.run_id,
            call=call.key,
            tool=call.tool,
            fingerprint=call.fingerprint,
            arguments=call.args,
        )


def spent(request: RunTool, **other: Any) -> dict[str, Any]:
    """What the thread says of the request's token, if nothing else is said here."""
    assert request.grant is not None
    return {"approval_id": "ap-1-1", "digest": request.grant.digest, "activity_id": "call-1", **other}


@pytest_asyncio.fixture
async def caller(client: Client, hosted: Hosted) -> AsyncGenerator[Caller]:
    queue = f"caller-{uuid.uuid4()}"
    async with Worker(
        client, task_queue=queue, workflows=[Pretender, Stranger], workflow_runner=UnsandboxedWorkflowRunner()
    ):
        yield Caller(client, hosted, queue)


# ---- who may call --------------------------------------------------------------------------------------------------


async def test_a_call_of_its_thread_is_made(caller: Caller, hosted: Hosted) -> None:
    outcome = await caller.outcome(await caller.request("pay", {"amount": 101}))
    assert isinstance(outcome, Done)
    assert outcome.result["paid"] == 101
    assert (await hosted.effects.all("pay")).count(101) == 1


async def test_a_call_under_a_token_spent_on_this_activity_is_made(caller: Caller, hosted: Hosted) -> None:
    request = await caller.granted("invoice", {"amount": 102})
    assert isinstance(await caller.outcome(request, grant=spent(request)), Done)
    assert (await hosted.effects.all("invoice")).count(102) == 1


async def test_a_call_that_needs_approval_is_not_made_without(caller: Caller, hosted: Hosted) -> None:
    outcome = await caller.outcome(await caller.request("invoice", {"amount": 103}))
    assert isinstance(outcome, NeedsApproval)
    assert outcome.args == {"amount": 103}
    assert 103 not in await hosted.effects.all("invoice")


@pytest.mark.parametrize("how", [{"kind": "Stranger"}, {"workflow_id": "thread-"}, {"workflow_id": "other"}])
async def test_a_workflow_that_is_not_the_thread_is_refused(
    caller: Caller, hosted: Hosted, how: dict[str, Any]
) -> None:
    request = await caller.request("pay", {"amount": 104})
    failure = await caller.failure(request, **how)
    assert (failure.type, failure.non_retryable) == ("token-refused", True)
    assert 104 not in await hosted.effects.all("pay")


@pytest.mark.parametrize("activity", ["check_args", "probe_tool"])
async def test_a_stranger_may_not_even_ask(caller: Caller, activity: str) -> None:
    call = ToolCall(key="k", call_id="c", tool="pay", args={"amount": 1})
    request = CheckArgs(**WHO, call=call) if activity == "check_args" else ProbeTool(**WHO, call=call)
    failure = await caller.failure(request, activity=activity, kind="Stranger")
    assert failure.type == "token-refused"


async def test_arguments_that_were_not_allowed_are_refused(caller: Caller, hosted: Hosted) -> None:
    request = await caller.granted("invoice", {"amount": 1})
    call = request.call
    for forged in (
        request.model_copy(update={"call": call.model_copy(update={"args": {"amount": 105}})}),
        request.model_copy(update={"call": call.model_copy(update={"args": {"amount": 2**60}})}),
        request.model_copy(update={"call": call.model_copy(update={"tool": "pay"})}),
        request.model_copy(update={"call": call.model_copy(update={"key": "k2"})}),
        request.model_copy(update={"call": call.model_copy(update={"fingerprint": ""})}),
        request.model_copy(update={"run_id": "r2"}),
    ):
        failure = await caller.failure(forged, grant=spent(request))
        assert failure.type == "token-refused"


async def test_a_token_of_another_thread_is_refused(caller: Caller, hosted: Hosted) -> None:
    request = await caller.granted("invoice", {"amount": 105})
    caller.thread_id = str(uuid.uuid4())
    assert (await caller.failure(request, grant=spent(request))).type == "token-refused"
    assert 105 not in await hosted.effects.all("invoice")


@pytest.mark.parametrize(
    "view",
    [
        None,
        {"activity_id": "call-2"},
        {"activity_id": None},
        {"approval_id": "ap-1-2"},
        {"digest": "0" * 64},
    ],
)
async def test_a_token_that_was_not_spent_on_this_very_activity_is_refused(
    caller: Caller, hosted: Hosted, view: dict[str, Any] | None
) -> None:
    request = await caller.granted("invoice", {"amount": 106})
    failure = await caller.failure(request, grant=None if view is None else spent(request, **view))
    assert (failure.type, failure.non_retryable) == ("token-refused", True)
    assert 106 not in await hosted.effects.all("invoice")


async def test_a_token_of_another_call_is_refused(caller: Caller, hosted: Hosted) -> None:
    request = await caller.granted("invoice", {"amount": 107}, digest="0" * 64)
    assert (await caller.failure(request, grant=spent(request, digest="0" * 64))).type == "token-refused"
    assert 107 not in await hosted.effects.all("invoice")


async def test_the_grant_of_a_real_thread_is_of_no_use_to_anybody_else(caller: Caller, hosted: Hosted) -> None:
    hosted.gemini.script([{"calls": [model_call("invoice", amount=108)]}, "Sent."], user="steal it")
    thread = await hosted.threads.create("shop")
    run_id = await thread.run("steal it")
    waiting = await hosted.ended(thread, run_id)
    await hosted.effects.hold("invoice")
    await thread.decide(waiting.interrupts[0].id, True, by="ana")
    await hosted.effects.wait("invoice", count=await hosted.effects.count("invoice") + 1)
    stolen = await _scheduled_call(thread.id, caller)
    failure = await caller.failure(stolen, kind="Stranger", workflow_id=f"thief-{uuid.uuid4()}", activity_id="call-1")
    assert failure.type == "token-refused"
    await hosted.effects.release("invoice")
    assert (await hosted.ended(thread, run_id)).status == "success"
    assert (await hosted.effects.all("invoice")).count(108) == 1


async def _scheduled_call(thread_id: str, caller: Caller) -> RunTool:
    handle = caller._client.get_workflow_handle(f"thread-{thread_id}")  # pyright: ignore[reportPrivateUsage]
    async for event in handle.fetch_history_events():
        scheduled = event.activity_task_scheduled_event_attributes
        if scheduled.activity_type.name == "run_tool":
            return RunTool.model_validate_json(scheduled.input.payloads[0].data)
    raise AssertionError("no call was scheduled")


# ---- how calls end -------------------------------------------------------------------------------------------------


async def test_a_tool_sees_state_and_a_stable_key_and_its_writes_come_back(caller: Caller) -> None:
    request = await caller.request("remember", {"value": "v"})
    outcome = await caller.outcome(request)
    assert isinstance(outcome, Done)
    assert outcome.state_delta == {"value": "v"}
    assert len(outcome.result["key"]) == 64


async def test_a_tool_that_says_no_is_told_to_the_model(caller: Caller) -> None:
    outcome = await caller.outcome(await caller.request("refuse", {}))
    assert isinstance(outcome, ToolFailed)
    assert (outcome.code, outcome.message) == ("tool-error", "not today")


async def test_arguments_are_checked_without_any_effect(caller: Caller, hosted: Hosted) -> None:
    call = ToolCall(key="k", call_id="c", tool="pay", args={"amount": "many"})
    checked = await (await caller.start(CheckArgs(**WHO, call=call), "check_args")).result()
    assert checked.code == "tool-args-invalid"
    assert "many" not in await hosted.effects.all("pay")


async def test_a_tool_without_a_probe_does_not_know(caller: Caller) -> None:
    call = ToolCall(key="k", call_id="c", tool="pay", args={"amount": 1})
    probed = await (await caller.start(ProbeTool(**WHO, call=call), "probe_tool")).result()
    assert probed == Probed(outcome="unknown")


async def test_a_write_is_attempted_once_whatever_its_retry_policy_says(caller: Caller, hosted: Hosted) -> None:
    request = await caller.request("die", {})
    before = await hosted.effects.count("die")
    assert (await caller.failure(request, attempts=3)).type == "outcome-unknown"
    assert await hosted.effects.count("die") == before + 1


async def test_a_tool_whose_process_dies_has_no_outcome(caller: Caller, hosted: Hosted) -> None:
    request = await caller.request("die", {})
    before = await hosted.effects.count("die")
    assert (await caller.failure(request)).type == "guest-lost"
    assert await hosted.effects.count("die") == before + 1


@pytest.mark.parametrize("size", [9_000_000, 20_000_000])
async def test_a_result_that_cannot_be_stored_is_no_outcome_and_says_the_limit(
    caller: Caller, hosted: Hosted, size: int
) -> None:
    request = await caller.request("big", {"size": size})
    failure = await caller.failure(request)
    assert failure.type == "result-not-stored"
    assert str(size)[:2] in failure.message
    assert "1048576" in failure.message  # what history takes


async def test_an_agent_the_worker_does_not_have_is_not_started(caller: Caller) -> None:
    call = ToolCall(key="k", call_id="c", tool="pay", args={"amount": 1})
    outcome = await caller.outcome(RunTool(**WHO, call=call).model_copy(update={"agent": "other"}))
    assert isinstance(outcome, NotStarted)
    assert "it has: shop" in outcome.message


async def test_an_async_tool_that_is_cancelled_stops(caller: Caller, hosted: Hosted) -> None:
    request = await caller.request("wait", {})
    handle = await caller.start(request)
    await hosted.effects.wait("wait")
    await handle.cancel()
    with pytest.raises(WorkflowFailureError):
        await asyncio.wait_for(handle.result(), 20)


async def test_a_tool_that_cannot_be_stopped_is_waited_for_and_its_result_kept(caller: Caller, hosted: Hosted) -> None:
    request = await caller.request("insist", {"seconds": 4.0})
    handle = await caller.start(request)
    await hosted.effects.wait("insist")
    await handle.cancel()
    result = await asyncio.wait_for(handle.result(), 30)
    assert result.outcome == Done(result="done after all")
