from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tests.workflows.adk_events import exact, json_values
from workflows.event_log import START, EventLog
from workflows.messages import JsonObject, Position


def text_bytes(event: JsonObject) -> int:
    return len(json.dumps(event, separators=(",", ":")))


bodies = json_values | st.text(max_size=3) | st.sampled_from(["\ud800", "\udfff x", "\x00", "ä" * 400])


class LogMachine(RuleBasedStateMachine):
    """The log beside a list."""

    def __init__(self) -> None:
        super().__init__()
        self.log = EventLog()
        self.model: list[JsonObject] = []
        self.made = 0

    @rule(contents=st.lists(bodies, max_size=4))
    def append(self, contents: list[Any]) -> None:
        events: list[JsonObject] = []
        for body in contents:
            self.made += 1
            events.append({"id": f"e{self.made}", "content": body})
        self.log.append(events)
        self.model += events

    @rule()
    def pack(self) -> None:
        self.log.pack()
        assert self.log.recent == []

    @rule()
    def pack_and_carry(self) -> None:
        self.log.pack()
        self.log = EventLog.model_validate_json(self.log.model_dump_json(exclude_defaults=True))

    @rule()
    def clear(self) -> None:
        self.log.clear()
        self.model = []

    @rule(first=st.integers(0, 20), length=st.integers(0, 20))
    def slice(self, first: int, length: int) -> None:
        assert exact(self.log.slice(first, first + length)) == exact(self.model[first : first + length])

    @rule(count=st.integers(0, 20), max_bytes=st.sampled_from([1, 60, 500, 10**6]))
    def page_from_a_known_position(self, count: int, max_bytes: int) -> None:
        count = min(count, len(self.model))
        assert exact(self.read(self.position(count), max_bytes)) == exact(self.model[count:])

    @precondition(lambda self: self.model)
    @rule(count=st.integers(1, 40), head=st.sampled_from(["", "e0", "e1"]), max_bytes=st.sampled_from([1, 10**6]))
    def page_from_an_unknown_position(self, count: int, head: str, max_bytes: int) -> None:
        if count <= len(self.model) and self.model[count - 1]["id"] == head:
            return
        base, events = self.log.page(Position(count=count, head=head), max_bytes)
        assert base == START
        assert exact(events) == exact(self.model[: len(events)])

    @invariant()
    def ends_where_the_list_ends(self) -> None:
        assert self.log.end == self.position(len(self.model))

    def position(self, count: int) -> Position:
        return Position(count=count, head=self.model[count - 1]["id"]) if count else START

    def read(self, since: Position, max_bytes: int) -> list[JsonObject]:
        """Page by page to the end, as a guest does."""
        found: list[JsonObject] = []
        while since != self.log.end:
            base, events = self.log.page(since, max_bytes)
            assert base == since
            assert events
            assert len(events) == 1 or sum(map(text_bytes, events)) <= max_bytes
            found += events
            since = Position(count=since.count + len(events), head=events[-1]["id"])
        assert self.log.page(since, max_bytes) == (since, [])
        return found


TestLogMachine = LogMachine.TestCase
TestLogMachine.settings = settings(max_examples=60, stateful_step_count=20)


@given(st.text(st.characters(), max_size=20))
def test_any_text_survives_packing(words: str) -> None:
    log = EventLog()
    told = {"id": "1", "content": {"parts": [{"text": words}]}}
    log.append([told])
    log.pack()
    assert EventLog.model_validate_json(log.model_dump_json()).slice(0, 1) == [told]


def test_a_page_holds_at_most_so_many_bytes_but_one_event() -> None:
    log = EventLog()
    log.append({"id": str(n), "text": "x" * 1000} for n in range(10))
    assert len(log.page(START, 3500)[1]) == 3
    assert len(log.page(START, 10)[1]) == 1


def test_the_same_event_repeated_costs_little_when_packed() -> None:
    log = EventLog()
    log.append({"id": str(n), "text": "the same words again and again " * 10} for n in range(100))
    log.pack()
    assert sum(map(len, log.packed)) < 2000


def test_a_position_behind_a_rewritten_log_is_unknown() -> None:
    log = EventLog()
    log.append([{"id": "a"}, {"id": "b"}])
    old = log.end
    log.clear()
    log.append([{"id": "c"}, {"id": "d"}])
    assert log.page(old, 1000) == (START, [{"id": "c"}, {"id": "d"}])
