"""Texts that may hold secrets by accident, before they are told: to people, to a log, to history."""

from __future__ import annotations

import re
from collections.abc import Mapping

_SECRET_NAMES = ("KEY", "TOKEN", "SECRET", "PASSWORD", "CREDENTIAL")
_SECRET_SHAPES = re.compile(
    r"AIza[\w-]{20,}|mav-tok-[\w-]+|(?i:bearer)\s+\S+|(?i:key|token)=[^\s&\"']+|(?<=://)[^\s/:@]+:[^\s/@]+(?=@)"
)
_SHORTEST = 6


def without_secrets(text: str, environment: Mapping[str, str]) -> str:
    """The text without the values of secret environment variables and without what looks like a key or a password."""
    values = {
        value
        for name, value in environment.items()
        if len(value) >= _SHORTEST and any(word in name.upper() for word in _SECRET_NAMES)
    }
    for value in sorted(values, key=len, reverse=True):
        text = text.replace(value, "***")
    return _SECRET_SHAPES.sub("***", text)
