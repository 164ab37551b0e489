"""The tools of an application, by name. What a framework would take for its own, or refuse, is refused here."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any, TypeVar, overload

from agent_adapter.errors import ToolUsageError
from agent_adapter.schema.names import LEGAL, is_reserved
from agent_adapter.spec import ToolSpec

if TYPE_CHECKING:
    from agent_adapter.guards import Guard
    from agent_adapter.mcp import McpTools
    from agent_adapter.spec import ConfirmRule

Function = TypeVar("Function", bound=Callable[..., Any])

_OPTIONS = frozenset(field.name for field in fields(ToolSpec) if field.init) - {"function"}


class ToolRegistry:
    """Tools in the order they were added.

    `@registry.tool` and `@registry.tool(effect="read", …)` add a function and return it unchanged; `registry.add` takes
    a ToolSpec. Duplicate, illegal and reserved names are a ToolUsageError that names the tool and the way out.
    """

    def __init__(self, specs: Iterable[ToolSpec] = ()) -> None:
        self._specs: dict[str, ToolSpec] = {}
        for spec in specs:
            self.add(spec)

    def add(self, spec: ToolSpec) -> ToolSpec:
        """Add one tool and return it."""
        check_name(spec.name)
        if spec.name in self._specs:
            msg = f"Tool {spec.name!r} is in the registry already. Give one of the two another name."
            raise ToolUsageError(msg)
        self._specs[spec.name] = spec
        return spec

    @overload
    def tool(self, function: Function, /) -> Function: ...

    @overload
    def tool(self, /, **options: Any) -> Callable[[Function], Function]: ...

    def tool(self, function: Any = None, /, **options: Any) -> Any:
        """Decorator: add a function as tool. The options are ToolSpec's fields."""

        def add(function: Function) -> Function:
            if unknown := options.keys() - _OPTIONS:
                name = options.get("name") or getattr(function, "__name__", "?")
                msg = (
                    f"Tool {name!r}: no option {', '.join(sorted(unknown))}. There are: {', '.join(sorted(_OPTIONS))}."
                )
                raise ToolUsageError(msg)
            self.add(ToolSpec(function=function, **options))
            return function

        return add if function is None else add(function)

    def add_mcp(
        self,
        server: str | Sequence[str],
        *,
        prefix: str = "",
        include: Collection[str] | None = None,
        trust: bool = True,
        confirm: bool | ConfirmRule | None = None,
        guards: Sequence[Guard] = (),
        options: Mapping[str, Mapping[str, Any]] | None = None,
        headers: Mapping[str, str] | None = None,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        timeout: float = 30.0,
    ) -> McpTools:
        """Add the tools of an MCP server: `https://…` for streamable HTTP, or a command as a list of its words (stdio).

        The server is asked now, at most `timeout` seconds; the connection for calls is opened when the first is made.
        Names become legal ones, after `prefix`. Hints of the server say what reads and what may be repeated; what it
        does not call harmless needs approval. `trust=False` takes no hint: everything is a write that needs approval.
        `confirm` and `guards` are for all its tools, `options` for single ones by the server's name for them (fields of
        ToolSpec). A tool that cannot be added is logged and stands in `refused`; the others are added.
        Raises ToolUsageError where the server does not answer, or has no tool of that name.
        """
        from agent_adapter.mcp import add_mcp  # noqa: PLC0415 - needs an extra

        return add_mcp(
            self,
            server,
            prefix=prefix,
            include=include,
            trust=trust,
            confirm=confirm,
            guards=guards,
            options=options,
            headers=headers,
            env=env,
            cwd=cwd,
            timeout=timeout,
        )

    def exported_to(self, integration: str) -> list[ToolSpec]:
        """The tools that the integration of this name may see, in order."""
        return [spec for spec in self if spec.is_exported_to(integration)]

    def __getitem__(self, name: str) -> ToolSpec:
        """The tool of this name. Raises ToolUsageError."""
        try:
            return self._specs[name]
        except KeyError:
            known = ", ".join(repr(known) for known in self._specs) or "none"
            msg = f"No tool {name!r} is in the registry. It has: {known}."
            raise ToolUsageError(msg) from None

    def __contains__(self, name: object) -> bool:
        return name in self._specs

    def __iter__(self) -> Iterator[ToolSpec]:
        return iter(tuple(self._specs.values()))

    def __len__(self) -> int:
        return len(self._specs)


def check_name(name: str) -> None:
    """Refuse a tool name that a model API or a framework cannot take. Raises ToolUsageError."""
    if not LEGAL.fullmatch(name):
        msg = (
            f"Tool name {name!r} is not legal. Use a letter or underscore first, then letters, digits, '_', '.' or "
            "'-', at most 64 characters in all; give it with name='…'."
        )
        raise ToolUsageError(msg)
    if is_reserved(name):
        msg = f'Tool name {name!r} is reserved by agent frameworks. Give the tool another with name="…".'
        raise ToolUsageError(msg)
