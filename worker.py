"""The composition root. `python worker.py --project DIR` runs a worker built from Settings until it is told to end.

Where Temporal is, is configured as for every Temporal tool (TEMPORAL_ADDRESS, TEMPORAL_PROFILE, …).
"""

# ruff: noqa: E402 - what takes longest is begun before the imports

from __future__ import annotations

import os
import sys

from agentvisor.host.fork_server import ForkServer

_HOSTS = __name__ == "__main__" and any(word.split("=")[0] == "--project" for word in sys.argv)
_HEAD_START = ForkServer(os.environ).begin() if _HOSTS else None
"""Its imports and those below take seconds each, and can take the same ones."""

import asyncio
import signal
from collections.abc import AsyncGenerator, Collection, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import click
import structlog
from pydantic import ValidationError
from temporalio.client import Client
from temporalio.worker import UnsandboxedWorkflowRunner, Worker
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner

from activities.agent import GuestAgentActivities
from activities.events import StoredEventActivities
from activities.tools import GuestToolActivities
from agentvisor.host.dev_server import PORT, DevServerError, TemporalServer, answering_or_dev_server
from agentvisor.host.exit import leave
from agentvisor.host.finalizers import keep_finalizers_off_workflows
from agentvisor.host.guest import NoGuestError
from agentvisor.host.guests import GuestProcesses
from agentvisor.host.memory import give_memory_back
from agentvisor.host.payload_visits import leave_out_idle_visits
from agentvisor.host.scheduled_calls import ScheduledCalls
from agentvisor.host.search_attributes import register_search_attributes
from agentvisor.host.settings import Settings
from agentvisor.host.store import Store, StoreMisconfigured, StoreTooNew
from agentvisor.host.stored_events import StoredEvents
from agentvisor.host.workflow_executor import WorkflowExecutor
from agentvisor.host.workflow_runner import UpdatesLast
from agentvisor.logs import log_to_stderr
from agentvisor.project import Project, ProjectError, read_project
from client.connection import Connection, connect
from client.errors import ThreadsError
from workflows.thread import ThreadWorkflow

_FOR_PEOPLE = (ProjectError, NoGuestError, DevServerError, ThreadsError, StoreMisconfigured, StoreTooNew)

POLLS, POLLS_FOR_NEW_THREADS = 16, 0.5
"""With the SDK's 5, one of them for new threads, the first task of 200 new ones waits 20 s beside a busy server."""

HANDOVER = 0.0005
"""Seconds until a busy thread lets another one go on. With Python's 5 ms the Store's answers wait for workflow code."""

log: structlog.stdlib.BoundLogger = structlog.get_logger("worker")


@dataclass(frozen=True)
class RunningWorker:
    """A worker at work. `guests`: the processes of each agent, by its name."""

    task_queue: str
    guests: Mapping[str, GuestProcesses]
    search_attributes: frozenset[str]
    store: Store


def build_worker(
    client: Client,
    settings: Settings,
    guests: Mapping[str, GuestProcesses],
    store: Store,
    *,
    search_attributes: Collection[str],
) -> Worker:
    """Wire every workflow and activity. `guests`: by agent name; `search_attributes`: those the namespace has."""
    leave_out_idle_visits()
    keep_finalizers_off_workflows()
    queue = settings.task_queue
    stored = StoredEvents(store.blobs, namespace=client.namespace)
    agent = GuestAgentActivities(client, guests, task_queue=queue, attributes=search_attributes, stored=stored)
    scheduled = ScheduledCalls()
    tools = GuestToolActivities(
        client, guests, task_queue=queue, spent_calls=store.spent_calls, stored=stored, scheduled=scheduled
    )
    events = StoredEventActivities(client, stored, task_queue=queue)
    throttle = timedelta(seconds=settings.heartbeat_throttle)
    return Worker(
        client,
        task_queue=queue,
        build_id=_build_id(),
        workflows=[ThreadWorkflow],
        workflow_task_executor=WorkflowExecutor(),
        interceptors=[scheduled],
        activities=[agent.run_agent, tools.run_tool, tools.check_args, tools.probe_tool, events.keep_events],
        workflow_runner=UpdatesLast(
            SandboxedWorkflowRunner() if settings.workflow_sandbox else UnsandboxedWorkflowRunner()
        ),
        max_concurrent_activities=settings.max_activities,
        max_concurrent_workflow_tasks=settings.max_workflow_tasks,
        max_concurrent_workflow_task_polls=POLLS,
        nonsticky_to_sticky_poll_ratio=POLLS_FOR_NEW_THREADS,
        max_cached_workflows=settings.max_cached_threads,
        sticky_queue_schedule_to_start_timeout=timedelta(seconds=settings.sticky_timeout),
        max_heartbeat_throttle_interval=throttle,
        default_heartbeat_throttle_interval=throttle,
        graceful_shutdown_timeout=timedelta(seconds=settings.graceful_shutdown),
    )


def _build_id() -> str:
    """What history says of the code, in every second event: the version, shorter than Temporal's own hash."""
    try:
        return version("agentvisor-temporal")
    except PackageNotFoundError:
        return "source"


@asynccontextmanager
async def running_worker(
    client: Client,
    settings: Settings,
    projects: Sequence[Project],
    *,
    environment: Mapping[str, str],
    fork_server: ForkServer | None = None,
) -> AsyncGenerator[RunningWorker]:
    """A worker and its guests for as long as this lasts; no process is left behind.

    `environment`: what guests inherit, without the host's own settings. `fork_server`: one that outlasts this worker;
    else it has its own. Raises ProjectError for two agents of one name, NoGuestError for a project that cannot be
    loaded.
    """
    _refuse_namesakes(projects)
    async with AsyncExitStack() as stack:
        fork_server = fork_server or await stack.enter_async_context(ForkServer(environment))
        guests = {
            project.name: await stack.enter_async_context(
                GuestProcesses.of(project, settings, environment, fork_server=fork_server)
            )
            for project in projects
        }
        attributes = await register_search_attributes(client)
        routes = _routes(guests)
        store = await stack.enter_async_context(Store.open(settings.store))
        await stack.enter_async_context(build_worker(client, settings, routes, store, search_attributes=attributes))
        yield RunningWorker(settings.task_queue, routes, attributes, store)


def _routes(guests: Mapping[str, GuestProcesses]) -> dict[str, GuestProcesses]:
    """Guests by every name a thread may start with: a project's own, and those of the agents it registers."""
    routes = dict(guests)
    for project, processes in guests.items():
        for agent in processes.agents:
            if routes.setdefault(agent.name, processes) is not processes:
                text = (
                    f"The agent {agent.name!r} of project {project!r} has the name of another one. Rename one of them."
                )
                raise ProjectError("agent-name-taken", text)
    return routes


def _refuse_namesakes(projects: Sequence[Project]) -> None:
    folders: dict[str, Path] = {}
    for project in projects:
        if other := folders.get(project.name):
            text = f"{other} and {project.folder} both name their agent {project.name!r}. Rename one in its agent.yaml."
            raise ProjectError("agent-name-taken", text)
        folders[project.name] = project.folder


@click.command(epilog="Settings are read from AGENTVISOR_*, the connection from TEMPORAL_*.")
@click.option(
    "--project",
    "folders",
    multiple=True,
    required=True,
    type=click.Path(path_type=Path),
    help="Folder with agent.yaml and agent.py. Repeat it to host several agents.",
)
@click.option("--dev", is_flag=True, help="Start Temporal's development server, unless TEMPORAL_ADDRESS answers.")
def main(folders: tuple[Path, ...], dev: bool) -> None:
    """Host agent projects on Temporal until interrupted."""
    try:
        settings = Settings()
        log_to_stderr(settings.log_level)
        projects = [read_project(folder) for folder in folders]
        _run(_until_interrupted(settings, projects, dev=dev), settings)
    except _FOR_PEOPLE as problem:
        _say(str(problem))
        leave(1)
    except ValidationError as problem:
        _say("; ".join(f"AGENTVISOR_{'_'.join(map(str, e['loc'])).upper()}: {e['msg']}" for e in problem.errors()))
        leave(1)
    except Exception:
        log.exception("worker.failed")
        leave(1)
    leave(0)


async def _until_interrupted(settings: Settings, projects: Sequence[Project], *, dev: bool) -> None:
    _end_on_signals()
    try:
        async with AsyncExitStack() as stack:
            connection = Connection()
            if dev:
                server = await stack.enter_async_context(answering_or_dev_server(connection, db=settings.dev_server_db))
                connection = server.connection
                _tell_where(server)
            client = await connect(connection)
            fork_server = await stack.enter_async_context(_HEAD_START or ForkServer(os.environ))
            worker = await stack.enter_async_context(
                running_worker(client, settings, projects, environment=os.environ, fork_server=fork_server)
            )
            log.info("worker.ready", agents=sorted(worker.guests), task_queue=worker.task_queue)
            await give_memory_back()
    except asyncio.CancelledError:
        log.info("worker.ended")


def _tell_where(server: TemporalServer) -> None:
    address = server.connection.resolved().address
    log.info("temporal.ready", address=address, web_ui=server.ui_url)
    if server.started and address != f"127.0.0.1:{PORT}":
        log.warning("temporal.port-taken", port=PORT, other_terminals_need=f"export TEMPORAL_ADDRESS={address}")


def _end_on_signals() -> None:
    """The first signal ends the worker in order; another one ends it at once."""
    task = asyncio.current_task()
    assert task is not None
    signalled = False

    def end() -> None:
        nonlocal signalled
        if signalled:
            leave(130)
        signalled = True
        log.info("worker.ending")
        task.cancel()

    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, end)


def _run(work: Coroutine[Any, Any, None], settings: Settings) -> None:
    sys.setswitchinterval(HANDOVER)
    if settings.uvloop and sys.platform != "win32":
        import uvloop  # noqa: PLC0415 - not on every platform

        uvloop.run(work)
    else:
        asyncio.run(work)


def _say(text: str) -> None:
    click.echo(f"worker: {text}", err=True)


if __name__ == "__main__":
    main()
