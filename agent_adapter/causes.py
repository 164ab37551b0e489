"""Where the cause of an unexpected failure goes: to the log, and nowhere else."""

from __future__ import annotations

import traceback

import structlog

log: structlog.stdlib.BoundLogger = structlog.get_logger("agent_adapter")


def log_cause(event: str, problem: BaseException, **facts: str | int) -> None:
    """Log an exception with its traceback as text: a logger's own formatting may print local variables."""
    log.error(event, cause="".join(traceback.format_exception(problem)), **facts)
