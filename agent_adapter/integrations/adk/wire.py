"""What the Gemini API reads into results of functions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import orjson

_READ_BY_THE_API = frozenset({"$ref", "$defs", "$schema"})
"""Names that the API takes for references of its own; a result that only looks like one is refused with status 400."""


def fit_for_the_wire(result: Any) -> Any:
    """The result; one in which the API would see references becomes `{"result": "<its JSON>"}`, as text."""
    if any(not _READ_BY_THE_API.isdisjoint(found) for found in _objects(result)):
        return {"result": orjson.dumps(result).decode()}
    return result


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    waiting = [value]
    while waiting:
        place = waiting.pop()
        if isinstance(place, dict):
            found = cast("dict[str, Any]", place)
            yield found
            waiting += found.values()
        elif isinstance(place, list):
            waiting += cast("list[Any]", place)
