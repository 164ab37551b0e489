"""agentvisor threads: make them, talk to them, look at them."""

from __future__ import annotations

import sys
from contextlib import aclosing
from typing import Any

import click

from client.commands import show
from client.commands.command import Group
from client.commands.exits import Exit, of_run
from client.commands.follow import follow_and_show, run_json
from client.commands.names import JsonObjectType, JsonType, OptionsType, ThreadIdType
from client.commands.session import Session, command, os_user
from client.errors import RunNotFound, ThreadsError
from client.listing import ListedStatus
from client.thread import Thread, Until
from workflows.messages import Json, JsonObject, ThreadView


@click.group(cls=Group)
def threads() -> None:
    """Conversations with agents: each lives in Temporal and runs one message at a time."""


def _get_names_a_thread(given: dict[str, Any]) -> None:
    if given["or_get"] and given["thread_id"] is None:
        raise click.UsageError("--get needs the --id to get.")


def _one_message(given: dict[str, Any]) -> None:
    if (given["message"] is None) == (given["content"] is None):
        raise click.UsageError("Give MESSAGE or --content, one of them.")


@command(threads, check=_get_names_a_thread)
@click.argument("agent")
@click.option("--id", "thread_id", metavar="ID", type=ThreadIdType(), help="Id of the thread [default: a new uuid]")
@click.option("--principal", metavar="NAME", help="Whose thread it is [default: the OS user]")
@click.option("--app", metavar="NAME", help="App the thread belongs to")
@click.option("--state", type=JsonObjectType(), metavar="JSON", help="Session state to begin with")
@click.option("--metadata", type=JsonObjectType(), metavar="JSON", help="Notes of yours about the thread")
@click.option("--options", type=OptionsType(), metavar="JSON", help='As {"approval_ttl": 3600}; see docs/thread.md')
@click.option("--get", "or_get", is_flag=True, help="Take the open thread with this --id if there is one")
async def new(session: Session, agent: str, thread_id: str | None, or_get: bool, **given: Any) -> Exit:
    """Create a thread for AGENT and print its id. Needs no worker."""
    given["principal"] = given["principal"] or os_user()
    if or_get and thread_id is not None:
        thread = await session.threads.get_or_create(thread_id, agent, **given)
    else:
        thread = await session.threads.create(agent, thread_id=thread_id, **given)
    if session.terminal.as_json:
        session.terminal.json({"thread_id": thread.id})
    else:
        session.terminal.say(thread.id)
    return Exit.OK


@command(threads, check=_one_message)
@click.argument("thread_id", metavar="THREAD", type=ThreadIdType())
@click.argument("message", required=False)
@click.option("--content", type=JsonType(), metavar="JSON", help="ADK Content instead of MESSAGE")
@click.option("--run-id", metavar="ID", help="Id of the run; repeating it does not run twice [default: a new uuid]")
@click.option("--state", type=JsonObjectType(), metavar="JSON", help="State to set as the run begins")
@click.option("--no-wait", is_flag=True, help="Queue the run, print its id and return")
@click.option("--until", type=click.Choice(["paused", "ended"]), default="paused", show_default=True)
@click.option("--timeout", type=click.FloatRange(min=0), metavar="SECONDS", help="Wait no longer; the run goes on")
async def run(
    session: Session,
    *,
    thread_id: str,
    message: str | None,
    content: Json,
    run_id: str | None,
    state: JsonObject | None,
    no_wait: bool,
    until: Until,
    timeout: float | None,
) -> Exit:
    """Say MESSAGE (- reads it from standard input) to THREAD and wait for the answer.

    The wait ends when the run does or, with "paused", when it waits for a person: what to decide is printed then.
    """
    thread = session.threads.get(thread_id)
    said = sys.stdin.read() if message == "-" else message
    queued = await thread.run(said if content is None else content, run_id=run_id, state_delta=state)
    if not no_wait:
        return await follow_and_show(session, thread, queued, until=until, timeout=timeout)
    if session.terminal.as_json:
        session.terminal.json({"thread_id": thread.id, "run_id": queued})
    else:
        session.terminal.say(queued)
    return Exit.OK


@command(threads, "show")
@click.argument("thread_id", metavar="THREAD", type=ThreadIdType())
@click.argument("run_id", metavar="[RUN]", required=False)
async def show_(session: Session, thread_id: str, run_id: str | None) -> Exit:
    """Show THREAD, its last runs and what it waits for; or one RUN of it."""
    thread = session.threads.get(thread_id)
    if run_id is not None:
        view = await thread.run_view(run_id)
        if session.terminal.as_json:
            session.terminal.json(run_json(thread, view))
        else:
            show.run(session, thread.id, view)
        return Exit.OK
    whole, waiting = await thread.view(), await thread.interrupts()
    if session.terminal.as_json:
        interrupts = [one.model_dump(mode="json") for one in waiting]
        session.terminal.json({**whole.model_dump(mode="json"), "interrupts": interrupts})
    else:
        show.thread(session, whole, waiting)
    return Exit.OK


@command(threads)
@click.argument("thread_id", metavar="THREAD", type=ThreadIdType())
@click.argument("run_id", metavar="[RUN]", required=False)
async def watch(session: Session, thread_id: str, run_id: str | None) -> Exit:
    """Follow RUN of THREAD (by default the current or last one) to its end; with --json every change is a line."""
    thread = session.threads.get(thread_id)
    run_id = run_id or _latest(await thread.view())
    if not session.terminal.as_json:
        return await follow_and_show(session, thread, run_id, until="ended")
    code = Exit.OK
    async with aclosing(thread.watch(run_id)) as views:
        async for view in views:
            session.terminal.json(run_json(thread, view))
            code = of_run(view)
    return code


@command(threads)
@click.argument("thread_id", metavar="THREAD", type=ThreadIdType())
@click.argument("run_id", metavar="[RUN]", required=False)
@click.option("--by", metavar="NAME", help="Who cancels [default: the OS user]")
async def cancel(session: Session, thread_id: str, run_id: str | None, by: str | None) -> Exit:
    """Cancel RUN of THREAD (by default the current one): queued, running or waiting."""
    thread = session.threads.get(thread_id)
    view = await thread.cancel_run(run_id or _current(await thread.view()), by=by or os_user())
    if session.terminal.as_json:
        session.terminal.json(run_json(thread, view))
    else:
        session.terminal.say(f"Run {view.run_id} is being cancelled.")
    return Exit.OK


@command(threads)
@click.argument("thread_ids", metavar="THREAD...", nargs=-1, required=True, type=ThreadIdType())
@click.option("--by", metavar="NAME", help="Who closes it [default: the OS user]")
async def close(session: Session, thread_ids: tuple[str, ...], by: str | None) -> Exit:
    """End every THREAD: queued runs are cancelled, approvals withdrawn. They can still be read."""
    failed: ThreadsError | None = None
    for thread in [session.threads.get(thread_id) for thread_id in thread_ids]:
        try:
            await _close(session, thread, by=by or os_user())
        except ThreadsError as problem:
            if len(thread_ids) > 1:
                session.terminal.problem(str(problem), problem.kind)
            failed = problem
    if failed is not None:
        raise failed
    return Exit.OK


@command(threads, "list")
@click.option("--status", type=click.Choice(["open", "waiting", "closed"]), help="Only these; open includes waiting")
@click.option("--agent", metavar="NAME", help="Only threads of this agent")
@click.option("--limit", type=click.IntRange(min=1), default=100, show_default=True)
async def list_(session: Session, status: ListedStatus | None, agent: str | None, limit: int) -> Exit:
    """List threads: open ones first, newest first."""
    found = await session.threads.list(status=status, agent=agent, limit=limit)
    if session.terminal.as_json:
        for one in found:
            session.terminal.json(one.model_dump(mode="json"))
    else:
        show.threads(session, found)
    return Exit.OK


async def _close(session: Session, thread: Thread, *, by: str) -> None:
    view = await thread.close(by=by)
    if session.terminal.as_json:
        session.terminal.json(view.model_dump(mode="json"))
    else:
        session.terminal.say(f"Thread {thread.id} is closed.")


def _latest(view: ThreadView) -> str:
    runs = [view.current, *view.queued, *(one.run_id for one in reversed(view.recent))]
    return _first(runs, view)


def _current(view: ThreadView) -> str:
    return _first([view.current, *view.queued], view)


def _first(runs: list[str | None], view: ThreadView) -> str:
    for run_id in runs:
        if run_id is not None:
            return run_id
    raise RunNotFound(view.thread_id, "(the current one)")
