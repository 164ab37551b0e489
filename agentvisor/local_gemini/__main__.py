"""`python -m agentvisor.local_gemini --script FILE`: serve until SIGINT or SIGTERM, or as long as a command runs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import click

from agentvisor.local_gemini.script import ScriptInvalidError, load_script
from agentvisor.local_gemini.server import LocalGemini


@click.command()
@click.option("--script", type=click.Path(path_type=Path), required=True, help="Script file, JSON or YAML.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, show_default=True, help="0 takes a free port.")
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
def main(script: Path, port: int, command: tuple[str, ...]) -> None:
    """Serve a script in the Gemini wire format on the loopback address; prints {"url": ...} in one line.

    With a COMMAND after `--` nothing is printed: the command runs with the address and a key in its environment, and
    its end and exit code are those of the server.
    """
    try:
        server = LocalGemini(load_script(script), port=port)
    except ScriptInvalidError as problem:
        raise click.ClickException(str(problem)) from problem
    with server:
        if command:
            sys.exit(_exit_code(command, server))
        _until_signalled(server)


def _until_signalled(server: LocalGemini) -> None:
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda _number, _frame: ended.set())
    sys.stdout.write(json.dumps({"url": server.url}) + "\n")
    sys.stdout.flush()
    ended.wait()


def _exit_code(command: Sequence[str], server: LocalGemini) -> int:
    """Of the command, run to its end. Whoever ends the server ends the command; Ctrl-C reaches it from the terminal."""
    try:
        process = subprocess.Popen(command, env={**os.environ, **server.env()})
    except OSError as problem:
        msg = f"{command[0]!r} does not start: {problem.strerror}. Name a command that can be run."
        raise click.ClickException(msg) from problem
    signal.signal(signal.SIGINT, lambda _number, _frame: None)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _frame: process.send_signal(number))
    code = process.wait()
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    main()
