from __future__ import annotations

import tomllib
import zipfile
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder

ROOT = Path(__file__).parents[2]
PACKAGES = {"agent_adapter", "agentvisor", "workflows", "activities", "client"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    folder = tmp_path_factory.mktemp("wheel")
    (built,) = WheelBuilder(str(ROOT)).build(directory=str(folder), versions=["standard"])
    return zipfile.ZipFile(built)


def test_the_wheel_holds_the_packages_and_the_composition_root(wheel: zipfile.ZipFile) -> None:
    top = {name.split("/")[0] for name in wheel.namelist()}
    assert {name for name in top if not name.endswith(".dist-info")} == {*PACKAGES, "worker.py"}


def test_the_wheel_holds_every_module(wheel: zipfile.ZipFile) -> None:
    modules = {path.relative_to(ROOT).as_posix() for package in PACKAGES for path in (ROOT / package).rglob("*.py")}
    assert modules - set(wheel.namelist()) == set()


def test_the_wheel_carries_its_licence(wheel: zipfile.ZipFile) -> None:
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in wheel.namelist())


def test_nothing_depends_on_the_unrelated_package_called_agentvisor() -> None:
    locked = tomllib.loads((ROOT / "uv.lock").read_text())["package"]
    assert "agentvisor" not in {package["name"] for package in locked}
