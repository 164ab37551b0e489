"""Waiting for runs: what it returns, what it survives, and what it says when nobody works."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

import pytest
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflowservice.v1 import ResetWorkflowExecutionRequest
from temporalio.client import Client

from client import Thread, Threads
from client.errors import NoWorker, Refused, RunNotFound
from client.execution import workflow_id
from tests.client.conftest import AGENT, INVOICE, eventually, paused, thread_worker


async def test_without_a_worker_a_run_is_queued_and_waiting_says_who_is_missing(
    threads: Threads, client: Client, task_queue: str
) -> None:
    thread = await threads.create("agent")
    run_id = await thread.run("hi")
    for call in (thread.wait(run_id), thread.wait(run_id, timeout=0), thread.view(), thread.cancel_run("r", by="ana")):
        with pytest.raises(NoWorker, match=f"task queue '{task_queue}'.*worker.py"):
            async with asyncio.timeout(15):
                await call
    async with thread_worker(client, task_queue):
        assert (await thread.wait(run_id, timeout=0)).status == "running"


async def test_a_worker_that_has_ended_is_missed_too(threads: Threads, client: Client, task_queue: str) -> None:
    """The server lists it for minutes; its silence counts."""
    thread = await threads.create("agent")
    async with thread_worker(client, task_queue):
        run_id = await thread.run("hi")
        assert (await thread.run_view(run_id)).status == "running"
    with pytest.raises(NoWorker):
        await thread.wait(run_id, timeout=60)


async def test_a_wait_that_is_too_short_returns_the_run_as_it_is(carried: Threads) -> None:
    """The run goes on, and a later look finds it."""
    thread = await carried.create("agent")
    run_id = await thread.run("hi")
    for timeout in (0, 0.05):
        assert (await thread.wait(run_id, timeout=timeout)).status == "running"
    with pytest.raises(ValueError, match="0 or more"):
        await thread.wait(run_id, timeout=-1)
    assert (await thread.run_view(run_id)).status == "running"


async def test_a_wait_ends_where_the_run_pauses_or_where_it_ends(shop: Threads) -> None:
    thread, run_id = await paused(shop)
    still = await thread.wait(run_id, until="ended", timeout=0.2)
    assert still.status == "waiting"
    ended = asyncio.create_task(thread.wait(run_id, until="ended", timeout=60))
    receipt = await thread.decide(still.interrupts[0].id, True, by="ana")
    assert (receipt.status, receipt.by) == ("approved", "ana")
    view = await ended
    assert (view.status, view.answer) == ("success", "Invoice INV-A-1001 over EUR 149.00 went to ana@example.com.")


async def test_a_run_just_sent_is_known(shop: Threads) -> None:
    """However soon somebody looks."""
    thread = await shop.create(AGENT)
    for number in range(5):
        run_id = await thread.run("orders?", run_id=f"run-{number}")
        assert (await shop.get(thread.id).run_view(run_id)).run_id == run_id


async def test_a_run_nobody_sent_is_not_found(carried: Threads) -> None:
    thread = await carried.create("agent")
    for call in (thread.run_view("r1"), thread.wait("r1"), thread.cancel_run("r1", by="ana")):
        with pytest.raises(RunNotFound, match="'r1'"):
            await call


async def test_a_repeated_run_id_runs_once(shop: Threads) -> None:
    thread = await shop.create(AGENT)
    for _ in range(3):
        await thread.run("orders?", run_id="once")
    assert (await thread.wait("once", timeout=60)).status == "success"
    view = await thread.view()
    assert (view.runs, view.queued) == (1, ())


async def test_waiting_follows_a_thread_across_continue_as_new(shop: Threads, client: Client) -> None:
    thread, run_id = await paused(shop)
    ended = asyncio.create_task(thread.wait(run_id, until="ended", timeout=60))
    before = (await client.get_workflow_handle(workflow_id(thread.id)).describe()).run_id
    await thread.renew()
    await _renewed(client, thread, before)
    assert (await thread.wait(run_id)).status == "waiting"
    await thread.decide("ap-1-1", False, by="ana")
    assert (await ended).status == "success"


async def test_waiting_follows_a_thread_across_a_reset(shop: Threads, client: Client) -> None:
    """An operator's `temporal workflow reset` ends one execution and starts another."""
    thread = await shop.create(AGENT)
    run_id = await thread.run(INVOICE)
    assert (await thread.wait(run_id, timeout=60)).status == "waiting"
    ended = asyncio.create_task(thread.wait(run_id, until="ended", timeout=60))
    await _reset(client, thread)
    assert (await thread.wait(run_id, timeout=60)).status == "waiting"
    await thread.decide("ap-1-1", True, by="ana")
    assert (await ended).status == "success"


async def test_watching_shows_every_state_once_and_ends_with_the_run(shop: Threads) -> None:
    thread = await shop.create(AGENT)
    run_id = await thread.run(INVOICE)
    seen: list[str] = []
    async with aclosing(thread.watch(run_id)) as views:
        async for view in views:
            seen.append(view.status)
            if view.status == "waiting" and not view.interrupts[0].being_decided:
                await thread.decide(view.interrupts[0].id, True, by="ana")
    assert "waiting" in seen
    assert (seen.count("success"), seen[-1]) == (1, "success")


async def test_a_wait_that_is_given_up_leaves_the_run_alone(carried: Threads) -> None:
    thread = await carried.create("agent")
    run_id = await thread.run("hi")
    waiter = asyncio.create_task(thread.wait(run_id))
    assert (await thread.run_view(run_id)).status == "running"
    waiter.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiter
    assert (await thread.run_view(run_id)).status == "running"
    await thread.cancel_run(run_id, by="ana")
    assert (await thread.wait(run_id, until="ended", timeout=20)).status == "cancelled"


async def test_an_update_that_is_given_up_is_a_cancellation_and_no_refusal(threads: Threads) -> None:
    thread = await threads.create("agent")
    task = asyncio.create_task(thread.put_state({"a": 1}))
    await asyncio.wait([task], timeout=0.3)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_many_may_wait_for_one_run(shop: Threads) -> None:
    thread = await shop.create(AGENT)
    run_id = await thread.run("orders?")
    views = await asyncio.gather(*(shop.get(thread.id).wait(run_id, timeout=60) for _ in range(15)))
    assert {view.status for view in views} == {"success"}


async def test_refusals_of_the_thread_keep_their_kind(shop: Threads) -> None:
    thread, run_id = await paused(shop)
    for edited, kind in (({"order_id": "A-1001", "amount": "much"}, "tool-args-invalid"), ({}, "tool-args-invalid")):
        assert await _kind(thread.decide("ap-1-1", True, by="ana", edited_args=edited)) == kind
    assert await _kind(thread.decide("ap-9-9", True, by="ana")) == "approval-unknown"
    await thread.decide("ap-1-1", False, by="ana")
    assert await _kind(thread.decide("ap-1-1", True, by="ben")) == "already-decided"
    await thread.wait(run_id, until="ended", timeout=60)
    assert await _kind(thread.put_state({"a": 1}, if_revision=0)) == "stale-revision"


async def test_the_session_comes_in_pages(carried: Threads) -> None:
    thread = await carried.create("agent")
    for number in range(3):
        await thread.put_state({f"key{number}": "x" * 300_000})
    pages = [page async for page in thread.session()]
    assert len(pages) > 1
    assert sum(len(page.events) for page in pages) == 3
    assert pages[-1].end == pages[-1].head
    assert set(await thread.state()) == {"key0", "key1", "key2"}


async def _kind(call: object) -> str:
    with pytest.raises(Refused) as refused:
        await call  # pyright: ignore[reportGeneralTypeIssues]
    return refused.value.kind


async def _renewed(client: Client, thread: Thread, before: str) -> None:
    handle = client.get_workflow_handle(workflow_id(thread.id))

    async def is_another() -> bool:
        return (await handle.describe()).run_id != before

    await eventually(is_another)


async def _reset(client: Client, thread: Thread) -> None:
    """To its last completed workflow task."""
    handle = client.get_workflow_handle(workflow_id(thread.id))
    description = await handle.describe()
    last = [
        e.event_id
        async for e in handle.fetch_history_events()
        if e.HasField("workflow_task_completed_event_attributes")
    ]
    await client.workflow_service.reset_workflow_execution(
        ResetWorkflowExecutionRequest(
            namespace=client.namespace,
            workflow_execution=WorkflowExecution(workflow_id=handle.id, run_id=description.run_id),
            reason="test",
            request_id=f"reset-{description.run_id}",
            workflow_task_finish_event_id=last[-1],
        ),
        retry=True,
    )
