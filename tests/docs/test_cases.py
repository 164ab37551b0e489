"""Every row of docs/cases.md names tests that exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCUMENT = (ROOT / "docs" / "cases.md").read_text()
ROWS = [row for row in re.findall(r"^\| (.*?) \| (.*?) \|$", DOCUMENT, re.MULTILINE) if row[1] != "test"]


def test_no_line_of_the_tables_is_overlooked() -> None:
    lines = [line for line in DOCUMENT.splitlines() if line.startswith("|")]
    assert len(ROWS) == len(lines) - 2 * DOCUMENT.count("|---|---|") > 40


def test_every_row_names_tests_that_exist() -> None:
    for symptom, cell in ROWS:
        named = re.findall(r"`([\w/]+\.py)::(\w+)`", cell)
        assert ", ".join(f"`{path}::{test}`" for path, test in named) == cell, symptom
        for path, test in named:
            assert test in _facts(ROOT / "tests" / path), (symptom, path, test)


def test_no_symptom_is_told_twice() -> None:
    symptoms = [symptom for symptom, _ in ROWS]
    assert len(symptoms) == len(set(symptoms))


def _facts(path: Path) -> set[str]:
    """Tests, and the invariants of state machines."""
    tree = ast.parse(path.read_text())
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
