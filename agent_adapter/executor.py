"""The one way a call takes: checked, approved, run, accounted for."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from agent_adapter.account import Account, OpenCall
from agent_adapter.approval.batch import ask_each
from agent_adapter.approval.decision import ApprovalDecision, ApprovalRequest
from agent_adapter.approval.ports import ApprovalPort
from agent_adapter.causes import log_cause
from agent_adapter.context import Permission, ToolContext
from agent_adapter.errors import AdapterError, ApprovalDenied, ApprovalPending, ModelError, ToolError, ToolUsageError
from agent_adapter.events import OnEvent
from agent_adapter.guards import Guard
from agent_adapter.invocation import Invoker
from agent_adapter.ledger import Ledger
from agent_adapter.limits import RunLimits, RunMeter, RunMeters
from agent_adapter.preparation import PreparedCall, guard_result, prepare_call
from agent_adapter.registry import ToolRegistry
from agent_adapter.spec import ToolSpec
from agent_adapter.values import Json, NotJson, dumped


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call of `run_many`."""

    tool: str | ToolSpec
    arguments: Any
    context: ToolContext = field(default_factory=ToolContext)


class Executor:
    """Runs the calls of one registry, each in the same order.

    Resolve -> validate -> input guards -> limits -> confirm rule -> approval (the context's permission if it is for
    this very call, else the port; no port: denied) -> arguments a person edited: validate, guard, judge again -> run,
    with timeout and retries -> output guards -> canonical JSON result -> ledger -> event.

    `guards` see the calls of all tools, before the tool's own guards. `limits` hold per run; `meters` has the counts.
    `threads` is how many sync tools run at once. Events and ledger entries are handed over on the event loop.
    """

    def __init__(
        self,
        registry: ToolRegistry,
        *,
        approval: ApprovalPort | None = None,
        guards: Sequence[Guard] = (),
        limits: RunLimits | None = None,
        ledger: Ledger | None = None,
        on_event: OnEvent | None = None,
        threads: int = 32,
    ) -> None:
        if inspect.iscoroutinefunction(on_event):
            msg = "on_event is an async function. Pass a function that returns at once, or an EventStream."
            raise ToolUsageError(msg)
        self.registry = registry
        self.approval = approval
        self.guards = tuple(guards)
        self.meters = RunMeters(limits)
        self._account = Account(ledger, on_event)
        self._invoker = Invoker(threads=threads)

    async def prepare(self, spec: ToolSpec, raw_arguments: Any, context: ToolContext) -> PreparedCall:
        """Everything up to the confirm rule, without any effect: nothing is asked, run, counted or recorded.

        Raises ToolArgsInvalid, GuardrailBlocked or RunLimitExceeded for what may not run.
        """
        self._resolve(spec)
        meter = self.meters.of(thread=context.thread, run=context.run)
        return await prepare_call(
            spec, raw_arguments, context, guards=self.guards, limit=lambda: meter.check_tool_call(spec.cost)
        )

    async def run(self, name: str, raw_arguments: Any, context: ToolContext | None = None) -> Json:
        """`run_spec` of the tool of this name."""
        return await self.run_spec(self.registry[name], raw_arguments, context or ToolContext())

    async def run_spec(self, spec: ToolSpec, raw_arguments: Any, context: ToolContext) -> Json:
        """The whole way of one call. Returns its JSON result.

        Raises a ModelError for the model to read (`as_result()`); ApprovalPending, ApprovalAlreadyDecided and
        ToolUsageError for others. Cancelling stops an async tool. A sync tool cannot be stopped: it is waited for, its
        true outcome goes into the ledger, and then CancelledError is raised.
        """
        call = OpenCall(spec=spec, raw=raw_arguments, context=context)
        try:
            await self._prepare(call)
            await self._ask([call])
            result = await self._finish(call)
        except BaseException as problem:
            self._settle(call, problem)
            raise
        self._settle(call, None)
        return result

    async def run_many(self, calls: Iterable[ToolCall], *, concurrency: int = 8) -> list[Json | ModelError]:
        """Several calls, at most `concurrency` at a time: results and model errors, in order.

        Two-phase: every call is checked, and all that need it are asked about, before the first one runs. If approvals
        are pending then, or anything else than a ModelError came up, no call runs and that is raised.
        """
        opened = [OpenCall(spec=self._spec(call.tool), raw=call.arguments, context=call.context) for call in calls]
        gate = asyncio.Semaphore(concurrency)
        try:
            errors = await _all(opened, lambda call: self._prepare_in(gate, call))
            ready = [call for call, error in zip(opened, errors, strict=True) if error is None]
            await self._ask(ready)
            results = await _all(ready, lambda call: self._finish_in(gate, call))
        except BaseException as problem:
            for call in opened:
                self._settle(call, problem)
            raise
        finished = iter(results)
        return [next(finished) if error is None else error for error in errors]

    def _spec(self, tool: str | ToolSpec) -> ToolSpec:
        return tool if isinstance(tool, ToolSpec) else self.registry[tool]

    def _resolve(self, spec: ToolSpec) -> None:
        if self.registry[spec.name] is not spec:
            msg = f"Tool {spec.name!r} of this executor's registry is another one. Run the registry's own."
            raise ToolUsageError(msg)

    async def _prepare_in(self, gate: asyncio.Semaphore, call: OpenCall) -> ModelError | None:
        try:
            async with gate:
                await self._prepare(call)
        except ModelError as problem:
            self._settle(call, problem)
            return problem
        return None

    async def _finish_in(self, gate: asyncio.Semaphore, call: OpenCall) -> Json | ModelError:
        try:
            async with gate:
                result = await self._finish(call)
        except ModelError as problem:
            self._settle(call, problem)
            return problem
        except BaseException as problem:
            self._settle(call, problem)
            raise
        self._settle(call, None)
        return result

    async def _prepare(self, call: OpenCall) -> None:
        self._resolve(call.spec)

        def charge() -> None:
            self._meter(call).charge_tool_call(call.spec.cost)
            call.charged = True

        call.take(await prepare_call(call.spec, call.raw, call.context, guards=self.guards, limit=charge))

    async def _ask(self, calls: Sequence[OpenCall]) -> None:
        """Every call has its decision after this, if it needs one. What the port raises is raised: nothing may run."""
        for call in calls:
            permission = call.context.permission
            if permission is not None and permission.digest == call.digest:
                call.decision = permission.decision
        asked = [call for call in calls if call.decision is None and call.asks]
        if not asked:
            return
        for call in asked:
            self._account.tell(call, "approval.requested")
        decisions = await self._decisions([call.question() for call in asked])
        for call, decision in zip(asked, decisions, strict=True):
            call.decision = decision
            self._account.tell(call, "approval.decided", approved=decision.approved)

    async def _decisions(self, requests: Sequence[ApprovalRequest]) -> Sequence[ApprovalDecision]:
        if self.approval is None:
            reason = "nobody can be asked here: the executor has no approval port"
            return [ApprovalDecision(approved=False, reason=reason)] * len(requests)
        try:
            return await ask_each(self.approval, requests)
        except AdapterError:
            raise
        except Exception as problem:  # noqa: BLE001 - fails closed
            log_cause("approval.port_failed", problem)
            return [ApprovalDecision(approved=False, reason="nobody could be asked: the port failed")] * len(requests)

    async def _finish(self, call: OpenCall) -> Json:
        """Apply the decision, run, and make the result fit to be shown."""
        if call.decision is not None:
            await self._apply(call, call.decision)
        assert call.prepared is not None
        value = await self._invoker.invoke(
            call.spec,
            call.prepared.values,
            call.prepared.arguments,
            call.context,
            progress=call.progress,
            on_attempt=lambda attempt: self._account.tell(
                call, "call.started" if call.progress.attempts == 1 else "call.retried", attempt=attempt
            ),
        )
        result = _json_result(call, value)
        return await guard_result(call.spec, result, call.context, guards=self.guards)

    async def _apply(self, call: OpenCall, decision: ApprovalDecision) -> None:
        if not decision.approved:
            raise _denied(call.spec, decision)
        if decision.edited_args is not None:
            # the person's approval covers what they wrote; it still has to be valid, pass the guards and be judged
            edited = await prepare_call(
                call.spec, decision.edited_args, call.context, guards=self.guards, limit=lambda: None
            )
            call.take(edited)
        assert call.digest is not None
        call.context = replace(call.context, permission=Permission(digest=call.digest, decision=decision))

    def _meter(self, call: OpenCall) -> RunMeter:
        return self.meters.of(thread=call.context.thread, run=call.context.run)

    def _settle(self, call: OpenCall, problem: BaseException | None) -> None:
        """Close the call, once; one that waits for approval stays open and will be made again."""
        if call.closed:
            return
        call.closed = True
        started = call.progress.outcome != "not_started"
        if isinstance(problem, ModelError):
            problem.started = started
        waits = isinstance(problem, ApprovalPending) and not started
        if call.charged and not started:
            self._meter(call).refund(cost=call.spec.cost, tool_calls=1 if waits else 0)
        if waits:
            self._account.tell(call, "call.waiting")
        else:
            self._account.close(call, problem)


async def _all(calls: Sequence[OpenCall], step: Callable[[OpenCall], Awaitable[Json]]) -> list[Json]:
    """Take the step for every call and wait for all, whatever becomes of some. Raises the first failure then."""
    tasks = [asyncio.ensure_future(step(call)) for call in calls]
    cancelled = False
    while pending := [task for task in tasks if not task.done()]:
        try:
            await asyncio.wait(pending)
        except asyncio.CancelledError:
            cancelled = True
            for task in pending:
                task.cancel()
    if cancelled:
        raise asyncio.CancelledError
    failures = [problem for task in tasks if (problem := task.exception())]
    if failures:
        raise failures[0]
    return [task.result() for task in tasks]


def _denied(spec: ToolSpec, decision: ApprovalDecision) -> ApprovalDenied:
    if decision.lapsed:
        how = "expired before anybody decided" if decision.lapsed == "expired" else "was withdrawn"
        return ApprovalDenied(f"The approval of {spec.name!r} {how}. Nothing was run.")
    by = f" by {decision.decided_by}" if decision.decided_by else ""
    reason = f": {decision.reason}" if decision.reason else ""
    return ApprovalDenied(f"The call of {spec.name!r} was denied{by}{reason}. Nothing was run.")


def _json_result(call: OpenCall, value: Any) -> Json:
    try:
        return dumped(value)
    except NotJson as problem:
        what = f"at {problem}" if problem.path else str(problem)
    except Exception as problem:  # noqa: BLE001 - serializers of the tool's author may raise anything
        log_cause("tool.result_failed", problem, tool=call.spec.name, run=call.context.run, call=call.context.call)
        what = "cannot be written as JSON"
    msg = f"Tool {call.spec.name!r} has run, but its result {what}. Its author must return JSON values."
    raise ToolError(msg, outcome_unknown=call.spec.effect == "write")
