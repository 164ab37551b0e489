"""What may stand in events and state: JSON values, and how other values become such."""

from __future__ import annotations

import math
from typing import Any, cast

from pydantic_core import to_jsonable_python

DEPTH = 64


def flaw(value: Any, depth: int = 0) -> str | None:
    """Why `value` is no JSON value that can be stored, or None. Integers of any size are fine."""
    match value:
        case None | bool() | int():
            return None
        case str() | float():
            return _flaw_of_text(value) if isinstance(value, str) else _flaw_of_float(value)
        case list() | dict() if depth >= DEPTH:
            return f"nested deeper than {DEPTH}"
        case list():
            return _first(flaw(item, depth + 1) for item in cast("list[Any]", value))
        case dict():
            return _flaw_of_object(cast("dict[Any, Any]", value), depth)
        case _:
            return f"{type(value).__name__} is no JSON type"


def as_json(value: Any) -> Any:
    """The value itself where it is JSON, else its nearest JSON form: dates as text, sets as lists, objects by name."""
    if flaw(value) is None:
        return value
    try:
        near = to_jsonable_python(value, inf_nan_mode="strings", bytes_mode="base64", fallback=_by_name)
    except ValueError:  # cycles, text that is no Unicode
        near = None
    return near if near is not None and flaw(near) is None else f"<{type(value).__name__}: not a JSON value>"


def _by_name(value: Any) -> str:
    return f"<{type(value).__name__}>"


def _flaw_of_float(value: float) -> str | None:
    return None if math.isfinite(value) else f"{value} is not finite"


def _flaw_of_text(value: str) -> str | None:
    if "\0" in value:
        return "text with a NUL character"
    try:
        value.encode()
    except UnicodeEncodeError:
        return "text with half a surrogate pair"
    return None


def _flaw_of_object(value: dict[Any, Any], depth: int) -> str | None:
    for key, item in value.items():
        if not isinstance(key, str):
            return f"a key of type {type(key).__name__}"
        if found := _flaw_of_text(key) or flaw(item, depth + 1):
            return found
    return None


def _first(flaws: Any) -> str | None:
    return next((found for found in flaws if found), None)
