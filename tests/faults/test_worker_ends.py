"""SIGTERM of the worker: legs hand over, calls get the time of grace, and what does not end in it is unknown."""

from __future__ import annotations

import asyncio
import signal

import pytest

from tests.faults.case import END, Case, World
from tests.faults.host import Host
from tests.faults.seams import SEAMS


@pytest.mark.timeout(240)
async def test_a_worker_that_ends_hands_over_and_hides_nothing(world: World, host: Host) -> None:
    """Another worker goes on with all of it."""
    seams = {
        "in the model": "during-a-model-call",
        "in the model, later": "after-a-model-turn",
        "write": "in-a-write-after-its-effect",
        "write, no effect": "in-a-write-before-its-effect",
        "keyed": "in-an-approved-idempotent-tool",
        "asked": "waiting-for-approvals",
        "edited": "while-edits-are-checked",
        "in time": "in-a-write-before-its-effect",
        "read in time": "in-a-read-tool",
    }
    cases = {what: Case(world, SEAMS[name].tool, 2 if SEAMS[name].tool else 1) for what, name in seams.items()}
    await asyncio.gather(*(SEAMS[seams[what]].reach(case) for what, case in cases.items()))
    host.send(signal.SIGTERM)
    await host.says("worker.ending")
    await asyncio.gather(cases["in time"].release(), cases["read in time"].release())
    assert await host.ended() == 0
    await asyncio.gather(*(case.release() for case in cases.values()))
    await host.start()
    await asyncio.gather(*(case.to_its_end() for case in cases.values()))

    assert {what: case.unknown for what, case in cases.items() if case.unknown} == {
        "write": {1: 1, 2: 1},
        "write, no effect": {1: 0, 2: 0},
    }
    for what, case in cases.items():
        await case.check(faults=0 if what.endswith("in time") else 1)
        await case.goes_on()
    handed_over = [cases["in the model"].view, cases["in the model, later"].view]
    assert [(view.legs, view.answer) for view in handed_over] == [(2, END)] * 2
