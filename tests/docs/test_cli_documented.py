"""docs/cli.md has every command, option and exit code."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click

from agentvisor.cli import agentvisor
from client.commands.exits import Exit

DOCUMENT = (Path(__file__).parents[2] / "docs" / "cli.md").read_text()


def test_every_command_is_documented() -> None:
    documented = set(re.findall(r"^\| `agentvisor ([a-z]+ [a-z]+)", DOCUMENT, re.MULTILINE))
    assert documented == {" ".join(path) for path, _ in _commands(agentvisor)}


def test_every_option_is_documented() -> None:
    documented = set(re.findall(r"^\| `(--[a-z-]+)` \|", DOCUMENT, re.MULTILINE))
    assert documented == {
        option
        for _, command in _commands(agentvisor)
        for parameter in command.params
        if isinstance(parameter, click.Option)
        for option in parameter.opts
    }


def test_every_option_is_documented_with_its_commands() -> None:
    for option, where in re.findall(r"^\| `(--[a-z-]+)` \| ([^|]+) \| [^|]+ \|$", DOCUMENT, re.MULTILINE):
        named = {name.split()[-1] for name in re.findall(r"`([a-z ]+)`", where)}
        if named:
            assert named == {path[-1] for path, command in _commands(agentvisor) if _has(command, option)}, option


def test_every_exit_code_is_documented() -> None:
    assert [int(code) for code in re.findall(r"^\| (\d+) \|", DOCUMENT, re.MULTILINE)] == sorted(Exit)


def _has(command: click.Command, option: str) -> bool:
    return any(option in parameter.opts for parameter in command.params)


def _commands(group: click.Group, *path: str) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from _commands(command, *path, name)
        else:
            yield (*path, name), command
