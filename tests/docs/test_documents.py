"""What all documents have in common."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted([ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").rglob("*.md")])
RUN = {"python", "console"}
CHECKED = {"json", "yaml"}
READ = {"text", "mermaid"}
FENCE = re.compile(r"^```(?P<info>[^\n]*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"!?\[[^\]]*\]\((?P<target>[^)\s]+)\)")

documents = pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())


@documents
def test_a_fenced_block_runs_or_claims_nothing(path: Path) -> None:
    languages = [block["info"].partition(" ")[0] for block in FENCE.finditer(path.read_text())]
    assert [language for language in languages if language not in RUN | CHECKED | READ] == []


@documents
def test_a_block_of_text_shows_no_command(path: Path) -> None:
    shown = [block["body"] for block in FENCE.finditer(path.read_text()) if block["info"] in READ]
    assert [body for body in shown if re.search(r"^\$ ", body, re.MULTILINE)] == []


@documents
def test_json_and_yaml_blocks_can_be_read(path: Path) -> None:
    for block in FENCE.finditer(path.read_text()):
        language = block["info"].partition(" ")[0]
        if language == "json":
            json.loads(block["body"])
        if language == "yaml":
            yaml.safe_load(block["body"])


@documents
def test_links_lead_somewhere(path: Path) -> None:
    text = FENCE.sub("", path.read_text())
    assert [link["target"] for link in LINK.finditer(text) if not _leads_somewhere(path, link["target"])] == []


@documents
def test_a_line_is_at_most_120_characters(path: Path) -> None:
    lines = FENCE.sub("", path.read_text()).splitlines()
    assert [line for line in lines if len(line) > 120 and not line.startswith("|")] == []


@documents
def test_a_document_can_be_found_from_the_readme(path: Path) -> None:
    assert path in _reachable(ROOT / "README.md", set())


def _leads_somewhere(path: Path, target: str) -> bool:
    if re.match(r"https?://", target):
        return True
    name, _, anchor = target.partition("#")
    there = (path.parent / name).resolve() if name else path
    return there.exists() and (not anchor or anchor in _anchors(there))


def _anchors(path: Path) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", FENCE.sub("", path.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def _reachable(path: Path, seen: set[Path]) -> set[Path]:
    if path.suffix != ".md" or path in seen or not path.is_file():
        return seen
    seen.add(path)
    for link in LINK.finditer(FENCE.sub("", path.read_text())):
        _reachable((path.parent / link["target"].partition("#")[0]).resolve(), seen)
    return seen
