"""Wait for a run, with live status where somebody watches."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

from client.commands import show
from client.commands.exits import Exit, of_run
from client.commands.session import Session
from client.thread import ENDED, Thread, Until
from workflows.messages import JsonObject, RunView


async def follow(session: Session, thread: Thread, run_id: str, *, until: Until, timeout: float | None) -> RunView:
    """The run once it has ended or waits; after `timeout` seconds as it then is."""
    session.if_interrupted.append(
        f"The run goes on. Follow it: {session.command_line('threads', 'watch', thread.id, run_id)}"
    )
    await _say_what_is_before_it(session, thread, run_id)
    if not session.terminal.is_live:
        return await thread.wait(run_id, until=until, timeout=timeout)
    view: RunView | None = None
    terminal = session.terminal
    with terminal.status_console.status("queued", spinner=terminal.spinner) as status:
        try:
            async with asyncio.timeout(timeout), aclosing(thread.watch(run_id)) as views:
                async for view in views:
                    status.update(show.run_status(view))
                    if view.status in ENDED or (until == "paused" and view.status == "waiting"):
                        return view
        except TimeoutError:
            pass
    return view or await thread.run_view(run_id)


async def follow_and_show(
    session: Session, thread: Thread, run_id: str, *, until: Until = "paused", timeout: float | None = None
) -> Exit:
    """Wait, print the end or what is waited for, and return the exit code that says which."""
    view = await follow(session, thread, run_id, until=until, timeout=timeout)
    if session.terminal.as_json:
        session.terminal.json(run_json(thread, view))
    else:
        show.run(session, thread.id, view)
    return of_run(view)


async def _say_what_is_before_it(session: Session, thread: Thread, run_id: str) -> None:
    """A run behind one that waits for a person waits for that person too."""
    if (await thread.run_view(run_id)).status != "queued":
        return
    before = await thread.view()
    if before.status == "waiting":
        look = session.command_line("threads", "show", thread.id)
        session.terminal.note(f"Queued behind run {before.current}, which waits for a person: {look}")


def run_json(thread: Thread, view: RunView) -> JsonObject:
    return {"thread_id": thread.id, **view.model_dump(mode="json")}
