"""Plain ADK tools whose calls pause: their arguments are checked before anybody is asked."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Any
from weakref import WeakKeyDictionary

import structlog
from google.adk.tools import BaseTool, FunctionTool, ToolContext
from pydantic import BaseModel, ConfigDict, PydanticUserError, create_model

from agent_adapter.approval.digest import digest
from agent_adapter.approval.pause import PausedCall
from agent_adapter.arguments import validate_arguments
from agentvisor.adk.json_values import as_json
from agentvisor.project import PlainTool
from agentvisor.protocol import JsonObject

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

_models: WeakKeyDictionary[BaseTool, type[BaseModel] | None] = WeakKeyDictionary()


def paused_call(tool: BaseTool, raw: JsonObject, checked: JsonObject, *, approval: bool, said: PlainTool) -> PausedCall:
    """What whoever holds the approval needs to know of this call. `said`: by the project's file."""
    return PausedCall(
        approval=approval,
        arguments=checked if checked != raw else None,
        fingerprint=_fingerprint(tool, said),
        effect=said.effect or "write",
        editable=_model(tool) is not None,
        timeout=said.timeout,
        expires=said.expires,
    )


def _fingerprint(tool: BaseTool, said: PlainTool) -> str:
    """Digest of the tool's name, declaration, rule and effect; another one means another tool to a person."""
    declaration = tool._get_declaration()  # pyright: ignore[reportPrivateUsage]
    declared = declaration.model_dump(mode="json", exclude_none=True) if declaration else {}
    rule: Any = getattr(tool, "_require_confirmation", None) if said.confirm is None else said.confirm
    return digest([tool.name, as_json(declared), "rule" if callable(rule) else bool(rule), said.effect])[:32]


def checked_arguments(tool: BaseTool, raw: JsonObject) -> JsonObject:
    """Arguments as the function will get them. Raises ToolArgsInvalid. A tool without a signature takes all."""
    model = _model(tool)
    return dict(raw) if model is None else _only_given(raw, validate_arguments(tool.name, model, raw)[1])


async def judged(
    rule: Callable[[JsonObject, ToolContext], Awaitable[bool]], args: JsonObject, context: ToolContext
) -> bool:
    """The rule wants a confirmation. Whatever it answers but a plain false counts as yes."""
    answer: Any = await rule(args, context)
    return answer is not None and answer is not False


def _only_given(raw: JsonObject, checked: JsonObject) -> JsonObject:
    """Without the function's own defaults: a default need not be a valid argument."""
    return {name: value for name, value in checked.items() if name in raw}


def _model(tool: BaseTool) -> type[BaseModel] | None:
    if tool not in _models:
        _models[tool] = _derived(tool)
    return _models[tool]


def _derived(tool: BaseTool) -> type[BaseModel] | None:
    if not isinstance(tool, FunctionTool):
        return None
    try:
        parameters = inspect.signature(tool.func, eval_str=True).parameters.values()
    except (NameError, TypeError, ValueError):
        return None
    ignored: list[str] = tool._ignore_params  # pyright: ignore[reportPrivateUsage]
    fields: dict[str, Any] = {}
    for parameter in parameters:
        if parameter.name in ignored:
            continue
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD) or parameter.name.startswith("_"):
            return None
        fields[parameter.name] = _field(parameter)
    try:
        return create_model(tool.name, __config__=ConfigDict(extra="forbid", protected_namespaces=()), **fields)
    except (PydanticUserError, TypeError, NameError):
        log.warning("tool.arguments_unchecked", tool=tool.name)
        return None


def _field(parameter: inspect.Parameter) -> tuple[Any, Any]:
    annotation = Any if parameter.annotation is parameter.empty else parameter.annotation
    if parameter.default is parameter.empty:
        return annotation, ...
    return (
        annotation | None if parameter.default is None and isinstance(annotation, type) else annotation
    ), parameter.default
