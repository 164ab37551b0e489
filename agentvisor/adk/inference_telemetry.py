"""What ADK tells OpenTelemetry of each model call is made only where somebody listens.

ADK turns the whole request into OpenTelemetry's values, with a record for each message of the conversation, also where
no provider is set and all of that is thrown away: it takes longer the longer the session is.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from google.adk.telemetry import tracing
from opentelemetry import _logs, metrics, trace

_API = ("opentelemetry.trace", "opentelemetry.metrics", "opentelemetry._logs")
"""Where the providers are that throw everything away."""


def tell_listeners_only() -> None:
    """In this process. To do it twice is as good as once."""
    native = getattr(tracing, "use_inference_span", None)
    if native is not None and native.__module__ == tracing.__name__:
        tracing.use_inference_span = _for_listeners(native)


def _for_listeners(native: Callable[..., AbstractAsyncContextManager[Any]]) -> Any:
    def use_inference_span(*args: Any, **options: Any) -> AbstractAsyncContextManager[Any]:
        return native(*args, **options) if _somebody_listens() else _no_span()

    return use_inference_span


def _somebody_listens() -> bool:
    """Whether a provider is set by now: the agent's code may do that at any time."""
    providers = (trace.get_tracer_provider(), metrics.get_meter_provider(), _logs.get_logger_provider())
    return not all(type(provider).__module__.startswith(_API) for provider in providers)


@asynccontextmanager
async def _no_span() -> AsyncGenerator[None]:
    """As ADK's own does where another library makes the span."""
    yield None
