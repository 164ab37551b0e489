"""Templates: how a scripted reply quotes the request it answers."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any, cast

from agentvisor.local_gemini.history import JsonObject, responses_of

_TEMPLATE = re.compile(r"\{(user|match:[^{}]+|response:[^{}]+)\}")
_PATH = re.compile(r"(?P<tool>[A-Za-z0-9_-]+)(?:\[(?P<index>\d+)\])?(?:\.(?P<rest>.+))?")


class QuoteMissingError(LookupError):
    """A template names what the request does not hold."""


class Quotes:
    """What the templates of one reply may quote."""

    def __init__(self, contents: Sequence[JsonObject], *, anchor: int, match: re.Match[str]) -> None:
        """`anchor` is the index of the matched user text; responses after it belong to this conversation."""
        self._match = match
        self._all = [response for content in contents for response in responses_of(content)]
        self._since = [response for content in contents[anchor:] for response in responses_of(content)]

    def filled(self, value: Any) -> Any:
        """A copy of a JSON value with the templates in its strings replaced. Raises QuoteMissingError."""
        if isinstance(value, str):
            return self._filled_text(value)
        if isinstance(value, list | tuple):
            return [self.filled(item) for item in cast("Sequence[Any]", value)]
        if isinstance(value, dict):
            return {key: self.filled(item) for key, item in cast("JsonObject", value).items()}
        return value

    def filled_part(self, part: JsonObject) -> JsonObject:
        """The same for a part of a content, whose own text stays text."""
        filled: JsonObject = self.filled({name: value for name, value in part.items() if name != "text"})
        return {"text": _as_text(self.filled(part["text"])), **filled} if "text" in part else filled

    def holds(self, path: str) -> bool:
        """Whether a response since the matched text has this path."""
        try:
            self._response(path, among=self._since)
        except QuoteMissingError:
            return False
        return True

    def _filled_text(self, text: str) -> Any:
        if whole := _TEMPLATE.fullmatch(text):
            return self._quote(whole[1])
        return _TEMPLATE.sub(lambda found: _as_text(self._quote(found[1])), text)

    def _quote(self, template: str) -> Any:
        kind, _, name = template.partition(":")
        quoted: dict[str, Callable[[str], Any]] = {"user": self._user, "match": self._group, "response": self._response}
        return quoted[kind](name)

    def _user(self, _name: str) -> str:
        return self._match.string

    def _group(self, name: str) -> str:
        try:
            return self._match[int(name) if name.isdigit() else name] or ""
        except IndexError as problem:
            msg = f"the expression {self._match.re.pattern!r} has no group {name!r}"
            raise QuoteMissingError(msg) from problem

    def _response(self, path: str, *, among: Sequence[JsonObject] | None = None) -> Any:
        found = _PATH.fullmatch(path)
        if not found:
            msg = f"{path!r} is not TOOL.path"
            raise QuoteMissingError(msg)
        responses = self._since if found["index"] else (self._all if among is None else among)
        named = [response.get("response") for response in responses if response.get("name") == found["tool"]]
        try:
            value = named[int(found["index"] or -1)]
            for step in (found["rest"] or "").split(".") if found["rest"] else ():
                value = _inside(value, step)
        except (IndexError, KeyError) as problem:
            msg = f"the request holds no {path!r}"
            raise QuoteMissingError(msg) from problem
        return value


def _inside(value: Any, step: str) -> Any:
    if isinstance(value, dict):
        return cast("JsonObject", value)[step]
    if isinstance(value, list) and step.isdigit():
        return cast("list[Any]", value)[int(step)]
    raise KeyError(step)


def _as_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(item, str) for item in cast("list[Any]", value)):
        return ", ".join(cast("list[str]", value))
    return json.dumps(value, ensure_ascii=False)
