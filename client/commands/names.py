"""How people name an interrupt on the command line, and how JSON gets in."""

from __future__ import annotations

import json
from typing import Any, cast

import click

from client.checks import built, checked_thread_id
from client.errors import InvalidThreadId, InvalidValue
from workflows.messages import Json, JsonObject, Options


class ThreadIdType(click.ParamType[str]):
    """The id of a thread."""

    name = "thread"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        try:
            return checked_thread_id(str(value))
        except InvalidThreadId as problem:
            self.fail(str(problem), param, ctx)


def interrupt_name(ctx: click.Context, param: click.Parameter, words: tuple[str, ...] | str) -> tuple[str, str]:
    """(thread id, interrupt id) from THREAD/ID or from THREAD ID."""
    parts = " ".join([words] if isinstance(words, str) else words).replace("/", " ").split(" ")
    if len(parts) != 2 or not all(parts):
        raise click.BadParameter("Name it THREAD/ID, as the list shows it, or THREAD ID.", ctx, param)
    return ThreadIdType().convert(parts[0], param, ctx), parts[1]


class JsonType(click.ParamType[Json]):
    """A JSON value."""

    name = "json"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Json:
        if not isinstance(value, str):
            return value
        try:
            return json.loads(value, parse_constant=_no_constant)
        except ValueError as problem:
            self.fail(f"This is not JSON ({problem}): {value[:80]!r}", param, ctx)


class JsonObjectType(JsonType):
    """A JSON object."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> JsonObject:
        found = super().convert(value, param, ctx)
        if not isinstance(found, dict):
            self.fail(f"This is JSON, but not an object: {str(value)[:80]!r}", param, ctx)
        return cast("JsonObject", found)


class OptionsType(click.ParamType[Options]):
    """How a thread behaves, as a JSON object."""

    name = "json"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Options:
        try:
            return built(Options, **JsonObjectType().convert(value, param, ctx))
        except InvalidValue as problem:
            self.fail(str(problem), param, ctx)


class SettingType(click.ParamType[tuple[str, str]]):
    """KEY=VALUE."""

    name = "setting"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str]:
        key, equals, text = str(value).partition("=")
        if not key or not equals:
            self.fail(f"Write KEY=VALUE, not {str(value)[:80]!r}", param, ctx)
        return key, text


def value_instead_of(before: Json, text: str) -> Json:
    """What a person means who types `text` for this value: text stays text, anything else is JSON if it can be."""
    try:
        meant = json.loads(text, parse_constant=_no_constant)
    except ValueError:
        return text
    return text if isinstance(before, str) and not isinstance(meant, str) else meant


def _no_constant(word: str) -> Any:
    msg = f"{word} is no JSON number"
    raise ValueError(msg)
