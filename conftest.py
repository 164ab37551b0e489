"""For the whole test run: documents are tests, and where nothing may be skipped a skip is a failure."""

from __future__ import annotations

import atexit
import os
import tempfile
from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from sybil import Sybil
from sybil.integration.pytest import SybilItem
from sybil.parsers.markdown import CodeBlockParser, PythonCodeBlockParser

from agentvisor.host.exit import leave
from tests.docs.console import ConsoleEvaluator
from tests.docs.stage import FileParser, StageParser, stage

pytest_plugins = ["pytester"]

__all__ = ["stage"]

# Tests leave the user's own Store alone; workers that tests start as processes inherit this.
os.environ["AGENTVISOR_STORE"] = f"sqlite:///{Path(tempfile.mkdtemp(prefix='agentvisor-')) / 'store.db'}"

# Hypothesis judges rules, not the speed of the machine.
settings.register_profile("steady", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("steady")

pytest_collect_file = Sybil(
    parsers=[
        StageParser(),
        FileParser(),
        PythonCodeBlockParser(),
        CodeBlockParser(language="console", evaluator=ConsoleEvaluator()),
    ],
    patterns=["README.md", "docs/*.md", "docs/**/*.md"],
    fixtures=["stage"],
).pytest()


_ended: list[int] = []


def pytest_sessionfinish(exitstatus: int) -> None:
    """Note how the run ended; of nested runs the outermost ends last."""
    _ended.append(int(exitstatus))


@atexit.register
def _leave_as_pytest_would() -> None:
    """Temporal's native part can abort an interpreter that finalizes, and with it the result of the run."""
    if _ended:
        leave(_ended[-1])


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A document's examples run in the order in which they are read, whatever the seed."""
    examples = [item for item in items if isinstance(item, SybilItem)]
    examples.sort(key=lambda item: (str(item.path), item.example.start))
    items[:] = [item for item in items if not isinstance(item, SybilItem)] + examples


def _no_skips() -> bool:
    return os.environ.get("AGENTVISOR_NO_SKIPS") == "1"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if _no_skips() and report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"AGENTVISOR_NO_SKIPS=1, and it skipped: {report.longreprtext}"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    if _no_skips() and report.skipped:
        report.outcome = "failed"
        report.longrepr = f"AGENTVISOR_NO_SKIPS=1, and its module skipped: {report.longreprtext}"
    return report
