"""What may travel as a Temporal payload: a value of 2 MiB, or one that cannot be read back, jams its thread."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pydantic_core

MIB = 1024 * 1024
MAX_VALUE = MIB
"""Largest single value in history: one event, one result of a tool."""
MAX_INLINE = 64 * 1024
"""What is larger goes to the Store, where it can."""
MAX_STORED = 8 * MIB
"""Largest value in the Store: what a tool returned, or was given."""
MAX_LEG = MIB * 3 // 2
"""All events of a leg together."""
MAX_TEXT = 4000


class NotStorableError(ValueError):
    """The value has no JSON form that can be read back, or too large a one. The text says what is wrong with it."""


def stored_bytes(value: Any) -> int:
    """Size of the value in history. Raises NotStorableError for what is not JSON or nested too deeply."""
    try:
        data = pydantic_core.to_json(value, inf_nan_mode="constants")
        # It stands within a message, and nobody wants its strings.
        pydantic_core.from_json(b"[[[[" + data + b"]]]]", allow_inf_nan=False, cache_strings="none")
    except ValueError as problem:
        raise NotStorableError(f"it is not JSON as history stores it ({str(problem)[:200]})") from problem
    return len(data)


def check_value(value: Any) -> int:
    """Size of a single value. Raises NotStorableError also where it is larger than MAX_VALUE."""
    size = stored_bytes(value)
    if size > MAX_VALUE:
        raise NotStorableError(f"it has {size} bytes, {MAX_VALUE} are allowed")
    return size


def fits_the_store(value: Any) -> bool:
    """Whether a value that is too large for history may go to the Store."""
    return stored_bytes(value) <= MAX_STORED


def fitting(events: Sequence[Any]) -> tuple[int, str | None]:
    """How many of a leg's events can be stored, in their order, and what is wrong with the next one, if any is left."""
    total = 0
    for count, event in enumerate(events):
        try:
            total += check_value(event)
        except NotStorableError as problem:
            return count, f"an event cannot be stored: {problem}"
        if total > MAX_LEG:
            return count, f"its events have more than {MAX_LEG} bytes together"
    return len(events), None


def plain(text: str) -> str:
    """Text of a guest as it may stand in a message or failure: valid, and not too long."""
    return text[:MAX_TEXT].encode(errors="replace").decode()
