"""Where the Store is when nobody says so."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import SecretStr

from agentvisor.host.settings import Settings


def test_by_default_it_is_one_file_of_the_user_wherever_a_worker_starts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("AGENTVISOR_STORE", raising=False)
    monkeypatch.delenv("LOCALAPPDATA", raising=False)
    monkeypatch.setenv("HOME", "/ana")
    monkeypatch.setenv("XDG_DATA_HOME", "")
    monkeypatch.chdir(tmp_path)
    assert Settings().store.get_secret_value() == "sqlite:////ana/.local/share/agentvisor/store.db"
    monkeypatch.setenv("XDG_DATA_HOME", "/data")
    assert Settings().store.get_secret_value() == "sqlite:////data/agentvisor/store.db"


def test_the_setting_is_a_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTVISOR_STORE", "postgresql://ana:pa55word@db/store")
    assert Settings().store == SecretStr("postgresql://ana:pa55word@db/store")
    assert "pa55word" not in repr(Settings())
