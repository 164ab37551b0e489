"""A namespace in which no search attribute can be registered any more hosts threads all the same."""

from __future__ import annotations

import asyncio
import os
import uuid
from dataclasses import replace
from pathlib import Path

from google.protobuf.duration_pb2 import Duration
from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.operatorservice.v1 import AddSearchAttributesRequest
from temporalio.api.workflowservice.v1 import RegisterNamespaceRequest
from temporalio.client import Client
from temporalio.service import RPCError

from agentvisor.host.dev_server import TemporalServer
from agentvisor.host.fork_server import ForkServer
from agentvisor.host.settings import Settings
from agentvisor.local_gemini import LocalGemini
from agentvisor.project import read_project
from client import Threads
from client.connection import connect
from tests.fixtures.effects import Effects
from tests.threads.conftest import Scene
from worker import running_worker

_KINDS = {
    "Keyword": IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD,
    "KeywordList": IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD_LIST,
    "Datetime": IndexedValueType.INDEXED_VALUE_TYPE_DATETIME,
}


async def test_threads_pause_and_finish_where_no_attribute_can_be_registered(
    client: Client,
    *,
    temporal_server: TemporalServer,
    model: LocalGemini,
    counter: Effects,
    clerk: Path,
    fork_server: ForkServer,
) -> None:
    """Every slot of the namespace is taken by somebody else; threads, approvals and listings work."""
    full = await _full_namespace(client, temporal_server)
    settings = Settings(task_queue=f"full-{uuid.uuid4()}", workflow_sandbox=True, leg_guests=1, graceful_shutdown=5)
    environment = {**os.environ, **model.env(), **counter.env()}
    async with running_worker(
        full, settings, [read_project(clerk)], environment=environment, fork_server=fork_server
    ) as worker:
        assert not worker.search_attributes
        scene = Scene(full, worker, model, counter)
        scene.script(scene.call("pay", amount=5), "Paid.")
        thread = await scene.threads.create("single", principal="p" * 3000)
        run_id, (approval,) = await scene.paused(thread)
        listed = await Threads(full, task_queue=settings.task_queue).approvals()
        assert [interrupt.id for interrupt in listed.interrupts] == [approval.id]
        await thread.decide(approval.id, True, by="ben")
        assert (await scene.ended(thread, run_id)).answer == "Paid."
        await scene.history(thread)


async def _full_namespace(client: Client, server: TemporalServer) -> Client:
    name = f"full-{uuid.uuid4().hex[:8]}"
    kept = Duration(seconds=86400)
    await client.workflow_service.register_namespace(
        RegisterNamespaceRequest(namespace=name, workflow_execution_retention_period=kept), retry=True
    )
    full = await connect(replace(server.connection, namespace=name))
    async with asyncio.timeout(30):
        while not await _is_full(full):  # noqa: ASYNC110 - the server is another process
            await asyncio.sleep(0.2)
    return full


async def _is_full(client: Client) -> bool:
    """Take every slot of every kind the threads would need; False while the namespace is still being made."""
    for kind, type_ in _KINDS.items():
        for n in range(64):
            request = AddSearchAttributesRequest(
                namespace=client.namespace, search_attributes={f"Taken{kind}{n}": type_}
            )
            try:
                await client.operator_service.add_search_attributes(request, retry=True)
            except RPCError as problem:
                if "already exists" in problem.message:
                    continue
                if "not found" in problem.message.lower():
                    return False
                break
    return True
