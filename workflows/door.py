"""What may come in: messages, state values, arguments of handlers. Pure; a refusal says what to send instead."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any, TypeVar, cast

from pydantic import TypeAdapter, ValidationError

from workflows.approvals import Refused
from workflows.cuts import CUTS
from workflows.messages import JsonObject, as_object

MAX_BYTES = 1024 * 1024
"""Largest message, state or state delta, as JSON text in UTF-8. Temporal refuses payloads of 2 MiB."""
MAX_DEPTH = 64
_MAX_KEY = 256
_MAX_SHOWN = 60
_DATA_PARTS = ("inlineData", "inline_data", "fileData", "file_data")
_DATA_FIELDS = {
    "inlineData": frozenset({"data", "mimeType", "displayName"}),
    "fileData": frozenset({"fileUri", "mimeType", "displayName"}),
}
_TEXT_OR_DATA = frozenset({"text", *_DATA_PARTS})

T = TypeVar("T")


def parsed(what: type[T] | TypeAdapter[T], given: Any, *, surplus: tuple[Any, ...] = (), example: str) -> T:
    """The one argument of a handler as a message; Refused("malformed", …) with an example otherwise."""
    if surplus:
        raise Refused("malformed", f"Send one argument, not {1 + len(surplus)}. Example: {example}")
    adapter = what if isinstance(what, TypeAdapter) else _adapter(what)
    try:
        return adapter.validate_python(given)
    except ValidationError as problem:
        raise Refused("malformed", f"{_problems(problem)}. Example: {example}") from None


@cache
def _adapter(what: type[T]) -> TypeAdapter[T]:
    return TypeAdapter(what)


def _problems(problem: ValidationError) -> str:
    return "; ".join(
        f"{'.'.join(map(str, error['loc'])) or 'the argument'}: {error['msg']}"[:300]
        for error in problem.errors(include_url=False, include_input=False, include_context=False)[:5]
    )


def user_message(message: Any) -> JsonObject:
    """ADK Content JSON of what a user says: text, or Content with text and data parts. Refused otherwise."""
    content = {"parts": [{"text": message}], "role": "user"} if isinstance(message, str) else message
    if not isinstance(content, dict):
        raise _message_refused("it is neither text nor a Content object")
    given = cast("JsonObject", content)
    if given.get("role", "user") != "user":
        raise _message_refused(f"its role is {_shown(given['role'])}, not 'user'")
    if unknown := set(given) - {"parts", "role"}:
        raise _message_refused(f"it has the unknown fields {_listed(unknown)}")
    parts = given.get("parts")
    if not isinstance(parts, list) or not parts:
        raise _message_refused("it has no parts")
    normal = {"parts": [_user_part(part) for part in cast("list[Any]", parts)], "role": "user"}
    check_json(normal, what="message")
    return normal


def _user_part(part: Any) -> JsonObject:
    if not isinstance(part, dict):
        raise _message_refused("a part is not an object")
    given = cast("JsonObject", part)
    if len(given) != 1 or not set(given) <= _TEXT_OR_DATA:
        raise _message_refused(
            f"a part holds {_listed(given)}; a user's part holds one of text, inlineData, fileData. "
            "Answers to calls and approvals go through the updates `answer` and `decide`"
        )
    (name, value) = next(iter(given.items()))
    if name == "text":
        if not isinstance(value, str) or not value:
            raise _message_refused("a text part is empty or no string")
        return given
    if not isinstance(value, dict) or not value:
        raise _message_refused(f"the part {name!r} is no object")
    return {_camel(name): _data(_camel(name), cast("JsonObject", value))}


def _data(name: str, value: JsonObject) -> JsonObject:
    """A Blob or FileData of ADK: what ADK cannot read would stand in the session for ever, and stop every run."""
    check_json(value, what="message")
    data = {_camel(str(key)): item for key, item in value.items()}
    if unknown := set(data) - _DATA_FIELDS[name]:
        raise _message_refused(f"the part {name!r} has the unknown fields {_listed(unknown)}")
    if not all(isinstance(item, str) for item in data.values()):
        raise _message_refused(f"a field of the part {name!r} is no text")
    if not data.get("fileUri", True) or not _is_base64(data.get("data", "")):
        raise _message_refused(f"the part {name!r} holds no URI, or data that is not base64")
    return data


def _is_base64(text: str) -> bool:
    padded = text if text.endswith("=") else text + "=" * (-len(text) % 4)
    try:
        base64.b64decode(padded, altchars=b"-_", validate=True)
    except ValueError:
        return False
    return True


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}…"


def _listed(names: Iterable[Any]) -> str:
    return "[" + ", ".join(map(_shown, sorted(map(str, names))[:10])) + "]"


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.title() for word in rest)


def _message_refused(why: str) -> Refused:
    return Refused("message-refused", f"The message cannot be run: {why}. Send text, or Content with role 'user'.")


def check_state(values: Mapping[str, Any], *, what: str = "state") -> None:
    """The gate for every write of state from outside: JSON, sane keys, 1 MiB. Refused names the key."""
    for key, value in values.items():
        if not key or len(key) > _MAX_KEY or not key.isprintable():
            raise Refused("state-refused", f"The state key {key[:80]!r} is empty, too long or not printable.")
        if key.startswith("temp:"):
            raise Refused("state-refused", f"The state key {key!r} is temporary: only a running agent can set it.")
        check_json(value, what=f"value of the state key {key!r}", kind="state-refused")
    check_size(values, what=what, kind="state-refused")


def check_events(events: Sequence[JsonObject]) -> None:
    """The gate for events from outside: ADK Event JSON with ids, and state that may be kept. Refused otherwise."""
    check_json(list(events), what="events", kind="events-refused")
    for event in events:
        if not isinstance(event.get("id"), str) or not event["id"]:
            raise Refused("events-refused", "Every event needs an `id`, a string. Send ADK Event JSON.")
        if CUTS in event:
            text = f"An event has {CUTS!r}: values are missing in it. Send whole events, as ADK has them."
            raise Refused("events-refused", text)
        check_state(as_object(as_object(event.get("actions")).get("stateDelta")), what="state of the events")


def check_json(value: Any, *, what: str, kind: str = "message-refused") -> None:
    """JSON with finite numbers, encodable text without NUL, nesting of at most 64, at most 1 MiB. Else Refused."""
    if problem := _json_problem(value):
        raise Refused(kind, f"The {what} cannot be kept: {problem}.")
    check_size(value, what=what, kind=kind)


def check_size(value: Any, *, what: str, kind: str) -> None:
    """At most 1 MiB as JSON text; else Refused."""
    if (size := json_bytes(value)) > MAX_BYTES:
        raise Refused(
            kind, f"The {what} has {size} bytes; {MAX_BYTES} are allowed. Store it elsewhere and send a link."
        )


def json_bytes(value: Any) -> int:
    """Size of the JSON text in UTF-8."""
    return len(json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass"))


def _json_problem(value: Any) -> str | None:
    """Why a value is no JSON we keep; iterative, since nesting may be deeper than the stack."""
    waiting: list[tuple[Any, int]] = [(value, 1)]
    while waiting:
        item, depth = waiting.pop()
        if depth > MAX_DEPTH:
            return f"it is nested deeper than {MAX_DEPTH}"
        if isinstance(item, dict):
            fields = cast("dict[Any, Any]", item)
            if not all(isinstance(key, str) for key in fields):
                return "a key in it is no text"
            waiting += [part for key, inner in fields.items() for part in ((key, depth), (inner, depth + 1))]
        elif isinstance(item, list | tuple):
            waiting += [(part, depth + 1) for part in cast("list[Any]", item)]
        elif problem := _scalar_problem(item):
            return problem
    return None


def _scalar_problem(item: Any) -> str | None:
    if isinstance(item, str):
        if "\x00" in item:
            return "a text in it holds a NUL character"
        return None if _encodable(item) else "a text in it holds a lone surrogate"
    if isinstance(item, float) and not math.isfinite(item):
        return "a number in it is not finite"
    return None if item is None or isinstance(item, bool | int | float) else f"{type(item).__name__} is no JSON type"


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
