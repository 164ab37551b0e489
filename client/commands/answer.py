"""agentvisor answer: the interrupts that are no approvals."""

from __future__ import annotations

import click

from client.commands.command import Group
from client.commands.exits import Exit
from client.commands.names import JsonType, interrupt_name
from client.commands.session import Session, command, os_user
from workflows.messages import (
    Answer,
    InputAnswer,
    Json,
    LongRunningAnswer,
    UnknownOutcomeDone,
    UnknownOutcomeNotDone,
    UnknownOutcomeRunAgain,
)

_NAME = click.argument("name", metavar="THREAD/ID", callback=interrupt_name)
_BY = click.option("--by", metavar="NAME", help="Who answers [default: the OS user]")


@click.group(cls=Group)
def answer() -> None:
    """Answer what waits and is no approval: input, long-running tools, calls of unknown outcome."""


@command(answer, "input")
@_NAME
@click.argument("value", type=JsonType(), metavar="JSON")
@_BY
async def input_(session: Session, name: tuple[str, str], value: Json, by: str | None) -> Exit:
    """Give the input that is waited for."""
    thread_id, interrupt_id = name
    return await _answer(session, thread_id, InputAnswer(interrupt_id=interrupt_id, value=value), by)


@command(answer)
@_NAME
@click.argument("value", type=JsonType(), metavar="JSON")
@click.option("--progress", is_flag=True, help="It is not the result yet: keep waiting")
@_BY
async def result(session: Session, name: tuple[str, str], value: Json, progress: bool, by: str | None) -> Exit:
    """Give the result of a long-running tool, or its progress."""
    thread_id, interrupt_id = name
    given = LongRunningAnswer(interrupt_id=interrupt_id, result=value, final=not progress)
    return await _answer(session, thread_id, given, by)


@command(answer)
@_NAME
@click.argument("value", type=JsonType(), metavar="JSON")
@_BY
async def done(session: Session, name: tuple[str, str], value: Json, by: str | None) -> Exit:
    """Say that a call of unknown outcome took effect, with this result."""
    thread_id, interrupt_id = name
    return await _answer(session, thread_id, UnknownOutcomeDone(interrupt_id=interrupt_id, result=value), by)


@command(answer)
@_NAME
@click.option("--reason", metavar="TEXT", help="Told to the model")
@_BY
async def undone(session: Session, name: tuple[str, str], reason: str | None, by: str | None) -> Exit:
    """Say that a call of unknown outcome had no effect."""
    thread_id, interrupt_id = name
    return await _answer(session, thread_id, UnknownOutcomeNotDone(interrupt_id=interrupt_id, reason=reason), by)


@command(answer)
@_NAME
@_BY
async def again(session: Session, name: tuple[str, str], by: str | None) -> Exit:
    """Make a call of unknown outcome again."""
    thread_id, interrupt_id = name
    return await _answer(session, thread_id, UnknownOutcomeRunAgain(interrupt_id=interrupt_id), by)


async def _answer(session: Session, thread_id: str, given: Answer, by: str | None) -> Exit:
    receipt = await session.threads.get(thread_id).answer(given, by=by or os_user())
    if session.terminal.as_json:
        session.terminal.json(receipt.model_dump(mode="json"))
    else:
        session.terminal.say(f"{receipt.id}: {receipt.status}, said {receipt.by}.")
    return Exit.OK
