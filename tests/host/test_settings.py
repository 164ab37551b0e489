from __future__ import annotations

import pytest
from pydantic import ValidationError

from agentvisor.host.settings import Settings


def test_settings_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTVISOR_TASK_QUEUE", "mine")
    monkeypatch.setenv("AGENTVISOR_LEG_GUESTS", "5")
    monkeypatch.setenv("AGENTVISOR_UVLOOP", "")
    monkeypatch.setenv("AGENTVISOR_AUTHZ_TYPE", "allowall")
    settings = Settings()
    assert (settings.task_queue, settings.leg_guests, settings.uvloop) == ("mine", 5, True)


def test_a_setting_that_makes_no_sense_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTVISOR_LEG_GUESTS", "0")
    with pytest.raises(ValidationError, match="leg_guests"):
        Settings()


def test_settings_do_not_change() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        Settings().task_queue = "other"
