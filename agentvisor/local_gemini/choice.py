"""Which turn of the script answers a request."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from agentvisor.local_gemini.history import JsonObject, contents_of, parts_of, user_text
from agentvisor.local_gemini.script import Conversation, Turn
from agentvisor.local_gemini.templates import Quotes


class NoAnswerError(LookupError):
    """The script has nothing to say to this request; its author must act."""


@dataclass(frozen=True)
class Choice:
    """A turn, where it stands, and what it may quote."""

    conversation: str
    turn: int
    said: Turn
    quotes: Quotes


def system_text(body: JsonObject) -> str:
    """The system instruction of a request as text."""
    instruction: JsonObject = body.get("systemInstruction") or body.get("system_instruction") or {}
    return "\n".join(str(part.get("text", "")) for part in parts_of(instruction))


def choose(conversations: Sequence[Conversation], body: JsonObject) -> Choice:
    """The turn that answers this request, by its contents alone. Raises NoAnswerError saying what to add."""
    contents = contents_of(body)
    system = system_text(body)
    for conversation in conversations:
        if conversation.system is not None and not re.search(conversation.system, system):
            continue
        if found := _matched(conversation, contents):
            return _chosen(conversation, contents, *found)
    said = next((text for content in reversed(contents) if (text := user_text(content))), "")
    msg = (
        f"No conversation of the script answers the user text {said!r} under the system instruction {system[:200]!r}. "
        "Add one whose `user` and `system` match."
    )
    raise NoAnswerError(msg)


def _matched(conversation: Conversation, contents: Sequence[JsonObject]) -> tuple[int, re.Match[str]] | None:
    texts = [(at, text) for at, content in enumerate(contents) if (text := user_text(content)) is not None]
    if not texts:
        texts = [(-1, "")]
    looked_at = {"first": texts[:1], "last": texts[-1:], "any": texts[::-1]}[conversation.at]
    hits = ((at, re.search(conversation.user, text)) for at, text in looked_at)
    return next(((at, hit) for at, hit in hits if hit), None)


def _chosen(conversation: Conversation, contents: Sequence[JsonObject], at: int, match: re.Match[str]) -> Choice:
    turn = sum(content.get("role") == "model" for content in contents[at + 1 :])
    quotes = Quotes(contents, anchor=at + 1, match=match)
    for said in _position(conversation, turn):
        if said.when is None or quotes.holds(said.when):
            return Choice(conversation=conversation.label, turn=turn, said=said, quotes=quotes)
    msg = (
        f"Conversation {conversation.label!r}, turn {turn}: no alternative fits the responses of the request. "
        "Add one without `when`."
    )
    raise NoAnswerError(msg)


def _position(conversation: Conversation, turn: int) -> tuple[Turn, ...]:
    count = len(conversation.turns)
    if turn < count or conversation.repeat:
        return conversation.turns[turn % count]
    msg = (
        f"Conversation {conversation.label!r} has {count} turns and is asked for turn {turn} (counted from 0). "
        "Add a turn, or set `repeat`."
    )
    raise NoAnswerError(msg)
