"""Payloads are visited where a codec may change them, and only there."""

from __future__ import annotations

import dataclasses
import uuid
from collections.abc import Sequence
from datetime import timedelta

import temporalio.bridge.worker
from temporalio import activity, workflow
from temporalio.api.common.v1 import Payload
from temporalio.client import Client, WorkflowHandle
from temporalio.converter import DataConverter, PayloadCodec
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from agentvisor.host.payload_visits import leave_out_idle_visits
from client.data_converter import DATA_CONVERTER


class Backwards(PayloadCodec):
    """A codec that anybody can see at work."""

    async def encode(self, payloads: Sequence[Payload]) -> list[Payload]:
        return [Payload(metadata={"encoding": b"backwards"}, data=p.SerializeToString()[::-1]) for p in payloads]

    async def decode(self, payloads: Sequence[Payload]) -> list[Payload]:
        return [Payload.FromString(p.data[::-1]) for p in payloads]


@activity.defn
async def shout(text: str) -> str:
    return text.upper()


@workflow.defn
class Shouting:
    @workflow.run
    async def run(self, text: str) -> str:
        return await workflow.execute_activity(shout, text, start_to_close_timeout=timedelta(seconds=30))


async def said(client: Client, converter: DataConverter, task_queue: str) -> tuple[str, set[bytes]]:
    """What the workflow returned, and how the payloads in its history are encoded."""
    config = client.config()
    config["data_converter"] = converter
    talker = Client(**config)
    async with Worker(
        talker,
        task_queue=task_queue,
        workflows=[Shouting],
        activities=[shout],
        workflow_runner=UnsandboxedWorkflowRunner(),
    ):
        handle = await talker.start_workflow(Shouting.run, "quiet", id=str(uuid.uuid4()), task_queue=task_queue)
        answer = await handle.result()
    return answer, {payload.metadata["encoding"] for payload in await _payloads(handle)}


async def _payloads(handle: WorkflowHandle[Shouting, str]) -> list[Payload]:
    found: list[Payload] = []
    for event in (await handle.fetch_history()).events:
        started = event.workflow_execution_started_event_attributes.input
        scheduled = event.activity_task_scheduled_event_attributes.input
        done = event.activity_task_completed_event_attributes.result
        ended = event.workflow_execution_completed_event_attributes.result
        found += [payload for part in (started, scheduled, done, ended) for payload in part.payloads]
    assert len(found) == 4
    return found


async def test_payloads_without_a_codec_are_what_they_were(client: Client, task_queue: str) -> None:
    leave_out_idle_visits()
    assert await said(client, DATA_CONVERTER, task_queue) == ("QUIET", {b"json/plain"})


async def test_a_codec_sees_every_payload(client: Client, task_queue: str) -> None:
    leave_out_idle_visits()
    coded = dataclasses.replace(DATA_CONVERTER, payload_codec=Backwards())
    assert await said(client, coded, task_queue) == ("QUIET", {b"backwards"})


async def test_the_sdk_is_changed_once_and_where_it_is_known() -> None:
    leave_out_idle_visits()
    first = [getattr(temporalio.bridge.worker, name) for name in ("decode_activation", "encode_completion")]
    leave_out_idle_visits()
    assert first == [getattr(temporalio.bridge.worker, name) for name in ("decode_activation", "encode_completion")]
    assert all(visit.__wrapped__.__module__ == "temporalio.bridge.worker" for visit in first)
