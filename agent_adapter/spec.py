"""A tool: a Python function with all that is needed to check, approve, run and describe its calls."""

from __future__ import annotations

import inspect
import math
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from pydantic import BaseModel, PydanticUserError

from agent_adapter.approval.decision import Expires
from agent_adapter.approval.digest import canonical_json, digest
from agent_adapter.arguments import validate_arguments
from agent_adapter.causes import log_cause
from agent_adapter.context import ToolContext
from agent_adapter.errors import ToolUsageError
from agent_adapter.guards import Guard
from agent_adapter.schema.checked import CheckedSchema
from agent_adapter.signature import Signature, signature_of, signature_of_object
from agent_adapter.values import JsonObject, Values, plain

Effect = Literal["read", "write"]
ConfirmRule = Callable[[JsonObject, ToolContext], bool | Awaitable[bool]]
"""Decides whether a call needs approval. It runs on the event loop: keep it short or make it async."""
Summary = str | Callable[[JsonObject], str] | None

MAX_SUMMARY = 200


class _FromSignature(BaseModel):
    """Stands for an argument model that is derived from the function."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ToolSpec:
    """One tool. Checked when it is made: what cannot work is a ToolUsageError that names the tool and the way out.

    `function` is sync (it runs in a thread) or async. `timeout` is in seconds per attempt; `retries` are further
    attempts and go with `effect="read"` or `idempotent=True` only. `cost` is what one call takes of the run's budget.
    """

    name: str = ""
    """Default: the function's name."""
    function: Callable[..., Any]
    description: str = ""
    """Default: the function's docstring."""
    arguments: type[BaseModel] | Mapping[str, Any] = _FromSignature
    """Default: derived from the function's parameters, without the ToolContext; extras are refused.

    A JSON Schema: the function takes one dict, or **keywords, as they were sent; what it says of extras holds.
    """
    effect: Effect = "write"
    confirm: bool | ConfirmRule = False
    idempotent: bool = False
    probe: Callable[..., Any] | None = None
    """Given a ToolContext with the call's idempotency key: what became of a call whose end is unknown?"""
    export: Collection[str] | None = None
    """Names of the integrations that may see the tool; None: all."""
    timeout: float | None = None
    retries: int | None = None
    guards: Sequence[Guard] = ()
    cost: float = 0.0
    version: str = "1"
    summary: Summary = None
    """One line for the person who approves, without secrets; at most 200 characters are shown."""
    expires: Expires = None

    _schema: CheckedSchema | None = field(init=False, repr=False, default=None)
    signature: Signature = field(init=False, repr=False)
    """How the function is called."""
    fingerprint: str = field(init=False, repr=False)
    """Digest of name, version, schema, effect, idempotence and rule: to a person, another one is another tool."""

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise self._wrong(f"its function is of type {type(self.function).__name__}", "Pass a function.")
        self._set("name", self.name or _name_of(self.function))
        self._set("description", self.description or inspect.getdoc(self.function) or "")
        self._read_arguments()
        self._set("guards", tuple(self.guards))
        if self.export is not None:
            self._set("export", frozenset([self.export] if isinstance(self.export, str) else self.export))
        self._check()
        self._set("fingerprint", self._fingerprint())

    @cached_property
    def parameters(self) -> JsonObject:
        """JSON Schema of the arguments."""
        if self._schema is not None:
            return self._schema.schema
        assert self.signature.model is not None
        return self.signature.model.model_json_schema()

    @property
    def context_parameter(self) -> str | None:
        """Name of the function's parameter that takes the ToolContext."""
        return self.signature.context_parameter

    @property
    def may_pause(self) -> bool:
        """Whether a call may need a person, or must not run where it could run twice."""
        return self.confirm is not False or not self.is_repeatable

    @property
    def is_repeatable(self) -> bool:
        """Whether running a call twice does no harm."""
        return self.effect == "read" or self.idempotent

    @cached_property
    def is_async(self) -> bool:
        """Whether the function is a coroutine function; others run in a thread."""
        call = getattr(self.function, "__call__", None)  # noqa: B004 - an object with an async __call__
        return inspect.iscoroutinefunction(inspect.unwrap(self.function)) or inspect.iscoroutinefunction(call)

    def is_exported_to(self, integration: str) -> bool:
        return self.export is None or integration in self.export

    def validate(self, raw: Any) -> JsonObject:
        """The arguments as JSON object, defaults included. Raises ToolArgsInvalid; runs nothing."""
        return self.read(raw)[1]

    def read(self, raw: Any) -> tuple[Values, JsonObject]:
        """The arguments as the function takes them, and as `validate` gives them."""
        if self._schema is None:
            assert self.signature.model is not None
            return validate_arguments(self.name, self.signature.model, raw)
        arguments = self._schema.check(self.name, raw)
        return plain(arguments), arguments

    def summary_of(self, arguments: JsonObject) -> str | None:
        """The line for the person who approves; None where there is none or its function fails."""
        summary = self.summary
        if callable(summary):
            try:
                summary = summary(plain(arguments))
            except Exception as problem:  # noqa: BLE001 - a summary is a courtesy; the call goes on without
                log_cause("tool.summary_failed", problem, tool=self.name)
                return None
        if not isinstance(summary, str) or not summary.strip():
            return None
        line = " ".join(summary.encode("utf-8", "replace").decode().split())
        return line if len(line) <= MAX_SUMMARY else line[: MAX_SUMMARY - 1] + "…"

    def _read_arguments(self) -> None:
        if isinstance(self.arguments, Mapping):
            self._set("_schema", CheckedSchema(self.name, self.arguments))
            self._set("signature", signature_of_object(self.name, self.function))
            return
        if not (inspect.isclass(self.arguments) and BaseModel in self.arguments.__mro__):
            way_out = "Pass a subclass of pydantic.BaseModel, or a JSON Schema as a dict."
            raise self._wrong("its arguments are no pydantic model and no JSON Schema", way_out)
        model = None if self.arguments is _FromSignature else self.arguments
        self._set("signature", signature_of(self.name, self.function, model))
        self._set("arguments", self.signature.model)

    def _check(self) -> None:
        if self.effect not in ("read", "write"):
            raise self._wrong(f"effect is {self.effect!r}", 'Use "read" or "write".')
        if not (isinstance(self.confirm, bool) or callable(self.confirm)):
            raise self._wrong(f"confirm is {self.confirm!r}", "Use True, False or a rule(arguments, context).")
        if self.retries is not None and (self.retries < 0 or (self.retries and not self.is_repeatable)):
            raise self._wrong(
                f"retries={self.retries} would make a write run twice" if self.retries > 0 else "retries is negative",
                'Retries go with effect="read" or idempotent=True.',
            )
        if self.timeout is not None and not _is_duration(self.timeout):
            raise self._wrong(f"timeout is {self.timeout}", "Use seconds above zero, or None.")
        if not 0 <= self.cost < math.inf:
            raise self._wrong(f"cost is {self.cost}", "Use a number of at least zero.")
        if not (self.expires is None or self.expires == "never" or _is_duration(self.expires)):
            raise self._wrong(f"expires is {self.expires!r}", 'Use seconds above zero, "never" or None.')

    def _check_secrets(self) -> None:
        # a secret is masked where a person sees the call, and that is what would run after the approval
        if b'"writeOnly":true' in canonical_json(self.parameters):
            raise self._wrong("an argument is a secret type", "Take secrets from the tool's own surroundings.")

    def _fingerprint(self) -> str:
        rule = self.confirm if isinstance(self.confirm, bool) else "rule"
        try:
            self._check_secrets()
            return digest([self.name, self.version, self.parameters, self.effect, self.idempotent, rule])[:32]
        except (ValueError, PydanticUserError) as problem:
            what = f"its arguments have no JSON Schema ({problem})"
            raise self._wrong(what, "Use types that JSON can carry.") from problem

    def _wrong(self, what: str, way_out: str) -> ToolUsageError:
        return ToolUsageError(f"Tool {self.name!r}: {what}. {way_out}")

    def _set(self, field_name: str, value: Any) -> None:
        object.__setattr__(self, field_name, value)


def _is_duration(value: float | str) -> bool:
    return isinstance(value, int | float) and 0 < value < math.inf


def _name_of(function: Callable[..., Any]) -> str:
    return str(getattr(function, "__name__", "") or type(function).__name__)
