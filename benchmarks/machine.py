"""What the numbers were measured on."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib.metadata import version
from pathlib import Path

from agentvisor.host.dev_server import find_binary

_PACKAGES = ("temporalio", "google-adk", "google-genai", "temporalio-google-adk", "pydantic", "uvloop", "orjson")


def facts() -> dict[str, object]:
    """Cores, memory, kernel, and the versions of everything that takes part."""
    server = subprocess.run([find_binary(), "--version"], capture_output=True, text=True, check=True)
    return {
        "cores": len(os.sched_getaffinity(0)),
        "cpu": _cpu_model(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "server": server.stdout.strip(),
        **{package: version(package) for package in _PACKAGES},
    }


def load() -> float:
    """Processes that wanted a core in the last minute, on average."""
    return round(os.getloadavg()[0], 2)


def _cpu_model() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown")
