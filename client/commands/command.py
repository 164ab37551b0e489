"""Click commands whose help shows the connection apart and ends with the exit codes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from client.commands.exits import MEANINGS

_EXISTING = click.Path(exists=True, dir_okay=False, path_type=Path)
_CONNECTION: dict[str, dict[str, Any]] = {
    "--address": {"metavar": "HOST:PORT", "help": "Temporal server [default: localhost:7233]"},
    "--namespace": {"metavar": "NAME", "help": "Temporal namespace [default: default]"},
    "--task-queue": {"metavar": "NAME", "help": "Task queue of the worker [default: agentvisor]"},
    "--profile": {"metavar": "NAME", "help": "Profile in Temporal's config file"},
    "--config-file": {"type": _EXISTING, "help": "Temporal's config file, if not the usual one"},
    "--api-key": {"metavar": "KEY", "help": "API key; safer in TEMPORAL_API_KEY"},
    "--tls/--no-tls": {"default": None, "help": "TLS on or off, whatever the profile says"},
    "--tls-server-name": {"metavar": "NAME", "help": "Name to expect in the server's certificate"},
    "--tls-ca-path": {"type": _EXISTING, "help": "Certificate authority of the server"},
    "--tls-cert-path": {"type": _EXISTING, "help": "Client certificate"},
    "--tls-key-path": {"type": _EXISTING, "help": "Key of the client certificate"},
}


class ConnectionOption(click.Option):
    """An option that says how to reach the server."""


class Command(click.Command):
    """A command that talks to threads."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        parameters = self.get_params(ctx)
        own = [one for one in parameters if isinstance(one, click.Option) and not isinstance(one, ConnectionOption)]
        connection = [one for one in parameters if isinstance(one, ConnectionOption)]
        _section(ctx, formatter, "Options", own)
        _section(ctx, formatter, "Connection (before TEMPORAL_* variables, before the profile)", connection)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_epilog(ctx, formatter)
        with formatter.section("Exit codes"):
            formatter.write_dl([(str(int(code)), meaning) for code, meaning in MEANINGS.items()])


class Group(click.Group):
    """A group of such commands."""

    command_class = Command
    group_class = type


def connection_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the connection options, and --json."""
    for flag, settings in reversed(_CONNECTION.items()):
        command = click.option(flag, cls=ConnectionOption, **settings)(command)
    return click.option("--json", "as_json", is_flag=True, help="Print JSON, one value a line.")(command)


def _section(
    ctx: click.Context, formatter: click.HelpFormatter, title: str, parameters: Sequence[click.Parameter]
) -> None:
    records = [record for parameter in parameters if (record := parameter.get_help_record(ctx)) is not None]
    if records:
        with formatter.section(title):
            formatter.write_dl(records)
