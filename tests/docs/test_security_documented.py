"""Every claim of docs/security.md names tests that exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCUMENT = (ROOT / "docs" / "security.md").read_text()
ROWS = [row for row in re.findall(r"^\| (.*?) \| (.*?) \|$", DOCUMENT, re.MULTILINE) if row[0] not in ("claim", "---")]


def test_there_are_claims() -> None:
    assert ROWS


def test_every_claim_names_tests_that_exist() -> None:
    for claim, cell in ROWS:
        named = re.findall(r"`([\w/]+\.py)::(\w+)`", cell)
        assert named, claim
        for path, test in named:
            assert test in _tests(ROOT / "tests" / path), (claim, path, test)


def _tests(path: Path) -> set[str]:
    tree = ast.parse(path.read_text())
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
