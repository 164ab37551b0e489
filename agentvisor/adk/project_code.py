"""The code of an agent project, imported into this process."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import traceback
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from google.adk.agents import BaseAgent
from google.adk.apps import App
from google.adk.workflow import BaseNode
from pydantic import ValidationError

from agent_adapter.integrations.adk.tool import left_out
from agentvisor.adk.agents import all_agents, static_tools
from agentvisor.adk.project_rules import ProjectRules
from agentvisor.adk.refusals import Refusal, check_app, check_rules
from agentvisor.adk.registration import registered_agents
from agentvisor.project import ProjectError, read_config
from agentvisor.protocol import AgentInfo, LeftOut

ENTRY = "agent.py"


class ProjectRefused(Exception):
    """The project cannot be served. The text tells its author what is wrong, where, and the way out."""


@dataclass(frozen=True)
class ProjectCode:
    """The apps of a project by the name of their root agent, and what its file says of their tools."""

    apps: dict[str, App]
    rules: ProjectRules

    def infos(self) -> tuple[AgentInfo, ...]:
        return tuple(_info(app) for app in self.apps.values())


def load_project(folder: Path) -> ProjectCode:
    """Import the project: `app` of agent.py, else its `root_agent`, and what `register_agent` was given.

    What agentvisor.yaml says of tools and approvals comes with it.

    The working directory and the first entry of sys.path become the folder. Raises ProjectRefused.
    """
    folder = folder.resolve()
    os.chdir(folder)
    sys.path[0:0] = [str(folder)]
    try:
        rules = ProjectRules.of(read_config(folder))
        apps = _apps(_imported(folder))
        for app in apps.values():
            check_app(app, rules)
        check_rules(rules, apps.values())
    except (Refusal, ProjectError) as refusal:
        raise ProjectRefused(str(refusal)) from refusal
    return ProjectCode(apps, rules)


def tools_left_out() -> tuple[LeftOut, ...]:
    """The tools that the project's code defines and no agent can have."""
    return tuple(LeftOut(tool=name, reason=f"{problem} Mend its schema.") for name, problem in left_out())


def _imported(folder: Path) -> ModuleType:
    if not (folder / ENTRY).is_file():
        raise ProjectRefused(
            f"{folder} has no {ENTRY}. Create it with a `root_agent`, and call register_agent() with it."
        )
    try:
        package = _package(folder)
        return importlib.import_module(f"{package}.agent" if package else "agent")
    except SystemExit as problem:
        raise ProjectRefused(
            f"{_place(problem, folder)}: importing it ended the process. Do not exit on import."
        ) from problem
    except ImportError as problem:
        raise ProjectRefused(_missing_import(problem, folder)) from problem
    except SyntaxError as problem:
        where = f"{problem.filename}, line {problem.lineno}"
        raise ProjectRefused(f"{where}: {problem.msg}. Correct the syntax.") from problem
    except ValidationError as problem:
        raise ProjectRefused(f"{_place(problem, folder)}: {_told(problem)}") from problem
    except Exception as problem:
        text = f"{_place(problem, folder)}: {type(problem).__name__}: {problem}. Importing {ENTRY} must not fail."
        raise ProjectRefused(text) from problem


def _package(folder: Path) -> str | None:
    """A folder with `__init__.py` is a package, so that agent.py may use relative imports."""
    init, name = folder / "__init__.py", folder.name
    if not init.is_file() or not name.isidentifier() or name in sys.modules:
        return None
    spec = importlib.util.spec_from_file_location(name, init, submodule_search_locations=[str(folder)])
    if spec is None or spec.loader is None:
        return None
    package = importlib.util.module_from_spec(spec)
    sys.modules[name] = package
    spec.loader.exec_module(package)
    return name


def _apps(module: ModuleType) -> dict[str, App]:
    own: Any = getattr(module, "app", None)
    found: list[Any] = [own] if isinstance(own, App) else [getattr(module, "root_agent", None)]
    found += registered_agents()
    apps: dict[str, App] = {}
    for item in found:
        if item is not None:
            _add(apps, item)
    if not apps:
        raise ProjectRefused(
            f"{module.__file__} defines no agent. Name it `root_agent`, or pass it to register_agent()."
        )
    return apps


def _add(apps: dict[str, App], item: Any) -> None:
    app = item if isinstance(item, App) else _app_of(item)
    root = app.root_agent
    name = root.name if root else app.name
    known = apps.get(name)
    if known is None:
        apps[name] = app
    elif known.root_agent is not root:
        raise ProjectRefused(f"Two agents of the project are named {name!r}. Give one of them another name.")


def _app_of(item: Any) -> App:
    if not isinstance(item, BaseAgent | BaseNode):
        text = f"`root_agent` is a {type(item).__name__}, not an ADK agent. Assign an LlmAgent or another ADK agent."
        raise ProjectRefused(text)
    name = item.name if item.name[:1].isalpha() and item.name.isascii() else "agent"
    return App(name=name, root_agent=item)


def _info(app: App) -> AgentInfo:
    root: Any = app.root_agent
    names = dict.fromkeys(_tool_name(tool) for agent in all_agents(root) for tool in static_tools(agent))
    return AgentInfo(
        name=root.name, description=str(root.description or ""), tools=tuple(name for name in names if name)
    )


def _tool_name(tool: Any) -> str:
    return str(getattr(tool, "name", None) or getattr(tool, "__name__", ""))


def _missing_import(problem: ImportError, folder: Path) -> str:
    missing = (problem.name or "").partition(".")[0]
    if missing and not (folder / f"{missing}.py").exists():
        return (
            f"{_place(problem, folder)}: {problem}. Add it to requirements.txt and install that where the guest runs."
        )
    return f"{_place(problem, folder)}: {problem}. Correct the import."


def _told(problem: ValidationError) -> str:
    error = problem.errors(include_url=False, include_context=False)[0]
    place = ".".join(str(step) for step in error["loc"])
    text = f"{problem.title}.{place}: {error['msg']} (got {error['input']!r})"[:600]
    if place == "name":
        return f"{text}. ADK takes identifiers, 'my_agent' for one; the name in agent.yaml may differ."
    return f"{text}. Correct that field."


def _place(problem: BaseException, folder: Path) -> str:
    """The innermost line of the project's own that led to the problem."""
    frames = traceback.extract_tb(problem.__traceback__)
    own = [frame for frame in frames if Path(frame.filename).is_relative_to(folder)]
    return f"{own[-1].filename}, line {own[-1].lineno}" if own else str(folder / ENTRY)
