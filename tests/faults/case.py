"""One run of one thread that a fault strikes, from its message to its end, and what must be true of it then."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from temporalio.api.enums.v1 import EventType, WorkflowTaskFailedCause
from temporalio.api.history.v1 import HistoryEvent, WorkflowTaskFailedEventAttributes
from temporalio.client import Client, WorkflowExecutionDescription

from agentvisor.local_gemini import Call, LocalGemini
from agentvisor.local_gemini.history import parts_of
from client import Thread, Threads
from client.errors import OperatorError, Refused
from tests.fixtures.effects import Effects
from workflows.messages import Interrupt, Options, Receipt, RunView, UnknownOutcomeDone

END, NEXT = "That is all.", "At your service."
ONCE, KEYED, READS = ("note", "pay"), ("book", "reserve"), ("look",)
OPTIONS = Options(heartbeat_timeout=6)


class World:
    """What all cases share: Temporal, a worker's task queue, the model and the counter."""

    def __init__(self, client: Client, task_queue: str, model: LocalGemini, counter: Effects) -> None:
        self.client = client
        self.threads = Threads(client, task_queue=task_queue)
        self.model = model
        self.counter = counter


class Case:
    """A run whose turn makes `parallel` calls of one tool, each with a slot of its own; without a tool it talks."""

    def __init__(self, world: World, tool: str = "", parallel: int = 1) -> None:
        self.world, self.tool, self.parallel = world, tool, parallel
        self.mark = f"k{uuid.uuid4().hex[:10]}"
        self.slots = range(1, parallel + 1)
        self.waiting: dict[int, Interrupt] = {}
        """What the calls waited for when the run paused, by slot."""
        self.queued: list[str] = []
        """Runs behind this one."""
        self.unknown: dict[int, int] = {}
        """The calls that were shown as unknown: slot, and effects counted then."""
        self.decisions: dict[int, asyncio.Task[Receipt]] = {}
        """Decisions on their way, by slot."""
        self.accepted: set[int] = set()
        """The calls of those decisions that were accepted, by slot."""
        self._edited: set[int] = set()
        self._held: set[str] = set()

    # ---- the run ---------------------------------------------------------------------------------------------------

    async def begin(self, *, last: Any = END, options: Options = OPTIONS, **more: Any) -> None:
        """Start a thread and say something: the model makes the calls, and then says `last`."""
        calls = [Call(name=self.tool, args={"mark": self.mark, "slot": slot, **more}) for slot in self.slots]
        self.world.model.script([*([{"calls": calls}] if self.tool else []), last], user=f"{self.mark} go")
        self.world.model.script([NEXT], user=f"{self.mark} next")
        self.thread: Thread = await self.world.threads.create("cashier", principal="ana", options=options)
        self.run_id = await self.say("go")

    async def say(self, words: str) -> str:
        """Queue a run."""
        return await self.thread.run(f"{self.mark} {words}")

    async def paused(self) -> None:
        """Wait until all calls of the turn wait for a person."""
        await self.happened(EventType.EVENT_TYPE_ACTIVITY_TASK_COMPLETED)
        await self.happened(EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED, count=2)
        waiting = await self.thread.interrupts()
        assert len(waiting) == self.parallel
        self.waiting = {interrupt.arguments["slot"]: interrupt for interrupt in waiting}

    async def approve(self, *slots: int) -> None:
        """Approve the calls in these slots, or all."""
        for slot in slots or self.slots:
            await self.thread.decide(self.waiting[slot].id, True, by="ben")

    def decide(self, *, amount: int | None = None) -> None:
        """Send the approval of every call, with an edit where an amount is given. `to_its_end` waits for its end."""
        for slot, interrupt in self.waiting.items():
            edited = None if amount is None else {"mark": self.mark, "slot": slot, "amount": amount}
            decision = self.thread.decide(interrupt.id, True, by="edith", edited_args=edited)
            self.decisions[slot] = asyncio.create_task(decision)
            if edited:
                self._edited.add(slot)

    async def to_its_end(self) -> RunView:
        """Decide what waits and answer what nobody knows, until the run has ended."""
        async with asyncio.timeout(60):
            await self._decided()
            while (view := await self._seen()).status == "waiting":
                for interrupt in view.interrupts:
                    with suppress(Refused, OperatorError):  # decided meanwhile, or about to be
                        await self._settle(interrupt)
                await asyncio.sleep(0.3)
        self.view = view
        self.heard = self.requests()
        return view

    async def _decided(self) -> None:
        for slot, task in self.decisions.items():
            with suppress(Refused, OperatorError):
                assert (await task).by == "edith"
                self.accepted.add(slot)

    async def _seen(self) -> RunView:
        while True:
            with suppress(OperatorError):  # a worker that was killed holds its threads for seconds
                return await self.thread.wait(self.run_id)

    async def _settle(self, interrupt: Interrupt) -> None:
        slot = interrupt.arguments["slot"]
        if interrupt.kind == "approval":
            await self.thread.decide(interrupt.id, True, by="ben")
        else:
            assert interrupt.kind == "unknown_outcome"
            assert interrupt.detail
            self.unknown[slot] = await self.effects(slot)
            result = {"slot": slot, "found": True}
            await self.thread.answer(UnknownOutcomeDone(interrupt_id=interrupt.id, result=result), by="cleo")

    # ---- holding it ------------------------------------------------------------------------------------------------

    def name(self, slot: int, at: str = "") -> str:
        """What a call of the turn reports."""
        return f"{self.mark}.guard.{slot}" if at == "guard" else f"{self.mark}.{self.tool}.{slot}{at and '.'}{at}"

    async def hold(self, *slots: int, at: str = "") -> None:
        """Calls in these slots, or all, stand still where they report this, from now on."""
        for slot in slots or self.slots:
            self._held.add(self.name(slot, at))
            await self.world.counter.hold(self.name(slot, at))

    async def hold_guards(self) -> int:
        """Calls stand still at their guard from now on; how often each has passed it."""
        passed = await self.world.counter.count(self.name(1, "guard"))
        await self.hold(at="guard")
        return passed

    async def reported(self, *slots: int, at: str = "", count: int = 1) -> None:
        """Wait for reports."""
        for slot in slots or self.slots:
            await self.world.counter.wait(self.name(slot, at), count=count, timeout=60)

    async def pid(self) -> int:
        """Of the guest in which the first call was entered."""
        return int((await self.world.counter.all(self.name(1, "entered")))[0]["pid"])

    async def release(self) -> None:
        """Let go all that is held of this run."""
        self.world.model.release(self.mark)
        for name in self._held:
            await self.world.counter.release(name)

    async def model_held(self) -> None:
        """Wait until the model holds its answer."""
        await self.world.model.held(self.mark, timeout=60)

    # ---- looking at it ---------------------------------------------------------------------------------------------

    async def effects(self, slot: int) -> int:
        """How often the call in this slot took effect."""
        return await self.world.counter.count(self.name(slot))

    async def described(self, holds: Callable[[WorkflowExecutionDescription], object]) -> None:
        """Wait until it holds of the workflow."""
        handle = self.world.client.get_workflow_handle(f"thread-{self.thread.id}")
        async with asyncio.timeout(60):
            while not holds(await handle.describe()):  # noqa: ASYNC110 - Temporal tells of these by no event
                await asyncio.sleep(0.1)

    async def happened(self, event: EventType.ValueType, *, count: int = 1) -> None:
        """Wait for so many events of this type in the present execution."""
        handle = self.world.client.get_workflow_handle(f"thread-{self.thread.id}")
        async with asyncio.timeout(60):
            async for each in handle.fetch_history_events(wait_new_event=True):
                count -= each.event_type == event
                if not count:
                    return

    def requests(self) -> list[Any]:
        """The requests of this thread that reached the model."""
        return [seen for seen in self.world.model.requests() if any(self.mark in text for text in seen.user_texts)]

    # ---- what must be true -----------------------------------------------------------------------------------------

    async def check(self, *, faults: int = 1, fast: bool = False) -> None:
        """The promise, after the run and so many faults that hit it.

        `fast`: its model turns follow each other faster than heartbeats tell of them, so more than one may come again.
        """
        assert (self.view.status, self.view.answer) == ("success", END), self.view
        assert [call.status for call in self.view.calls] == ["done"] * len(self.view.calls)
        repeated = Counter(json.dumps(seen.contents, sort_keys=True) for seen in self.heard)
        assert max(repeated.values()) <= 1 + faults
        assert fast or sum(count - 1 for count in repeated.values()) <= faults, "more than one model turn was repeated"
        assert not [part for part in self._responses() if "error" in part["response"]]
        for slot in self.slots if self.tool else ():
            await self._check_effects(slot, faults=faults)

    async def _check_effects(self, slot: int, *, faults: int) -> None:
        effects = await self.world.counter.all(self.name(slot))
        if self.tool in ONCE:
            assert len(effects) <= 1
            assert slot in self.unknown or len(effects) == 1
            assert self.unknown.get(slot, len(effects)) == len(effects), "an effect came after its outcome"
        else:
            assert 1 <= len(effects) <= 1 + faults
            assert slot not in self.unknown
        if self.tool in KEYED:
            assert len({effect["key"] for effect in effects}) == 1
            assert effects[0]["key"]
        if self.tool == "pay" and effects:
            assert effects[0]["amount"] == (7 if slot in self.accepted & self._edited else 5)

    def _responses(self) -> list[dict[str, Any]]:
        """What the model was told of the calls, at last."""
        parts = [part for content in self.heard[-1].contents for part in parts_of(content)]
        return [part["functionResponse"] for part in parts if "functionResponse" in part]

    async def goes_on(self) -> None:
        """The thread takes the next run; no workflow task of it failed by itself."""
        view = await self.thread.wait(await self.thread.run(f"{self.mark} next"), until="ended", timeout=60)
        assert (view.status, view.answer) == ("success", NEXT)
        history = await self.world.client.get_workflow_handle(f"thread-{self.thread.id}").fetch_history()
        failures = [each.workflow_task_failed_event_attributes for each in history.events if _failed(each)]
        failures = [failure for failure in failures if not _says_nothing_of_the_thread(failure)]
        assert not failures, failures


def _failed(event: HistoryEvent) -> bool:
    return event.HasField("workflow_task_failed_event_attributes")


_OF_OTHERS = {
    WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_RESET_WORKFLOW,
    # Rare, under load: the server takes the refusal of an update for the second one, and has the task done again.
    WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_BAD_UPDATE_WORKFLOW_EXECUTION_MESSAGE,
}


def _says_nothing_of_the_thread(failure: WorkflowTaskFailedEventAttributes) -> bool:
    """Tasks that others failed; and a worker that a test let stand still takes itself for deadlocked."""
    return failure.cause in _OF_OTHERS or "[TMPRL1101]" in failure.failure.message
