"""Asking people: decisions, ports, batches."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from pydantic import ValidationError

from agent_adapter import (
    ApprovalAlreadyDecided,
    ApprovalDecision,
    ApprovalDenied,
    ApprovalPending,
    ApprovalRequest,
    CallbackApproval,
    DeferredApproval,
    Executor,
    MemoryApprovalStore,
    MemoryLedger,
    ModelError,
    RunEvent,
    RunLimits,
    ToolArgsInvalid,
    ToolCall,
    ToolContext,
    ToolError,
    ToolRegistry,
    ToolUsageError,
    ask_each,
)
from agent_adapter.approval.tokens import TokenBook

YES = ApprovalDecision(approved=True, decided_by="ana")
NO = ApprovalDecision(approved=False, decided_by="bo", reason="no")


def question(call: str = "c") -> ApprovalRequest:
    return ApprovalRequest(id=f"ap-{call}", run="r", call=call, tool="pay", arguments={"amount": 5})


# ---- decisions -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("approved", ["true", 1, None, "yes", 0, {}, "false"])
def test_only_a_boolean_decides(approved: Any) -> None:
    with pytest.raises(ValidationError):
        ApprovalDecision(approved=approved)


def test_a_decision_has_no_other_parts() -> None:
    with pytest.raises(ValidationError):
        ApprovalDecision.model_validate({"approved": True, "extra": 1})
    with pytest.raises(ValidationError):
        ApprovalDecision.model_validate({})


def test_a_refusal_edits_nothing() -> None:
    with pytest.raises(ValidationError, match="approved: true only"):
        ApprovalDecision(approved=False, edited_args={})


# ---- callback ------------------------------------------------------------------------------------------------------


async def review_later(request: ApprovalRequest) -> ApprovalDecision:
    await asyncio.sleep(0)
    return NO


async def test_a_reviewer_may_be_sync_or_async_and_answer_with_a_bool() -> None:
    assert (await CallbackApproval(lambda _: YES).ask(question())) == YES
    assert (await CallbackApproval(lambda _: False).ask(question())).approved is False
    assert (await CallbackApproval(review_later).ask(question())) == NO


@pytest.mark.parametrize("answer", [None, "yes", 1, {"approved": True}])
async def test_a_reviewer_that_answers_with_anything_else_is_wrong(answer: Any) -> None:
    with pytest.raises(ToolUsageError, match="Return an ApprovalDecision"):
        await CallbackApproval(lambda _: answer).ask(question())


async def test_a_port_that_fails_approves_nothing_and_says_nothing_of_its_cause() -> None:
    def broken(request: ApprovalRequest) -> bool:
        raise RuntimeError("MARKER")

    bench = Bench(CallbackApproval(broken))
    with pytest.raises(ApprovalDenied, match="the port failed") as denied:
        await bench.pay(5)
    assert "MARKER" not in denied.value.message
    assert bench.paid == []


# ---- deferred ------------------------------------------------------------------------------------------------------


class Bench:
    """A tool that needs approval above 0, and one that does not."""

    def __init__(self, port: Any, **options: Any) -> None:
        self.paid: list[int] = []
        self.ledger = MemoryLedger()
        self.events: list[RunEvent] = []
        registry = ToolRegistry()

        @registry.tool(confirm=True, summary="Pays", cost=1.0, **options)
        async def pay(amount: int) -> int:
            self.paid.append(amount)
            return amount

        @registry.tool
        async def look() -> str:
            self.paid.append(0)
            return "seen"

        self.executor = Executor(
            registry,
            approval=port,
            ledger=self.ledger,
            on_event=self.events.append,
            limits=RunLimits(tool_calls=100),
        )

    async def pay(self, amount: int, call: str = "c") -> Any:
        return await self.executor.run("pay", {"amount": amount}, ToolContext(run="r", call=call))

    @property
    def kinds(self) -> list[str]:
        return [event.kind for event in self.events]


async def test_a_deferred_call_is_recorded_and_runs_once_after_the_decision() -> None:
    store = MemoryApprovalStore()
    bench = Bench(DeferredApproval(store))
    with pytest.raises(ApprovalPending) as pending:
        await bench.pay(5)
    (request,) = pending.value.requests
    assert (request.tool, request.arguments, request.summary, request.run) == ("pay", {"amount": 5}, "Pays", "r")
    with pytest.raises(ApprovalPending):
        await bench.pay(5)
    assert len(await store.pending()) == 1
    await store.decide(request.id, YES)
    assert await bench.pay(5) == 5
    with pytest.raises(ApprovalAlreadyDecided, match="consumed by 'ana'"):
        await bench.pay(5)
    assert bench.paid == [5]


async def test_a_call_that_waits_has_no_entry_no_terminal_event_and_counts_for_nothing() -> None:
    bench = Bench(DeferredApproval(MemoryApprovalStore()))
    with pytest.raises(ApprovalPending):
        await bench.pay(5)
    assert bench.ledger.entries == []
    assert bench.kinds == ["approval.requested", "call.waiting"]
    meter = bench.executor.meters.of(thread="", run="r")
    assert (meter.tool_calls, meter.cost) == (0, 0.0)


async def test_other_arguments_are_another_question() -> None:
    store = MemoryApprovalStore()
    bench = Bench(DeferredApproval(store))
    for amount, call in ((5, "c"), (6, "c"), (5, "c2")):
        with pytest.raises(ApprovalPending):
            await bench.pay(amount, call)
    assert len(await store.pending()) == 3


async def test_a_denied_call_is_denied_every_time() -> None:
    store = MemoryApprovalStore()
    bench = Bench(DeferredApproval(store))
    with pytest.raises(ApprovalPending) as pending:
        await bench.pay(5)
    await store.decide(pending.value.requests[0].id, NO)
    for _ in range(2):
        with pytest.raises(ApprovalDenied, match="denied by bo: no"):
            await bench.pay(5)


async def test_an_expired_approval_is_no_persons_no() -> None:
    store = MemoryApprovalStore()
    bench = Bench(DeferredApproval(store, expires=1e-9))
    with pytest.raises(ApprovalDenied, match="expired before anybody decided"):
        await bench.pay(5)


async def test_a_withdrawn_approval_is_no_persons_no() -> None:
    store = MemoryApprovalStore()
    bench = Bench(DeferredApproval(store))
    with pytest.raises(ApprovalPending) as pending:
        await bench.pay(5)
    await store.withdraw(pending.value.requests[0].id)
    with pytest.raises(ApprovalDenied, match="was withdrawn"):
        await bench.pay(5)


@pytest.mark.parametrize(
    ("tool", "port", "seconds"),
    [(None, 60.0, 60.0), (None, "never", None), (30.0, 60.0, 30.0), ("never", 60.0, None), (30.0, "never", 30.0)],
)
async def test_a_tools_own_lifetime_goes_first(tool: Any, port: Any, seconds: float | None) -> None:
    store = MemoryApprovalStore()
    bench = Bench(DeferredApproval(store, expires=port), expires=tool)
    with pytest.raises(ApprovalPending):
        await bench.pay(5)
    (record,) = await store.pending()
    lifetime = record.expires_at and record.expires_at - record.recorded_at
    assert lifetime == (None if seconds is None else timedelta(seconds=seconds))


@pytest.mark.parametrize("round_", range(20))
async def test_of_many_that_use_one_approval_at_once_one_runs(round_: int) -> None:
    store = MemoryApprovalStore()
    bench = Bench(DeferredApproval(store))
    with pytest.raises(ApprovalPending) as pending:
        await bench.pay(5)
    await store.decide(pending.value.requests[0].id, YES)
    results = await asyncio.gather(*(bench.pay(5) for _ in range(5)), return_exceptions=True)
    assert bench.paid == [5]
    assert [type(result) for result in results if result != 5] == [ApprovalAlreadyDecided] * 4


# ---- batches -------------------------------------------------------------------------------------------------------


async def test_a_batch_is_recorded_as_a_whole_before_anything_is_decided() -> None:
    store = MemoryApprovalStore()
    port = DeferredApproval(store)
    requests = [question("a"), question("b"), question("c")]
    with pytest.raises(ApprovalPending) as pending:
        await ask_each(port, requests)
    assert [request.id for request in pending.value.requests] == ["ap-a", "ap-b", "ap-c"]
    await store.decide("ap-c", YES)
    await store.decide("ap-a", NO)
    with pytest.raises(ApprovalPending, match="'ap-b'"):
        await ask_each(port, requests)
    assert (await store.get("ap-c")).status == "approved"
    await store.decide("ap-b", YES)
    assert await ask_each(port, requests) == [NO, YES, YES]
    assert (await store.get("ap-c")).status == "consumed"


async def test_a_callback_is_asked_one_by_one_in_order() -> None:
    asked: list[str] = []

    def review(request: ApprovalRequest) -> bool:
        asked.append(request.call)
        return request.call != "b"

    decisions = await ask_each(CallbackApproval(review), [question("a"), question("b"), question("c")])
    assert asked == ["a", "b", "c"]
    assert [decision.approved for decision in decisions] == [True, False, True]


def calls(*amounts: Any) -> list[ToolCall]:
    return [
        ToolCall("look" if amount is None else "pay", {} if amount is None else {"amount": amount}, context)
        for number, amount in enumerate(amounts)
        for context in [ToolContext(run="r", call=str(number))]
    ]


async def test_nothing_of_a_batch_runs_while_an_approval_of_it_is_open() -> None:
    store = MemoryApprovalStore()
    bench = Bench(DeferredApproval(store))
    batch = calls(1, None, 2)
    with pytest.raises(ApprovalPending) as pending:
        await bench.executor.run_many(batch)
    assert len(pending.value.requests) == 2
    assert bench.paid == []
    assert bench.ledger.entries == []
    for request in pending.value.requests:
        await store.decide(request.id, YES)
    assert await bench.executor.run_many(batch) == [1, "seen", 2]
    assert [entry.outcome for entry in bench.ledger.entries] == ["done"] * 3


async def test_a_batch_gives_results_and_model_errors_in_order() -> None:
    bench = Bench(CallbackApproval(lambda request: request.arguments["amount"] < 10))
    results = await bench.executor.run_many(calls(1, "x", 11, None))
    assert results[0] == 1
    assert isinstance(results[1], ToolArgsInvalid)
    assert isinstance(results[2], ApprovalDenied)
    assert results[3] == "seen"
    assert len(bench.ledger.entries) == 4
    assert bench.kinds.count("call.finished") == 4


async def test_a_batch_runs_so_many_at_a_time() -> None:
    now, most = 0, 0
    registry = ToolRegistry()

    @registry.tool
    async def act() -> None:
        nonlocal now, most
        now += 1
        most = max(most, now)
        for _ in range(5):
            await asyncio.sleep(0)
        now -= 1

    executor = Executor(registry)
    assert await executor.run_many([ToolCall("act", {})] * 10, concurrency=3) == [None] * 10
    assert most == 3
    assert await executor.run_many([]) == []


async def test_an_unknown_tool_in_a_batch_stops_it_before_anything_runs() -> None:
    bench = Bench(CallbackApproval(lambda _: True))
    with pytest.raises(ToolUsageError, match="No tool 'nope'"):
        await bench.executor.run_many([*calls(1), ToolCall("nope", {})])
    assert bench.paid == []


async def test_cancelling_a_batch_accounts_for_every_call() -> None:
    entered = asyncio.Event()
    registry, ledger = ToolRegistry(), MemoryLedger()

    @registry.tool
    async def act() -> None:
        entered.set()
        await asyncio.Event().wait()

    executor = Executor(registry, ledger=ledger)
    work = asyncio.ensure_future(executor.run_many([ToolCall("act", {})] * 5, concurrency=2))
    await entered.wait()
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    assert sorted(entry.outcome for entry in ledger.entries) == ["not_started"] * 3 + ["unknown"] * 2
    assert all(entry.cancelled for entry in ledger.entries)


async def test_one_failure_in_a_batch_disturbs_no_sibling() -> None:
    registry = ToolRegistry()

    @registry.tool
    async def act(value: int) -> int:
        await asyncio.sleep(0)
        if value == 1:
            raise ToolError("one")
        return value

    results = await Executor(registry).run_many([ToolCall("act", {"value": value}) for value in range(3)])
    assert (results[0], results[2]) == (0, 2)
    assert isinstance(results[1], ModelError)


# ---- tokens --------------------------------------------------------------------------------------------------------

CALL: dict[str, Any] = {"run": "r", "call": "c", "tool": "pay", "fingerprint": "f", "arguments": {"amount": 5}}


def test_a_token_opens_its_call_once() -> None:
    book = TokenBook()
    token = book.mint(YES, **CALL)
    assert book.spend(token, **CALL) == YES
    assert book.spend(token, **CALL) is None


@pytest.mark.parametrize(
    "other", [{"run": "x"}, {"call": "x"}, {"tool": "x"}, {"fingerprint": "x"}, {"arguments": {"amount": 6}}]
)
def test_another_calls_token_opens_nothing_and_stays_good(other: dict[str, Any]) -> None:
    book = TokenBook()
    token = book.mint(YES, **CALL)
    assert book.spend(token, **(CALL | other)) is None
    assert book.spend(token, **CALL) == YES


@pytest.mark.parametrize("forged", ["", "x" * 43, None, 1, True, ["x"], "\ud800"])
def test_a_forged_token_opens_nothing(forged: Any) -> None:
    book = TokenBook()
    book.mint(YES, **CALL)
    assert book.spend(forged, **CALL) is None


def test_a_refusal_has_no_token() -> None:
    with pytest.raises(ValueError, match="only an approval"):
        TokenBook().mint(NO, **CALL)


def test_the_oldest_tokens_are_void_beyond_capacity() -> None:
    book = TokenBook(capacity=2)
    tokens = [book.mint(YES, **CALL) for _ in range(3)]
    assert [book.spend(token, **CALL) for token in tokens] == [None, YES, YES]


def test_tokens_are_long_and_differ() -> None:
    book = TokenBook()
    tokens = {book.mint(YES, **CALL) for _ in range(100)}
    assert len(tokens) == 100
    assert min(len(token) for token in tokens) >= 43
