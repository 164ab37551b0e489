"""docs/settings.md has every setting, with its default."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest

import worker
from agentvisor.host.settings import Settings

DOCUMENT = (Path(__file__).parents[2] / "docs" / "settings.md").read_text()
DOCUMENTED = dict(re.findall(r"^\| `AGENTVISOR_(\w+)` \| ([^|]+) \|", DOCUMENT, re.MULTILINE))
IN_WORDS = {"LEG_GUESTS": "number of cores, at most 2", "DEV_SERVER_DB": "none", "STORE": "a SQLite file of the user"}


def test_every_setting_is_documented() -> None:
    assert set(DOCUMENTED) == {name.upper() for name in Settings.model_fields}


def test_every_default_is_documented(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in DOCUMENTED:
        monkeypatch.delenv(f"AGENTVISOR_{name}", raising=False)
    expected = {
        name: IN_WORDS.get(name, f"`{_written(value)}`")
        for name, value in ((name.upper(), value) for name, value in Settings())
    }
    assert expected == DOCUMENTED


def test_every_option_of_the_worker_is_documented() -> None:
    options = {name for option in worker.main.params if isinstance(option, click.Option) for name in option.opts}
    assert set(re.findall(r"^\| `(--[a-z-]+)` \|", DOCUMENT, re.MULTILINE)) == options


def _written(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else f"{value:g}" if isinstance(value, float) else str(value)
