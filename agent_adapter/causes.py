"""Where the cause of an unexpected failure goes: to the log, and nowhere else."""

from __future__ import annotations

import traceback


def log_cause(event: str, problem: BaseException, **facts: str | int) -> None:
    """Log an exception with its traceback as text: a logger's own formatting may print local variables."""
    import structlog  # noqa: PLC0415 - it doubles the time to import this library, and most calls do not fail

    log: structlog.stdlib.BoundLogger = structlog.get_logger("agent_adapter")
    log.error(event, cause="".join(traceback.format_exception(problem)), **facts)
