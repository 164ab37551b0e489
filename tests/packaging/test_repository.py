"""What holds for every file of the repository."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
VENDORED = ("tests/compose/schema/", "LICENSE", "uv.lock")
LONG = {
    "agentvisor/channel.py": "one end of a channel, whose bounds hold for both directions",
    "tests/agent_adapter/test_pipeline.py": "every station of the one way a call takes",
    "tests/agent_adapter/test_running.py": "everything that can happen while a tool runs",
    "tests/host/test_channel.py": "both ends of the channel, well-behaved and hostile",
    "workflows/messages.py": "the one file of boundary values",
    "workflows/thread_state.py": "the one class that survives continue-as-new",
}
"""Files over 400 lines, each with its reason."""


@pytest.fixture(scope="module")
def files() -> dict[str, str]:
    """Path and text of every file that git knows or would take, without what is vendored or generated."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        check=True,
        text=True,
    ).stdout.split("\0")
    texts: dict[str, str] = {}
    for name in filter(None, listed):
        path = ROOT / name
        if name.startswith((*VENDORED, "tests/replay/histories/")) or not path.is_file():
            continue
        try:
            texts[name] = path.read_text()
        except UnicodeDecodeError:
            continue
    return texts


def test_no_file_names_a_machine(files: dict[str, str]) -> None:
    place = re.compile(r"(?<![\w.])/(work|root|home/\w+|Users/\w+|tmp/\w+)/")
    assert {name: found[0] for name, text in files.items() if (found := place.search(text))} == {}


def test_nothing_is_left_to_do(files: dict[str, str]) -> None:
    left = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X|HA" r"CK)\b")
    assert {name: found[0] for name, text in files.items() if (found := left.search(text))} == {}


def test_a_file_has_at_most_400_lines(files: dict[str, str]) -> None:
    long = {name for name, text in files.items() if name.endswith(".py") and text.count("\n") > 400}
    assert long - set(LONG) == set()


def test_a_file_ends_with_one_newline(files: dict[str, str]) -> None:
    assert [name for name, text in files.items() if text and (not text.endswith("\n") or text.endswith("\n\n"))] == []


def test_no_file_is_called_after_a_drawer(files: dict[str, str]) -> None:
    drawers = {"utils", "util", "helpers", "helper", "common", "misc", "manager"}
    assert [name for name in files if drawers & set(Path(name).with_suffix("").parts)] == []


def test_the_changelog_has_the_version_of_the_project() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert f"## {version}" in (ROOT / "CHANGELOG.md").read_text()
