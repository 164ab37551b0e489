"""The way out of a process that used Temporal."""

from __future__ import annotations

import logging
import os
import sys
from contextlib import suppress
from typing import NoReturn


def leave(code: int) -> NoReturn:
    """End the process now with this exit code, after flushing what was printed and logged.

    Call it last, when all work is done: temporalio's native part can abort an interpreter that finalizes (SIGABRT in
    PyGILState_Release), so neither `atexit` nor finalizers run.
    """
    logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # the reader has left, or the stream is closed
            stream.flush()
    os._exit(code)
