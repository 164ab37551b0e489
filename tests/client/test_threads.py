"""Creating, finding and listing threads."""

from __future__ import annotations

import uuid
from datetime import timedelta

import pytest
from temporalio.api.workflowservice.v1 import DeleteWorkflowExecutionRequest, RegisterNamespaceRequest
from temporalio.client import Client
from temporalio.service import RPCError

from agentvisor.host.dev_server import TemporalServer
from agentvisor.host.search_attributes import register_search_attributes
from client import Thread, Threads
from client.connection import connect
from client.errors import NoWorker, ThreadClosed, ThreadExists, ThreadNotFound, ThreadsError
from client.execution import workflow_id
from client.labels import cut
from tests.client.conftest import AGENT, eventually, paused, thread_worker
from workflows.messages import InputAnswer


async def test_a_thread_is_created_once(threads: Threads) -> None:
    thread = await threads.create("agent")
    with pytest.raises(ThreadExists):
        await threads.create("agent", thread_id=thread.id)


async def test_get_or_create_takes_the_open_thread_as_it_is(carried: Threads) -> None:
    name = str(uuid.uuid4())
    thread = await carried.get_or_create(name, "agent", principal="ana", state={"a": 1})
    again = await carried.get_or_create(name, "another", principal="ben", state={"a": 2})
    view = await again.view()
    assert (again.id, view.agent, view.principal, view.state) == (thread.id, "agent", "ana", {"a": 1})


async def test_a_closed_thread_is_not_silently_reborn(carried: Threads, client: Client) -> None:
    thread = await carried.create("agent")
    assert (await thread.close(by="ana")).status == "closed"
    await client.get_workflow_handle(workflow_id(thread.id)).result()
    with pytest.raises(ThreadClosed):
        await carried.get_or_create(thread.id, "agent")
    with pytest.raises(ThreadExists):
        await carried.create("agent", thread_id=thread.id)


async def test_a_closed_thread_can_be_read_but_takes_nothing(carried: Threads, client: Client) -> None:
    thread = await carried.create("agent")
    run_id = await thread.run("hi")
    await thread.close(by="ana")
    await client.get_workflow_handle(workflow_id(thread.id)).result()
    assert (await thread.view()).status == "closed"
    assert (await thread.wait(run_id, until="ended", timeout=20)).status == "cancelled"
    for call in (thread.run("hi"), thread.decide("ap-1-1", True, by="ana"), thread.put_state({}), thread.close(by="b")):
        with pytest.raises(ThreadClosed):
            await call


async def test_a_terminated_thread_says_that_it_is_closed(carried: Threads, client: Client) -> None:
    thread = await carried.create("agent")
    run_id = await thread.run("hi")
    assert (await thread.run_view(run_id)).status == "running"
    await client.get_workflow_handle(workflow_id(thread.id)).terminate()
    for call in (thread.run("hi"), thread.clear(), thread.wait(run_id, timeout=20)):
        with pytest.raises(ThreadClosed):
            await call


async def test_a_thread_that_is_not_there_is_never_a_raw_error(carried: Threads, client: Client) -> None:
    gone = await carried.create("agent")
    execution = {"workflow_id": workflow_id(gone.id)}
    await client.workflow_service.delete_workflow_execution(
        DeleteWorkflowExecutionRequest(namespace=client.namespace, workflow_execution=execution),  # pyright: ignore[reportArgumentType]
        retry=True,
    )
    await eventually(lambda: _is_gone(gone))
    for thread in (carried.get("never-was"), gone):
        for call in (
            thread.run("hi"),
            thread.run_view("r1"),
            thread.wait("r1", timeout=5),
            thread.view(),
            thread.interrupts(),
            thread.state(),
            thread.decide("ap-1-1", True, by="ana"),
            thread.answer(InputAnswer(interrupt_id="in-1-1", value=1), by="ana"),
            thread.cancel_run("r1", by="ana"),
            thread.renew(),
            thread.close(by="ana"),
        ):
            with pytest.raises(ThreadNotFound):
                await call


async def _is_gone(thread: Thread) -> bool:
    try:
        await thread.view()
    except ThreadNotFound:
        return True
    except ThreadsError:
        return False
    return False


async def test_what_a_long_principal_is_cut_to_finds_its_thread(carried: Threads) -> None:
    principal = "ü" * 1500
    thread = await carried.create("agent", principal=principal)
    assert (await thread.view()).principal == principal
    await eventually(lambda: _lists(carried, thread))
    (line,) = [one for one in await carried.list() if one.thread_id == thread.id]
    assert line.principal == cut(principal)


async def _lists(threads: Threads, thread: Thread, **wanted: str) -> bool:
    found = await threads.list(**wanted)  # pyright: ignore[reportArgumentType]
    return thread.id in {one.thread_id for one in found}


async def test_the_list_tells_open_waiting_and_closed_threads_apart(shop: Threads, client: Client) -> None:
    await register_search_attributes(client)
    idle, (waiting, _), closed = await shop.create(AGENT), await paused(shop), await shop.create(AGENT)
    await closed.close(by="ana")
    await eventually(lambda: _lists(shop, waiting, status="waiting"))
    await eventually(lambda: _lists(shop, closed, status="closed"))
    await eventually(lambda: _lists(shop, idle, status="open"))
    found = {one.thread_id: one.status for one in await shop.list(limit=1000)}
    assert [found[one.id] for one in (idle, waiting, closed)] == ["open", "waiting", "closed"]
    assert not await _lists(shop, idle, status="waiting")
    assert not await _lists(shop, closed, status="open")


async def test_the_list_is_as_long_as_wanted(threads: Threads) -> None:
    for thread in [await threads.create("counted") for _ in range(3)]:
        await eventually(lambda thread=thread: _lists(threads, thread, agent="counted"))
    assert len(await threads.list(limit=2)) == 2


@pytest.mark.parametrize("agent", ["x' OR AgentName != '", "back\\slash", 'quo"te', "naïve agent", "a" * 250])
async def test_any_agent_name_can_be_searched_for(threads: Threads, client: Client, agent: str) -> None:
    await register_search_attributes(client)
    thread, other = await threads.create(agent), await threads.create("other")
    await eventually(lambda: _lists(threads, thread, agent=agent))
    await eventually(lambda: _lists(threads, other))
    assert not await _lists(threads, other, agent=agent)


async def test_everything_works_in_a_namespace_without_search_attributes(
    temporal_server: TemporalServer, client: Client, task_queue: str
) -> None:
    """Threads are then listed by their memo, and asked whether they wait."""
    namespace = f"bare-{uuid.uuid4().hex[:8]}"
    retention = timedelta(days=1)
    request = RegisterNamespaceRequest(namespace=namespace)
    request.workflow_execution_retention_period.FromTimedelta(retention)
    await client.workflow_service.register_namespace(request, retry=True)
    bare = await connect(
        type(temporal_server.connection)(address=temporal_server.connection.address, namespace=namespace)
    )
    threads = Threads(bare, task_queue=task_queue)
    thread = await _created_once_known(threads)
    await eventually(lambda: _lists(threads, thread, agent="agent"))
    assert not await _lists(threads, thread, agent="another")
    with pytest.raises(NoWorker):
        await threads.approvals()
    async with thread_worker(bare, task_queue):
        assert (await threads.approvals()).interrupts == ()
        assert [one.status for one in await threads.list(status="open")] == ["open"]


async def _created_once_known(threads: Threads) -> Thread:
    """A namespace is known to every part of the server after a few seconds."""
    thread_id = str(uuid.uuid4())

    async def starts() -> bool:
        try:
            await threads.get_or_create(thread_id, "agent", principal="ana")
        except (ThreadsError, RPCError):
            return False
        return True

    await eventually(starts, within=60)
    return threads.get(thread_id)


async def test_a_thread_started_by_hand_is_listed_and_asked(client: Client, carried: Threads, task_queue: str) -> None:
    """It carries neither memo nor search attributes."""
    thread_id = str(uuid.uuid4())
    await client.start_workflow(
        "ThreadWorkflow", {"agent": "by-hand"}, id=workflow_id(thread_id), task_queue=task_queue
    )
    thread = carried.get(thread_id)
    await eventually(lambda: _lists(carried, thread, agent="by-hand"))


async def test_threads_of_another_task_queue_are_not_listed(threads: Threads, client: Client) -> None:
    mine, other = await threads.create("agent"), await Threads(client, task_queue="another").create("agent")
    await eventually(lambda: _lists(Threads(client, task_queue="another"), other))
    await eventually(lambda: _lists(threads, mine))
    assert not await _lists(threads, other)


async def test_approvals_come_from_all_threads_oldest_first(shop: Threads) -> None:
    (first, _), (second, _) = await paused(shop), await paused(shop)

    async def both() -> bool:
        found = [one.thread_id for one in (await shop.approvals(agent=AGENT)).interrupts]
        return [one for one in found if one in {first.id, second.id}] == [first.id, second.id]

    await eventually(both)
    assert not (await shop.approvals(agent="nobody")).interrupts
    (one,) = await first.interrupts()
    assert (one.id, one.tool, one.arguments) == ("ap-1-1", "send_invoice", {"order_id": "A-1001", "amount": "149.00"})
