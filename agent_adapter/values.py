"""JSON values as they cross a border: plain copies, or the reason and place why a value has no JSON form.

Allowed are None, bool, str, int within 2**53, finite float, list, tuple (becomes a list) and dict with str keys, nested
at most 64 deep. `dumped` also takes pydantic models, dataclasses and enums anywhere in the value.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable
from enum import Enum
from typing import Any, cast

from pydantic import BaseModel

Json = Any
"""None, bool, int, float, str, a list of Json, or a dict of str to Json."""
JsonObject = dict[str, Any]
Values = BaseModel | JsonObject
"""Validated arguments as a tool's function takes them: a model, or what came where a JSON Schema describes them."""

MAX_DEPTH = 64
_BIGGEST_INT = 2**53 - 1


class NotJson(ValueError):
    """A value has no JSON form. `path` leads to it, `reason` is a clause without its content."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.path: list[str | int] = []

    def __str__(self) -> str:
        place = ".".join(str(step) for step in reversed(self.path))
        return f"{place}: {self.reason}" if place else self.reason


def plain(value: Json, *, whole_floats_as_int: bool = False) -> Json:
    """A copy of a JSON value that shares nothing mutable with it. Raises NotJson.

    `whole_floats_as_int`: 7.0 and 7 are one number in JSON; this makes both an int.
    """
    return _copy(value, 0, _whole if whole_floats_as_int else _finite, _refuse)


def dumped(value: Any) -> Json:
    """The JSON value of what a tool returned. Raises NotJson for bytes, NaN, sets, dates and all else without one."""
    return _copy(value, 0, _finite, _dump)


def _copy(value: Any, depth: int, number: Callable[[float], Json], other: Callable[[Any], Any]) -> Json:
    kind = cast("type[Any]", type(value))
    if scalar := _SCALARS.get(kind):
        return scalar(value)
    if kind is float:
        return number(value)
    if depth >= MAX_DEPTH:
        msg = f"is nested more than {MAX_DEPTH} deep"
        raise NotJson(msg)
    if kind is dict:
        return _copy_object(value, depth + 1, number, other)
    if kind is list or kind is tuple:
        return _copy_list(value, depth + 1, number, other)
    return _copy(other(value), depth + 1, number, other)


def _copy_object(
    value: dict[Any, Any], depth: int, number: Callable[[float], Json], other: Callable[[Any], Any]
) -> JsonObject:
    copied: JsonObject = {}
    for key, item in value.items():
        name = key if type(key) is str and key.isascii() else _key(key)
        if _is_as_it_is(item):
            copied[name] = item
            continue
        try:
            copied[name] = _copy(item, depth, number, other)
        except NotJson as problem:
            problem.path.append(key)
            raise
    return copied


def _copy_list(
    value: Iterable[Any], depth: int, number: Callable[[float], Json], other: Callable[[Any], Any]
) -> list[Json]:
    copied: list[Json] = []
    for index, item in enumerate(value):
        if _is_as_it_is(item):
            copied.append(item)
            continue
        try:
            copied.append(_copy(item, depth, number, other))
        except NotJson as problem:
            problem.path.append(index)
            raise
    return copied


def _is_as_it_is(item: Any) -> bool:
    """The common leaves, which need no further look: this loop is where a call spends its time."""
    kind = cast("type[Any]", type(item))
    return (kind is str and item.isascii()) or item is None or kind is bool


def _text(value: str) -> str:
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            msg = "holds a lone surrogate, which is no Unicode text"
            raise NotJson(msg) from None
    return value


def _key(key: Any) -> str:
    if not isinstance(key, str):
        msg = f"has a key of type {type(key).__name__}; keys must be strings"
        raise NotJson(msg)
    return _text(str.__str__(key))


def _integer(value: int) -> int:
    if not -_BIGGEST_INT <= value <= _BIGGEST_INT:
        msg = "is an integer beyond 2**53, which JSON readers round; use a string"
        raise NotJson(msg)
    return value


def _finite(value: float) -> float:
    if not math.isfinite(value):
        msg = f"is {value}, which JSON does not have"
        raise NotJson(msg)
    return value


def _whole(value: float) -> Json:
    if value.is_integer() and abs(value) <= _BIGGEST_INT:
        return int(value)
    return _finite(value)


def _refuse(value: Any) -> Any:
    """Subclasses of the JSON types become the plain type; nothing else is let through."""
    for kind, to_plain in _PLAIN.items():
        if isinstance(value, kind):
            return to_plain(value)
    msg = f"is of type {type(value).__name__}, which has no JSON form"
    raise NotJson(msg)


def _dump(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", by_alias=True)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, Enum):
        return value.value
    return _refuse(value)


_SCALARS: dict[type, Callable[[Any], Json]] = {
    str: _text,
    int: _integer,
    bool: lambda value: value,
    type(None): lambda value: value,
}
_PLAIN: dict[type, Callable[[Any], Any]] = {
    str: str.__str__,
    int: int,
    float: float,
    list: list,
    tuple: tuple,
    dict: dict,
}
