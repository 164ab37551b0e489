"""`python -m benchmarks [PART ...]`: measure, print one table, and keep it in latest.json and docs/performance.md.

Exits with 1 where a part could not be measured. A number that misses its limit is no failure: it is said.
"""

from __future__ import annotations

import asyncio
import sys
import time
import traceback
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, get_args

import click
import structlog
from rich.console import Console

from agentvisor.host.exit import leave
from benchmarks import adk_alone, cold, decision, history, machine, memory, recovery, report, throughput
from benchmarks.numbers import Part
from benchmarks.result import Result
from benchmarks.stage import Stage

PARTS: Mapping[str, Callable[[Stage], Awaitable[Result]]] = {
    "throughput": throughput.measure,
    "adk-alone": adk_alone.measure,
    "decision": decision.measure,
    "history": history.measure,
    "cold": cold.measure,
    "recovery": recovery.measure,
    "memory": memory.measure,
}

console = Console(stderr=True, highlight=False, soft_wrap=True)


@click.command()
@click.argument("parts", nargs=-1, type=click.Choice(get_args(Part)))
@click.option("--quick", is_flag=True, help="A few turns of each part: shows that it runs. Keeps nothing.")
def main(parts: tuple[str, ...], quick: bool) -> None:
    """Measure the PARTS, or all of them."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(30))
    chosen = parts or tuple(PARTS)
    done = asyncio.run(_measured(chosen, quick=quick))
    found = report.merged(report.load(), done, machine.facts())
    if not quick:
        report.write(found)
    report.show(found, Console(), parts=frozenset(chosen))
    failed = {name: part["failed"] for name, part in done.items() if part["failed"]}
    for name, reason in failed.items():
        console.print(f"{name} could not be measured: {reason}")
    leave(1 if failed else 0)


async def _measured(parts: Sequence[str], *, quick: bool) -> dict[str, dict[str, Any]]:
    began = time.monotonic()

    def say(text: str) -> None:
        console.print(f"[{time.monotonic() - began:4.0f} s] {text}", markup=False)

    return {name: await _part(name, say, quick=quick) for name in PARTS if name in parts}


async def _part(name: str, say: Callable[[str], None], *, quick: bool) -> dict[str, Any]:
    """What one part measured on a stage of its own, and under which load."""
    say(f"{name}: begins, load {machine.load()}")
    about: dict[str, Any] = {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "load_before": machine.load(),
        "quick": quick,
        "failed": None,
    }
    began, result = time.monotonic(), Result()
    try:
        async with Stage.built(lambda text: say(f"{name}: {text}"), quick=quick) as stage:
            result = await PARTS[name](stage)
    except Exception as problem:  # noqa: BLE001 - whatever it is: the other parts go on
        traceback.print_exception(problem, file=sys.stderr)
        about["failed"] = f"{type(problem).__name__}: {problem}"[:500]
    about |= {"seconds": round(time.monotonic() - began, 1), "load_after": machine.load()}
    return {**about, "numbers": result.numbers, "readings": result.readings}


if __name__ == "__main__":
    main()
