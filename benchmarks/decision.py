"""From a person's decision to the first line of the tool it opens the gate for."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Awaitable, Callable
from statistics import median

from temporalio.client import Client, WorkflowHandle

from benchmarks.peers import PLUGIN, PRODUCT_WRITE, Peer
from benchmarks.process import MeasureFailed
from benchmarks.result import Result
from benchmarks.stage import Stage
from benchmarks.talk import Talk
from benchmarks.throughput import GUESTS

COUNT, WARM = 60, 3
_REST = 0.1
_PATIENCE = 30.0


async def measure(stage: Stage) -> Result:
    """Milliseconds of both, one after the other, each in a new conversation."""
    ours: list[float] = []
    theirs: list[float] = []
    async with stage.product() as product, stage.plugin():
        await product.settled(GUESTS)
        for number in range(WARM + stage.size(COUNT, 3)):
            took = (await _once(stage, PRODUCT_WRITE, _approve), await _once(stage, PLUGIN, _confirm))
            if number >= WARM:
                ours.append(took[0])
                theirs.append(took[1])
    result = Result()
    stage.say(f"decision to tool: {median(ours):.1f} ms, the plugin {median(theirs):.1f} ms")
    result.number("decision_to_tool_ms", median(ours), ours)
    result.number("plugin_decision_to_tool_ms", median(theirs), theirs)
    result.number("decision_to_tool_vs_plugin", median(ours) / median(theirs))
    return result


async def _once(stage: Stage, peer: Peer, decide: Callable[[Client, Talk], Awaitable[float]]) -> float:
    """Milliseconds between the sending of a decision and the start of the tool."""
    order = f"A-{uuid.uuid4().hex[:12]}"
    talk = await peer.begin(stage)
    before = peer.steps - 2
    await talk.say(peer.say(f"invoice my order {order}"))
    await talk.until_done(before)
    await asyncio.sleep(_REST)
    sent = await decide(stage.client, talk)
    await talk.until_done(peer.steps)
    began = stage.noted(order, "invoice")
    if len(began) != 1:
        raise MeasureFailed(f"{talk.id}: the tool began {len(began)} times")
    await peer.close(stage.client, talk)
    return (began[0][0] - sent) * 1000


async def _approve(client: Client, talk: Talk) -> float:
    handle = client.get_workflow_handle(talk.id)
    (approval,) = await handle.query("interrupts")
    return await _sent(handle, "decide", {"approval_id": approval["id"], "approved": True, "by": "ana"})


async def _confirm(client: Client, talk: Talk) -> float:
    return await _sent(client.get_workflow_handle(talk.id), "decide", True)


async def _sent(handle: WorkflowHandle[object, object], update: str, value: object) -> float:
    """When it was sent; returns once it is answered."""
    at = time.time()
    await handle.execute_update(update, value)
    return at
