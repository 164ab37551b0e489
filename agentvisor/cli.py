"""The command `agentvisor`."""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from importlib.metadata import version
from typing import NoReturn

import click

from agentvisor.host.exit import leave
from client.commands import answer, approvals, threads
from client.commands.command import Group
from client.commands.exits import Exit


@click.group(cls=Group, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(version("agentvisor-temporal"), prog_name="agentvisor")
def agentvisor() -> None:
    """Google ADK agents on Temporal: threads, runs and the approvals they wait for."""


agentvisor.add_command(threads)
agentvisor.add_command(approvals)
agentvisor.add_command(answer)


def main() -> NoReturn:
    """Run the command line and end the process with its exit code."""
    leave(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run a command line; returns the exit code (client.commands.exits)."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal that knows fewer letters gets them spelt out
    try:
        code = agentvisor.main(args=list(arguments), prog_name="agentvisor", standalone_mode=False)
    except click.ClickException as problem:
        problem.show()
        return Exit.USAGE
    except (click.Abort, KeyboardInterrupt):
        return Exit.INTERRUPTED
    except SystemExit as problem:  # click's own way out of a broken pipe
        return problem.code if isinstance(problem.code, int) else Exit.BROKEN_PIPE
    return int(code or Exit.OK)
