"""benchmarks/latest.json, and the tables made of it: on the terminal, in docs/performance.md, a few in README.md."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.numbers import NUMBERS
from benchmarks.process import ROOT

LATEST = ROOT / "benchmarks" / "latest.json"
DOCUMENT = ROOT / "docs" / "performance.md"
README = ROOT / "README.md"
IN_README = (
    "history_bytes_per_turn_read_200",
    "history_bytes_per_turn_write_200",
    "plugin_history_bytes_per_turn_200",
    "decision_to_tool_vs_plugin",
    "worker_kill_recovery_s",
    "guest_kill_recovery_s",
)
BEGIN, END = "<!-- numbers: begin -->", "<!-- numbers: end -->"
_MET = {True: "yes", False: "**no**", None: ""}

Report = dict[str, Any]
"""Each key of NUMBERS with its value (None: not measured), and `limits`, `met`, `readings`, `parts`, `machine`."""


def load() -> Report:
    """The last report, or an empty one."""
    return json.loads(LATEST.read_text()) if LATEST.exists() else {}


def merged(old: Report, parts: Mapping[str, Mapping[str, Any]], machine: Mapping[str, Any]) -> Report:
    """The report with these parts measured anew.

    A part holds `numbers`, `readings`, and what is told about it. A part that failed has no numbers.
    """
    measured = {key: old.get(key) for key in NUMBERS}
    readings: dict[str, Any] = dict(old.get("readings", {}))
    about: dict[str, Any] = dict(old.get("parts", {}))
    for name, part in parts.items():
        measured |= {key: part["numbers"].get(key) for key, number in NUMBERS.items() if number.part == name}
        readings[name] = part["readings"]
        about[name] = {key: value for key, value in part.items() if key not in {"numbers", "readings"}}
    return {
        **measured,
        "limits": {key: number.limit for key, number in NUMBERS.items() if number.limit},
        "met": {key: number.is_met_by(measured[key]) for key, number in NUMBERS.items() if number.limit},
        "machine": dict(machine),
        "parts": about,
        "readings": readings,
    }


def write(report: Report) -> None:
    """Keep a report, and bring the tables of both documents in line with it."""
    LATEST.write_text(json.dumps(report, indent=2) + "\n")
    for document, table in ((DOCUMENT, markdown(report)), (README, summary(report))):
        before, _, rest = document.read_text().partition(BEGIN)
        _, _, after = rest.partition(END)
        document.write_text(f"{before}{BEGIN}\n{table}{END}{after}")


def summary(report: Report) -> str:
    """The table of the README: what most people ask for."""
    rows = [f"| {meaning} | {value} |" for key, meaning, _, value, _ in _rows(report) if key in IN_README]
    return "\n".join(["| what | measured |", "|---|---|", *rows, ""])


def markdown(report: Report) -> str:
    """The table of the document: a row per key."""
    rows = [f"| `{key}` | {meaning} | {limit} | {value} | {met} |" for key, meaning, limit, value, met in _rows(report)]
    hurried = ", ".join(name for name, part in report.get("parts", {}).items() if part.get("quick"))
    warning = ["", f"Not to be trusted: {hurried} ran with `--quick`."] if hurried else []
    return "\n".join(["| key | what it is | must be | is | met |", "|---|---|---|---|---|", *rows, *warning, ""])


def show(report: Report, console: Console, *, parts: frozenset[str]) -> None:
    """The rows of these parts, on a terminal."""
    table = Table("key", "must be", "is", "met")
    for key, _, limit, value, met in _rows(report):
        if NUMBERS[key].part in parts:
            table.add_row(key, limit, value, met.strip("*"))
    console.print(table)


def _rows(report: Report) -> list[tuple[str, str, str, str, str]]:
    return [
        (key, number.meaning, number.limit or "", _shown(report[key]), _MET[number.is_met_by(report[key])])
        for key, number in NUMBERS.items()
    ]


def _shown(value: float | None) -> str:
    return "not measured" if value is None else f"{value:,.0f}" if abs(value) >= 1000 else f"{value:g}"
