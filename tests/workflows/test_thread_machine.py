from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tests.workflows.adk_events import event, exact, text
from tests.workflows.small_adk import Kind, what_adk_stores, what_pauses
from workflows.approvals import Refused
from workflows.events import strip
from workflows.messages import (
    Answered,
    Done,
    Failed,
    HandedOver,
    JsonObject,
    KeptEvents,
    LegOutcome,
    LegResult,
    Paused,
    Position,
    RunError,
    RunRequest,
    SessionRequest,
    StartThread,
    Stopped,
    ToolFailed,
    Usage,
)
from workflows.run_state import Call, CurrentRun, Ending
from workflows.thread_state import KEPT_RECORDS, ThreadState
from workflows.views import session_page

KEYS = ("a", "b", "temp:x")
deltas = st.dictionaries(st.sampled_from(KEYS), st.none() | st.booleans() | st.integers(0, 3), max_size=2)
plain_deltas = deltas.map(lambda delta: {key: value for key, value in delta.items() if key[:5] != "temp:"})
kinds: st.SearchStrategy[list[Kind]] = st.lists(
    st.sampled_from(["approval", "outside", "long_running", "input"]), min_size=1, max_size=3
)
outcomes: st.SearchStrategy[Any] = st.sampled_from(
    [Answered(), Paused(), Paused(), Paused(), Failed(code="model-error", message="no"), HandedOver()]
)
picks = st.integers(0, 9)


@dataclass(frozen=True)
class Step:
    """What happens next, whatever is due. `stored`: how many events a leg stores that does not end well."""

    outcome: LegOutcome
    stored: int
    waiting: list[Kind]
    delta: JsonObject
    pick: int


steps = st.builds(Step, outcomes, st.integers(0, 3), kinds, deltas, picks)


class ThreadMachine(RuleBasedStateMachine):
    """`run` of thread.py in small: a leg, or the calls of a turn, or the end of a run that is being ended."""

    def __init__(self) -> None:
        super().__init__()
        self.state = ThreadState.begin(StartThread(agent="helper", principal="ana", state={"start": 1}))
        self.initial: JsonObject = {"start": 1}
        self.events: list[JsonObject] = []
        self.in_store = 0
        self.answers: dict[str, str | None] = {}
        self.pending_events: list[JsonObject] = []
        self.queue: list[str] = []
        self.sent: set[str] = set()
        self.began: list[str] = []
        self.ended: list[tuple[str, str]] = []
        self.leg_runs = False
        self.closed = False
        self.effects: list[str] = []
        self.made = 0
        self.now = 1000.0

    def fresh(self, prefix: str) -> str:
        self.made += 1
        return f"{prefix}{self.made}"

    # ---- the thread goes on
    @rule(steps=st.lists(steps, min_size=1, max_size=5))
    def it_goes_on(self, steps: list[Step]) -> None:
        for step in steps:
            self.one_step(step)

    def one_step(self, step: Step) -> None:
        run = self.state.current
        if run is None:
            if not self.queue and not self.closed:
                self.a_run_is_sent(False, 0, True, {})
            self.the_next_run_begins()
        elif self.leg_runs:
            self.the_leg_ends(run, step)
        elif run.ending is not None:
            self.a_run_ends_early(run.ending)
        elif run.open_calls():
            self.something_happens_to_a_call(run, step)
        else:
            self.state.hand_answers()
            self.leg_runs = True

    # ---- runs
    @rule(repeat=st.booleans(), pick=picks, good=st.booleans() | st.just(True), delta=plain_deltas)
    def a_run_is_sent(self, repeat: bool, pick: int, good: bool, delta: JsonObject) -> None:
        run_id = sorted(self.sent)[pick % len(self.sent)] if repeat and self.sent else self.fresh("run")
        message: Any = f"words of {run_id}" if good else {"role": "model"}
        self.state.queue_run(RunRequest(message=message, state_delta=delta), run_id=run_id, at=self.now)
        if run_id in self.sent:
            return
        self.sent.add(run_id)
        if good and not self.closed:
            self.queue.append(run_id)
        else:
            self.ended.append((run_id, "error"))

    def the_next_run_begins(self) -> None:
        run = self.state.begin_next(at=self.now)
        assert (run is None) == (not self.queue)
        if run is not None:
            self.began.append(self.queue.pop(0))
            assert (run.run_id, run.number) == (self.began[-1], len(self.began))
            assert run.handed.message == {"parts": [{"text": f"words of {run.run_id}"}], "role": "user"}

    @rule(pick=picks)
    def a_run_is_cancelled(self, pick: int) -> None:
        run_id = sorted(self.sent)[pick % len(self.sent)] if self.sent else "never-sent"
        with contextlib.suppress(Refused):
            assert self.state.cancel(run_id, by="ben", at=self.now) == ("queued" if run_id in self.queue else "current")
            if run_id in self.queue:
                self.queue.remove(run_id)
                self.ended.append((run_id, "cancelled"))

    @precondition(lambda self: len(self.began) > 2)
    @rule()
    def the_thread_is_closed(self) -> None:
        self.state.close(by="ben", at=self.now)
        self.ended += [(run_id, "cancelled") for run_id in self.queue]
        self.queue, self.closed = [], True

    # ---- legs
    def the_leg_ends(self, run: CurrentRun, step: Step) -> None:
        message, outcome = run.handed.message, step.outcome
        whole = isinstance(outcome, Answered | Paused)
        if run.ending is not None and not whole:
            outcome = Stopped()
        told = what_adk_stores(run, self.events, self.fresh)[: None if whole else step.stored]
        if whole:
            told.append(event(self.fresh("e"), text("words"), actions={"stateDelta": step.delta}))
        if isinstance(outcome, Paused):
            told += what_pauses(step.waiting, self.fresh)
        result = LegResult(
            outcome=outcome, events=tuple(strip(told, run.handed, run_id=run.run_id)), usage=Usage(tokens=1)
        )
        self.state.apply_leg(LegResult.model_validate_json(result.model_dump_json()), at=self.now)
        self.leg_runs = False
        self.events += told + self.pending_events
        self.pending_events = []
        self.after_leg(run, outcome, message)

    def after_leg(self, run: CurrentRun, outcome: LegOutcome, message: Any) -> None:
        """As thread.py does."""
        if isinstance(outcome, Answered):
            self.end("success")
        elif isinstance(outcome, Failed):
            self.state.keep_message(run, message, event_id=self.fresh("k"), at=self.now)
            self.take_new_events()
            if run.ending is None:
                self.end("error", RunError(code=outcome.code, message=outcome.message))

    # ---- calls
    def something_happens_to_a_call(self, run: CurrentRun, step: Step) -> None:
        calls = run.open_calls()
        one = calls[step.pick % len(calls)]
        if one.status == "ready":
            self.make(run, one, ("make", "make", "fail", "lose")[step.pick % 4], step.delta)
        elif one.interrupt is None:
            self.decide(one, ("yes", "yes", "no", "expire")[step.pick % 4])
        elif one.kind == "tool":
            one.settle_done(Done(result=self.effect()), by="ben")
            self.state.ledger.close(one.approval_id or "")
        else:
            one.settle({"result": self.effect()}, outcome="answered", by="ben")

    def decide(self, one: Call, what: str) -> None:
        ledger, id_ = self.state.ledger, one.approval_id or ""
        if what == "yes":
            digest = one.digest(thread_id="t", run_id="r")
            ledger.approve(id_, by="ben", token=self.fresh("token"), digest=digest, at=self.now)
            one.status = "ready"
        elif what == "no":
            ledger.deny(id_, by="ben", at=self.now)
            one.settle_refused(code="approval-denied", message="no", outcome="denied")
        elif ledger.expire(id_):
            one.settle_refused(code="approval-expired", message="late", outcome="expired")

    def make(self, run: CurrentRun, one: Call, what: str, delta: JsonObject) -> None:
        if one.approval_id:
            self.state.ledger.spend(one.approval_id, digest=one.digest(thread_id="t", run_id="r"), activity_id="a")
        one.status = "running"
        if what == "lose":
            self.state.interrupt(run, one, "unknown_outcome", at=self.now)
            return
        if what == "make":
            one.settle_done(Done(result=self.effect(), state_delta=delta))
        else:
            one.settle_failed(ToolFailed(code="tool-error", message="no"))
        self.state.ledger.close(one.approval_id or "")

    def effect(self) -> str:
        self.effects.append(self.fresh("effect-") + ";")
        return self.effects[-1]

    def a_run_ends_early(self, ending: Ending) -> None:
        self.state.settle_unfinished(event_id=self.fresh("k"), at=self.now, by="ben")
        self.take_new_events()
        self.end(ending.status, ending.error)

    # ---- session
    @rule(values=plain_deltas, delete=st.lists(st.sampled_from(["a", "b", "start", "none"]), max_size=2))
    def state_is_put(self, values: JsonObject, delete: list[str]) -> None:
        self.state.put_state(values, delete, event_id=self.fresh("p"), at=self.now, leg_runs=self.leg_runs)
        gone = [key for key in delete if key not in values]
        put = {"id": f"p{self.made}", "put": (values, gone)}
        (self.pending_events if self.leg_runs else self.events).append(put)

    @precondition(lambda self: self.state.current is None and not self.queue and len(self.events) > 9)
    @rule()
    def the_session_is_cleared(self) -> None:
        self.state.clear()
        self.initial, self.events, self.effects, self.in_store = {}, [], [], 0
        self.answers = {}

    @precondition(lambda self: not self.leg_runs)
    @rule(back=st.integers(0, 3))
    def older_events_go_to_the_store(self, back: int) -> None:
        """All up to the current run, or into it where it has grown large."""
        run = self.state.current
        until = len(self.events) if run is None else max(run.first, len(self.events) - 1 - back)
        if until > self.in_store:
            end = Position(count=until, head=self.events[until - 1]["id"])
            self.state.keep_events(KeptEvents(digest=f"d{until}", end=end))
            self.in_store = until

    @precondition(lambda self: self.in_store)
    @rule(digest=st.sampled_from(["late", "other"]))
    def what_was_kept_of_another_session_counts_for_nothing(self, digest: str) -> None:
        """The thread was cleared while older events were on their way."""
        self.state.keep_events(KeptEvents(digest=digest, end=Position(count=self.in_store + 1, head="unheard of")))

    @rule()
    def the_thread_is_carried(self) -> None:
        carried = self.state.carried()
        assert carried is not None
        again = ThreadState.begin(StartThread.model_validate_json(carried.model_dump_json()))
        self.state.log.pack()
        assert again == self.state
        self.state = again

    # ---- what holds
    @invariant()
    def the_queue_is_in_the_order_of_arrival(self) -> None:
        assert [queued.run_id for queued in self.state.queue] == self.queue
        assert self.state.queued_bytes >= 0
        assert bool(self.state.queued_bytes) == bool(self.queue)

    @invariant()
    def runs_begin_once_and_end_once(self) -> None:
        assert len(set(self.began)) == len(self.began) == self.state.runs
        ended = [(record.run_id, record.status) for record in self.state.records]
        assert ended == self.ended[-KEPT_RECORDS:]

    @invariant()
    def events_and_state_follow_from_what_was_told(self) -> None:
        kept, mine = self.state.log.slice(0, self.state.log.end.count), self.events[self.in_store :]
        assert [told["id"] for told in kept] == [told["id"] for told in mine]
        told_by_legs = [(mine, theirs) for mine, theirs in zip(mine, kept, strict=True) if "put" not in mine]
        assert exact([mine for mine, _ in told_by_legs]) == exact([theirs for _, theirs in told_by_legs])
        assert exact(self.state.state) == exact(self.folded())

    @invariant()
    def a_reader_from_the_beginning_is_told_where_it_is(self) -> None:
        page = session_page(self.state, SessionRequest())
        assert (page.base.count, page.kept is not None) == (self.in_store, self.in_store > 0)
        assert page.end == page.head == self.state.log.end

    @invariant()
    def answers_stay_as_long_as_their_runs_are_remembered(self) -> None:
        for record in self.state.records:
            assert self.state.answer_of(record) == self.answers.get(record.run_id)

    @invariant()
    def approvals_are_open_only_for_open_calls(self) -> None:
        run = self.state.current
        waiting = {one.approval_id for one in run.open_calls()} if run else set[str | None]()
        assert set(self.state.ledger.open) <= waiting

    @invariant()
    def what_took_effect_is_in_the_session_or_about_to_be_handed_over(self) -> None:
        run = self.state.current
        known = json.dumps([self.events, [one.response for one in run.calls] if run else []])
        assert [effect for effect in self.effects if effect not in known] == []

    # ---- the model's rules
    def end(self, status: Any, error: RunError | None = None) -> None:
        assert self.state.current is not None
        self.ended.append((self.state.current.run_id, status))
        if status != "cancelled":
            assert f'"words of {self.state.current.run_id}"' in json.dumps(self.events)
        self.state.end_run(status, error, at=self.now)
        self.answers[self.state.records[-1].run_id] = self.state.answer_of(self.state.records[-1])

    def take_new_events(self) -> None:
        """Events that the thread itself makes; the facts about them stand elsewhere."""
        self.events += self.state.log.slice(len(self.events), self.state.log.end.count)

    def folded(self) -> JsonObject:
        state = dict(self.initial)
        for told in self.events:
            said: tuple[JsonObject, list[str]] = (told.get("actions", {}).get("stateDelta", {}), [])
            values, gone = told.get("put", said)
            state = {key: value for key, value in state.items() if key not in gone}
            state |= {key: value for key, value in values.items() if not key.startswith("temp:")}
        return state


TestThreadMachine = ThreadMachine.TestCase
TestThreadMachine.settings = settings(max_examples=60, stateful_step_count=20)
