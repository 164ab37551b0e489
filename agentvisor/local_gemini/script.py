"""What the local model says: the script, as its file holds it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Self, cast

import yaml
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

JsonObject = dict[str, Any]


class ScriptInvalidError(ValueError):
    """A script that cannot be used. Its author must act; the message names every place."""


def _checked_pattern(pattern: str) -> str:
    try:
        re.compile(pattern)
    except re.error as problem:
        msg = f"is no regular expression: {problem}"
        raise ValueError(msg) from problem
    return pattern


Pattern = Annotated[str, AfterValidator(_checked_pattern)]


class _Part(BaseModel):
    """Base of all parts of a script: frozen, unknown fields refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Call(_Part):
    """A function call of the model. `id` is sent only where it is given: Gemini itself sends none."""

    name: str
    args: JsonObject = {}
    id: str | None = None


class Usage(_Part):
    """Token counts of one reply."""

    prompt: int = Field(default=0, ge=0)
    output: int = Field(default=0, ge=0)
    thoughts: int = Field(default=0, ge=0)
    cached: int = Field(default=0, ge=0)


class Fault(_Part):
    """What goes wrong instead of a reply: one of `code`, `cut` and `body`, the first `times` times (None: always)."""

    code: int | None = Field(default=None, ge=400, le=599)
    status: str | None = None
    message: str | None = None
    retry_after: float | None = Field(default=None, ge=0)
    cut: int | None = Field(default=None, ge=0)
    body: str | None = None
    times: int | None = Field(default=None, ge=1)

    @model_validator(mode="after")
    def _is_one_kind(self) -> Self:
        given = [name for name in ("code", "cut", "body") if getattr(self, name) is not None]
        if len(given) != 1:
            msg = f"needs exactly one of code, cut and body; it has {' and '.join(given) or 'none'}"
            raise ValueError(msg)
        if self.code is None and (self.status or self.message or self.retry_after is not None):
            msg = "status, message and retry_after go with code only"
            raise ValueError(msg)
        return self


class Turn(_Part):
    """One reply of the model."""

    when: str | None = None
    text: str | None = None
    calls: tuple[Call, ...] = ()
    parts: tuple[JsonObject, ...] | None = None
    finish: str = "STOP"
    finish_message: str | None = None
    no_candidates: bool = False
    blocked: str | None = None
    usage: Usage | None = None
    chunks: int = Field(default=1, ge=1)
    chunk_delay: float = Field(default=0.0, ge=0)
    delay: float = Field(default=0.0, ge=0)
    hold: str | None = Field(default=None, pattern=r"^[A-Za-z0-9._-]+$")
    hold_after: int = Field(default=0, ge=0)
    faults: tuple[Fault, ...] = ()

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        says = self.text is not None or bool(self.calls)
        if says and self.parts is not None:
            msg = "parts are the whole reply; text and calls cannot stand beside them"
            raise ValueError(msg)
        silent = self.no_candidates or self.blocked is not None
        if silent and (says or self.parts is not None):
            msg = "no_candidates and blocked leave no room for text, calls or parts"
            raise ValueError(msg)
        always_fails = bool(self.faults) and self.faults[-1].times is None
        if not (says or silent or self.parts is not None or self.finish != "STOP" or always_fails):
            msg = "says nothing; give text, calls or parts (an empty reply is `parts: []`)"
            raise ValueError(msg)
        return self


Said = str | Call | Turn | JsonObject
"""What may stand for a turn: a string is its text, a Call its only call."""


class Conversation(_Part):
    """Turns for the requests that match. Each position holds alternatives; the first whose `when` holds answers."""

    name: str = ""
    user: Pattern = ""
    at: Literal["last", "first", "any"] = "last"
    system: Pattern | None = None
    repeat: bool = False
    turns: tuple[tuple[Turn, ...], ...] = Field(min_length=1)

    @field_validator("turns", mode="before")
    @classmethod
    def _each_position_is_a_list(cls, turns: object) -> object:
        if not isinstance(turns, list | tuple):
            return turns
        return [_alternatives(position) for position in cast("Sequence[object]", turns)]

    @property
    def label(self) -> str:
        """How messages and the log name it."""
        return self.name or self.user or "(any)"


def _alternatives(position: object) -> object:
    if isinstance(position, list | tuple):
        return [_as_turn(turn) for turn in cast("Sequence[object]", position)]
    return [_as_turn(position)]


def _as_turn(said: object) -> object:
    if isinstance(said, str):
        return {"text": said}
    return Turn(calls=(said,)) if isinstance(said, Call) else said


class Script(_Part):
    """Everything the model has to say; the first conversation that fits a request answers it."""

    conversations: tuple[Conversation, ...] = ()


def load_script(path: Path) -> Script:
    """Read a script file, JSON or YAML. Raises ScriptInvalidError naming each wrong place."""
    try:
        raw = yaml.safe_load(path.read_text(encoding="utf-8"))
        return Script.model_validate(raw)
    except OSError as problem:
        msg = f"Script {str(path)!r} cannot be read ({problem.strerror}). Give the path of a script file."
        raise ScriptInvalidError(msg) from problem
    except (yaml.YAMLError, UnicodeDecodeError) as problem:
        msg = f"Script {str(path)!r} is neither JSON nor YAML: {problem}. Mend the file."
        raise ScriptInvalidError(msg) from problem
    except ValidationError as problem:
        raise ScriptInvalidError(_explained(path, problem)) from problem


def _explained(path: Path, problem: ValidationError) -> str:
    lines = [f"  {_place(error['loc'])}: {_reason(error['type'], error['msg'])}" for error in problem.errors()]
    wrong = "\n".join(lines)
    return (
        f"Script {str(path)!r} is not valid:\n{wrong}\nThe format stands in the docstring of agentvisor.local_gemini."
    )


def _place(location: tuple[int | str, ...]) -> str:
    place = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in location)
    return place.removeprefix(".") or "the file"


def _reason(kind: str, message: str) -> str:
    return "unknown field" if kind == "extra_forbidden" else message.removeprefix("Value error, ")
