"""The commands, as processes: what they print and how they exit."""

from __future__ import annotations

import asyncio
import json
import signal

import pytest

from client import Threads
from client.commands.session import os_user
from tests.cli.conftest import Cli
from tests.client.conftest import AGENT, INVOICE, eventually, paused

SENT = "Invoice INV-A-1001 over EUR 149.00 went to ana@example.com."

pytestmark = pytest.mark.timeout(240)


async def test_from_a_new_thread_to_an_approved_call(shop_cli: Cli) -> None:
    """The commands printed for the person work as they are printed."""
    created = await shop_cli("threads", "new", AGENT)
    assert (created.code, len(created.lines)) == (0, 1)
    (thread,) = created.lines
    waits = await shop_cli("threads", "run", thread, INVOICE)
    assert waits.code == 3, waits.err
    assert "Invoice for order A-1001 over EUR 149.00" in waits.out
    (approve,) = [line.split() for line in waits.lines if "approvals approve" in line]
    assert approve == ["agentvisor", "approvals", "approve", f"{thread}/ap-1-1", "--task-queue", shop_cli.task_queue]
    approved = await shop_cli(*approve[1:4], "--wait")
    assert (approved.code, approved.lines) == (0, [f"ap-1-1 was approved by {os_user()}.", SENT])
    shown = await shop_cli("threads", "show", thread)
    assert 'invoices = ["INV-A-1001"]' in shown.out
    again = await shop_cli("approvals", "approve", f"{thread}/ap-1-1")
    assert (again.code, "already-decided" in again.err) == (6, True)


async def test_an_approval_is_listed_shown_edited_and_followed(shop_cli: Cli, shop: Threads) -> None:
    thread, run_id = await paused(shop)
    name = f"{thread.id}/ap-1-1"

    async def is_listed() -> bool:
        return any(line.startswith(name) for line in (await shop_cli("approvals", "list")).lines)

    await eventually(is_listed, within=60)
    listed = await shop_cli("approvals", "list", "--json")
    (mine,) = [one for one in map(json.loads, listed.lines) if one["thread_id"] == thread.id]
    assert (mine["id"], mine["tool"]) == ("ap-1-1", "send_invoice")
    shown = await shop_cli("approvals", "show", thread.id, "ap-1-1", "--json")
    assert shown.json == mine
    refused = await shop_cli("approvals", "edit", name, "--set", "amount=200.00")
    assert (refused.code, "guardrail-blocked" in refused.err) == (6, True)
    no_terminal = await shop_cli("approvals", "edit", name)
    assert no_terminal.code == 2
    edited = await shop_cli("approvals", "edit", name, "--set", "amount=100.00", "--wait", "--json")
    assert (edited.code, edited.json["run_id"], edited.json["status"]) == (0, run_id, "success")
    assert "EUR 100.00" in edited.json["answer"]


async def test_a_denial_with_a_reason_reaches_the_model(shop_cli: Cli, shop: Threads) -> None:
    thread, run_id = await paused(shop)
    denied = await shop_cli("approvals", "deny", f"{thread.id}/ap-1-1", "--reason", "not now", "--by", "ben", "--json")
    assert (denied.code, denied.json["status"], denied.json["by"]) == (0, "denied", "ben")
    watched = await shop_cli("threads", "watch", thread.id)
    assert (watched.code, watched.out) == (0, "The invoice for order A-1001 was not sent: not now\n")
    shown = await shop_cli("threads", "show", thread.id, run_id, "--json")
    assert shown.json["answer"] in watched.out


async def test_a_run_comes_from_standard_input_and_may_be_left_alone(shop_cli: Cli, shop: Threads) -> None:
    thread = await shop.create(AGENT)
    queued = await shop_cli("threads", "run", thread.id, "-", "--no-wait", "--json", said="orders?")
    assert queued.code == 0
    view = await thread.wait(queued.json["run_id"], until="ended", timeout=60)
    assert view.answer == "Without an invoice: A-1001, A-1002."
    watched = await shop_cli("threads", "watch", thread.id, view.run_id, "--json")
    assert [json.loads(line)["status"] for line in watched.lines] == ["success"]


async def test_a_thread_is_cancelled_closed_and_then_refuses(cli: Cli, carried: Threads) -> None:
    created = await cli("threads", "new", "agent", "--id", f"t-{cli.task_queue}", "--principal", "ana", "--json")
    thread = created.json["thread_id"]
    assert (await cli("threads", "new", "agent", "--id", thread)).code == 6
    assert (await cli("threads", "new", "agent", "--id", thread, "--get")).code == 0
    unfinished = await cli("threads", "run", thread, "hi", "--timeout", "0.2")
    assert (unfinished.code, "is running" in unfinished.out) == (3, True)
    assert (await cli("threads", "cancel", thread)).code == 0
    assert (await cli("threads", "watch", thread)).code == 1
    assert (await cli("threads", "cancel", thread)).code == 4
    assert (await cli("threads", "close", thread)).out == f"Thread {thread} is closed.\n"

    async def is_closed() -> bool:
        return (await cli("threads", "run", thread, "hi", "--no-wait")).code == 6

    await eventually(is_closed, within=60)


async def test_what_is_not_there_is_exit_code_4(cli: Cli, carried: Threads) -> None:
    thread = await carried.create("agent")
    for words in (
        ("threads", "show", "never-was"),
        ("threads", "run", "never-was", "hi"),
        ("threads", "watch", thread.id),
        ("threads", "show", thread.id, "no-run"),
        ("threads", "cancel", thread.id, "no-run"),
        ("approvals", "approve", f"{thread.id}/ap-1-1"),
        ("approvals", "show", f"{thread.id}/ap-1-1"),
        ("answer", "input", f"{thread.id}/in-1-1", "1"),
    ):
        ended = await cli(*words)
        assert (ended.code, ended.out) == (4, ""), (words, ended)


async def test_without_a_worker_the_run_is_queued_and_the_exit_code_is_5(cli: Cli, threads: Threads) -> None:
    thread = await threads.create("agent")
    ended = await cli("threads", "run", thread.id, "hi")
    assert ended.code == 5
    assert f"No worker answers on task queue '{cli.task_queue}'" in ended.err
    assert (await cli("threads", "run", thread.id, "hi", "--no-wait")).code == 0
    asked = await cli("approvals", "approve", f"{thread.id}/ap-1-1", "--json")
    assert (asked.code, asked.json["error"]["kind"]) == (5, "no-worker")


async def test_a_terminal_gets_status_while_it_waits_and_colours(shop_cli: Cli, shop: Threads) -> None:
    thread = await shop.create(AGENT)
    ended = await shop_cli.on_terminal("threads", "run", thread.id, INVOICE)
    assert ended.code == 3
    assert "running" in ended.out.partition("Waits for a decision")[0]
    assert "\x1b[36m" in ended.out
    piped = await shop_cli("threads", "show", thread.id)
    assert "\x1b" not in piped.out


async def test_a_narrow_terminal_gets_one_field_a_line(shop_cli: Cli, shop: Threads) -> None:
    thread, _ = await paused(shop)

    async def is_listed() -> bool:
        return f"{thread.id}/ap-1-1" in (await shop_cli("approvals", "list")).out

    await eventually(is_listed, within=60)
    narrow = await shop_cli.on_terminal("approvals", "list", columns=40)
    assert narrow.code == 0
    assert f"{thread.id}/ap-1-1" in narrow.out


async def test_an_editor_changes_the_arguments_on_a_terminal(shop_cli: Cli, shop: Threads) -> None:
    thread, run_id = await paused(shop)
    name = f"{thread.id}/ap-1-1"
    untouched = await shop_cli.on_terminal("approvals", "edit", name, EDITOR="true")
    assert (untouched.code, "Nothing was changed" in untouched.out) == (2, True)
    edited = await shop_cli.on_terminal("approvals", "edit", name, EDITOR="sed -i s/149.00/120.00/")
    assert edited.code == 0, edited.out
    view = await thread.wait(run_id, until="ended", timeout=60)
    assert "EUR 120.00" in (view.answer or "")


async def test_text_of_others_cannot_drive_the_terminal(cli: Cli, carried: Threads) -> None:
    thread = await carried.create("agent", principal="ana\x1b[2J\u202e", metadata={"note": "\x9b31m"})
    for ended in (
        await cli.on_terminal("threads", "show", thread.id),
        await cli.on_terminal("threads", "list", columns=400),
    ):
        assert ended.code == 0
        assert "\x1b[2J" not in ended.out
        assert "\u202e" not in ended.out
        assert "\x9b" not in ended.out
        assert r"ana\x1b[2J\u202e" in ended.out


async def test_a_terminal_that_knows_ascii_alone_gets_the_rest_spelt_out(cli: Cli, carried: Threads) -> None:
    thread = await carried.create("agent", principal="ána")
    ended = await cli("threads", "show", thread.id, PYTHONIOENCODING="ascii", PYTHONUTF8="0", LC_ALL="C")
    assert (ended.code, r"\xe1na" in ended.out) == (0, True)


async def test_ctrl_c_leaves_the_run_and_says_how_to_follow_it(cli: Cli, carried: Threads) -> None:
    thread = await carried.create("agent")
    process = await cli.start("threads", "run", thread.id, "hi", "--run-id", "r1")

    async def is_running() -> bool:
        return (await thread.view()).current == "r1"

    await eventually(is_running, within=60)
    process.send_signal(signal.SIGINT)
    out, err = await asyncio.wait_for(process.communicate(), 30)
    assert (process.returncode, out) == (130, b"")
    assert f"agentvisor threads watch {thread.id} r1" in err.decode()
    assert (await thread.run_view("r1")).status == "running"


async def test_a_reader_that_leaves_ends_the_command_quietly(cli: Cli, carried: Threads) -> None:
    thread = await carried.create("agent")
    process = await cli.start("threads", "show", thread.id)
    assert process.stdout is not None
    process.stdout._transport.close()  # pyright: ignore  # noqa: PGH003 - what `| head -0` does
    assert process.stderr is not None
    assert (await process.stderr.read(), await process.wait()) == (b"", 141)


async def test_a_command_exits_the_same_way_every_time(cli: Cli, threads: Threads) -> None:
    """The native part of temporalio can abort an interpreter that finalizes."""
    codes = [(await cli("threads", "list", "--json")).code for _ in range(20)]
    assert codes == [0] * 20
