"""What a tool's function takes: its argument model, the parameter for the ToolContext, and how values reach it."""

from __future__ import annotations

import functools
import inspect
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, create_model
from pydantic.fields import FieldInfo
from pydantic_core import PydanticSerializationError

from agent_adapter.context import ToolContext
from agent_adapter.errors import ToolUsageError
from agent_adapter.values import Values

_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
_NOT_BY_NAME = (*_VARIADIC, inspect.Parameter.POSITIONAL_ONLY)


class _DerivedArguments(BaseModel):
    model_config = ConfigDict(extra="forbid", protected_namespaces=())


@dataclass(frozen=True, slots=True)
class Signature:
    """How a function is called with validated arguments."""

    model: type[BaseModel] | None
    """None: the arguments are described by a JSON Schema."""
    context_parameter: str | None
    model_parameter: str | None
    """The parameter that takes the whole model or object; None: one keyword per field."""
    keywords: tuple[tuple[str, str], ...]
    """Parameter name and model field, one pair per field."""

    def bind(self, values: Values, context: ToolContext) -> dict[str, Any]:
        """The keyword arguments of one call."""
        if self.model_parameter is not None:
            bound: dict[str, Any] = {self.model_parameter: values}
        elif isinstance(values, dict):
            bound = dict(values)
        else:
            bound = {parameter: getattr(values, field) for parameter, field in self.keywords}
        if self.context_parameter is not None:
            bound[self.context_parameter] = context
        return bound


def signature_of(tool: str, function: Callable[..., Any], model: type[BaseModel] | None) -> Signature:
    """Read a function. With `model` given its fields are the arguments; otherwise they are derived from the parameters.

    Raises ToolUsageError for what cannot be called by name with JSON values.
    """
    parameters = _parameters(tool, function, known={model.__name__: model} if model else {})
    context = _context_parameter(tool, parameters)
    own = [parameter for parameter in parameters if parameter.name != context]
    if model is not None:
        return _with_model(tool, model, own, context)
    derived = _derive(tool, own)
    _check_defaults(tool, derived)
    return Signature(derived, context, None, _keywords(derived))


def signature_of_object(tool: str, function: Callable[..., Any]) -> Signature:
    """Read a function whose arguments are described by a JSON Schema: it takes one object, or any keywords.

    Raises ToolUsageError for any other function.
    """
    parameters = _parameters(tool, function, known={})
    context = _context_parameter(tool, parameters)
    own = [parameter for parameter in parameters if parameter.name != context]
    if len(own) == 1 and own[0].kind is inspect.Parameter.VAR_KEYWORD:
        return Signature(None, context, None, ())
    if len(own) == 1 and own[0].kind not in _NOT_BY_NAME and _takes_object(own[0].annotation):
        return Signature(None, context, own[0].name, ())
    msg = (
        f"Tool {tool!r}: its arguments are described by a JSON Schema, so its function takes them as one "
        "parameter annotated dict, or as **keywords; and a ToolContext if it likes."
    )
    raise ToolUsageError(msg)


def _takes_object(annotation: Any) -> bool:
    kind = typing.get_origin(annotation) or annotation
    return kind in (inspect.Parameter.empty, Any, dict, Mapping)


def _parameters(tool: str, function: Callable[..., Any], known: dict[str, Any]) -> list[inspect.Parameter]:
    """The parameters with their annotations read. That of the result is left alone: nobody needs it."""
    names = known | _globals_of(function)
    try:
        return [
            parameter.replace(annotation=eval(parameter.annotation, names))  # noqa: S307 - the author's own code
            if isinstance(parameter.annotation, str)
            else parameter
            for parameter in inspect.signature(function).parameters.values()
        ]
    except NameError as problem:
        msg = (
            f"Tool {tool!r}: the annotation {problem.name!r} cannot be resolved. "
            "Define or import that type at the top of the module."
        )
        raise ToolUsageError(msg) from problem
    except (TypeError, ValueError, AttributeError, SyntaxError) as problem:
        msg = f"Tool {tool!r}: {problem}. Give it a Python function with annotated parameters."
        raise ToolUsageError(msg) from problem


def _globals_of(function: Callable[..., Any]) -> dict[str, Any]:
    while isinstance(function, functools.partial):
        function = function.func
    function = inspect.unwrap(function)
    return getattr(function, "__globals__", None) or getattr(type(function).__call__, "__globals__", {})


def _context_parameter(tool: str, parameters: list[inspect.Parameter]) -> str | None:
    names = [parameter.name for parameter in parameters if _is_context(parameter.annotation)]
    if len(names) > 1:
        msg = f"Tool {tool!r} takes a ToolContext as {', '.join(names)}. Keep one of them."
        raise ToolUsageError(msg)
    return names[0] if names else None


def _is_context(annotation: Any) -> bool:
    if annotation is ToolContext:
        return True
    union = typing.get_origin(annotation) in (typing.Union, types.UnionType)
    return union and ToolContext in typing.get_args(annotation)


def _with_model(
    tool: str, model: type[BaseModel], parameters: list[inspect.Parameter], context: str | None
) -> Signature:
    whole = [parameter.name for parameter in parameters if parameter.annotation is model]
    if len(parameters) == 1 and whole:
        return Signature(model, context, whole[0], ())
    keywords = _keywords(model)
    fields = {parameter for parameter, _ in keywords}
    takes_any = any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters)
    named = {parameter.name: parameter for parameter in parameters if parameter.kind not in _VARIADIC}
    missing = [] if takes_any else sorted(fields - set(named))
    unfilled = [
        name for name, parameter in named.items() if name not in fields and parameter.default is parameter.empty
    ]
    if missing or unfilled:
        msg = (
            f"Tool {tool!r}: its function and {model.__name__} differ in {', '.join(missing + unfilled)}. "
            f"Take one parameter per field, or a single parameter annotated {model.__name__}."
        )
        raise ToolUsageError(msg)
    return Signature(model, context, None, keywords)


def _keywords(model: type[BaseModel]) -> tuple[tuple[str, str], ...]:
    derived = issubclass(model, _DerivedArguments)
    return tuple(((field.alias if derived else None) or name, name) for name, field in model.model_fields.items())


def _derive(tool: str, parameters: list[inspect.Parameter]) -> type[BaseModel]:
    definitions: dict[str, Any] = {}
    for parameter in parameters:
        _refuse_uncallable(tool, parameter)
        definitions.update([_field(parameter)])
    try:
        return create_model(f"{tool}_arguments", __base__=_DerivedArguments, **definitions)
    except Exception as problem:
        msg = (
            f"Tool {tool!r}: no argument schema can be made from its parameters ({problem}). "
            "Annotate each with a type that pydantic can read from JSON; "
            "the call's context is annotated agent_adapter.ToolContext."
        )
        raise ToolUsageError(msg) from problem


def _refuse_uncallable(tool: str, parameter: inspect.Parameter) -> None:
    if parameter.kind in _VARIADIC or parameter.kind is inspect.Parameter.POSITIONAL_ONLY:
        msg = f"Tool {tool!r}: parameter {parameter.name!r} cannot be passed by name. Use plain named parameters."
        raise ToolUsageError(msg)
    if parameter.annotation is parameter.empty:
        msg = f"Tool {tool!r}: parameter {parameter.name!r} has no annotation. Annotate it with its type."
        raise ToolUsageError(msg)


def _field(parameter: inspect.Parameter) -> tuple[str, tuple[Any, Any]]:
    default = ... if parameter.default is parameter.empty else parameter.default
    annotation = parameter.annotation
    if default is None:
        # `x: int = None` is common; without this the validated call could not be validated again.
        annotation = annotation | None if isinstance(annotation, type) else typing.Optional[annotation]  # noqa: UP045
    name = parameter.name
    if name.startswith("_") or hasattr(BaseModel, name):
        return f"arg_{name.lstrip('_')}", (Annotated[annotation, Field(alias=name)], default)
    return name, (annotation, default)


def _check_defaults(tool: str, model: type[BaseModel]) -> None:
    """A default must be a valid argument itself: what a person approved is validated again when it runs."""
    for name, field in model.model_fields.items():
        if not field.is_required() and not _default_is_valid(field):
            msg = (
                f"Tool {tool!r}: the default of {field.alias or name!r} is not a valid argument for its own type. "
                "Change the default or the annotation."
            )
            raise ToolUsageError(msg)


def _default_is_valid(field: FieldInfo) -> bool:
    annotation: Any = Annotated[(field.annotation, None, *field.metadata)]  # pyright: ignore[reportInvalidTypeForm]
    adapter: TypeAdapter[Any] = TypeAdapter(annotation)
    try:
        dump = adapter.dump_json(field.get_default(call_default_factory=True, validated_data={}), warnings=False)
        adapter.validate_json(dump, strict=True)
    except (ValidationError, PydanticSerializationError):
        return False
    return True
