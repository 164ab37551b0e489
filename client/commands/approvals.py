"""agentvisor approvals: what waits for a person, over all threads, and the person's word."""

from __future__ import annotations

import json
import sys

import click

from client.commands import show
from client.commands.command import Group
from client.commands.exits import Exit
from client.commands.follow import follow_and_show
from client.commands.names import JsonObjectType, SettingType, interrupt_name, value_instead_of
from client.commands.session import Session, command, os_user
from client.commands.terminal import visible
from client.errors import Refused
from client.thread import Thread
from workflows.messages import Interrupt, JsonObject

_NAME = click.argument("name", metavar="THREAD/ID", nargs=-1, required=True, callback=interrupt_name)
_REASON = click.option("--reason", metavar="TEXT", help="Kept with the decision; a denial's reason reaches the model")
_BY = click.option("--by", metavar="NAME", help="Who decides [default: the OS user]")
_WAIT = click.option("--wait", is_flag=True, help="Then follow the run to its end or its next pause")


@click.group(cls=Group)
def approvals() -> None:
    """Calls that wait for a person: see them, then approve, deny or edit them.

    An approval is named THREAD/ID, as the list shows it; THREAD ID will do too.
    """


@command(approvals, "list")
@click.option("--agent", metavar="NAME", help="Only threads of this agent")
@click.option("--all", "everything", is_flag=True, help="Everything that waits, not approvals alone")
async def list_(session: Session, agent: str | None, everything: bool) -> Exit:
    """List what waits, over all threads, oldest first."""
    ask = session.threads.interrupts if everything else session.threads.approvals
    waiting = await ask(agent=agent)
    if session.terminal.as_json:
        for one in waiting.interrupts:
            session.terminal.json(one.model_dump(mode="json"))
    elif waiting.interrupts:
        show.interrupts(session, waiting.interrupts)
    else:
        session.terminal.note("Nothing waits.")
    for thread_id, kind in waiting.unread.items():
        session.terminal.problem(f"Thread {thread_id} could not be asked.", kind)
    return Exit.UNAVAILABLE if waiting.unread else Exit.OK


@command(approvals, "show")
@_NAME
async def show_(session: Session, name: tuple[str, str]) -> Exit:
    """Show one approval whole, with the commands that settle it."""
    thread_id, approval_id = name
    one = await _waiting(session.threads.get(thread_id), approval_id)
    if session.terminal.as_json:
        session.terminal.json(one.model_dump(mode="json"))
    else:
        show.interrupt(session, one)
    return Exit.OK


@command(approvals)
@_NAME
@_REASON
@_BY
@_WAIT
async def approve(session: Session, name: tuple[str, str], reason: str | None, by: str | None, wait: bool) -> Exit:
    """Let the call run, as it is."""
    return await _decide(session, name, approved=True, reason=reason, by=by, wait=wait)


@command(approvals)
@_NAME
@_REASON
@_BY
@_WAIT
async def deny(session: Session, name: tuple[str, str], reason: str | None, by: str | None, wait: bool) -> Exit:
    """Do not let the call run; the model is told."""
    return await _decide(session, name, approved=False, reason=reason, by=by, wait=wait)


@command(approvals)
@_NAME
@click.option("--args", "whole", type=JsonObjectType(), metavar="JSON", help="All arguments anew")
@click.option(
    "--set", "settings", type=SettingType(), multiple=True, metavar="KEY=VALUE", help="One argument; repeatable"
)
@_REASON
@_BY
@_WAIT
async def edit(
    session: Session,
    *,
    name: tuple[str, str],
    whole: JsonObject | None,
    settings: tuple[tuple[str, str], ...],
    reason: str | None,
    by: str | None,
    wait: bool,
) -> Exit:
    """Let the call run with other arguments. Without --args and --set an editor opens, on a terminal.

    VALUE is text where the argument was text, else JSON. The arguments are checked as the model's were; what is
    refused leaves the approval as it was.
    """
    if whole is None:
        thread_id, approval_id = name
        one = await _waiting(session.threads.get(thread_id), approval_id)
        whole = one.arguments if settings else _edited(one)
    whole = {**whole, **{key: value_instead_of(whole.get(key), text) for key, text in settings}}
    return await _decide(session, name, approved=True, reason=reason, by=by, wait=wait, edited_args=whole)


async def _decide(
    session: Session,
    name: tuple[str, str],
    *,
    approved: bool,
    reason: str | None,
    by: str | None,
    wait: bool,
    edited_args: JsonObject | None = None,
) -> Exit:
    thread_id, approval_id = name
    thread = session.threads.get(thread_id)
    run_id = (await _waiting(thread, approval_id)).run_id if wait else ""
    receipt = await thread.decide(approval_id, approved, by=by or os_user(), edited_args=edited_args, reason=reason)
    terminal = session.terminal
    if terminal.as_json and not wait:
        terminal.json(receipt.model_dump(mode="json"))
    elif not terminal.as_json:
        edited = " with other arguments" if edited_args is not None else ""
        terminal.say(f"{receipt.id} was {receipt.status}{edited} by {receipt.by}.", "green" if approved else "yellow")
    return await follow_and_show(session, thread, run_id) if wait else Exit.OK


async def _waiting(thread: Thread, approval_id: str) -> Interrupt:
    for one in await thread.interrupts():
        if one.id == approval_id:
            return one
    raise Refused(
        "approval-unknown",
        f"Nothing waits as {thread.id}/{approval_id}. `agentvisor threads show {thread.id}` shows what does.",
    )


def _edited(one: Interrupt) -> JsonObject:
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise click.UsageError("Say what to change with --args or --set; an editor needs a terminal.")
    before = json.dumps(one.arguments, indent=2, ensure_ascii=False)
    after = click.edit(visible(before) + "\n", extension=".json")
    if after is None:
        raise click.UsageError("Nothing was changed. Use `approve` for the arguments as they are.")
    return JsonObjectType().convert(after, None, None)
