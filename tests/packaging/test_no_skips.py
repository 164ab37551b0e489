from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TESTS = """
    import pytest

    def test_passes():
        pass

    @pytest.mark.skip(reason="no browser here")
    def test_skips():
        pass

    @pytest.mark.xfail
    def test_fails_as_expected():
        assert False
"""


@pytest.fixture
def project(pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.makeconftest((ROOT / "conftest.py").read_text())
    pytester.syspathinsert(ROOT)
    return pytester


def test_a_skip_is_an_error_where_nothing_may_be_skipped(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENTVISOR_NO_SKIPS", "1")
    project.makepyfile(
        test_one=TESTS, test_module="import pytest; pytest.skip('no root here', allow_module_level=True)"
    )
    result = project.runpytest_subprocess("-p", "no:randomly", "--continue-on-collection-errors")
    result.assert_outcomes(passed=1, errors=2, xfailed=1)
    result.stdout.fnmatch_lines_random(
        ["*AGENTVISOR_NO_SKIPS=1*no browser here*", "*AGENTVISOR_NO_SKIPS=1*no root here*"]
    )


def test_a_skip_is_a_skip_elsewhere(project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AGENTVISOR_NO_SKIPS", raising=False)
    project.makepyfile(TESTS)
    project.runpytest_subprocess("-p", "no:randomly").assert_outcomes(passed=1, skipped=1, xfailed=1)
