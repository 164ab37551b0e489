"""Settings of the host, read once from the environment, at the edge."""

from __future__ import annotations

import os
from pathlib import Path

from pydantic import Field, SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict

TASK_QUEUE = "agentvisor"


def _cores() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not Linux
        return os.cpu_count() or 1


def _own_store() -> SecretStr:
    """A SQLite file that all workers of this user share, wherever they are started: what guards calls must be one."""
    given = os.environ.get("XDG_DATA_HOME") or os.environ.get("LOCALAPPDATA")
    try:
        folder = Path(given or "~/.local/share").expanduser()
    except RuntimeError:  # a user without a home
        folder = Path.cwd()
    return SecretStr(f"sqlite:///{(folder / 'agentvisor' / 'store.db').as_posix()}")


class Settings(BaseSettings):
    """Each field is the environment variable AGENTVISOR_<FIELD>. Times are seconds.

    Where Temporal is and how to reach it stands in the TEMPORAL_* variables or Temporal's own configuration file.
    """

    model_config = SettingsConfigDict(
        env_prefix="AGENTVISOR_", env_ignore_empty=True, frozen=True, extra="ignore", validate_default=True
    )

    task_queue: str = Field(default=TASK_QUEUE, min_length=1)
    leg_guests: int = Field(default_factory=lambda: min(_cores(), 2), ge=1)
    """Processes that run legs, per project; a thread always meets the same one."""
    tool_guests: int = Field(default=1, ge=1)
    """Processes that make single calls, per project."""
    guest_silence: float = Field(default=30.0, gt=0)
    """A guest whose event loop gave no sign of life for so long is killed and replaced."""
    guest_start_timeout: float = Field(default=120.0, gt=0)
    """How long a guest may take to load its project."""
    graceful_shutdown: float = Field(default=30.0, ge=0)
    """How long legs and calls may go on when the worker ends."""
    sticky_timeout: float = Field(default=5.0, gt=0)
    """How long a thread waits for a worker that has died."""
    heartbeat_throttle: float = Field(default=0.4, gt=0)
    max_activities: int = Field(default=200, ge=1)
    max_workflow_tasks: int = Field(default=100, ge=2)
    max_cached_threads: int = Field(default=1000, ge=0)
    """Threads kept in memory; 0 replays a thread's history for every task."""
    workflow_sandbox: bool = False
    """Run workflow code in Temporal's sandbox. No user code runs in a workflow, and the sandbox costs a quarter of the
    worker's CPU; tests and replays keep it on."""
    uvloop: bool = True
    log_level: str = Field(default="info", pattern="^(debug|info|warning|error)$")
    store: SecretStr = Field(default_factory=_own_store)
    """URL of the database that keeps what histories cannot: `sqlite:///FILE` or `postgresql://…`."""
    dev_server_db: Path | None = None
    """File in which `--dev` keeps its data; by default they are lost with it."""
