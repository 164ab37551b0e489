"""Approvals in plain ADK: the port answers ADK's confirmation requests, and a secret token proves that it did."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, cast

from google.adk.events import Event
from google.adk.tools import ToolContext
from google.genai import types

from agent_adapter.approval.batch import ask_each
from agent_adapter.approval.decision import ApprovalDecision, ApprovalRequest, approval_id
from agent_adapter.approval.ports import ApprovalPort
from agent_adapter.approval.tokens import TOKENS
from agent_adapter.context import Permission
from agent_adapter.errors import ToolArgsInvalid, ToolUsageError
from agent_adapter.integrations.adk.context import bind_context
from agent_adapter.preparation import PreparedCall
from agent_adapter.registry import ToolRegistry
from agent_adapter.spec import ToolSpec
from agent_adapter.values import JsonObject, plain

TOKEN_KEY = "aa_token"  # noqa: S105 - the name of the field, not a secret
CONFIRMATION = "adk_request_confirmation"


@dataclass(frozen=True)
class _Waiting:
    """One confirmation that waits, and the call it is about."""

    request_id: str
    run: str
    branch: str | None
    call: str
    tool: str
    arguments: dict[str, Any]
    spec: ToolSpec | None
    """None: the tool is not in the registry, or could not run with these arguments."""


async def resolve_confirmations(
    events: Iterable[Event], port: ApprovalPort, registry: ToolRegistry
) -> types.Content | None:
    """The user's message that answers every open tool confirmation of one invocation; None where nothing waits.

    The port is asked about all of them (two-phase where it can); approved calls of the registry get a one-use token
    that is bound to the invocation, the call, the tool and the validated arguments. A tool outside the registry is
    asked about with its raw arguments and gets no token.
    Raises ToolUsageError, before anybody is asked, where several invocations wait, or one that has no id, or several
    parallel branches; ApprovalPending where a decision comes later.
    """
    waiting = _waiting(list(events), registry)
    if not waiting:
        return None
    _refuse_several(waiting)
    decisions = await ask_each(port, [_question(call) for call in waiting])
    answers = [_answer(call, decision) for call, decision in zip(waiting, decisions, strict=True)]
    return types.Content(role="user", parts=[types.Part(function_response=answer) for answer in answers])


def permission_of(prepared: PreparedCall, sent: JsonObject, tool_context: ToolContext) -> Permission | None:
    """The permission that the call's confirmation proves, spent by this. None: the executor asks its own port.

    `sent` are the validated arguments that a person saw; guards may have replaced some since.
    """
    confirmation = tool_context.tool_confirmation
    payload: Any = confirmation.payload if confirmation and confirmation.confirmed else None
    if not isinstance(payload, dict) or set(cast("dict[str, Any]", payload)) != {TOKEN_KEY}:
        return None
    token: object = cast("dict[str, Any]", payload)[TOKEN_KEY]
    call = tool_context.function_call_id or ""
    decision = TOKENS.spend(
        token,
        run=tool_context.invocation_id,
        call=call,
        tool=prepared.spec.name,
        fingerprint=prepared.spec.fingerprint,
        arguments=sent,
    )
    return Permission(digest=prepared.digest(bind_context(tool_context)), decision=decision) if decision else None


def _waiting(events: list[Event], registry: ToolRegistry) -> list[_Waiting]:
    answered = {
        response.id for event in events if event.author == "user" for response in event.get_function_responses()
    }
    return [
        _as_waiting(event, call, registry)
        for event in events
        for call in event.get_function_calls()
        if call.name == CONFIRMATION and call.id not in answered
    ]


def _as_waiting(event: Event, request: types.FunctionCall, registry: ToolRegistry) -> _Waiting:
    original = types.FunctionCall.model_validate((request.args or {}).get("originalFunctionCall", {}))
    spec = registry[original.name] if original.name and original.name in registry else None
    arguments: dict[str, Any] = dict(original.args or {})
    if spec is not None:
        try:
            arguments = spec.validate(arguments)
        except ToolArgsInvalid:
            spec = None  # the tool itself tells the model
    return _Waiting(
        request_id=request.id or "",
        run=event.invocation_id,
        branch=event.branch,
        call=original.id or "",
        tool=original.name or "",
        arguments=arguments,
        spec=spec,
    )


def _refuse_several(waiting: list[_Waiting]) -> None:
    runs = {call.run for call in waiting}
    if len(runs) > 1 or not all(runs):
        named = ", ".join(sorted(repr(run) for run in runs))
        msg = f"Confirmations of {len(runs)} invocations wait ({named}). Pass the events of one invocation."
        raise ToolUsageError(msg)
    if len({call.branch for call in waiting}) > 1:
        msg = (
            "Confirmations wait in several parallel branches, and ADK gives one message to one branch only. "
            "Pass the events of one branch at a time, and run the agent after each."
        )
        raise ToolUsageError(msg)


def _question(call: _Waiting) -> ApprovalRequest:
    spec = call.spec
    fingerprint = spec.fingerprint if spec else ""
    arguments = call.arguments
    return ApprovalRequest(
        id=approval_id(run=call.run, call=call.call, tool=call.tool, fingerprint=fingerprint, arguments=arguments),
        run=call.run,
        call=call.call,
        tool=call.tool,
        arguments=plain(arguments),
        fingerprint=fingerprint,
        effect=spec.effect if spec else "write",
        summary=spec.summary_of(arguments) if spec else None,
        expires=spec.expires if spec else None,
    )


def _answer(call: _Waiting, decision: ApprovalDecision) -> types.FunctionResponse:
    # a tool outside the registry runs with its raw arguments: an edit cannot reach it, so it is not confirmed
    confirmed = decision.approved and not (call.spec is None and decision.edited_args is not None)
    response: dict[str, Any] = {"confirmed": confirmed}
    if confirmed and call.spec is not None:
        token = TOKENS.mint(
            decision,
            run=call.run,
            call=call.call,
            tool=call.tool,
            fingerprint=call.spec.fingerprint,
            arguments=call.arguments,
        )
        response["payload"] = {TOKEN_KEY: token}
    return types.FunctionResponse(id=call.request_id, name=CONFIRMATION, response=response)
