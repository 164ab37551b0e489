"""Fixtures of every test, each file of `tests/fixtures` about one noun."""

from tests.fixtures.effects import effects, effects_server
from tests.fixtures.fork_server import fork_server
from tests.fixtures.gemini import gemini
from tests.fixtures.temporal import client, make_project, settings, task_queue, temporal_server

__all__ = [
    "client",
    "effects",
    "effects_server",
    "fork_server",
    "gemini",
    "make_project",
    "settings",
    "task_queue",
    "temporal_server",
]
