"""Running a tool's function: threads, time limits, retries, cancellation, failures."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from agent_adapter import (
    ApprovalAlreadyDecided,
    EventStream,
    Executor,
    LedgerEntry,
    MemoryLedger,
    RunEvent,
    ToolContext,
    ToolError,
    ToolRegistry,
    ToolSpec,
)

DEADLINE = 10.0
who: contextvars.ContextVar[str] = contextvars.ContextVar("who", default="nobody")


class Bench:
    """An executor around one tool, with its ledger."""

    def __init__(self, function: Callable[..., Any], **options: Any) -> None:
        self.spec = ToolSpec(function=function, name="act", **options)
        self.ledger = MemoryLedger()
        self.events: list[RunEvent] = []
        self.executor = Executor(ToolRegistry([self.spec]), ledger=self.ledger, on_event=self.events.append)

    async def run(self, **arguments: Any) -> Any:
        return await self.executor.run_spec(self.spec, arguments, ToolContext())

    @property
    def entry(self) -> LedgerEntry:
        (entry,) = self.ledger.entries
        return entry


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(DEADLINE):
        while not condition():  # noqa: ASYNC110 - threads set it
            await asyncio.sleep(0.001)


# ---- where it runs -------------------------------------------------------------------------------------------------


async def test_a_sync_tool_runs_off_the_loop_with_the_callers_context_variables() -> None:
    def act() -> list[Any]:
        return [who.get(), threading.current_thread() is threading.main_thread()]

    who.set("ana")
    assert await Bench(act).run() == ["ana", False]


async def test_an_async_tool_runs_on_the_loop() -> None:
    async def act() -> list[Any]:
        return [who.get(), threading.current_thread() is threading.main_thread()]

    who.set("bo")
    assert await Bench(act).run() == ["bo", True]


async def test_a_sync_tool_does_not_hold_up_the_loop() -> None:
    release = threading.Event()

    def act() -> bool:
        return release.wait(DEADLINE)

    work = asyncio.ensure_future(Bench(act).run())
    await asyncio.sleep(0)
    release.set()
    assert await work


async def test_a_sync_function_may_give_an_awaitable() -> None:
    async def later(value: int) -> int:
        return value

    def act(value: int) -> Any:
        return later(value)

    assert await Bench(act).run(value=3) == 3
    assert await Bench(partial(later, value=4)).run() == 4


async def test_an_object_with_an_async_call_is_a_tool() -> None:
    class Act:
        async def __call__(self, value: int) -> int:
            return value

    assert await Bench(Act()).run(value=3) == 3


# ---- failures ------------------------------------------------------------------------------------------------------


async def test_what_a_tool_says_reaches_the_model() -> None:
    def act() -> None:
        raise ToolError("No such customer.")

    bench = Bench(act)
    with pytest.raises(ToolError) as failed:
        await bench.run()
    assert failed.value.as_result() == {"error": {"kind": "tool-error", "message": "No such customer."}}
    assert failed.value.started
    assert (bench.entry.outcome, bench.entry.error) == ("failed", "tool-error")


@pytest.mark.parametrize(
    "problem", [RuntimeError, KeyError, StopIteration, SystemExit, TimeoutError, StopAsyncIteration]
)
@pytest.mark.parametrize("is_async", [True, False])
async def test_the_text_of_an_unexpected_exception_goes_to_the_log_alone(
    problem: type[BaseException], is_async: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    def act(secret: str) -> None:
        raise problem("MARKER")

    async def act_async(secret: str) -> None:
        raise problem("MARKER")

    bench = Bench(act_async if is_async else act)
    with pytest.raises(ToolError, match="'act' failed unexpectedly") as failed:
        await bench.run(secret="ARGUMENT")
    logged = capsys.readouterr().out
    assert "MARKER" not in failed.value.message
    assert failed.value.__cause__ is None
    assert bench.entry.outcome == "failed"
    assert "tool.failed" in logged
    assert "ARGUMENT" not in logged


async def test_errors_that_are_not_for_the_model_propagate() -> None:
    def act() -> None:
        raise ApprovalAlreadyDecided("ap-1", status="denied")

    bench = Bench(act)
    with pytest.raises(ApprovalAlreadyDecided):
        await bench.run()
    assert (bench.entry.outcome, bench.entry.error) == ("failed", "approval-already-decided")


async def test_what_a_framework_throws_through_propagates() -> None:
    class Interrupt(BaseException):
        pass

    async def act() -> None:
        raise Interrupt

    bench = Bench(act)
    with pytest.raises(Interrupt):
        await bench.run()
    assert (bench.entry.outcome, bench.entry.error) == ("unknown", "interrupted")


# ---- time ----------------------------------------------------------------------------------------------------------


async def test_an_async_tool_that_takes_too_long_is_stopped() -> None:
    stopped: list[bool] = []

    async def act() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            stopped.append(True)

    bench = Bench(act, effect="read", timeout=0.01)
    with pytest.raises(ToolError, match=r"did not end within 0\.01 seconds and was stopped") as failed:
        await bench.run()
    assert stopped == [True]
    assert not failed.value.outcome_unknown
    assert bench.entry.outcome == "failed"


async def test_of_a_write_that_takes_too_long_nobody_knows_the_outcome() -> None:
    async def act() -> None:
        await asyncio.Event().wait()

    bench = Bench(act, timeout=0.01)
    with pytest.raises(ToolError, match="may or may not have taken effect") as failed:
        await bench.run()
    assert failed.value.outcome_unknown
    assert bench.entry.outcome == "unknown"


async def test_a_sync_tool_that_takes_too_long_is_left_alone_and_not_tried_again() -> None:
    release, started = threading.Event(), list[int]()

    def act() -> None:
        started.append(1)
        release.wait(DEADLINE)

    bench = Bench(act, idempotent=True, retries=3, timeout=0.05)
    with pytest.raises(ToolError, match="cannot be stopped") as failed:
        await bench.run()
    release.set()
    assert failed.value.outcome_unknown
    assert started == [1]


async def test_a_sync_tool_that_finds_no_free_thread_in_time_has_not_run() -> None:
    release, ran = threading.Event(), list[str]()

    def hold() -> None:
        release.wait(DEADLINE)

    def act() -> None:
        ran.append("act")

    registry = ToolRegistry([ToolSpec(function=hold), ToolSpec(function=act, timeout=0.05)])
    ledger = MemoryLedger()
    executor = Executor(registry, ledger=ledger, threads=1)
    holding = asyncio.ensure_future(executor.run("hold", {}))
    await asyncio.sleep(0)
    with pytest.raises(ToolError, match="It was not run") as failed:
        await executor.run("act", {})
    release.set()
    await holding
    assert ran == []
    assert not failed.value.outcome_unknown
    assert not failed.value.started
    assert ledger.entries[0].outcome == "not_started"


# ---- retries -------------------------------------------------------------------------------------------------------


async def test_a_repeatable_tool_is_tried_again_with_fresh_arguments() -> None:
    seen: list[tuple[int, list[int]]] = []
    keys: set[str] = set()

    async def act(values: list[int], context: ToolContext) -> str:
        seen.append((context.attempt, list(values)))
        keys.add(context.idempotency_key)
        values.append(99)
        if len(seen) < 3:
            raise RuntimeError
        return "ok"

    bench = Bench(act, idempotent=True, retries=2)
    assert await bench.run(values=[1]) == "ok"
    assert seen == [(1, [1]), (2, [1]), (3, [1])]
    assert len(keys) == 1
    assert (bench.entry.attempts, bench.entry.outcome) == (3, "done")
    assert [event.kind for event in bench.events] == ["call.started", "call.retried", "call.retried", "call.finished"]


async def test_retries_end() -> None:
    tried: list[int] = []

    async def act() -> None:
        tried.append(1)
        raise RuntimeError

    with pytest.raises(ToolError):
        await Bench(act, effect="read", retries=1).run()
    assert len(tried) == 2


async def test_what_a_tool_says_itself_is_not_tried_again() -> None:
    tried: list[int] = []

    async def act() -> None:
        tried.append(1)
        raise ToolError("No.")

    with pytest.raises(ToolError):
        await Bench(act, effect="read", retries=3).run()
    assert len(tried) == 1


async def test_a_write_runs_once_whatever_happens() -> None:
    tried: list[int] = []

    async def act() -> None:
        tried.append(1)
        raise RuntimeError

    with pytest.raises(ToolError):
        await Bench(act).run()
    assert len(tried) == 1


# ---- cancellation --------------------------------------------------------------------------------------------------


async def test_cancelling_stops_an_async_tool_and_its_outcome_is_unknown() -> None:
    entered, ended = asyncio.Event(), list[str]()

    async def act() -> None:
        entered.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise

    bench = Bench(act)
    work = asyncio.ensure_future(bench.run())
    await entered.wait()
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    assert ended == ["cancelled"]
    assert (bench.entry.outcome, bench.entry.cancelled, bench.entry.error) == ("unknown", True, None)


@pytest.mark.parametrize(("fails", "outcome"), [(False, "done"), (True, "failed")])
async def test_cancelling_waits_for_a_sync_tool_and_records_its_true_outcome(fails: bool, outcome: str) -> None:
    entered, release = threading.Event(), threading.Event()

    def act() -> str:
        entered.set()
        release.wait(DEADLINE)
        if fails:
            raise ToolError("no")
        return "done"

    bench = Bench(act)
    work = asyncio.ensure_future(bench.run())
    await until(entered.is_set)
    work.cancel()
    await asyncio.sleep(0)
    work.cancel()
    await asyncio.sleep(0)
    assert not work.done()
    assert bench.ledger.entries == []
    release.set()
    with pytest.raises(asyncio.CancelledError):
        await work
    assert (bench.entry.outcome, bench.entry.cancelled) == (outcome, True)


async def test_a_sync_tool_that_waits_for_a_thread_is_not_started_when_cancelled() -> None:
    entered, release, ran = threading.Event(), threading.Event(), list[str]()

    def hold() -> None:
        entered.set()
        release.wait(DEADLINE)

    def act() -> None:
        ran.append("act")

    ledger = MemoryLedger()
    executor = Executor(ToolRegistry([ToolSpec(function=hold), ToolSpec(function=act)]), ledger=ledger, threads=1)
    holding = asyncio.ensure_future(executor.run("hold", {}))
    await until(entered.is_set)
    work = asyncio.ensure_future(executor.run("act", {}))
    await asyncio.sleep(0.01)
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    release.set()
    await holding
    assert ran == []
    assert (ledger.entries[0].tool, ledger.entries[0].outcome) == ("act", "not_started")


@pytest.mark.parametrize("is_async", [True, False])
async def test_a_tool_that_cancels_itself_has_failed_and_cancels_nobody(is_async: bool) -> None:
    def act() -> None:
        raise asyncio.CancelledError

    async def act_async() -> None:
        raise asyncio.CancelledError

    bench = Bench(act_async if is_async else act, effect="read")
    with pytest.raises(ToolError, match="cancelled itself"):
        await bench.run()
    assert (bench.entry.outcome, bench.entry.cancelled) == ("failed", False)


async def test_a_tool_cannot_swallow_the_cancellation_of_its_caller() -> None:
    entered = asyncio.Event()

    async def act() -> str:
        entered.set()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        return "finished all the same"

    bench = Bench(act)
    work = asyncio.ensure_future(bench.run())
    await entered.wait()
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    assert (bench.entry.outcome, bench.entry.cancelled) == ("done", True)


async def test_a_callers_own_timeout_cancels_the_tool() -> None:
    async def act() -> None:
        await asyncio.Event().wait()

    bench = Bench(act)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await bench.run()
    assert bench.entry.cancelled


async def test_an_earlier_cancellation_that_was_absorbed_does_not_count() -> None:
    async def act() -> None:
        raise asyncio.CancelledError

    bench = Bench(act)

    async def caller() -> None:
        task = asyncio.current_task()
        assert task
        task.cancel()
        try:
            await asyncio.sleep(0)
        except asyncio.CancelledError:
            with pytest.raises(ToolError):
                await bench.run()

    await asyncio.ensure_future(caller())
    assert not bench.entry.cancelled


# ---- observers -----------------------------------------------------------------------------------------------------


async def test_observers_that_fail_change_no_outcome(capsys: pytest.CaptureFixture[str]) -> None:
    class Broken:
        def record(self, entry: LedgerEntry) -> None:
            raise RuntimeError("full")

    def observe(event: RunEvent) -> None:
        raise RuntimeError("broken")

    registry = ToolRegistry()

    @registry.tool
    async def act() -> str:
        return "done"

    assert await Executor(registry, ledger=Broken(), on_event=observe).run("act", {}) == "done"
    logged = capsys.readouterr().out
    assert "ledger.failed" in logged
    assert "event.failed" in logged


async def test_events_can_be_read_as_a_stream() -> None:
    registry, stream = ToolRegistry(), EventStream(size=2)

    @registry.tool(effect="read")
    async def act() -> str:
        return "done"

    executor = Executor(registry, on_event=stream)
    await executor.run("act", {})
    await executor.run("act", {})
    stream.close()
    assert [event.kind async for event in stream] == ["call.started", "call.finished"]
    assert stream.dropped == 2


async def test_an_entry_names_the_call_and_holds_no_arguments() -> None:
    async def act(secret: str) -> str:
        return secret

    bench = Bench(act, cost=0.5, version="3")
    context = ToolContext(thread="t", run="r", call="c")
    await bench.executor.run_spec(bench.spec, {"secret": "ARGUMENT"}, context)
    entry = bench.entry
    assert (entry.thread, entry.run, entry.call, entry.tool, entry.version) == ("t", "r", "c", "act", "3")
    assert (entry.cost, entry.attempts, entry.effect, entry.error) == (0.5, 1, "write", None)
    assert entry.idempotency_key == context.idempotency_key
    assert "ARGUMENT" not in repr(entry)
    assert "ARGUMENT" not in repr(bench.events)
