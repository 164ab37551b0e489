"""A guard that finds personal data and secrets in arguments and results."""

from __future__ import annotations

import asyncio
import unicodedata
from collections import Counter
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

from agent_adapter.errors import ToolUsageError
from agent_adapter.guards.base import Allow, Ask, Block, InputGuard, OutputGuard, Replace, Verdict
from agent_adapter.guards.detectors import Detector, Span, cards, emails, ibans, phones, secrets
from agent_adapter.values import Json, JsonObject

if TYPE_CHECKING:
    from agent_adapter.context import ToolContext
    from agent_adapter.spec import ToolSpec

Kind = Literal["secret", "email", "iban", "card", "phone"]
KINDS: tuple[Kind, ...] = get_args(Kind)
MAX_CHARACTERS = 200_000
"""Longer texts are blocked: they cannot be checked in the time a call has."""
_AT_ONCE = 5_000
_NAMES: dict[Kind, tuple[str, str]] = {
    "secret": ("a secret", "secrets"),
    "email": ("an e-mail address", "e-mail addresses"),
    "iban": ("a bank account", "bank accounts"),
    "card": ("a card number", "card numbers"),
    "phone": ("a telephone number", "telephone numbers"),
}


class SensitiveDataGuard(InputGuard, OutputGuard):
    """Looks for e-mail addresses, telephone and card numbers, IBANs, API keys and private keys.

    It looks at every text and number, names of properties included. What it does about `inputs` and `outputs` is
    "block"; "redact", which puts `[email]` and the like in their place; "ask" (inputs only), which lets a person
    approve the call; or "allow". `find` names the kinds to look for; `regions` are those (`"DE"`) whose national
    telephone numbers count, beside international ones. It says which kinds it found and how many, never what they are,
    and logs nothing. What it cannot check it blocks: an error of its own, more than 200,000 characters.
    Raises ToolUsageError where the extra `guards` is not installed.
    """

    def __init__(
        self,
        *,
        inputs: Literal["ask", "block", "redact", "allow"] = "ask",
        outputs: Literal["block", "redact", "allow"] = "redact",
        find: Collection[Kind] = KINDS,
        regions: Sequence[str] = (),
    ) -> None:
        _check("inputs", inputs, ("ask", "block", "redact", "allow"))
        _check("outputs", outputs, ("block", "redact", "allow"))
        for kind in find:
            _check("find", kind, KINDS)
        self._inputs: str = inputs
        self._outputs: str = outputs
        made: dict[Kind, Any] = {
            "secret": lambda: secrets,
            "email": lambda: emails,
            "iban": ibans,
            "card": lambda: cards,
            "phone": lambda: phones(tuple(regions)),
        }
        self._detectors: dict[Kind, Detector] = {kind: made[kind]() for kind in KINDS if kind in find}

    async def check_input(self, spec: ToolSpec, arguments: JsonObject, context: ToolContext) -> Verdict:  # noqa: ARG002
        return await self._verdict(arguments, self._inputs)

    async def check_output(self, spec: ToolSpec, result: Json, context: ToolContext) -> Verdict:  # noqa: ARG002
        return await self._verdict(result, self._outputs)

    async def _verdict(self, value: Json, mode: str) -> Verdict:
        if mode == "allow":
            return Allow()
        size = _size(value)
        if size > MAX_CHARACTERS:
            return Block(f"more than {MAX_CHARACTERS:,} characters cannot be checked")
        try:
            redaction = _Redaction(self._detectors)
            # in a thread where it would hold up the loop
            redacted = redaction.of(value) if size <= _AT_ONCE else await asyncio.to_thread(redaction.of, value)
        except Exception:  # noqa: BLE001 - its text could hold what must not be told
            return Block("it could not be checked")
        if not redaction.found:
            return Allow()
        told = _told(redaction.found)
        if mode == "redact":
            return Replace(redacted)
        return Ask(f"It holds {told}.") if mode == "ask" else Block(f"it holds {told}")


class _Redaction:
    """One pass over one value: a copy without what was found, and how many there were of each kind."""

    def __init__(self, detectors: dict[Kind, Detector]) -> None:
        self._detectors = detectors
        self.found: Counter[Kind] = Counter()

    def of(self, value: Json) -> Json:
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, dict):
            return self._object(cast("JsonObject", value))
        if isinstance(value, list):
            return [self.of(item) for item in cast("list[Json]", value)]
        if isinstance(value, int | float) and not isinstance(value, bool):
            return self._number(value)
        return value

    def _object(self, value: JsonObject) -> JsonObject:
        redacted: JsonObject = {}
        for key, item in value.items():
            name = shown = self._text(key)
            number = 1
            while shown in redacted or (shown != key and shown in value):
                number += 1
                shown = f"{name} {number}"
            redacted[shown] = self.of(item)
        return redacted

    def _number(self, value: float) -> Json:
        written = str(int(value)) if float(value).is_integer() else str(value)
        redacted = self._text(written)
        return value if redacted == written else redacted

    def _text(self, text: str) -> str:
        spans = self._spans(text)
        for kind, _, _ in spans:
            self.found[kind] += 1
        redacted = _cut(text, spans)
        # other ways to write the same signs, and what only now stands side by side
        hidden = self._spans(_plain(redacted))
        if not hidden:
            return redacted
        for kind, _, _ in hidden:
            self.found[kind] += 1
        return f"[{hidden[0][0]}]"

    def _spans(self, text: str) -> list[tuple[Kind, int, int]]:
        """What was found, in order; what overlaps is one, of the kind that begins first."""
        everything: list[tuple[Span, Kind]] = [
            (span, kind) for kind, detector in self._detectors.items() for span in detector(text)
        ]
        merged: list[tuple[Kind, int, int]] = []
        for (start, end), kind in sorted(everything, key=_by_start):
            if merged and start < merged[-1][2]:
                first, begin, until = merged[-1]
                merged[-1] = (first, begin, max(until, end))
            else:
                merged.append((kind, start, end))
        return merged


def _by_start(found: tuple[Span, Kind]) -> tuple[int, int]:
    (start, end), _ = found
    return start, -end


def _cut(text: str, spans: list[tuple[Kind, int, int]]) -> str:
    parts: list[str] = []
    place = 0
    for kind, start, end in spans:
        parts += [text[place:start], f"[{kind}]"]
        place = end
    return "".join([*parts, text[place:]])


def _plain(text: str) -> str:
    """Full-width and other compatible signs as the usual ones, without invisible ones."""
    if text.isascii():
        return text
    visible = "".join(sign for sign in text if unicodedata.category(sign) != "Cf")
    return unicodedata.normalize("NFKC", visible)


def _size(value: Json) -> int:
    if isinstance(value, str):
        return len(value)
    if isinstance(value, dict):
        return sum(len(key) + _size(item) for key, item in cast("JsonObject", value).items())
    if isinstance(value, list):
        return sum(_size(item) for item in cast("list[Json]", value))
    return 8


def _told(found: Counter[Kind]) -> str:
    parts = [_NAMES[kind][0] if count == 1 else f"{count} {_NAMES[kind][1]}" for kind, count in found.items()]
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def _check(option: str, given: str, allowed: Sequence[str]) -> None:
    if given not in allowed:
        msg = f"SensitiveDataGuard: {option} has {given!r}. Use {', '.join(map(repr, allowed))}."
        raise ToolUsageError(msg)
