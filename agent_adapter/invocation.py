"""Running a tool's function: async ones here, sync ones in a thread, each with time limit and retries."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import inspect
from collections.abc import Awaitable, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from agent_adapter.causes import log_cause
from agent_adapter.context import ToolContext
from agent_adapter.errors import AdapterError, ToolError
from agent_adapter.ledger import Outcome
from agent_adapter.spec import ToolSpec
from agent_adapter.values import JsonObject, Values

_LONGEST_PAUSE = 5.0


@dataclass(slots=True, kw_only=True)
class Progress:
    """How far a call got: true at every moment, also when it ends by cancellation."""

    attempts: int = 0
    outcome: Outcome = "not_started"
    cancelled: bool = False


class _MayRetry(Exception):
    """An attempt failed in a way that another may not. Carries what to say if there is none."""

    def __init__(self, final: ToolError) -> None:
        super().__init__(final.message)
        self.final = final


class Invoker:
    """Runs functions of tools. Sync ones share `threads` threads of its own."""

    def __init__(self, *, threads: int = 32, backoff: float = 0.2) -> None:
        self._threads = threads
        self._backoff = backoff
        self._pool: ThreadPoolExecutor | None = None

    async def invoke(
        self,
        spec: ToolSpec,
        values: Values,
        arguments: JsonObject,
        context: ToolContext,
        *,
        progress: Progress,
        on_attempt: Callable[[int], None],
    ) -> Any:
        """What the function returns. Raises ToolError, whatever AdapterError the tool raised, or CancelledError.

        Cancelling stops an async tool. A sync tool in its thread cannot be stopped: it is waited for, so that
        `progress` holds its true outcome, and then CancelledError is raised.
        """
        attempts = 1 + (spec.retries or 0)
        for number in range(1, attempts + 1):
            if number > 1:
                await asyncio.sleep(min(self._backoff * 2 ** (number - 2), _LONGEST_PAUSE))
                # the last attempt may have changed its arguments
                values, _ = spec.read(arguments)
            progress.attempts = number
            attempt_context = replace(context, attempt=context.attempt + number - 1) if number > 1 else context
            on_attempt(attempt_context.attempt)
            try:
                return await self._attempt(spec, values, attempt_context, progress)
            except _MayRetry as failed:
                if number == attempts:
                    raise failed.final from None
        raise AssertionError  # there is at least one attempt

    async def _attempt(self, spec: ToolSpec, values: Values, context: ToolContext, progress: Progress) -> Any:
        before = _cancellations()
        progress.outcome = "unknown"
        try:
            result = await self._ended(spec, values, context, progress)
        except (AdapterError, _MayRetry):
            if progress.cancelled or _cancellations() > before:
                raise asyncio.CancelledError from None
            raise
        except asyncio.CancelledError:
            if progress.cancelled or _cancellations() > before:
                raise
            msg = f"Tool {spec.name!r} cancelled itself. Its author must end it with a result or a ToolError."
            raise _unfinished(spec, msg, progress) from None
        if progress.cancelled or _cancellations() > before:
            # a tool may swallow the cancellation, and a thread cannot feel it; the caller still must
            raise asyncio.CancelledError
        return result

    async def _ended(self, spec: ToolSpec, values: Values, context: ToolContext, progress: Progress) -> Any:
        try:
            result = await self._run(spec, spec.signature.bind(values, context), progress)
        except ToolError as problem:
            if progress.outcome == "unknown" and not problem.outcome_unknown:
                progress.outcome = "failed"
            raise
        except AdapterError:
            progress.outcome = "failed"
            raise
        except (Exception, SystemExit) as problem:
            if isinstance(problem, _MayRetry):
                raise
            progress.outcome = "failed"
            facts = {"thread": context.thread, "run": context.run, "call": context.call, "attempt": context.attempt}
            log_cause("tool.failed", problem, tool=spec.name, **facts)
            msg = f"Tool {spec.name!r} failed unexpectedly. Its author finds the cause in the log."
            raise _MayRetry(ToolError(msg)) from None
        progress.outcome = "done"
        return result

    async def _run(self, spec: ToolSpec, bound: dict[str, Any], progress: Progress) -> Any:
        if spec.is_async:
            return await _within(spec, spec.function(**bound), progress)
        result = await self._in_thread(spec, partial(spec.function, **bound), progress)
        return await _within(spec, result, progress) if inspect.isawaitable(result) else result

    async def _in_thread(self, spec: ToolSpec, function: Callable[[], Any], progress: Progress) -> Any:
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self._threads, thread_name_prefix="tool")
        work = self._pool.submit(contextvars.copy_context().run, _caught, function)
        done = asyncio.wrap_future(work)
        try:
            await asyncio.wait((done,), timeout=spec.timeout)
        except asyncio.CancelledError:
            progress.cancelled = True
            await _wait_out(work, done, progress)
        if not done.done():
            raise _overdue_thread(spec, work, progress)
        value, problem = done.result()
        if problem is not None:
            raise problem
        return value


async def _within(spec: ToolSpec, awaitable: Awaitable[Any], progress: Progress) -> Any:
    if spec.timeout is None:
        return await awaitable
    clock = asyncio.timeout(spec.timeout)
    try:
        async with clock:
            return await awaitable
    except TimeoutError:
        if not clock.expired():
            raise
        msg = f"Tool {spec.name!r} did not end within {spec.timeout:g} seconds and was stopped."
        raise _MayRetry(_unfinished(spec, msg, progress)) from None


async def _wait_out(work: Future[Any], done: asyncio.Future[Any], progress: Progress) -> None:
    if work.cancel():
        progress.outcome = "not_started"
        raise asyncio.CancelledError
    while not done.done():
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.wait((done,))


def _overdue_thread(spec: ToolSpec, work: Future[Any], progress: Progress) -> ToolError:
    if work.cancel():
        progress.outcome = "not_started"
        return ToolError(f"Tool {spec.name!r} found no free thread within {spec.timeout:g} seconds. It was not run.")
    msg = f"Tool {spec.name!r} did not end within {spec.timeout:g} seconds and cannot be stopped."
    return _unfinished(spec, msg, progress)


def _unfinished(spec: ToolSpec, msg: str, progress: Progress) -> ToolError:
    if spec.effect == "read":
        progress.outcome = "failed"
        return ToolError(msg)
    progress.outcome = "unknown"
    return ToolError(
        f"{msg} It may or may not have taken effect: find out before you call it again.", outcome_unknown=True
    )


def _caught(function: Callable[[], Any]) -> tuple[Any, BaseException | None]:
    """A future cannot hold every exception (StopIteration, say); a value can."""
    try:
        return function(), None
    except BaseException as problem:  # noqa: BLE001 - raised again on the event loop
        return None, problem


def _cancellations() -> int:
    task = asyncio.current_task()
    return task.cancelling() if task else 0
