"""Digests that bind a permission to one call: RFC 8785 canonical JSON, SHA-256, lower-case hex."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import rfc8785


def canonical_json(value: Any) -> bytes:
    """RFC 8785 form of a JSON value.

    Raises ValueError for what has no such form: NaN, infinities, integers beyond 2**53, lone surrogates, other types.
    """
    try:
        return rfc8785.dumps(value)
    except (rfc8785.CanonicalizationError, UnicodeEncodeError) as problem:
        raise ValueError(str(problem)) from problem


def digest(value: Any) -> str:
    """SHA-256 of the canonical form of a JSON value."""
    return hashlib.sha256(canonical_json(value)).hexdigest()


def call_digest(*, thread: str, run: str, call: str, tool: str, fingerprint: str, arguments: Mapping[str, Any]) -> str:
    """What a permission is bound to: exactly this call of this tool, as it was, with these validated arguments."""
    return digest([thread, run, call, tool, fingerprint, dict(arguments)])
