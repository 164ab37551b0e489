"""What docs/ownership.md says of crashes names tests that exist, and every test of faults stands there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCUMENT = (ROOT / "docs" / "ownership.md").read_text()


def test_every_test_of_faults_stands_for_a_claim_and_every_claim_for_a_test() -> None:
    named = set(re.findall(r"`(faults/\w+\.py)::(\w+)`", DOCUMENT))
    assert named == {
        (f"faults/{path.name}", test)
        for path in (ROOT / "tests" / "faults").glob("test_*.py")
        for test in re.findall(r"^async def (test_\w+)\(", path.read_text(), re.MULTILINE)
    }
