"""What a run may use."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_adapter import (
    Executor,
    RunLimitExceeded,
    RunLimits,
    RunMeter,
    ToolArgsInvalid,
    ToolCall,
    ToolContext,
    ToolRegistry,
)
from agent_adapter.limits import RunMeters


def registry_of(cost: float = 0.0) -> ToolRegistry:
    registry = ToolRegistry()

    @registry.tool(effect="read", cost=cost)
    async def look(value: int) -> int:
        await asyncio.sleep(0)
        return value

    return registry


async def test_parallel_calls_cannot_pass_a_limit_together() -> None:
    executor = Executor(registry_of(), limits=RunLimits(tool_calls=3))
    batch = [ToolCall("look", {"value": 1}, ToolContext(run="r")) for _ in range(10)]
    results = await executor.run_many(batch, concurrency=10)
    assert results.count(1) == 3
    assert sum(isinstance(result, RunLimitExceeded) for result in results) == 7


async def test_the_message_says_which_limit_and_what_to_do() -> None:
    executor = Executor(registry_of(), limits=RunLimits(tool_calls=0))
    with pytest.raises(RunLimitExceeded, match=r"may use 0 tool calls.*Answer with what you have") as exceeded:
        await executor.run("look", {"value": 1})
    assert exceeded.value.as_result()["error"]["kind"] == "run-limit-exceeded"


async def test_cost_is_a_limit_that_is_never_passed() -> None:
    executor = Executor(registry_of(cost=0.4), limits=RunLimits(cost=1.0))
    context = ToolContext(run="r")
    for _ in range(2):
        await executor.run("look", {"value": 1}, context)
    with pytest.raises(RunLimitExceeded, match="1 cost"):
        await executor.run("look", {"value": 1}, context)


async def test_invalid_calls_cost_nothing() -> None:
    executor = Executor(registry_of(cost=0.4), limits=RunLimits(tool_calls=1))
    context = ToolContext(run="r")
    with pytest.raises(ToolArgsInvalid):
        await executor.run("look", {"value": "x"}, context)
    assert await executor.run("look", {"value": 1}, context) == 1


async def test_every_run_and_thread_has_its_own_count() -> None:
    executor = Executor(registry_of(), limits=RunLimits(tool_calls=1))
    for thread, run in (("t", "r"), ("t", "r2"), ("t2", "r")):
        assert await executor.run("look", {"value": 1}, ToolContext(thread=thread, run=run)) == 1
        with pytest.raises(RunLimitExceeded):
            await executor.run("look", {"value": 1}, ToolContext(thread=thread, run=run))


def test_model_calls_and_tokens_are_limits_too() -> None:
    meter = RunMeter(limits=RunLimits(model_calls=2))
    meter.charge_model_call()
    meter.charge_model_call()
    with pytest.raises(RunLimitExceeded, match="2 model calls"):
        meter.charge_model_call()
    meter = RunMeter(limits=RunLimits(tokens=10))
    meter.charge_model_call(tokens=9)
    meter.charge_model_call()
    meter.charge_tokens(1)
    with pytest.raises(RunLimitExceeded, match="10 tokens"):
        meter.charge_model_call()
    with pytest.raises(RunLimitExceeded, match="10 tokens"):
        meter.charge_tool_call()


def test_seconds_count_from_the_first_that_is_heard_of_the_run() -> None:
    time = [100.0]
    meter = RunMeter(limits=RunLimits(seconds=5), now=lambda: time[0])
    time[0] += 5
    meter.charge_tool_call()
    time[0] += 0.1
    with pytest.raises(RunLimitExceeded, match="5 seconds"):
        meter.charge_tool_call()


def test_runs_that_were_not_used_for_long_are_forgotten() -> None:
    meters = RunMeters(RunLimits(tool_calls=1))
    first = meters.of(thread="", run="first")
    for number in range(10_000):
        meters.of(thread="", run=str(number))
    assert meters.of(thread="", run="9999") is meters.of(thread="", run="9999")
    assert meters.of(thread="", run="first") is not first


@given(
    st.lists(st.tuples(st.sampled_from(["call", "refund"]), st.integers(0, 5))), st.integers(0, 5), st.integers(0, 20)
)
def test_no_order_of_charges_and_refunds_passes_a_limit(steps: list[tuple[str, int]], most: int, budget: int) -> None:
    meter = RunMeter(limits=RunLimits(tool_calls=most, cost=budget))
    open_calls: list[int] = []
    for step, cost in steps:
        if step == "call":
            fits = meter.tool_calls < most and meter.cost + cost <= budget
            if fits:
                meter.charge_tool_call(cost)
                open_calls.append(cost)
            else:
                with pytest.raises(RunLimitExceeded):
                    meter.charge_tool_call(cost)
        elif open_calls:
            meter.refund(cost=open_calls.pop(), tool_calls=1)
        assert (meter.tool_calls, meter.cost) == (len(open_calls), sum(open_calls))
