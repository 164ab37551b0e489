"""A ToolSpec as an ADK tool."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any

from google.adk.tools import BaseTool, ToolContext
from google.genai import types

from agent_adapter.approval.pause import PausedCall
from agent_adapter.causes import log_cause
from agent_adapter.errors import ModelError, ToolSchemaError
from agent_adapter.executor import Executor, PreparedCall
from agent_adapter.integrations.adk.confirmations import permission_of
from agent_adapter.integrations.adk.context import bind_context, repeatable_key
from agent_adapter.integrations.adk.hosted import has_outcome, is_hosted, outcome, pause
from agent_adapter.integrations.adk.wire import fit_for_the_wire
from agent_adapter.registry import ToolRegistry
from agent_adapter.schema.gemini import to_gemini_parameters
from agent_adapter.spec import MAX_SUMMARY, ToolSpec

_left_out: dict[str, ToolSchemaError] = {}


class AdapterTool(BaseTool):
    """Runs its spec through the executor. Make it with `adk_tool` or `adk_tools`."""

    def __init__(self, spec: ToolSpec, executor: Executor) -> None:
        super().__init__(name=spec.name, description=spec.description or spec.name)
        self.spec = spec
        self.executor = executor
        schema = types.Schema.model_validate(to_gemini_parameters(spec.parameters, tool=spec.name))
        declaration = types.FunctionDeclaration(name=self.name, description=self.description, parameters=schema)
        self._declaration = pickle.dumps(declaration)  # a third of the time of a deep copy, for every model call

    @property
    def may_pause(self) -> bool:
        """Whether a call may need a person or must run outside its turn; guards may ask for a person, too."""
        return self.spec.may_pause or bool(self.spec.guards or self.executor.guards)

    def _get_declaration(self) -> types.FunctionDeclaration:
        """A new one each time: ADK and callbacks change what they are given."""
        return pickle.loads(self._declaration)  # noqa: S301 - made above

    async def check_require_confirmation(self, args: dict[str, Any], tool_context: ToolContext) -> bool:
        """The spec's confirm rule. False under a host, which is the gate itself, and for calls that cannot run."""
        if is_hosted():
            return False
        try:
            prepared = await self.executor.prepare(self.spec, args, bind_context(tool_context))
        except ModelError:
            return False  # run_async says why
        return prepared.needs_approval

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> Any:
        try:
            if is_hosted():
                return fit_for_the_wire(await self._run_hosted(args, tool_context))
            return fit_for_the_wire(await self._run_plain(args, tool_context))
        except ModelError as error:
            return error.as_result()

    async def _run_plain(self, args: dict[str, Any], tool_context: ToolContext) -> Any:
        context = bind_context(tool_context)
        if tool_context.tool_confirmation is not None:
            prepared = await self.executor.prepare(self.spec, args, context)
            context = replace(context, permission=permission_of(prepared, self.spec.validate(args), tool_context))
        return await self.executor.run_spec(self.spec, args, context)

    async def _run_hosted(self, args: dict[str, Any], tool_context: ToolContext) -> Any:
        if has_outcome(tool_context):
            return outcome(tool_context)
        context = bind_context(tool_context)
        if self.may_pause:
            prepared = await self.executor.prepare(self.spec, args, context)
            if prepared.needs_approval or not self.spec.is_repeatable:
                return pause(tool_context, paused_call(prepared, args))
        if self.spec.idempotent:
            context = replace(context, idempotency_key=repeatable_key(tool_context))
        return await self.executor.run_spec(self.spec, args, context)


def paused_call(prepared: PreparedCall, raw: dict[str, Any]) -> PausedCall:
    """What whoever holds the approval needs to know of a prepared call."""
    spec = prepared.spec
    return PausedCall(
        approval=prepared.needs_approval,
        arguments=prepared.arguments if prepared.arguments != raw else None,
        fingerprint=spec.fingerprint,
        effect=spec.effect,
        idempotent=spec.idempotent,
        probe=spec.probe is not None,
        timeout=spec.timeout,
        retries=spec.retries,
        cost=spec.cost,
        expires=spec.expires,
        summary=_line(spec.summary_of(prepared.arguments), prepared.reason),
    )


def _line(summary: str | None, reason: str | None) -> str | None:
    """What a person reads: the tool's summary, and why a guard wants it approved."""
    if reason is None:
        return summary
    line = " ".join((f"{summary}: {reason}" if summary else reason).split())
    return line if len(line) <= MAX_SUMMARY else line[: MAX_SUMMARY - 1] + "…"


def adk_tool(spec: ToolSpec, *, executor: Executor | None = None) -> BaseTool:
    """One ADK tool that runs `spec` through the executor.

    Model-facing errors come back as `{"error": {"kind", "message"}}`; all others propagate.
    Raises ToolSchemaError where no model can be shown what it takes.
    """
    return AdapterTool(spec, executor or Executor(_registry_of(spec)))


def adk_tools(registry: ToolRegistry, *, executor: Executor | None = None) -> list[BaseTool]:
    """One ADK tool for each tool of the registry that is exported to `adk`, in the registry's order.

    One that no model can be shown is left out, and its ToolSchemaError is logged: the others still work.
    `left_out()` says which they are.
    """
    shared = executor or Executor(registry)
    made: list[BaseTool] = []
    for spec in registry.exported_to("adk"):
        try:
            made.append(adk_tool(spec, executor=shared))
        except ToolSchemaError as problem:
            _left_out[spec.name] = problem
            log_cause("tool.left_out", problem, tool=spec.name)
        else:
            _left_out.pop(spec.name, None)
    return made


def left_out() -> tuple[tuple[str, ToolSchemaError], ...]:
    """The tools that `adk_tools` left out in this process, by name, and why."""
    return tuple(_left_out.items())


def _registry_of(spec: ToolSpec) -> ToolRegistry:
    registry = ToolRegistry()
    registry.add(spec)
    return registry
