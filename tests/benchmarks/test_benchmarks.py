"""benchmarks/latest.json holds every number with its limit, and the document shows the same ones."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks import report
from benchmarks.numbers import NUMBERS

LATEST = report.load()
LIMITED = [key for key, number in NUMBERS.items() if number.limit]


@pytest.mark.parametrize("key", NUMBERS)
def test_every_number_was_measured(key: str) -> None:
    assert isinstance(LATEST[key], int | float)


def test_a_limit_stands_beside_each_number_that_has_one() -> None:
    assert LATEST["limits"] == {key: NUMBERS[key].limit for key in LIMITED}


@pytest.mark.parametrize("key", LIMITED)
def test_whether_a_limit_is_met_follows_from_the_number(key: str) -> None:
    number, value = NUMBERS[key], LATEST[key]
    expected = value >= number.at_least if number.at_least is not None else value <= (number.at_most or 0)
    assert LATEST["met"][key] is expected


def test_every_part_tells_when_and_under_which_load_it_was_measured() -> None:
    parts = {number.part for number in NUMBERS.values()}
    assert set(LATEST["parts"]) == parts
    assert all(
        {"at", "seconds", "load_before", "load_after", "failed"} <= set(part) for part in LATEST["parts"].values()
    )


def test_the_document_shows_the_last_measurement() -> None:
    assert f"{report.BEGIN}\n{report.markdown(LATEST)}{report.END}" in report.DOCUMENT.read_text()


def test_the_readme_shows_the_last_measurement() -> None:
    assert f"{report.BEGIN}\n{report.summary(LATEST)}{report.END}" in report.README.read_text()


def test_a_part_measured_anew_leaves_the_others_as_they_were() -> None:
    numbers = {key: 0.5 for key, number in NUMBERS.items() if number.part == "decision"}
    found = report.merged(LATEST, {"decision": _part(numbers)}, {})
    assert {key for key in NUMBERS if found[key] != LATEST[key]} <= set(numbers)
    assert found["met"]["decision_to_tool_vs_plugin"] is True


def test_a_part_that_failed_has_no_numbers_and_meets_no_limit() -> None:
    found = report.merged(LATEST, {"recovery": _part({})}, {})
    assert (found["worker_kill_recovery_s"], found["met"]["worker_kill_recovery_s"]) == (None, False)
    assert "| not measured | **no** |" in report.markdown(found)


def _part(numbers: dict[str, float]) -> dict[str, Any]:
    return {"numbers": numbers, "readings": {}, "failed": None if numbers else "TimeoutError: ", "at": "now"}
