"""`python -m agentvisor.local_gemini --script FILE`: serve until SIGINT or SIGTERM."""

from __future__ import annotations

import json
import signal
import sys
import threading
from pathlib import Path

import click

from agentvisor.local_gemini.script import ScriptInvalidError, load_script
from agentvisor.local_gemini.server import LocalGemini


@click.command()
@click.option("--script", type=click.Path(path_type=Path), required=True, help="Script file, JSON or YAML.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, show_default=True, help="0 takes a free port.")
def main(script: Path, port: int) -> None:
    """Serve a script in the Gemini wire format on the loopback address; prints {"url": ...} in one line."""
    try:
        server = LocalGemini(load_script(script), port=port)
    except ScriptInvalidError as problem:
        raise click.ClickException(str(problem)) from problem
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda _number, _frame: ended.set())
    with server:
        sys.stdout.write(json.dumps({"url": server.url}) + "\n")
        sys.stdout.flush()
        ended.wait()


if __name__ == "__main__":
    main()
