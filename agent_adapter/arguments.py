"""Arguments of a call: strictly validated JSON in, validated values and their JSON form out."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import orjson
from pydantic import BaseModel, ValidationError

from agent_adapter.causes import log_cause
from agent_adapter.errors import ToolArgsInvalid
from agent_adapter.values import JsonObject, NotJson, plain

_WAY_OUT = "Nothing was run. Call it again with arguments that fit its schema."
_SHOWN = 5


def validate_arguments(tool: str, model: type[BaseModel], raw: Any) -> tuple[BaseModel, JsonObject]:
    """Validate what the model or a person sent: no string for a number, no null, no extras; 7.0 is the integer 7.

    Returns the values and their JSON object, defaults included; that object validates to itself again.
    Raises ToolArgsInvalid.
    """
    try:
        values = model.__pydantic_validator__.validate_json(orjson.dumps(_object(model, raw)), strict=True)
        return values, plain(values.model_dump(mode="json", by_alias=True), whole_floats_as_int=True)
    except NotJson as problem:
        raise _invalid(tool, str(problem)) from None
    except ValidationError as problem:
        raise _invalid(tool, _told(problem)) from None
    except Exception as problem:  # noqa: BLE001 - a validator of the tool's author may raise anything
        log_cause("tool.validator_failed", problem, tool=tool)
        raise _invalid(tool, "they could not be checked") from None


def _object(model: type[BaseModel], raw: Any) -> JsonObject:
    if not isinstance(raw, Mapping):
        msg = f"they are of type {type(raw).__name__}, not an object"  # pyright: ignore[reportUnknownArgumentType]
        raise NotJson(msg)
    arguments: JsonObject = plain(dict(raw), whole_floats_as_int=True)  # pyright: ignore[reportUnknownArgumentType]
    if model.model_config.get("extra") not in {"forbid", "allow"}:
        _refuse_extras(model, arguments)
    return arguments


def _refuse_extras(model: type[BaseModel], arguments: JsonObject) -> None:
    known = _known(model)
    for name in arguments:
        if name not in known:
            problem = NotJson("is not a parameter")
            problem.path.append(name)
            raise problem


@lru_cache(maxsize=4096)
def _known(model: type[BaseModel]) -> frozenset[str]:
    names = set(model.model_fields)
    for field in model.model_fields.values():
        names |= {alias for alias in (field.alias, field.validation_alias) if isinstance(alias, str)}
    return frozenset(names)


def _told(problem: ValidationError) -> str:
    errors = problem.errors(include_url=False, include_context=False, include_input=False)
    told = [f"{'.'.join(str(step) for step in error['loc'])}: {error['msg']}" for error in errors[:_SHOWN]]
    if len(errors) > _SHOWN:
        told.append(f"and {len(errors) - _SHOWN} more")
    return "; ".join(told)


def _invalid(tool: str, what: str) -> ToolArgsInvalid:
    return ToolArgsInvalid(f"The arguments of {tool!r} are not valid: {what}. {_WAY_OUT}")
