"""One command at work: connected, with a terminal to talk to."""

from __future__ import annotations

import asyncio
import functools
import getpass
import os
import shlex
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, fields
from typing import Any

import click
from temporalio.runtime import Runtime, TelemetryConfig

from client.commands.command import ConnectionOption, connection_options
from client.commands.exits import Exit, of_error
from client.commands.terminal import Terminal
from client.connection import Connection, connect
from client.errors import ThreadsError
from client.threads import Threads

_DEFAULT_TASK_QUEUE = "agentvisor"
_NOT_REPEATED = "api_key"


@dataclass
class Session:
    """What a command works with."""

    threads: Threads
    terminal: Terminal
    said: str = ""
    """The connection options that were given, for command lines shown to the person."""
    if_interrupted: list[str] = field(default_factory=list)
    """What to say when Ctrl-C ends the command."""

    def command_line(self, *words: str) -> str:
        """A command that reaches the same server."""
        return f"agentvisor {shlex.join(words)}{self.said}"


def command(
    group: click.Group, name: str | None = None, *, check: Callable[[dict[str, Any]], None] | None = None
) -> Callable[[Callable[..., Awaitable[Exit]]], click.Command]:
    """Make a coroutine function a command of the group. It gets a Session first; its result is the exit code.

    `check` sees the parameters before anything is connected, and raises UsageError.
    """

    def add(run: Callable[..., Awaitable[Exit]]) -> click.Command:
        @functools.wraps(run)
        def call(*, as_json: bool, **parameters: Any) -> Exit:
            terminal = Terminal(as_json=as_json)
            said = {one.name: parameters.pop(str(one.name)) for one in _connection_parameters()}
            if check is not None:
                check(parameters)
            return _exit(terminal, run, said, parameters)

        return group.command(name)(connection_options(call))

    return add


def _connection_parameters() -> list[click.Parameter]:
    current = click.get_current_context().command
    return [one for one in current.params if isinstance(one, ConnectionOption)]


def _exit(
    terminal: Terminal, run: Callable[..., Awaitable[Exit]], said: dict[str, Any], parameters: dict[str, Any]
) -> Exit:
    notes: list[str] = []
    try:
        code = asyncio.run(_connected(terminal, run, said, parameters, notes))
        sys.stdout.flush()
    except BrokenPipeError:
        return Exit.BROKEN_PIPE
    except KeyboardInterrupt:
        for note in notes:
            terminal.note(note)
        return Exit.INTERRUPTED
    except ThreadsError as problem:
        if terminal.as_json:
            terminal.json({"error": {"kind": problem.kind, "message": str(problem)}})
        else:
            terminal.problem(str(problem), problem.kind)
        return of_error(problem)
    return code


async def _connected(
    terminal: Terminal,
    run: Callable[..., Awaitable[Exit]],
    said: dict[str, Any],
    parameters: dict[str, Any],
    notes: list[str],
) -> Exit:
    known = {one.name for one in fields(Connection)}
    connection = Connection(**{name: value for name, value in said.items() if name in known})
    silent = Runtime(telemetry=TelemetryConfig(logging=None))  # else the native part writes over the result
    client = await connect(connection, runtime=silent)
    threads = Threads(client, task_queue=said["task_queue"] or _DEFAULT_TASK_QUEUE)
    return await run(Session(threads, terminal, _repeated(said), notes), **parameters)


def _repeated(said: dict[str, Any]) -> str:
    words: list[str] = []
    for name, value in said.items():
        flag = f"--{name.replace('_', '-')}"
        if isinstance(value, bool):
            words.append(flag if value else f"--no-{name}")
        elif value is not None and name != _NOT_REPEATED:
            words += [flag, str(value)]
    return f" {shlex.join(words)}" if words else ""


def os_user() -> str:
    """Who runs this command, as the operating system knows it."""
    try:
        import pwd  # noqa: PLC0415 - not on every system

        return pwd.getpwuid(os.getuid()).pw_name
    except (ImportError, KeyError):
        return getpass.getuser()
