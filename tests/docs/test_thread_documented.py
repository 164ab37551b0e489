"""docs/thread.md names every handler, field and option of a thread, and no other."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel

from workflows import messages
from workflows.thread import ThreadWorkflow

DOCUMENT = (Path(__file__).parents[2] / "docs" / "thread.md").read_text()


def test_signals_updates_and_queries_are_the_documented_ones() -> None:
    for section, names in _handlers().items():
        assert set(_first_cells(section)) == names, section


def test_start_fields_and_options_are_the_documented_ones() -> None:
    assert set(_first_cells("Start")) == set(messages.StartThread.model_fields) - {"carried"}
    assert set(_first_cells("Options")) == set(messages.Options.model_fields)


def test_defaults_of_options_are_the_documented_ones() -> None:
    defaults = messages.Options()
    for option, default in _rows("Options"):
        if option != "limits":
            assert float(re.sub(r" .*", "", default)) == getattr(defaults, option), option


def test_fields_of_what_is_sent_are_named() -> None:
    sent: list[type[BaseModel]] = [
        messages.RunRequest,
        messages.Decide,
        messages.CancelRun,
        messages.PutState,
        messages.AppendEvents,
        *get_args(get_args(messages.Answer)[0]),
    ]
    named = set(re.findall(r'"(\w+)"', DOCUMENT))
    assert {name for model in sent for name in model.model_fields} - named == set()


def test_statuses_are_named() -> None:
    named = set(re.findall(r"`(\w+)`", DOCUMENT))
    assert set(get_args(messages.RunStatus)) - named == set()
    assert set(get_args(messages.InterruptKind)) - named - {"approval"} == set()


def _handlers() -> dict[str, set[str]]:
    definition: Any = vars(ThreadWorkflow)["__temporal_workflow_definition"]
    return {
        "Signals": {name for name in definition.signals if name},
        "Updates": set(definition.updates),
        "Queries": {name for name in definition.queries if name and not name.startswith("__")},
    }


def _rows(section: str) -> list[tuple[str, str]]:
    (body,) = re.findall(rf"^## {section}\n(.*?)(?=^## |\Z)", DOCUMENT, re.MULTILINE | re.DOTALL)
    return re.findall(r"^\| `(\w+)` \| ([^|]*) \|", body, re.MULTILINE)


def _first_cells(section: str) -> list[str]:
    return [name for name, _ in _rows(section) if section != "Updates" or name not in get_args(messages.InterruptKind)]
