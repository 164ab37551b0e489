"""OpenTelemetry is told of model calls by a guest whose agent listens; for nobody nothing is made."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agentvisor.local_gemini import LocalGemini
from tests.adk.harness import FakeThread, Guests, parts_of
from tests.fixtures.gemini import call

AGENT = """
from google.adk.agents import LlmAgent
from google.adk.telemetry import tracing
from opentelemetry import _logs, metrics, trace
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

heard, records, record = InMemorySpanExporter(), [], tracing.LogRecord

def counted(**fields):
    records.append(fields["event_name"])
    return record(**fields)

def listen():
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(heard))
    trace.set_tracer_provider(provider)

tracing.LogRecord = counted

def told() -> dict:
    "What OpenTelemetry was told so far."
    return {"spans": [span.name for span in heard.get_finished_spans()], "records": list(records)}

def begin() -> str:
    "Listen from now on."
    listen()
    return "listens"

LISTEN
root_agent = LlmAgent(name="helper", model="gemini-2.5-flash", tools=[told, begin])
"""
SPAN, RECORD = "generate_content gemini-2.5-flash", "gen_ai.user.message"


async def what_was_told(zoo: Guests, model: LocalGemini, folder: Path, listen: str, *calls: str) -> dict[str, Any]:
    """By the time that the last of these calls is made, each in a turn of the model of its own."""
    (folder / "agent.py").write_text(AGENT.replace("LISTEN", listen))
    text = f"{folder.name}!"
    model.script([*(call(name) for name in calls), "Done."], user=text)
    talk = FakeThread("helper", thread_id=f"thread-{folder.name}")
    async with zoo.fresh(folder) as guest:
        assert (await guest.ready()).error is None
        end = await talk.say(guest, text)
    assert end.outcome.kind == "answered"
    responses = [
        part["functionResponse"] for event in talk.events for part in parts_of(event) if "functionResponse" in part
    ]
    return responses[-1]["response"]


async def test_for_nobody_nothing_is_made(zoo: Guests, model: LocalGemini, tmp_path: Path) -> None:
    assert await what_was_told(zoo, model, tmp_path, "", "told") == {"spans": [], "records": []}


@pytest.mark.parametrize(
    "listen",
    ["listen()", "_logs.set_logger_provider(LoggerProvider())", "metrics.set_meter_provider(MeterProvider())"],
)
async def test_who_listens_is_told(zoo: Guests, model: LocalGemini, tmp_path: Path, listen: str) -> None:
    told = await what_was_told(zoo, model, tmp_path, listen, "told")
    assert RECORD in told["records"]
    assert (SPAN in told["spans"]) == (listen == "listen()")


async def test_who_begins_to_listen_is_told_from_then_on(zoo: Guests, model: LocalGemini, tmp_path: Path) -> None:
    told = await what_was_told(zoo, model, tmp_path, "", "begin", "told")
    assert [span for span in told["spans"] if span == SPAN] == [SPAN]
