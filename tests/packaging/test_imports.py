"""What importing a package loads, each time in a fresh process."""

from __future__ import annotations

import ast
import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ADK_FOLDERS = ("agent_adapter/integrations/adk/", "agentvisor/adk/")
PACKAGES = ("agent_adapter", "agentvisor", "workflows", "activities", "client")


def loaded_by(statement: str) -> set[str]:
    """Names of all modules that a fresh Python holds after `statement`."""
    program = f"{statement}\nimport json, sys\nprint(json.dumps(sorted(sys.modules)))"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, cwd=ROOT, text=True)
    return set(json.loads(ended.stdout))


@pytest.mark.parametrize("module", ["workflows", "workflows.thread", "client", "activities", "agentvisor.host"])
def test_the_host_loads_no_adk(module: str) -> None:
    assert not {"google.adk", "google.genai"} & loaded_by(f"import {module}")


def test_workflows_load_no_host_library() -> None:
    assert not {"click", "rich", "starlette", "structlog", "uvicorn", "yaml"} & loaded_by("import workflows.thread")


def test_agent_adapter_loads_neither_temporal_nor_a_framework() -> None:
    assert not {"temporalio", "google.adk", "google.genai", "agentvisor"} & loaded_by("import agent_adapter")


@pytest.mark.parametrize("module", ["agentvisor", "agentvisor.protocol", "agentvisor.channel", "agentvisor.project"])
def test_what_host_and_guest_share_loads_neither_temporal_nor_adk(module: str) -> None:
    assert not {"temporalio", "google.adk", "workflows", "activities", "client"} & loaded_by(f"import {module}")


def test_a_guest_loads_no_temporal() -> None:
    loaded = loaded_by("import agentvisor.adk.runner")
    assert not {"temporalio", "workflows", "activities", "client", "worker", "agentvisor.host"} & loaded


@pytest.mark.parametrize("package", PACKAGES)
def test_the_package_is_ours(package: str) -> None:
    spec = importlib.util.find_spec(package)
    assert spec is not None
    assert spec.origin == str(ROOT / package / "__init__.py")


def test_only_the_two_adk_packages_import_google_adk() -> None:
    importers = {
        path.relative_to(ROOT).as_posix()
        for package in PACKAGES
        for path in (ROOT / package).rglob("*.py")
        if any(name == "google.adk" or name.startswith("google.adk.") for name in imports_of(path))
    }
    assert {path for path in importers if not path.startswith(ADK_FOLDERS)} == set()


def test_workflows_take_only_approvals_as_data_from_agent_adapter() -> None:
    taken = {name for path in (ROOT / "workflows").rglob("*.py") for name in imports_of(path)}
    assert all(name.startswith("agent_adapter.approval") for name in taken if name.split(".")[0] == "agent_adapter")


def test_the_composition_root_knows_neither_commands_nor_guests() -> None:
    imported = imports_of(ROOT / "worker.py")
    assert not [name for name in imported if name.startswith(("agentvisor.cli", "agentvisor.adk", "google"))]


def imports_of(path: Path) -> set[str]:
    """Names that a file imports, wherever in it."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
    return found
