"""Long strings that a leg's events say again, and history holds once: ids of calls, of the run, names.

`numbered` puts "^3" in the place of a string that was said before, `spelled` puts the string back: the third, counted
from 0, of all long strings in the order in which they were said. Both are pure, and
`spelled(numbered(events, said), said) == events`. A string that begins with "^" by nature travels as "^^…".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

from workflows.messages import JsonObject

_MARK = "^"
_LONG = 16


def numbered(events: Iterable[Mapping[str, Any]], said: Iterable[str]) -> list[JsonObject]:
    """The events with numbers for what they repeat. `said`: strings that both sides know before the first event."""
    numbers: dict[str, int] = {}
    for text in said:
        _note(numbers, text)
    return [_changed(event, lambda text: _number(numbers, text)) for event in events]


def spelled(events: Iterable[Mapping[str, Any]], said: Iterable[str]) -> list[JsonObject]:
    """The events as they were."""
    numbers: dict[str, int] = {}
    strings: list[str] = []

    def spell(text: str) -> str:
        whole = _spelled(strings, text)
        if _note(numbers, whole):
            strings.append(whole)
        return whole

    strings += [text for text in said if _note(numbers, text)]
    return [_changed(event, spell) for event in events]


def _number(numbers: dict[str, int], text: str) -> str:
    if text in numbers:
        return f"{_MARK}{numbers[text]}"
    _note(numbers, text)
    return f"{_MARK}{text}" if text.startswith(_MARK) else text


def _spelled(strings: list[str], text: str) -> str:
    if not text.startswith(_MARK):
        return text
    rest = text[1:]
    if rest.isdecimal() and rest.isascii() and int(rest) < len(strings):
        return strings[int(rest)]
    return rest if rest.startswith(_MARK) else text


def _note(numbers: dict[str, int], text: str) -> bool:
    if len(text) < _LONG or text in numbers:
        return False
    numbers[text] = len(numbers)
    return True


def _changed(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {key: _changed(item, change) for key, item in cast("JsonObject", value).items()}
    if isinstance(value, list):
        return [_changed(item, change) for item in cast("list[Any]", value)]
    return value
