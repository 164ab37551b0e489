"""JSON pointers within one schema document."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast
from urllib.parse import unquote

from agent_adapter.errors import ToolSchemaError


def resolve(root: Any, ref: Any, *, path: str) -> Any:
    """The part of the document that a `$ref` names. Raises ToolSchemaError for what is not there or not in it."""
    if not isinstance(ref, str):
        msg = f"has a $ref of type {type(ref).__name__}. Write it as a string, such as '#/$defs/Name'"
        raise ToolSchemaError(msg, path=path)
    if ref != "#" and not ref.startswith("#/"):
        msg = f"refers to {ref!r}, which is outside the schema. Put the definition under $defs"
        raise ToolSchemaError(msg, path=path)
    place = root
    for step in ref.split("/")[1:]:
        place = _step(place, unquote(step).replace("~1", "/").replace("~0", "~"), ref, path)
    return place


def _step(place: Any, step: str, ref: str, path: str) -> Any:
    if isinstance(place, Mapping) and step in place:
        return cast("Mapping[str, Any]", place)[step]
    if isinstance(place, list) and step.isdecimal() and int(step) < len(cast("list[Any]", place)):
        return cast("list[Any]", place)[int(step)]
    msg = f"refers to {ref!r}, which is not in the schema. Add the definition or correct the $ref"
    raise ToolSchemaError(msg, path=path)
