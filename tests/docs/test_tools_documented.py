"""docs/tools.md has every option of a tool and every field of its context."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

from agent_adapter import ToolContext, ToolSpec

DOCUMENT = (Path(__file__).parents[2] / "docs" / "tools.md").read_text()


def test_every_option_is_documented() -> None:
    options = {field.name for field in fields(ToolSpec) if field.init} - {"function"}
    assert set(re.findall(r"^\| `(\w+)` \|", _section("All options"), re.MULTILINE)) == options


def test_every_field_of_the_context_is_documented() -> None:
    named = set(re.findall(r"`(\w+)`", "".join(re.findall(r"^\| (`.*?) \|", _section("The context"), re.MULTILINE))))
    assert named == {field.name for field in fields(ToolContext)} - {"permission"} | {"approval"}


def _section(title: str) -> str:
    (body,) = re.findall(rf"^## {title}\n(.*?)(?=^## |\Z)", DOCUMENT, re.MULTILINE | re.DOTALL)
    return body
