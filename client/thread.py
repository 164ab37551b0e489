"""One thread: say something to it, follow a run, answer what it waits for."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from contextlib import aclosing
from typing import Any, Literal, Protocol

from client.checks import built, checked_run, checked_state, payload
from client.errors import Refused, RunNotFound, ThreadClosed
from client.execution import Execution
from client.rpc import PATIENCE
from client.tail import Bookmark
from workflows.messages import (
    Answer,
    AppendEvents,
    ApprovalView,
    CancelRun,
    Decide,
    Interrupt,
    Json,
    JsonObject,
    Position,
    PutState,
    Receipt,
    Revision,
    RunView,
    SessionPage,
    SessionRequest,
    ThreadView,
)

Until = Literal["paused", "ended"]


class Stored(Protocol):
    """What the Store holds of sessions; `agentvisor.host.stored_events.StoredEvents` is one."""

    async def older(self, thread_id: str, digest: str) -> list[JsonObject]:
        """All events up to the end of this segment."""
        ...

    async def whole(self, thread_id: str, events: Sequence[JsonObject]) -> list[JsonObject]:
        """The events with the values that were cut out of them."""
        ...


ENDED = frozenset({"success", "error", "cancelled", "timeout"})
_AGAIN = 0.05


class Thread:
    """A handle: making one asks nothing of the server. Any number may speak to one thread.

    Every method raises ThreadsError (see client.errors): thread-not-found, thread-closed, temporal-unavailable, and
    no-worker within 5 s where a worker must answer.
    """

    def __init__(self, execution: Execution, *, stored: Stored | None = None) -> None:
        self.id = execution.thread_id
        self._stored = stored
        self._execution = execution
        self._bookmark = Bookmark()

    # ---- runs

    async def run(
        self, message: Json, *, run_id: str | None = None, state_delta: Mapping[str, Any] | None = None
    ) -> str:
        """Queue a run and return its id at once; it waits its turn, with or without a worker.

        `message`: text, or ADK Content as JSON (role user; text and data parts). A run id the thread knows already is
        ignored by it, so a repeated call with the same id queues one run. Raises TooLarge above 1 MiB, Refused
        (message-refused, state-refused) for what no run could take.
        """
        request = checked_run(message, run_id=run_id or str(uuid.uuid4()), state_delta=state_delta or {})
        await self._execution.signal("run", request)
        return str(request.run_id)

    async def run_view(self, run_id: str) -> RunView:
        """The run as it now is. RunNotFound for a run the thread does not know, or has forgotten."""
        give_up = time.monotonic() + PATIENCE
        while (view := await self._known_run(run_id)) is None:
            if await self._is_at_rest() or time.monotonic() > give_up:
                break
            await asyncio.sleep(_AGAIN)
        view = view or await self._known_run(run_id)
        if view is None:
            raise RunNotFound(self.id, run_id)
        return view

    async def wait(self, run_id: str, *, until: Until = "paused", timeout: float | None = None) -> RunView:
        """The run once it has ended or, with "paused", waits for an answer from outside.

        After `timeout` seconds: the run as it then is; its status says so, and it goes on. The thread pays nothing for
        a waiting client.
        """
        if timeout is not None and timeout < 0:
            msg = f"timeout is a number of seconds, 0 or more, not {timeout!r}"
            raise ValueError(msg)
        view = await self.run_view(run_id)
        try:
            async with asyncio.timeout(timeout), aclosing(self._views(run_id, view)) as views:
                async for view in views:
                    if view.status in ENDED or (until == "paused" and view.status == "waiting"):
                        break
        except TimeoutError:
            pass
        return view

    async def watch(self, run_id: str) -> AsyncGenerator[RunView]:
        """Every change of the run that can be seen, the present state first; ends with the run."""
        last = None
        async with aclosing(self._views(run_id, await self.run_view(run_id))) as views:
            async for view in views:
                if view != last:
                    yield view
                last = view

    async def cancel_run(self, run_id: str, *, by: str) -> RunView:
        """Cancel a queued, running or waiting run and return it as it then is; what it has in flight ends truthfully.

        Its open approvals are withdrawn. Raises Refused where it has ended already, RunNotFound.
        """
        request = built(CancelRun, run_id=run_id, by=by)
        try:
            return RunView.model_validate(await self._execution.update("cancel_run", request))
        except Refused as refused:
            if refused.kind != "run-unknown":
                raise
            raise RunNotFound(self.id, run_id) from None

    # ---- what it waits for

    async def interrupts(self) -> tuple[Interrupt, ...]:
        """What the thread waits for from outside, oldest first."""
        return await self._execution.interrupts()

    async def approval(self, approval_id: str) -> ApprovalView:
        """How an approval stands. Refused where the thread does not know it, or has forgotten it: it keeps 200."""
        return await self._execution.query("approval", {"approval_id": approval_id}, ApprovalView)

    async def decide(
        self,
        approval_id: str,
        approved: bool,
        *,
        by: str,
        edited_args: Mapping[str, Any] | None = None,
        reason: str | None = None,
    ) -> Receipt:
        """Settle an approval. `edited_args` replace the call's arguments as a whole.

        Raises Refused: approval-unknown, already-decided, being-decided, approval-expired, approval-withdrawn,
        tool-args-invalid, …; the approval then is as it was.
        """
        edited = None if edited_args is None else dict(edited_args)
        request = built(Decide, approval_id=approval_id, approved=approved, edited_args=edited, reason=reason, by=by)
        return Receipt.model_validate(await self._execution.update("decide", request))

    async def answer(self, answer: Answer, *, by: str) -> Receipt:
        """Answer an interrupt that is no approval: InputAnswer, LongRunningAnswer, UnknownOutcomeDone, ….

        `by` goes before the answer's own. Raises Refused with the thread's kind.
        """
        outcome = await self._execution.update("answer", answer.model_copy(update={"by": by}))
        return Receipt.model_validate(outcome)

    # ---- state and events

    async def put_state(
        self, values: Mapping[str, Any], *, delete: Collection[str] = (), if_revision: int | None = None
    ) -> Revision:
        """Set and delete keys of the session state. With `if_revision` only if the thread is still there."""
        checked_state(values)
        request = built(PutState, values=dict(values), delete=tuple(delete), if_revision=if_revision)
        return Revision.model_validate(await self._execution.update("put_state", request))

    async def append_events(self, events: Collection[JsonObject], *, if_revision: int) -> Revision:
        """Append ADK events to the session; refused while a run is active."""
        request = built(AppendEvents, events=tuple(events), if_revision=if_revision)
        return Revision.model_validate(await self._execution.update("append_events", request))

    async def state(self) -> JsonObject:
        """The session state as it now is."""
        return (await self._execution.query("session", {"state_only": True}, SessionPage)).state

    async def session(self, since: Position | None = None) -> AsyncGenerator[SessionPage]:
        """The events of the session after `since`, in pages of about 512 KiB; one page at least.

        Of a long thread, the older events are in the Store, and so are large values of events (see workflows.cuts):
        `Threads(…, stored=…)` gives them here, as a page of their own; otherwise `kept` of the first page says so.
        """
        position = since or Position()
        while True:
            request = payload(SessionRequest(since=position))
            page = await self._execution.query("session", request, SessionPage)
            async for one in self._whole(page):
                yield one
            if page.end == page.head:
                return
            position = page.end

    async def _whole(self, page: SessionPage) -> AsyncGenerator[SessionPage]:
        if self._stored is None:
            yield page
            return
        if page.kept is not None:
            older = await self._stored.older(self.id, page.kept.digest)
            events = tuple(await self._stored.whole(self.id, older))
            yield SessionPage(base=Position(), end=page.kept.end, head=page.head, events=events, state=page.state)
        events = tuple(await self._stored.whole(self.id, page.events))
        yield page.model_copy(update={"events": events, "kept": None})

    async def clear(self) -> Revision:
        """Delete the events and the state of the session; the thread lives."""
        return Revision.model_validate(await self._execution.update("clear"))

    # ---- the thread itself

    async def view(self) -> ThreadView:
        """The thread as it now is, with its last runs."""
        return await self._execution.query("thread", None, ThreadView)

    async def renew(self) -> None:
        """Continue as new as soon as nothing runs."""
        await self._execution.signal("renew")

    async def close(self, *, by: str) -> ThreadView:
        """End the thread: queued runs end cancelled, approvals are withdrawn. It can still be read."""
        return ThreadView.model_validate(await self._execution.update("close", {"by": by}))

    # ---- following a run

    async def _views(self, run_id: str, view: RunView) -> AsyncGenerator[RunView]:
        """The run now and after everything that may have changed it, until it has ended."""
        tail = self._execution.tail(self._bookmark)
        yield view
        while view.status not in ENDED:
            page = await tail.next()
            self._bookmark = tail.bookmark
            if page.changed or page.quiet:
                view = await self.run_view(run_id)
                yield view
            if page.closed and view.status not in ENDED:
                await self._reopened()
                tail = self._execution.tail(Bookmark())

    async def _known_run(self, run_id: str) -> RunView | None:
        try:
            return await self._execution.query("run", {"run_id": run_id}, RunView)
        except Refused:
            await self.view()  # raises where it is the thread that cannot answer, and not the run that is unknown
        return None

    async def _is_at_rest(self) -> bool:
        """No workflow task is due: what was sent before is seen by a query sent now."""
        description = await self._execution.describe()
        return not description.raw_description.HasField("pending_workflow_task")

    async def _reopened(self) -> None:
        """A reset ends one execution and starts another: go on with that. ThreadClosed where there is none."""
        description = await self._execution.describe()
        if description.close_time is not None:
            raise ThreadClosed(self.id)
