"""The way of one call: in which order it is checked, approved and run, and what stops it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_adapter import (
    Allow,
    ApprovalDecision,
    ApprovalDenied,
    ApprovalRequest,
    Ask,
    Block,
    CallableGuard,
    CallableOutputGuard,
    CallbackApproval,
    Executor,
    GuardrailBlocked,
    InputGuard,
    LedgerEntry,
    MemoryLedger,
    ModelError,
    OutputGuard,
    Permission,
    Replace,
    RunEvent,
    RunLimitExceeded,
    RunLimits,
    ToolArgsInvalid,
    ToolContext,
    ToolError,
    ToolRegistry,
    ToolSpec,
    ToolUsageError,
)
from agent_adapter.guards import Verdict
from agent_adapter.values import Json, JsonObject

APPROVED = ApprovalDecision(approved=True, decided_by="ana")
DENIED = ApprovalDecision(approved=False, decided_by="ana", reason="too much")


class Shop:
    """One tool whose every station says that it was passed, and with what."""

    def __init__(self, *, decision: ApprovalDecision = APPROVED, asks: bool = True, **options: Any) -> None:
        self.steps: list[tuple[str, Any]] = []
        self.decision = decision
        self.asks = asks
        self.registry = ToolRegistry()
        self.spec = self.registry.add(
            ToolSpec(name="pay", function=self._pay, confirm=self._rule, guards=[_Watch(self, "own")], **options)
        )
        self.executor = Executor(
            self.registry,
            approval=CallbackApproval(self._review),
            guards=[_Watch(self, "all")],
            limits=RunLimits(tool_calls=5),
            ledger=self,
            on_event=self._event,
        )

    async def _pay(self, amount: int, to: str = "bo") -> dict[str, Any]:
        self.steps.append(("run", amount))
        return {"paid": amount}

    def _rule(self, arguments: JsonObject, context: ToolContext) -> bool:
        self.steps.append(("rule", arguments["amount"]))
        return self.asks

    def _review(self, request: ApprovalRequest) -> ApprovalDecision:
        self.steps.append(("ask", request.arguments["amount"]))
        return self.decision

    def record(self, entry: LedgerEntry) -> None:
        self.steps.append(("ledger", entry.outcome))

    def _event(self, event: RunEvent) -> None:
        if event.kind == "call.finished":
            self.steps.append(("event", event.outcome))

    @property
    def stations(self) -> list[str]:
        return [step for step, _ in self.steps]


class _Watch(InputGuard, OutputGuard):
    def __init__(self, shop: Shop, name: str) -> None:
        self._shop = shop
        self._name = name

    async def check_input(self, spec: ToolSpec, arguments: JsonObject, context: ToolContext) -> Verdict:
        self._shop.steps.append((f"in-{self._name}", arguments["amount"]))
        return Allow()

    async def check_output(self, spec: ToolSpec, result: Json, context: ToolContext) -> Verdict:
        self._shop.steps.append((f"out-{self._name}", result["paid"]))
        return Allow()


async def test_a_call_takes_every_station_once_and_in_order() -> None:
    shop = Shop()
    assert await shop.executor.run_spec(shop.spec, {"amount": 5}, ToolContext()) == {"paid": 5}
    assert shop.stations == ["in-all", "in-own", "rule", "ask", "run", "out-all", "out-own", "ledger", "event"]


async def test_edited_arguments_are_guarded_and_judged_again_and_only_they_run() -> None:
    shop = Shop(decision=ApprovalDecision(approved=True, edited_args={"amount": 3.0}))
    assert await shop.executor.run_spec(shop.spec, {"amount": 5}, ToolContext()) == {"paid": 3}
    first = [("in-all", 5), ("in-own", 5), ("rule", 5), ("ask", 5)]
    again = [("in-all", 3), ("in-own", 3), ("rule", 3), ("run", 3)]
    assert shop.steps[:8] == first + again


async def test_edited_arguments_that_are_not_valid_do_not_run() -> None:
    shop = Shop(decision=ApprovalDecision(approved=True, edited_args={"amount": "much"}))
    with pytest.raises(ToolArgsInvalid):
        await shop.executor.run_spec(shop.spec, {"amount": 5}, ToolContext())
    assert "run" not in shop.stations


async def test_edits_replace_the_arguments_as_a_whole() -> None:
    asked: list[JsonObject] = []
    registry = ToolRegistry()

    @registry.tool(confirm=True)
    def pay(amount: int, to: str = "bo") -> list[Any]:
        return [amount, to]

    def edit(request: ApprovalRequest) -> ApprovalDecision:
        asked.append(request.arguments)
        return ApprovalDecision(approved=True, edited_args={"amount": 1})

    executor = Executor(registry, approval=CallbackApproval(edit))
    assert await executor.run("pay", {"amount": 5, "to": "cy"}) == [1, "bo"]
    assert asked == [{"amount": 5, "to": "cy"}]


async def test_invalid_arguments_reach_no_guard_rule_or_person() -> None:
    shop = Shop()
    with pytest.raises(ToolArgsInvalid):
        await shop.executor.run_spec(shop.spec, {"amount": "5"}, ToolContext())
    assert shop.stations == ["ledger", "event"]


async def test_a_denied_call_does_not_run_and_the_model_reads_who_and_why() -> None:
    shop = Shop(decision=DENIED)
    with pytest.raises(ApprovalDenied, match=r"'pay' was denied by ana: too much\. Nothing was run"):
        await shop.executor.run_spec(shop.spec, {"amount": 5}, ToolContext())
    assert "run" not in shop.stations


async def test_a_call_that_needs_no_approval_asks_nobody() -> None:
    shop = Shop(asks=False)
    await shop.executor.run_spec(shop.spec, {"amount": 5}, ToolContext())
    assert "ask" not in shop.stations


async def test_a_limit_stops_a_call_before_the_rule_and_the_person() -> None:
    shop = Shop(asks=False)
    context = ToolContext(run="r")
    for _ in range(5):
        await shop.executor.run_spec(shop.spec, {"amount": 5}, context)
    shop.steps.clear()
    with pytest.raises(RunLimitExceeded):
        await shop.executor.run_spec(shop.spec, {"amount": 5}, context)
    assert shop.stations == ["in-all", "in-own", "ledger", "event"]
    assert await shop.executor.run_spec(shop.spec, {"amount": 5}, ToolContext(run="another")) == {"paid": 5}


async def test_without_a_port_nobody_approves() -> None:
    shop = Shop()
    with pytest.raises(ApprovalDenied, match="no approval port"):
        await Executor(shop.registry).run_spec(shop.spec, {"amount": 5}, ToolContext())
    assert "run" not in shop.stations


async def test_preparing_has_no_effect() -> None:
    shop = Shop()
    prepared = await shop.executor.prepare(shop.spec, {"amount": 5.0}, ToolContext(run="r"))
    assert (prepared.arguments, prepared.needs_approval) == ({"amount": 5, "to": "bo"}, True)
    assert shop.stations == ["in-all", "in-own", "rule"]
    assert shop.executor.meters.of(thread="", run="r").tool_calls == 0


# ---- permission ----------------------------------------------------------------------------------------------------


async def permitted(shop: Shop, decision: ApprovalDecision, *, raw: JsonObject, **other: Any) -> Any:
    """Run with a permission that was given for a call of 5."""
    context = ToolContext(thread="t", run="r", call="c")
    prepared = await shop.executor.prepare(shop.spec, {"amount": 5}, context)
    shop.steps.clear()
    permission = Permission(digest=prepared.digest(context), decision=decision)
    used = replace(context, **other, permission=permission)
    return await shop.executor.run_spec(shop.spec, raw, used)


async def test_a_permission_for_this_very_call_replaces_the_question() -> None:
    shop = Shop()
    assert await permitted(shop, APPROVED, raw={"amount": 5.0}) == {"paid": 5}
    assert "ask" not in shop.stations


@pytest.mark.parametrize(
    ("raw", "other"),
    [
        ({"amount": 6}, {}),
        ({"amount": 5, "to": "cy"}, {}),
        ({"amount": 5}, {"call": "c2"}),
        ({"amount": 5}, {"run": "r2"}),
        ({"amount": 5}, {"thread": "t2"}),
    ],
)
async def test_a_permission_for_another_call_is_ignored(raw: JsonObject, other: dict[str, Any]) -> None:
    shop = Shop(decision=DENIED)
    with pytest.raises(ApprovalDenied):
        await permitted(shop, APPROVED, raw=raw, **other)
    assert "ask" in shop.stations


async def test_a_permission_for_another_version_of_the_tool_is_ignored() -> None:
    old, new = Shop(), Shop(version="2", decision=DENIED)
    context = ToolContext(run="r", call="c")
    prepared = await old.executor.prepare(old.spec, {"amount": 5}, context)
    permission = Permission(digest=prepared.digest(context), decision=APPROVED)
    with pytest.raises(ApprovalDenied):
        await new.executor.run_spec(new.spec, {"amount": 5}, ToolContext(run="r", call="c", permission=permission))


async def test_a_refusal_holds_though_the_rule_asks_no_more() -> None:
    with pytest.raises(ApprovalDenied):
        await permitted(Shop(asks=False), DENIED, raw={"amount": 5})


async def test_a_permission_may_edit() -> None:
    edited = ApprovalDecision(approved=True, edited_args={"amount": 2})
    assert await permitted(Shop(), edited, raw={"amount": 5}) == {"paid": 2}


async def test_the_tool_sees_under_which_decision_it_runs() -> None:
    registry = ToolRegistry()

    @registry.tool(confirm=True)
    def who(context: ToolContext) -> str | None:
        return context.approval.decided_by if context.approval else None

    assert await Executor(registry, approval=CallbackApproval(lambda _: APPROVED)).run("who", {}) == "ana"


# ---- rules and guards ----------------------------------------------------------------------------------------------


def tool(**options: Any) -> tuple[ToolRegistry, list[int]]:
    registry, ran = ToolRegistry(), list[int]()

    @registry.tool(**options)
    def act(value: int) -> int:
        ran.append(value)
        return value

    return registry, ran


async def async_rule(arguments: JsonObject, context: ToolContext) -> bool:
    await asyncio.sleep(0)
    return arguments["value"] > 10


async def test_a_rule_may_be_async() -> None:
    registry, ran = tool(confirm=async_rule)
    executor = Executor(registry)
    assert await executor.run("act", {"value": 5}) == 5
    with pytest.raises(ApprovalDenied):
        await executor.run("act", {"value": 11})
    assert ran == [5]


def raising_rule(arguments: JsonObject, context: ToolContext) -> bool:
    raise RuntimeError("MARKER")


def forgetful_rule(arguments: JsonObject, context: ToolContext) -> Any:
    return None


def number_rule(arguments: JsonObject, context: ToolContext) -> Any:
    return 0


@pytest.mark.parametrize("rule", [raising_rule, forgetful_rule, number_rule])
async def test_a_rule_that_raises_or_gives_no_bool_means_do_not_run(rule: Any) -> None:
    registry, ran = tool(confirm=rule)
    with pytest.raises(GuardrailBlocked, match="was not run") as blocked:
        await Executor(registry, approval=CallbackApproval(lambda _: True)).run("act", {"value": 5})
    assert ran == []
    assert "MARKER" not in blocked.value.message


def meddling_rule(arguments: JsonObject, context: ToolContext) -> bool:
    arguments["value"] = 1_000
    return False


async def test_a_rule_cannot_change_the_arguments() -> None:
    registry, _ = tool(confirm=meddling_rule)
    assert await Executor(registry).run("act", {"value": 5}) == 5


def raising_guard(arguments: JsonObject, context: ToolContext) -> bool:
    raise RuntimeError("MARKER")


def silent_guard(arguments: JsonObject, context: ToolContext) -> Any:
    return None


def refusing_guard(arguments: JsonObject, context: ToolContext) -> bool:
    return False


def blocking_guard(arguments: JsonObject, context: ToolContext) -> Verdict:
    return Block("not today")


def invalid_guard(arguments: JsonObject, context: ToolContext) -> Verdict:
    return Replace({"value": "x"})


def speaking_guard(arguments: JsonObject, context: ToolContext) -> bool:
    raise GuardrailBlocked("Ask for less.")


async def test_a_guard_may_say_itself_why_it_blocks() -> None:
    registry, ran = tool(guards=[CallableGuard(speaking_guard)])
    with pytest.raises(GuardrailBlocked, match="Ask for less"):
        await Executor(registry).run("act", {"value": 5})
    assert ran == []


@pytest.mark.parametrize("guard", [raising_guard, silent_guard, refusing_guard, blocking_guard])
async def test_a_guard_that_does_not_allow_blocks(guard: Any) -> None:
    registry, ran = tool(guards=[CallableGuard(guard)])
    with pytest.raises(GuardrailBlocked, match=rf"'{guard.__name__}' stopped 'act'") as blocked:
        await Executor(registry).run("act", {"value": 5})
    assert ran == []
    assert not blocked.value.started
    assert "MARKER" not in blocked.value.message


async def test_what_a_guard_puts_in_place_of_the_arguments_is_validated() -> None:
    registry, ran = tool(guards=[CallableGuard(invalid_guard)])
    with pytest.raises(ToolArgsInvalid):
        await Executor(registry).run("act", {"value": 5})
    assert ran == []


async def asking_guard(arguments: JsonObject, context: ToolContext) -> Verdict:
    return Ask("looks odd") if arguments["value"] > 10 else Replace({"value": arguments["value"] + 1})


async def test_a_guard_can_replace_arguments_or_ask_a_person() -> None:
    asked: list[ApprovalRequest] = []

    def review(request: ApprovalRequest) -> bool:
        asked.append(request)
        return True

    registry, _ = tool(guards=[CallableGuard(asking_guard)])
    executor = Executor(registry, approval=CallbackApproval(review))
    assert await executor.run("act", {"value": 5}) == 6
    assert await executor.run("act", {"value": 11}) == 11
    assert [request.reason for request in asked] == ["looks odd"]


def wipe(result: Json, context: ToolContext) -> Verdict:
    return Replace("***")


def withhold(result: Json, context: ToolContext) -> Verdict:
    return Block("holds a secret")


def too_late(result: Json, context: ToolContext) -> Verdict:
    return Ask("odd")


def unfit(result: Json, context: ToolContext) -> Verdict:
    return Replace(float("nan"))


async def test_an_output_guard_can_replace_the_result() -> None:
    registry, _ = tool(guards=[CallableOutputGuard(wipe)])
    assert await Executor(registry).run("act", {"value": 5}) == "***"


@pytest.mark.parametrize("guard", [withhold, too_late, unfit])
async def test_an_output_guard_withholds_and_the_model_reads_that_the_tool_has_run(guard: Any) -> None:
    registry, ran = tool(guards=[CallableOutputGuard(guard)])
    ledger = MemoryLedger()
    with pytest.raises(GuardrailBlocked, match=r"withholds the result of 'act'.*The tool has run") as blocked:
        await Executor(registry, ledger=ledger).run("act", {"value": 5})
    assert ran == [5]
    assert blocked.value.started
    assert (ledger.entries[0].outcome, ledger.entries[0].error) == ("done", "guardrail-blocked")


# ---- usage ---------------------------------------------------------------------------------------------------------


async def test_only_the_registrys_own_tools_run() -> None:
    registry, ran = tool()
    other, _ = tool(version="2")
    executor = Executor(registry)
    with pytest.raises(ToolUsageError, match="is another one"):
        await executor.run_spec(other["act"], {"value": 1}, ToolContext())
    with pytest.raises(ToolUsageError, match="No tool 'unknown'"):
        await executor.run("unknown", {})
    assert ran == []


def test_an_async_observer_is_refused() -> None:
    async def observe(event: RunEvent) -> None: ...

    with pytest.raises(ToolUsageError, match="EventStream"):
        Executor(ToolRegistry(), on_event=observe)  # pyright: ignore[reportArgumentType]


# ---- whatever happens ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Chance:
    """What every station does to one call."""

    valid: bool
    exhausted: bool
    confirm: bool | None
    """None: the rule raises."""
    before: str
    after: str
    decision: ApprovalDecision | None
    """None: the port raises."""
    ending: str

    @property
    def asks(self) -> bool:
        return self.confirm is True or self.before == "ask"

    @property
    def may_run(self) -> bool:
        approved = self.decision is not None and self.decision.approved
        stopped = self.exhausted or self.confirm is None or self.before in {"block", "raise"}
        return self.valid and not stopped and (approved or not self.asks)


class Trial:
    """One call of one tool under one chance, and what happened in it."""

    def __init__(self, chance: Chance) -> None:
        self.chance = chance
        self.happened: list[str] = []
        self.ledger = MemoryLedger()
        self.events: list[RunEvent] = []
        guards = [CallableGuard(self._before), CallableOutputGuard(self._after)]
        self._spec = ToolSpec(function=self.act, confirm=self._rule, guards=guards)
        self._executor = Executor(
            ToolRegistry([self._spec]),
            approval=CallbackApproval(self._review),
            limits=RunLimits(tool_calls=0 if chance.exhausted else None),
            ledger=self.ledger,
            on_event=self.events.append,
        )

    async def run(self) -> Json:
        raw = {"value": 1 if self.chance.valid else "x"}
        try:
            return await self._executor.run_spec(self._spec, raw, ToolContext())
        except ModelError as error:
            return error.as_result()

    async def act(self, value: int) -> Any:
        self.happened.append("ran")
        match self.chance.ending:
            case "tool error":
                raise ToolError("no")
            case "raise":
                raise RuntimeError("MARKER")
            case "cancel itself":
                raise asyncio.CancelledError
            case ending:
                return {1} if ending == "not json" else value

    def _rule(self, arguments: JsonObject, context: ToolContext) -> bool:
        if self.chance.confirm is None:
            raise RuntimeError("MARKER")
        return self.chance.confirm

    def _before(self, arguments: JsonObject, context: ToolContext) -> Verdict:
        return verdict_of(self.chance.before, {"value": 2})

    def _after(self, result: Json, context: ToolContext) -> Verdict:
        return verdict_of(self.chance.after, 3)

    def _review(self, request: ApprovalRequest) -> ApprovalDecision:
        self.happened.append("asked")
        if self.chance.decision is None:
            raise RuntimeError("MARKER")
        return self.chance.decision


def verdict_of(name: str, value: Json) -> Verdict:
    if name == "raise":
        raise RuntimeError("MARKER")
    return {"allow": Allow(), "block": Block("no"), "ask": Ask("?"), "replace": Replace(value)}[name]


verdicts = st.sampled_from(["allow", "block", "ask", "replace", "raise"])
chances = st.builds(
    Chance,
    valid=st.booleans(),
    exhausted=st.booleans(),
    confirm=st.sampled_from([True, False, None]),
    before=verdicts,
    after=verdicts,
    decision=st.sampled_from([APPROVED, DENIED, ApprovalDecision(approved=True, edited_args={"value": 4}), None]),
    ending=st.sampled_from(["return", "tool error", "raise", "not json", "cancel itself"]),
)


@given(chances)
def test_a_call_runs_exactly_when_all_stations_let_it_and_only_after_approval(chance: Chance) -> None:
    trial = Trial(chance)
    asyncio.run(trial.run())
    assert ("ran" in trial.happened) is chance.may_run
    assert not chance.may_run or trial.happened == (["asked", "ran"] if chance.asks else ["ran"])


@given(chances)
def test_every_call_has_one_entry_and_one_terminal_event(chance: Chance) -> None:
    trial = Trial(chance)
    asyncio.run(trial.run())
    (entry,) = trial.ledger.entries
    assert [event.kind for event in trial.events].count("call.finished") == 1
    assert trial.events[-1].kind == "call.finished"
    assert trial.events[-1].outcome == entry.outcome
    assert (entry.outcome == "not_started") is ("ran" not in trial.happened)


@given(chances)
def test_no_text_of_an_unexpected_exception_reaches_the_model(chance: Chance) -> None:
    assert "MARKER" not in repr(asyncio.run(Trial(chance).run()))
