"""Guards look at what goes into a tool and at what comes out of it.

They fail closed: one that raises, or gives no verdict, blocks the call. One that raises GuardrailBlocked says why.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent_adapter.values import Json, JsonObject

if TYPE_CHECKING:
    from agent_adapter.context import ToolContext
    from agent_adapter.spec import ToolSpec


@dataclass(frozen=True, slots=True)
class Allow:
    """Nothing to object to."""


@dataclass(frozen=True, slots=True)
class Block:
    """Stop the call, or withhold its result. The model reads `reason`: no secrets in it."""

    reason: str


@dataclass(frozen=True, slots=True)
class Replace:
    """Go on with this instead: arguments (they are validated again) or a result."""

    value: Json


@dataclass(frozen=True, slots=True)
class Ask:
    """Let a person approve the call. For input guards: of an output guard it blocks, the call was made already."""

    reason: str


Verdict = Allow | Block | Replace | Ask


class InputGuard(ABC):
    """Checks validated arguments before anybody is asked and anything is run; again when a person edited them."""

    @property
    def name(self) -> str:
        return type(self).__name__

    @abstractmethod
    async def check_input(self, spec: ToolSpec, arguments: JsonObject, context: ToolContext) -> Verdict:
        """Judge the arguments; they are a copy of its own."""


class OutputGuard(ABC):
    """Checks a result before the model sees it. The tool has run by then."""

    @property
    def name(self) -> str:
        return type(self).__name__

    @abstractmethod
    async def check_output(self, spec: ToolSpec, result: Json, context: ToolContext) -> Verdict:
        """Judge the result; it is a copy of its own."""


Guard = InputGuard | OutputGuard
GuardFunction = Callable[[JsonObject, "ToolContext"], Verdict | bool | Awaitable[Verdict | bool]]


class CallableGuard(InputGuard):
    """An input guard from a function of (arguments, context), sync or async.

    It returns a Verdict, or True to allow and False to block. Anything else, None included, blocks.
    """

    def __init__(self, function: GuardFunction, *, name: str | None = None) -> None:
        self._function = function
        self._name = name or getattr(function, "__name__", type(function).__name__)

    @property
    def name(self) -> str:
        return self._name

    async def check_input(self, spec: ToolSpec, arguments: JsonObject, context: ToolContext) -> Verdict:  # noqa: ARG002
        return await _verdict(self._function(arguments, context))


class CallableOutputGuard(OutputGuard):
    """An output guard from a function of (result, context); otherwise as CallableGuard."""

    def __init__(
        self,
        function: Callable[[Json, ToolContext], Verdict | bool | Awaitable[Verdict | bool]],
        *,
        name: str | None = None,
    ) -> None:
        self._function = function
        self._name = name or getattr(function, "__name__", type(function).__name__)

    @property
    def name(self) -> str:
        return self._name

    async def check_output(self, spec: ToolSpec, result: Json, context: ToolContext) -> Verdict:  # noqa: ARG002
        return await _verdict(self._function(result, context))


async def _verdict(answer: Verdict | bool | Awaitable[Verdict | bool]) -> Verdict:
    if inspect.isawaitable(answer):
        answer = await answer
    if isinstance(answer, bool):
        return Allow() if answer else Block("a guard refuses it")
    return answer
