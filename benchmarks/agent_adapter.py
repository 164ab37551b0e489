"""What agent_adapter costs per call and per declaration: `python -m benchmarks.agent_adapter`.

Each number is the best of several rounds, and has the limit it must keep beside it. Ends with status 1 beyond one.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any

from pydantic import BaseModel

from agent_adapter import (
    Executor,
    MemoryLedger,
    RunEvent,
    ToolContext,
    ToolRegistry,
    ToolSchemaError,
    ToolSpec,
    to_gemini_parameters,
)

CALLS = 20
ROUNDS = 300  # short ones: the best of many is what a machine with neighbours can do
Row = tuple[str, float, float, str]
"""What, the number, its limit, the unit."""


class Invoice(BaseModel):
    """Arguments as tools have them."""

    order_id: str
    amount: str
    copies: int = 1
    notes: list[str] = []


async def send_invoice(order_id: str, amount: str, copies: int = 1, notes: list[str] | None = None) -> dict[str, Any]:
    """Send the invoice of an order."""
    return {"number": f"INV-{order_id}", "of": amount, "copies": copies, "notes": len(notes or ())}


ARGUMENTS = {"order_id": "A-1001", "amount": "149.00", "copies": 2, "notes": ["first", "second"]}


async def bare() -> None:
    """What anybody would do without this library."""
    values = Invoice.model_validate(ARGUMENTS)
    await send_invoice(values.order_id, values.amount, values.copies, values.notes)


async def best_microseconds(call: Callable[[], Awaitable[Any]]) -> float:
    """Of one call."""
    best = float("inf")
    for _ in range(ROUNDS):
        start = time.perf_counter()
        for _ in range(CALLS):
            await call()
        best = min(best, time.perf_counter() - start)
    return best / CALLS * 1e6


async def overhead() -> float:
    """Microseconds that the executor adds to a call: validation, digest, ledger and events on."""
    events: list[RunEvent] = []
    ledger = MemoryLedger()
    spec = ToolSpec(function=send_invoice, arguments=Invoice, effect="read")
    executor = Executor(ToolRegistry([spec]), ledger=ledger, on_event=events.append)
    context = ToolContext(run="r1", call="c1", thread="t1")

    async def through() -> None:
        await executor.run_spec(spec, ARGUMENTS, context)

    await through()
    return await best_microseconds(through) - await best_microseconds(bare)


def mcp_sized(number: int) -> dict[str, Any]:
    """A schema as MCP servers send them: ten properties, objects, enums, a reference."""
    properties: dict[str, Any] = {
        f"field_{index}": {"type": "string", "description": f"Field {index} of tool {number}.", "maxLength": 200}
        for index in range(6)
    }
    properties |= {
        "mode": {"enum": ["fast", "slow", None], "description": "How."},
        "limit": {"type": ["integer", "null"], "minimum": 1, "maximum": 100, "default": 10},
        "filter": {"$ref": "#/$defs/Filter"},
        "tags": {"type": "array", "items": {"type": "string"}},
    }
    defs = {"Filter": {"type": "object", "properties": {"key": {"type": "string"}, "value": {"type": "string"}}}}
    return {"type": "object", "properties": properties, "required": ["field_0", "mode"], "$defs": defs}


def declarations() -> float:
    """Milliseconds for the declarations of 200 tools."""
    schemas = [mcp_sized(number) for number in range(200)]
    return best_milliseconds(lambda: [to_gemini_parameters(schema, tool="t") for schema in schemas])


def deep() -> dict[str, Any]:
    """400 levels."""
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(400):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


def fanning() -> dict[str, Any]:
    """Two to the power of 60 parts."""
    defs: dict[str, Any] = {"D60": {"type": "string"}}
    for level in range(60):
        part = {"$ref": f"#/$defs/D{level + 1}"}
        defs[f"D{level}"] = {"type": "object", "properties": {"a": part, "b": part}}
    return {"type": "object", "properties": {"p": {"$ref": "#/$defs/D0"}}, "$defs": defs}


def refused(schema: dict[str, Any]) -> float:
    """Milliseconds until the schema is refused."""

    def refuse() -> None:
        try:
            to_gemini_parameters(schema)
        except ToolSchemaError:
            return
        raise AssertionError

    return best_milliseconds(refuse)


def best_milliseconds(work: Callable[[], Any]) -> float:
    best = float("inf")
    for _ in range(20):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return best * 1e3


def main() -> int:
    rows: list[Row] = [
        ("executor overhead per call", asyncio.run(overhead()), 100, "us"),
        ("declarations of 200 tools", declarations(), 200, "ms"),
        ("refusing 400 levels", refused(deep()), 100, "ms"),
        ("refusing a schema that fans out", refused(fanning()), 100, "ms"),
    ]
    for what, number, limit, unit in rows:
        print(f"{what:34} {number:8.1f} {unit}   at most {limit} {unit}")  # noqa: T201
    return int(any(number > limit for _, number, limit, _ in rows))


if __name__ == "__main__":
    sys.exit(main())
