"""`python -m agentvisor.adk.runner --fd N --project DIR`: a guest process, for as long as its host has the socket."""

from __future__ import annotations

import argparse
import asyncio
import gc
import importlib.util
import logging
import os
import secrets
import select
import signal
import socket
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

from agentvisor.channel import Channel, Handler, JsonObject, Refused, Request
from agentvisor.logs import log_to_stderr
from agentvisor.protocol import Alive, Hello

if TYPE_CHECKING:
    from pydantic import BaseModel

ALIVE_SECONDS = 1.0
_GRACE_SECONDS = 2.0
_SAID_BY_THE_LEG = {"workflow._node_runner": "Node execution failed with exception", "runners": "Root node %s failed."}
"""What ADK logs with the traceback of a failure that the leg logs, too: logger and text."""


def main() -> None:
    """Serve a project over an inherited socket. Ends the process, whatever still runs in it."""
    parser = argparse.ArgumentParser(prog="agentvisor.adk.runner", description="Run an agent project for its host.")
    parser.add_argument("--fd", type=int, required=True, help="file descriptor of the inherited socket")
    parser.add_argument("--project", type=Path, required=True, help="folder of the agent project")
    options = parser.parse_args()
    sock = socket.socket(fileno=options.fd)
    sock.set_inheritable(False)
    _end_with_host(sock)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to all: the host decides
    log_to_stderr()
    _quiet_adk()
    prepare_adk()
    handler, hello = _loaded(options.project)
    gc.collect()
    gc.freeze()  # ADK's import leaves about 10**6 objects that every full collection would walk
    _run(sock, handler, hello)
    os._exit(0)


def _quiet_adk() -> None:
    logging.getLogger("google_adk").setLevel(logging.ERROR)  # its warnings advise whoever writes a host
    for name, text in _SAID_BY_THE_LEG.items():
        logging.getLogger(f"google_adk.google.adk.{name}").addFilter(lambda record, text=text: record.msg != text)


def prepare_adk() -> None:
    """Spare each run of ADK what it need not do. Before ADK is imported."""
    os.environ.setdefault("ADK_TELEMETRY_SCHEMA_VERSION_OPT_IN", "1")
    mend_repeated_import()


def mend_repeated_import() -> None:
    """Before ADK is imported."""
    if importlib.util.find_spec("a2a") is None:
        # ADK tries this import in every run; without the package it fails each time, and costs milliseconds.
        sys.modules.setdefault("google.adk.agents.remote_a2a_agent", None)  # pyright: ignore[reportArgumentType]


def _loaded(folder: Path) -> tuple[Handler, Hello]:
    from google.adk.platform.uuid import set_id_provider  # noqa: PLC0415 - ADK is imported after it was prepared

    from agentvisor.adk.guest import Guest  # noqa: PLC0415
    from agentvisor.adk.inference_telemetry import tell_listeners_only  # noqa: PLC0415
    from agentvisor.adk.project_code import ProjectRefused, load_project, tools_left_out  # noqa: PLC0415

    set_id_provider(short_id)
    tell_listeners_only()
    try:
        project = load_project(folder)
        return Guest(project).handle, Hello(pid=os.getpid(), agents=project.infos(), left_out=tools_left_out())
    except ProjectRefused as refused:
        return _refusing(str(refused)), Hello(pid=os.getpid(), error=str(refused))


def short_id() -> str:
    """An id for an event or a call of ADK's: 96 random bits in 16 characters. History says each several times."""
    return secrets.token_urlsafe(12)


def _refusing(text: str) -> Handler:
    async def refuse(op: str, body: JsonObject, request: Request) -> BaseModel:  # noqa: ARG001 - a Handler
        raise Refused("project-not-loaded", text)

    return refuse


def _run(sock: socket.socket, handler: Handler, hello: Hello) -> None:
    try:
        import uvloop  # noqa: PLC0415 - not on every platform
    except ImportError:
        asyncio.run(_serve(sock, handler, hello))
    else:
        uvloop.run(_serve(sock, handler, hello))


async def _serve(sock: socket.socket, handler: Handler, hello: Hello) -> None:
    channel = await Channel.over(sock, handler)
    channel.note(hello)
    while not channel.closed.done():
        await asyncio.wait([channel.closed], timeout=ALIVE_SECONDS)
        channel.note(Alive())
    os._exit(0)  # at once: tools in threads must not outlive the host


def _end_with_host(sock: socket.socket) -> None:
    """A guest whose event loop is blocked must not outlive its host either."""
    watched = os.dup(sock.fileno())

    def watch() -> None:
        poll = select.poll()
        poll.register(watched, select.POLLHUP | getattr(select, "POLLRDHUP", 0))
        poll.poll()
        time.sleep(_GRACE_SECONDS)
        os._exit(0)

    threading.Thread(target=watch, name="agentvisor-host-watch", daemon=True).start()


if __name__ == "__main__":
    main()
