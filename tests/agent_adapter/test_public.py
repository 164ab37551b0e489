"""The door of the library: its names, its errors, and what importing it costs."""

from __future__ import annotations

import subprocess
import sys

import pytest

import agent_adapter
from agent_adapter import AdapterError, ModelError, ToolUsageError, get_integration


def subclasses(root: type[AdapterError]) -> set[type[AdapterError]]:
    return {root} | {found for child in root.__subclasses__() for found in subclasses(child)}


EXTRAS = {"asyncpg", "jsonschema_rs", "mcp", "phonenumbers", "schwifty", "sqlalchemy"}


def test_every_public_name_is_there_once() -> None:
    assert len(set(agent_adapter.__all__)) == len(agent_adapter.__all__)
    assert all(hasattr(agent_adapter, name) for name in agent_adapter.__all__)


def test_every_public_error_has_a_kind_of_its_own() -> None:
    errors = [error for error in subclasses(AdapterError) if not error.__name__.startswith("_")]
    assert len({error.kind for error in errors}) == len(errors)
    assert all(hasattr(agent_adapter, error.__name__) for error in errors)


def test_the_model_facing_kinds_are_stable() -> None:
    assert {error.kind for error in subclasses(ModelError)} == {
        "model-error",
        "tool-args-invalid",
        "tool-error",
        "approval-denied",
        "guardrail-blocked",
        "run-limit-exceeded",
    }


def test_importing_it_loads_no_framework() -> None:
    code = "import sys, agent_adapter; print(*{name.split('.')[0] for name in sys.modules})"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "agent_adapter" in loaded
    frameworks = {"google", "temporalio", "agentvisor", "structlog", "rich", "starlette"}
    assert not (frameworks | EXTRAS) & set(loaded)


def test_it_works_without_what_its_extras_bring() -> None:
    code = (
        "import sys; from unittest.mock import patch\n"
        f"with patch.dict(sys.modules, dict.fromkeys({sorted(EXTRAS)!r})):\n"
        "    import asyncio; from agent_adapter import *\n"
        "    registry = ToolRegistry()\n"
        "    registry.add(ToolSpec(name='one', function=lambda: 1, effect='read'))\n"
        "    print(asyncio.run(Executor(registry).run('one', {})))\n"
        "    for needy in (SensitiveDataGuard, lambda: registry.add_mcp(['x'])):\n"
        "        try: needy()\n"
        "        except ToolUsageError as missing: print(missing.message.rpartition('pip install ')[2])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["1", "'agentvisor-temporal[guards]'.", "'agentvisor-temporal[mcp]'."], done.stderr


def test_an_integration_is_imported_when_it_is_asked_for() -> None:
    code = (
        "import sys, agent_adapter; from agent_adapter import get_integration; "
        "found = get_integration('adk'); print('google.adk' in sys.modules, found is not None)"
    )
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["True", "True"], done.stderr


@pytest.mark.parametrize("name", ["langgraph", "", "adk.tool", "../adk", "os"])
def test_an_unknown_integration_is_a_usage_error(name: str) -> None:
    with pytest.raises(ToolUsageError, match='Use "adk"'):
        get_integration(name)
