"""What ADK alone takes for a turn: nobody who hosts it can take less."""

from __future__ import annotations

import asyncio
import json
from statistics import mean

from benchmarks.process import output_of
from benchmarks.result import Result
from benchmarks.stage import Stage

_AT_ONCE = 2
"""As many as there are cores: busy ones are slower than idle ones, and those of *throughput* are busy."""


async def measure(stage: Stage) -> Result:
    """Milliseconds of CPU, of several processes at once."""
    found = await asyncio.gather(*(_measured(stage) for _ in range(_AT_ONCE)))
    result = Result()
    for key in ("one_run", "two_runs"):
        result.number(f"adk_alone_ms_{key}", mean(times[key] for times in found), [times[key] for times in found])
    return result


async def _measured(stage: Stage) -> dict[str, float]:
    return json.loads(await output_of(["-m", "benchmarks.adk_process"], stage.environment()))
