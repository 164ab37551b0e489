"""An agent project: a folder with agent.yaml, agent.py and, optionally, agentvisor.yaml. No code of it runs here."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, cast

import yaml
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PlainValidator,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
    ValidationError,
)

Model = TypeVar("Model", bound=BaseModel)


def _seconds(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        msg = "must be a number of seconds above 0"
        raise ValueError(msg)
    return float(value)


def _expires(value: Any) -> float | Literal["never"]:
    try:
        return "never" if value == "never" else _seconds(value)
    except ValueError as problem:
        raise ValueError(f'{problem}, or "never"') from problem


Seconds = Annotated[float, PlainValidator(_seconds)]
Expires = Annotated[float | Literal["never"], PlainValidator(_expires)]
Count = Annotated[StrictInt, Field(ge=0)]


class ProjectError(Exception):
    """The folder is no agent project as it stands; its author must act. The text ends with the way out.

    `kind`: project-not-found, agent-yaml-missing, agent-yaml-invalid, agent-py-missing, agentvisor-yaml-invalid.
    """

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind = kind


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class PlainTool(_Section):
    """What agentvisor.yaml says of a plain function among the agent's tools. None: as the code says."""

    effect: Literal["read", "write"] | None = None
    confirm: StrictBool | None = None
    timeout: Seconds | None = None
    expires: Expires | None = None


class ProjectLimits(_Section):
    """What one run of this project may use at most, whatever its thread allows. None: as the thread allows."""

    model_calls: Count | None = None
    tool_calls: Count | None = None
    tokens: Count | None = None
    cost: Annotated[StrictInt | StrictFloat, Field(ge=0, allow_inf_nan=False)] | None = None


class ProjectApprovals(_Section):
    """How approvals of this project behave. `expires`: seconds until one does, or "never"; a tool's own goes first."""

    expires: Expires | None = None


class ProjectConfig(BaseModel):
    """agentvisor.yaml. Sections that are not read here (`proxy`, say) are kept as they are, in `model_extra`."""

    model_config = ConfigDict(frozen=True, extra="allow")

    tools: dict[StrictStr, PlainTool] = {}
    limits: ProjectLimits = ProjectLimits()
    approvals: ProjectApprovals = ProjectApprovals()


class _AgentYaml(_Section):
    name: Annotated[StrictStr, Field(min_length=1, max_length=128, pattern=r"^\S(.*\S)?$")]
    description: StrictStr = ""


@dataclass(frozen=True)
class Project:
    """A project folder as its files describe it. `name` is the agent's name in threads."""

    folder: Path
    name: str
    description: str = ""
    config: ProjectConfig = field(default_factory=ProjectConfig)


def read_project(folder: Path) -> Project:
    """Read a project folder. Raises ProjectError, whose text names the file, what is wrong in it and the way out."""
    folder = folder.resolve()
    if not folder.is_dir():
        raise ProjectError("project-not-found", f"{folder} is no folder. Give the folder that holds agent.yaml.")
    agent = _agent_yaml(folder)
    if not (folder / "agent.py").is_file():
        raise ProjectError(
            "agent-py-missing",
            f"{folder} has an agent.yaml but no agent.py. Create agent.py there, with the agent as `root_agent`.",
        )
    return Project(folder, agent.name, agent.description, read_config(folder))


def read_config(folder: Path) -> ProjectConfig:
    """Read the agentvisor.yaml of a folder, which need not have one. Raises ProjectError."""
    return _read(folder / "agentvisor.yaml", ProjectConfig, "agentvisor-yaml-invalid") or ProjectConfig()


def _agent_yaml(folder: Path) -> _AgentYaml:
    path = folder / "agent.yaml"
    if not path.is_file():
        other = next((p.name for p in sorted(folder.iterdir()) if p.name.lower() in {"agent.yml", "agent.yaml"}), None)
        way_out = f"Rename {other} to agent.yaml." if other else "Create it with a line `name: my-agent`."
        raise ProjectError("agent-yaml-missing", f"{folder} has no agent.yaml, so it is no agent project. {way_out}")
    agent = _read(path, _AgentYaml, "agent-yaml-invalid")
    if agent is None:
        raise ProjectError("agent-yaml-invalid", f"{path} is empty. Write at least `name: my-agent`.")
    return agent


def _read(path: Path, model: type[Model], kind: str) -> Model | None:
    """The file's one YAML map as a model; None where there is no file or nothing in it."""
    if not path.exists():
        return None
    try:
        content: Any = yaml.load(path.read_text("utf-8-sig"), Loader=_UniqueKeys)  # noqa: S506 - it is a SafeLoader
    except (OSError, UnicodeDecodeError) as problem:
        raise ProjectError(kind, f"{path} cannot be read: {problem}. Make it a readable UTF-8 text file.") from problem
    except (yaml.YAMLError, ValueError, RecursionError, *_PYYAML_FALLS_OVER) as problem:
        raise ProjectError(kind, f"{path} is not valid YAML: {_where(problem)}. Mend that line.") from problem
    if content is None:
        return None
    if not isinstance(content, dict):
        raise ProjectError(kind, f"{path} holds a {type(content).__name__}, not a map. Write `key: value` lines.")
    said = {key: value for key, value in cast("dict[Any, Any]", content).items() if value is not None}
    try:
        return model.model_validate(said)
    except ValidationError as problem:
        raise ProjectError(kind, f"{path}: {_complaints(problem)} Mend the file.") from problem


_PYYAML_FALLS_OVER = (AttributeError, LookupError, TypeError)
"""What its constructors raise for `!!timestamp x`, `!!bool x` and the like."""


class _UniqueKeys(yaml.SafeLoader):
    """Refuses a key that stands twice in a map; YAML forbids it, PyYAML keeps the last."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        keys = [cast("Hashable", key.value) for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        twice = next((key for n, key in enumerate(keys) if key in keys[:n] and key != "<<"), None)
        if twice is not None:
            raise yaml.constructor.ConstructorError(None, None, f"the key {twice!r} stands twice", node.start_mark)
        return super().construct_mapping(node, deep=deep)


def _where(problem: Exception) -> str:
    mark = getattr(problem, "problem_mark", None)
    text = str(getattr(problem, "problem", None) or problem or type(problem).__name__)
    return f"line {mark.line + 1}: {text}" if isinstance(mark, yaml.Mark) else text


def _complaints(problem: ValidationError) -> str:
    return " ".join(_complaint(error["loc"], error["type"], error["msg"]) for error in problem.errors()[:5])


def _complaint(location: tuple[int | str, ...], kind: str, message: str) -> str:
    name = ".".join(str(part) for part in location)
    match kind:
        case "missing":
            return f"{name!r} is missing."
        case "extra_forbidden":
            return f"{name!r} is unknown here."
        case "string_type":
            return f"{name!r} must be text; put it in quotes."
        case "string_pattern_mismatch":
            return f"{name!r} must be one line without blanks at its ends."
        case _:
            return f"{name!r}: {message.removeprefix('Value error, ')}."
