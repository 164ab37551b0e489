"""All that is checked before anybody is asked and anything is run: validate, guard, limit, judge."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from agent_adapter.approval.decision import ApprovalRequest, approval_id
from agent_adapter.approval.digest import call_digest
from agent_adapter.causes import log_cause
from agent_adapter.context import ToolContext
from agent_adapter.errors import AdapterError, GuardrailBlocked
from agent_adapter.guards import Allow, Ask, Block, Guard, InputGuard, OutputGuard, Replace
from agent_adapter.spec import ToolSpec
from agent_adapter.values import Json, JsonObject, Values, dumped, plain


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedCall:
    """A call that may run, or may be asked about."""

    spec: ToolSpec
    arguments: JsonObject
    """The validated arguments, defaults included."""
    needs_approval: bool
    reason: str | None = None
    """Why a guard wants a person to approve it."""
    values: Values = field(repr=False)
    """The arguments as Python values, a copy of their own."""

    def digest(self, context: ToolContext) -> str:
        """What a permission for this call is bound to."""
        return call_digest(
            thread=context.thread,
            run=context.run,
            call=context.call,
            tool=self.spec.name,
            fingerprint=self.spec.fingerprint,
            arguments=self.arguments,
        )

    def question(self, context: ToolContext) -> ApprovalRequest:
        """What is asked about this call."""
        tool, fingerprint = self.spec.name, self.spec.fingerprint
        return ApprovalRequest(
            id=approval_id(
                run=context.run, call=context.call, tool=tool, fingerprint=fingerprint, arguments=self.arguments
            ),
            run=context.run,
            call=context.call,
            tool=tool,
            arguments=plain(self.arguments),
            fingerprint=fingerprint,
            thread=context.thread,
            principal=context.principal,
            effect=self.spec.effect,
            summary=self.spec.summary_of(self.arguments),
            reason=self.reason,
            expires=self.spec.expires,
        )


async def prepare_call(
    spec: ToolSpec, raw: Any, context: ToolContext, *, guards: Sequence[Guard], limit: Callable[[], None]
) -> PreparedCall:
    """Validate, guard, limit, judge, in this order. Raises the errors that the model reads."""
    values, arguments = spec.read(raw)
    reason: str | None = None
    for guard in (*guards, *spec.guards):
        if isinstance(guard, InputGuard):
            match await _input_verdict(guard, spec, arguments, context):
                case Allow():
                    pass
                case Replace(value):
                    values, arguments = spec.read(value)
                case Ask(why):
                    reason = reason or why
                case Block(why):
                    msg = f"Guard {guard.name!r} stopped {spec.name!r}: {why.rstrip('. ')}. Nothing was run."
                    raise GuardrailBlocked(msg)
    limit()
    judged = await _judge(spec, arguments, context)
    return PreparedCall(
        spec=spec, arguments=arguments, needs_approval=judged or reason is not None, reason=reason, values=values
    )


async def guard_result(spec: ToolSpec, result: Json, context: ToolContext, *, guards: Sequence[Guard]) -> Json:
    """The result as the output guards leave it. Raises GuardrailBlocked."""
    for guard in (*guards, *spec.guards):
        if isinstance(guard, OutputGuard):
            match await _output_verdict(guard, spec, result, context):
                case Allow():
                    pass
                case Replace(value):
                    result = value
                case Ask(why) | Block(why):
                    msg = f"Guard {guard.name!r} withholds the result of {spec.name!r}: {why}. The tool has run."
                    raise GuardrailBlocked(msg)
    return result


async def _input_verdict(
    guard: InputGuard, spec: ToolSpec, arguments: JsonObject, context: ToolContext
) -> Allow | Replace | Ask | Block:
    try:
        verdict = await guard.check_input(spec, plain(arguments), context)
    except GuardrailBlocked:
        raise
    except Exception as problem:  # noqa: BLE001 - fails closed
        return _failed(guard, spec, problem)
    return _known(verdict)


async def _output_verdict(
    guard: OutputGuard, spec: ToolSpec, result: Json, context: ToolContext
) -> Allow | Replace | Ask | Block:
    try:
        verdict = _known(await guard.check_output(spec, plain(result), context))
        return Replace(dumped(verdict.value)) if isinstance(verdict, Replace) else verdict
    except GuardrailBlocked:
        raise
    except Exception as problem:  # noqa: BLE001 - fails closed
        return _failed(guard, spec, problem)


def _known(verdict: Any) -> Allow | Replace | Ask | Block:
    if isinstance(verdict, Allow | Replace | Ask | Block):
        return verdict
    return Block("it gave no verdict")


def _failed(guard: Guard, spec: ToolSpec, problem: Exception) -> Block:
    log_cause("guard.failed", problem, guard=guard.name, tool=spec.name)
    return Block("it failed, and what it cannot check does not pass")


async def _judge(spec: ToolSpec, arguments: JsonObject, context: ToolContext) -> bool:
    """Whether the tool's rule wants approval. A rule that fails, or gives no bool, means: do not run."""
    if isinstance(spec.confirm, bool):
        return spec.confirm
    try:
        answer = spec.confirm(plain(arguments), context)
        if inspect.isawaitable(answer):
            answer = await answer
        if not isinstance(answer, bool):  # pyright: ignore[reportUnnecessaryIsInstance]
            msg = f"the rule returned a value of type {type(answer).__name__}, not a bool"
            raise TypeError(msg)  # noqa: TRY301 - one path for a rule that fails
    except AdapterError:
        raise
    except Exception as problem:  # noqa: BLE001 - fails closed
        log_cause("rule.failed", problem, tool=spec.name)
        msg = f"The confirm rule of {spec.name!r} failed, so it was not run. Its author finds the cause in the log."
        raise GuardrailBlocked(msg) from None
    return answer
