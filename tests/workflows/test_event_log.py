from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tests.workflows.adk_events import exact, json_values
from workflows.event_log import START, EventLog
from workflows.messages import JsonObject, KeptEvents, Position

long_texts: st.SearchStrategy[Any] = st.just(14_000).map("long ".__mul__)
bodies = json_values | long_texts | st.text(max_size=3) | st.sampled_from(["\ud800", "\udfff x", "\x00", "ä" * 400])


def text_bytes(event: JsonObject) -> int:
    return len(json.dumps(event, separators=(",", ":"), ensure_ascii=False))


def escaped_bytes(event: JsonObject) -> int:
    return len(json.dumps(event, separators=(",", ":")))


class LogMachine(RuleBasedStateMachine):
    """The log and the Store beside a list."""

    def __init__(self) -> None:
        super().__init__()
        self.log = EventLog()
        self.model: list[JsonObject] = []
        self.kept = 0
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
        was_small = self.log.is_small
        self.log.pack()
        assert was_small or not self.log.recent
        assert self.log.model_dump_json()

    @rule()
    def pack_and_carry(self) -> None:
        self.log.pack()
        self.log = EventLog.model_validate_json(self.log.model_dump_json(exclude_defaults=True))

    @rule(back=st.integers(0, 5))
    def keep(self, back: int) -> None:
        until = len(self.model) - back
        if until > self.kept:
            self.log.keep(KeptEvents(digest=f"d{until}", end=self.position(until)))
            self.kept = until
            assert self.log.kept == KeptEvents(digest=f"d{until}", end=self.position(until))

    @rule(count=st.integers(1, 40))
    def keep_what_is_of_another_session(self, count: int) -> None:
        self.log.keep(KeptEvents(digest="other", end=Position(count=count, head="other")))

    @rule()
    def clear(self) -> None:
        self.log.clear()
        self.model, self.kept = [], 0

    @rule(first=st.integers(0, 20), length=st.integers(0, 20))
    def slice(self, first: int, length: int) -> None:
        there = self.model[max(first, self.kept) : max(first + length, self.kept)]
        assert exact(self.log.slice(first, first + length)) == exact(there)

    @rule(max_bytes=st.sampled_from([0, 60, 500, 10**6]))
    def tail(self, max_bytes: int) -> None:
        first = self.log.tail(max_bytes)
        here = len(self.model) - self.kept
        assert self.kept <= first <= len(self.model) - min(1, here)
        assert len(self.model) - first == min(1, here) or sum(map(text_bytes, self.model[first:])) <= max_bytes

    @rule(count=st.integers(0, 20), max_bytes=st.sampled_from([1, 60, 500, 10**6]))
    def page_from_a_known_position(self, count: int, max_bytes: int) -> None:
        count = max(self.kept, min(count, len(self.model)))
        assert exact(self.read(self.position(count), max_bytes)) == exact(self.model[count:])

    @precondition(lambda self: self.model)
    @rule(count=st.integers(0, 40), head=st.sampled_from(["", "e0", "e1"]), max_bytes=st.sampled_from([1, 10**6]))
    def page_from_an_unknown_position(self, count: int, head: str, max_bytes: int) -> None:
        known = self.kept <= count <= len(self.model) and self.position(count).head == head
        if not known:
            base, events = self.log.page(Position(count=count, head=head), max_bytes)
            assert base == self.log.start == self.position(self.kept)
            assert exact(events) == exact(self.model[self.kept : self.kept + len(events)])

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
            assert len(events) == 1 or sum(map(escaped_bytes, events)) <= max_bytes
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
    log.append([told, {"id": "2", "text": "long " * 14_000}])
    log.pack()
    assert not log.recent
    assert EventLog.model_validate_json(log.model_dump_json()).slice(0, 1) == [told]


def test_a_page_holds_at_most_so_many_bytes_but_one_event() -> None:
    log = EventLog()
    log.append({"id": str(n), "text": "x" * 1000} for n in range(10))
    assert len(log.page(START, 3500)[1]) == 3
    assert len(log.page(START, 10)[1]) == 1


def test_the_same_event_repeated_costs_little_when_packed() -> None:
    log = EventLog()
    log.append({"id": str(n), "text": "the same words again and again " * 10} for n in range(300))
    log.pack()
    assert 0 < sum(map(len, log.packed)) < 4000


def test_a_position_behind_a_rewritten_log_is_unknown() -> None:
    log = EventLog()
    log.append([{"id": "a"}, {"id": "b"}])
    old = log.end
    log.clear()
    log.append([{"id": "c"}, {"id": "d"}])
    assert log.page(old, 1000) == (START, [{"id": "c"}, {"id": "d"}])
