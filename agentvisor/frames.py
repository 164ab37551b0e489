"""Frames of a channel: their JSON form, their shapes, and how large they may be."""

from __future__ import annotations

import json
from dataclasses import dataclass
from types import NoneType
from typing import Any, NoReturn

from pydantic import BaseModel

JsonObject = dict[str, Any]
MIB = 1024 * 1024
HEADER = 4
"""Bytes of the length before each frame."""


class Refused(Exception):
    """The other side said no, or the message cannot be sent. `kind` is stable, the text is for people."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind = kind
        self.text = text


@dataclass(frozen=True)
class Bounds:
    """What one side may cost the other, in bytes. Both ends of a channel use the same."""

    frame: int = 64 * MIB
    per_request: int = 32 * MIB
    """Notes and nested requests of one request, all together."""
    stray: int = MIB
    """Frames that belong to no open request, within `stray_seconds`."""
    stray_seconds: float = 10.0
    unread: int = 256 * MIB
    """Written here and not yet taken by the other side."""


_SHAPES: dict[str, tuple[type | tuple[type, ...], ...]] = {
    "ask": (int, str, dict, (int, NoneType)),
    "ok": (int, dict),
    "err": (int, str, str),
    "note": (int, dict),
    "stop": (int,),
}


def _no_constant(name: str) -> NoReturn:
    raise ValueError(name)


_DECODER = json.JSONDecoder(parse_constant=_no_constant)


def decode(data: bytes | bytearray) -> list[Any]:
    """The frame. Raises ValueError for what is not JSON, NaN included, and for a frame of unknown shape."""
    try:
        frame = _DECODER.decode(data.decode())
    except RecursionError as problem:
        raise ValueError("a frame nested too deeply") from problem
    if not _has_known_shape(frame):
        raise ValueError("a frame of unknown shape")
    return frame


def _has_known_shape(frame: Any) -> bool:
    match frame:
        case [str(kind), *fields] if kind in _SHAPES and len(fields) == len(_SHAPES[kind]):
            return all(isinstance(value, shape) for value, shape in zip(fields, _SHAPES[kind], strict=True))
        case _:
            return False


def body_of(model: BaseModel) -> JsonObject:
    """The body of a frame. Raises Refused `not-json`."""
    try:
        return model.model_dump()  # mode="json" would turn NaN into None
    except ValueError as problem:  # cycles, nesting beyond pydantic's limit
        raise Refused("not-json", f"{type(model).__name__} cannot be sent: {problem}") from problem


def encode(frame: list[Any], bounds: Bounds) -> bytes:
    """The bytes of a frame, with its length. Raises Refused `not-json` and `too-large`."""
    # The json module keeps integers of any size and refuses NaN; orjson writes NaN as null and reads 2**64 as a float.
    try:
        data = json.dumps(frame, allow_nan=False, ensure_ascii=False, separators=(",", ":")).encode()
    except (ValueError, TypeError, RecursionError) as problem:  # NaN, lone surrogates, nesting
        raise Refused(
            "not-json", f"The message has no JSON form: {problem}. Send finite numbers and valid text."
        ) from problem
    if len(data) > bounds.frame:
        raise Refused("too-large", f"The message has {len(data)} bytes, the limit is {bounds.frame}. Send less.")
    return len(data).to_bytes(HEADER, "big") + data
