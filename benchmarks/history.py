"""Long conversations: what is kept of each turn, and the CPU that replaying it takes."""

from __future__ import annotations

import asyncio
import json
import time
from statistics import median

from temporalio.client import WorkflowHistory
from temporalio.worker import Replayer, UnsandboxedWorkflowRunner, WorkflowRunner
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner

from agentvisor.host.workflow_runner import UpdatesLast
from benchmarks.executions import Kept, chain, kept
from benchmarks.peers import PLUGIN, PRODUCT_READ, PRODUCT_WRITE, Peer
from benchmarks.process import output_of
from benchmarks.result import Result
from benchmarks.stage import Stage
from benchmarks.talk import Talk
from client.data_converter import DATA_CONVERTER
from workflows.thread import ThreadWorkflow

TURNS, HALF = 200, 100
_KINDS = {"read": PRODUCT_READ, "write": PRODUCT_WRITE}


async def measure(stage: Stage) -> Result:
    """Bytes and events per turn after 200 turns and after 100; replays."""
    result = Result()
    async with stage.product(), stage.plugin():
        peers = [*_KINDS.values(), PLUGIN]
        talks, halves, wholes = zip(*await asyncio.gather(*(_grown(stage, peer) for peer in peers)), strict=True)
    for kind, half, whole in zip([*_KINDS, "plugin"], halves, wholes, strict=True):
        _note(result, stage, kind, half, whole)
    histories = [history for talk in talks[:2] for history in await chain(stage.client, talk.id)]
    await _replays(result, stage, histories)
    (history,) = await chain(stage.client, talks[2].id)
    seconds = await _plugin_replay(stage, history)
    stage.say(f"replay of the plugin's {len(history.events)} events: {seconds:.1f} s of CPU")
    result.number("plugin_replay_cpu_s_200_turns", seconds)
    return result


async def _grown(stage: Stage, peer: Peer) -> tuple[Talk, Kept, Kept]:
    """A conversation, and what was kept of it half-way and at its end."""
    talk = await peer.begin(stage)
    seen: list[Kept] = []
    for first, last in ((0, stage.size(HALF, 3)), (stage.size(HALF, 3), stage.size(TURNS, 6))):
        for number in range(first, last):
            await peer.turn(talk, number)
        seen.append(await kept(stage.client, talk.id, stage.store))
        stage.say(f"{peer.name}: {last} turns, {seen[-1]}")
    half, whole = seen
    return talk, half, whole


def _note(result: Result, stage: Stage, kind: str, half: Kept, whole: Kept) -> None:
    turns, half_turns = stage.size(TURNS, 6), stage.size(HALF, 3)
    if kind == "plugin":
        result.number("plugin_history_bytes_per_turn_200", whole.bytes / turns)
        result.number("plugin_history_bytes_per_turn_100", half.bytes / half_turns)
        result.number("plugin_history_events_per_turn", whole.events / turns)
        return
    result.number(f"history_bytes_per_turn_{kind}_200", whole.bytes / turns)
    result.number(f"history_bytes_per_turn_{kind}_100", half.bytes / half_turns)
    result.number(f"history_events_per_turn_{kind}", whole.events / turns)
    result.spread(
        f"history_{kind}",
        {
            "executions": whole.executions,
            "event_bytes": whole.event_bytes,
            "store_bytes": whole.store_bytes,
            "history_size_bytes": whole.server_bytes,
        },
    )


async def _replays(result: Result, stage: Stage, histories: list[WorkflowHistory]) -> None:
    """The largest execution, as a worker runs it and in the sandbox."""
    *_, largest = by_size = sorted(histories, key=lambda history: sum(event.ByteSize() for event in history.events))
    for name, runner in (("", UnsandboxedWorkflowRunner()), ("_sandboxed", SandboxedWorkflowRunner())):
        seconds = await _replayed(UpdatesLast(runner), by_size[0], largest)
        stage.say(f"replay{name} of {len(largest.events)} events: {seconds} s of CPU")
        result.number(f"replay_cpu_s_largest_history{name}", median(seconds), seconds)


async def _replayed(runner: WorkflowRunner, small: WorkflowHistory, large: WorkflowHistory) -> list[float]:
    """CPU seconds of three replays. A small one goes first: what is imported once does not count."""
    replayer = Replayer(workflows=[ThreadWorkflow], data_converter=DATA_CONVERTER, workflow_runner=runner)
    await replayer.replay_workflow(small)
    seconds: list[float] = []
    for _ in range(3):
        began = time.process_time()
        await replayer.replay_workflow(large)
        seconds.append(time.process_time() - began)
    return seconds


async def _plugin_replay(stage: Stage, history: WorkflowHistory) -> float:
    """In a process of its own: ours stays without ADK."""
    file = stage.folder / "plugin-history.json"
    file.write_text(json.dumps(history.to_json_dict()))
    return float(await output_of([*stage.plugin_command, "--replay", str(file)], stage.environment()))
