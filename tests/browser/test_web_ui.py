"""A person answers a paused thread in Temporal's Web UI.

UPDATE_IMAGES=1 writes the pictures that the documents show, into docs/images.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver import Chrome
from temporalio.api.enums.v1 import EventType
from temporalio.client import Client

from agentvisor.host.dev_server import TemporalServer
from client import Thread, Threads
from tests.browser.workflow_page import WorkflowPage
from workflows.messages import Interrupt

_IMAGES = Path(__file__).parents[2] / "docs" / "images"
_PICTURES = ("web-ui-timeline", "web-ui-details", "web-ui-decide", "web-ui-finished")
_CHART, _FRAMES = "#content .canvas", "#content iframe"
_SUMMARY = "Invoice for order A-1001 over EUR 149.00"

pytestmark = pytest.mark.timeout(300)


class PausedThread:
    """A thread that waits for the approval of an invoice, and its page."""

    def __init__(self, page: WorkflowPage, thread: Thread, run_id: str, approval: Interrupt) -> None:
        self.page = page
        self.thread = thread
        self.run_id = run_id
        self.approval = approval


MakePaused = Callable[[str], Any]


@pytest.fixture
def paused(browser: Chrome, shop: Threads, temporal_server: TemporalServer) -> MakePaused:
    """Make a paused thread with this id and open its page."""

    async def make(thread_id: str) -> PausedThread:
        thread = await shop.create("shop-helper", principal="ana", thread_id=thread_id)
        run_id = await thread.run("Send the invoice for order A-1001.")
        waiting = await thread.wait(run_id, timeout=60)
        assert [interrupt.tool for interrupt in waiting.interrupts] == ["send_invoice"], waiting
        assert temporal_server.ui_url
        page = WorkflowPage(browser, temporal_server.ui_url, f"thread-{thread_id}")
        await asyncio.to_thread(page.open)
        return PausedThread(page, thread, run_id, waiting.interrupts[0])

    return make


async def test_a_decision_sent_from_the_form_finishes_the_run(paused: MakePaused, client: Client) -> None:
    """What waits stands on the timeline, how to answer under User Metadata; copied from there, it is the answer."""
    shown: PausedThread = await paused("invoice-1001")
    await asyncio.to_thread(_read_and_approve, shown.page, shown.approval)
    run = await shown.thread.wait(shown.run_id, until="ended", timeout=60)
    assert run.status == "success", run
    assert run.answer == "Invoice INV-A-1001 over EUR 149.00 went to ana@example.com."
    assert (await shown.thread.state())["invoices"] == ["INV-A-1001"]
    assert await _activities(client, shown.thread) == ["run_agent", "run_tool", "run_agent"]
    await asyncio.to_thread(_see_the_end, shown.page)


def _read_and_approve(page: WorkflowPage, approval: Interrupt) -> None:
    page.wait_for_bar("approval of send_invoice (ap-1-1)")
    _picture(page, "web-ui-timeline", _CHART)
    summary, details, current = page.metadata()
    _picture(page, "web-ui-details", _FRAMES)
    assert summary == "shop-helper for ana"
    assert "current details" in details
    assert approval.deadline
    since, until = _minute(approval.since), _minute(approval.deadline)
    assert datetime.fromisoformat(approval.deadline) - datetime.fromisoformat(approval.since) == timedelta(days=7)
    for text in ("Waits for a decision: send_invoice (ap-1-1)", _SUMMARY, f"Since {since}", f"until {until}"):
        assert text in current
    assert all(f'"{name}": "{value}"' in current for name, value in approval.arguments.items()), current
    assert json.loads(page.copy_json('"approved": true}')) == {"approval_id": "ap-1-1", "approved": True}
    assert "Settle an approval" in page.open_form("decide")
    page.paste()
    if _updating():
        page.picture_of_form(_IMAGES / "web-ui-decide.png")
    page.submit()
    page.wait_until_sent()


def _see_the_end(page: WorkflowPage) -> None:
    page.open()
    page.wait_for_bar(f"send_invoice: {_SUMMARY}")
    page.wait_for_bar("decide")
    _picture(page, "web-ui-finished", _CHART)
    assert page.metadata()[2] == "No Current Details"


async def test_a_wrong_decision_is_refused_in_words_and_the_approval_still_waits(paused: MakePaused) -> None:
    shown: PausedThread = await paused("invoice-1002")
    await asyncio.to_thread(_decide_wrongly, shown.page)
    assert await shown.thread.interrupts() == (shown.approval,)
    await shown.thread.cancel_run(shown.run_id, by="test")


def _decide_wrongly(page: WorkflowPage) -> None:
    page.wait_for_bar("approval of send_invoice (ap-1-1)")
    page.open_form("decide")
    page.write('{"approval_id": "ap-1-1", "approved": "yes"}')
    page.submit()
    page.wait_for_refusal('approved: Input should be a valid boolean. Example: {"approval_id": "ap-1-1"')
    page.write('{"approval_id": "ap-9-9", "approved": true}')
    page.submit()
    said = page.wait_for_refusal("Nothing waits as 'ap-9-9'. The query `interrupts` lists what does.")
    assert "File" not in said


@pytest.mark.parametrize("name", _PICTURES)
def test_the_pictures_of_the_documents_are_there_and_small(name: str) -> None:
    """They are made by the tests above, with UPDATE_IMAGES=1."""
    picture = (_IMAGES / f"{name}.png").read_bytes()
    assert picture.startswith(b"\x89PNG")
    assert len(picture) < 150_000


def _updating() -> bool:
    return os.environ.get("UPDATE_IMAGES") == "1"


def _picture(page: WorkflowPage, name: str, down_to: str) -> None:
    if _updating():
        page.picture(_IMAGES / f"{name}.png", down_to=down_to)


def _minute(iso: str) -> str:
    return iso[:16].replace("T", " ")


async def _activities(client: Client, thread: Thread) -> list[str]:
    """The activities that the thread scheduled, in order."""
    history = await client.get_workflow_handle(f"thread-{thread.id}").fetch_history()
    scheduled = EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED
    return [
        event.activity_task_scheduled_event_attributes.activity_type.name
        for event in history.events
        if event.event_type == scheduled
    ]
