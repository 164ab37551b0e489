"""Clients of google-genai close themselves when they are collected: not in the event loop of another file's test."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True, scope="module")
def collected() -> Iterator[None]:
    """All clients of this file are gone when it ends."""
    yield
    gc.collect()
