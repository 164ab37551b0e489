"""What host and guest log, and where: lines on stderr, without anything that was in a variable."""

from __future__ import annotations

import logging
import sys

import structlog


def log_to_stderr(level: str = "info") -> None:
    """Configure structlog and logging for a process that has stderr for its log. Call it once, at the start.

    Tracebacks are plain: structlog's default prints local variables, and with them arguments and state, and takes
    half a minute over an exception out of ADK.
    """
    number = logging.getLevelNamesMapping()[level.upper()]
    logging.basicConfig(level=max(number, logging.WARNING), stream=sys.stderr)
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="%H:%M:%S", utc=False),
            structlog.dev.ConsoleRenderer(
                colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback
            ),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
