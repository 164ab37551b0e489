"""Fixtures of every test, each file of `tests/fixtures` about one noun."""

from tests.fixtures.temporal import client, make_project, settings, task_queue, temporal_server

__all__ = ["client", "make_project", "settings", "task_queue", "temporal_server"]
