"""The contents of a request: who said what, and whether Gemini would accept them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

JsonObject = dict[str, Any]

_NOT_THE_USER = (
    "For context:",
    "<<<BEGIN_SYSTEM_INSTRUCTION>>>",
    "Handle the requests as specified in the System Instruction.",
    "Continue processing previous requests as instructed.",
)
"""How texts begin that ADK puts into contents of role user without the user having said them."""


def contents_of(body: JsonObject) -> list[JsonObject]:
    """The contents of a request."""
    return body.get("contents") or []


def parts_of(content: JsonObject) -> list[JsonObject]:
    """The parts of a content; none where it has none."""
    return content.get("parts") or []


def calls_of(content: JsonObject) -> list[JsonObject]:
    """The function calls of a content, in order."""
    return [part["functionCall"] for part in parts_of(content) if "functionCall" in part]


def responses_of(content: JsonObject) -> list[JsonObject]:
    """The function responses of a content, in order."""
    return [part["functionResponse"] for part in parts_of(content) if "functionResponse" in part]


def user_text(content: JsonObject) -> str | None:
    """What the user said in this content, or None where it is not the user's."""
    if content.get("role", "user") != "user" or responses_of(content):
        return None
    texts = [str(part["text"]) for part in parts_of(content) if part.get("text")]
    if not texts or texts[0].startswith(_NOT_THE_USER):
        return None
    return "\n".join(texts)


def problems_of(contents: Sequence[JsonObject]) -> list[str]:
    """Why Gemini would refuse these contents; empty where it would not."""
    if not contents:
        return ["contents is empty"]
    empty = [f"contents[{at}] has no parts" for at, content in enumerate(contents) if not parts_of(content)]
    nameless = [
        f"contents[{at}] makes a call without a name"
        for at, content in enumerate(contents)
        if not all(call.get("name") for call in calls_of(content))
    ]
    return [*empty, *nameless, *_unanswered(contents)]


def _unanswered(contents: Sequence[JsonObject]) -> Iterator[str]:
    for at, (before, content) in enumerate(pairwise([{}, *contents, {}])):
        calls, responses = calls_of(before), responses_of(content)
        if not calls and responses:
            yield f"contents[{at}] answers calls that the content before it does not make: {_names(responses)}"
        elif len(calls) != len(responses):
            yield f"contents[{at - 1}] calls {_names(calls)}, the next content answers {_names(responses)}"


def _names(calls: Sequence[JsonObject]) -> str:
    return ", ".join(str(call.get("name")) for call in calls) or "nothing"
