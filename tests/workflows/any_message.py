"""Any valid boundary message, made from the types of its fields."""

from __future__ import annotations

import types
from typing import Annotated, Any, Literal, TypeVar, Union, cast, get_args, get_origin

from hypothesis import strategies as st
from pydantic.fields import FieldInfo

from tests.workflows.adk_events import json_objects, json_values
from workflows.messages import Message

M = TypeVar("M", bound=Message)

_SCALARS: dict[Any, st.SearchStrategy[Any]] = {
    str: st.text(min_size=1, max_size=4),
    int: st.integers(1, 900),
    float: st.sampled_from([0.5, 3.0, 1e6]),
    bool: st.booleans(),
    type(None): st.none(),
    Any: json_values,
    dict[str, Any]: json_objects,
    dict[str, int]: st.dictionaries(st.text(max_size=3), st.integers(0, 9), max_size=2),
}
_NAMED: dict[str, st.SearchStrategy[Any]] = {
    "run_id": st.sampled_from(["r1", "A.b_c:d-e"]),
    "events_per_execution": st.integers(50, 5000),
    "max_bytes": st.integers(1024, 2**20),
    "edited_args": st.none(),
}


def messages(message: type[M]) -> st.SearchStrategy[M]:
    """Messages of this class; fields with a default are given or not."""
    required = {name: _field(name, f) for name, f in message.model_fields.items() if f.is_required()}
    optional = {name: _field(name, f) for name, f in message.model_fields.items() if not f.is_required()}
    return st.fixed_dictionaries(required, optional=optional).map(message.model_validate)


def _field(name: str, field: FieldInfo) -> st.SearchStrategy[Any]:
    return _NAMED[name] if name in _NAMED else _typed(field.annotation)


def _typed(annotation: Any) -> st.SearchStrategy[Any]:
    if annotation in _SCALARS:
        return _SCALARS[annotation]
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return st.sampled_from(arguments)
    if origin is Annotated:
        return _typed(arguments[0])
    if origin in (Union, types.UnionType):
        return st.one_of(*map(_typed, arguments))
    if origin is tuple:
        return st.lists(_typed(arguments[0]), max_size=2).map(tuple)
    return messages(cast("type[Message]", annotation))
