"""Looking at processes, and waiting for what must become true."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path


def exists(pid: int) -> bool:
    """The process is there, and not a zombie."""
    try:
        os.kill(pid, 0)
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except (ProcessLookupError, FileNotFoundError):
        return False


async def until(holds: Callable[[], object], seconds: float = 30.0) -> None:
    """Wait until it holds; TimeoutError says that it did not come true."""
    async with asyncio.timeout(seconds):
        while not holds():  # noqa: ASYNC110
            await asyncio.sleep(0.02)
