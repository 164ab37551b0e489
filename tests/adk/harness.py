"""A host in miniature: real guest processes, and a thread that remembers what they tell."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel

from agent_adapter.approval.pause import PAYLOAD_KEY, PausedCall
from agentvisor.channel import Channel
from agentvisor.host.fork_server import ForkedChild, ForkServer
from agentvisor.protocol import (
    Base,
    BranchAnswer,
    CallEnd,
    Frame,
    Hello,
    JsonObject,
    LegEnd,
    LegInput,
    LegLimits,
    RunCall,
    RunLeg,
    SessionGiven,
    SessionWanted,
    YieldLeg,
)

Answer = TypeVar("Answer", bound=BaseModel)
DEADLINE = 60.0


class GuestProcess:
    """A guest and the host's end of its channel."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.forked: ForkedChild | None = None
        self.alive = 0
        self.hello: asyncio.Future[Hello] = asyncio.get_running_loop().create_future()
        self.channel: Channel

    @classmethod
    async def over(cls, sock: socket.socket, pid: int) -> GuestProcess:
        guest = cls(pid)
        guest.channel = await Channel.over(sock, on_note=guest._noted)
        return guest

    @classmethod
    async def start(cls, project: Path, environment: Mapping[str, str] | None = None) -> GuestProcess:
        """Start one as a host does."""
        ours, theirs = socket.socketpair()
        command = [sys.executable, "-P", "-m", "agentvisor.adk.runner"]
        arguments = ["--fd", str(theirs.fileno()), "--project", str(project)]
        process = await asyncio.create_subprocess_exec(
            *command, *arguments, pass_fds=[theirs.fileno()], env={**inherited(), **(environment or {})}
        )
        theirs.close()
        return await cls.over(ours, process.pid)

    @classmethod
    async def fork(cls, server: ForkServer, project: Path, environment: Mapping[str, str]) -> GuestProcess:
        """Fork one; start it where this system has no fork server."""
        ours, theirs = socket.socketpair()
        with theirs:
            forked = await server.fork(project, {**os.environ, **environment}, channel=theirs, on_line=_printed)
        if forked is None:
            ours.close()
            return await cls.start(project, environment)
        guest = await cls.over(ours, forked.pid)
        guest.forked = forked
        return guest

    def _noted(self, note: JsonObject) -> None:
        if not self.hello.done():
            self.hello.set_result(Hello.model_validate(note))
        self.alive += 1

    async def ready(self) -> Hello:
        return await asyncio.wait_for(asyncio.shield(self.hello), DEADLINE)

    async def ask(self, op: str, model: BaseModel, result: type[Answer], **more: Any) -> Answer:
        return await asyncio.wait_for(self.channel.ask(op, model, result, **more), DEADLINE)

    async def gone(self) -> None:
        """Wait until the process has ended."""
        async with asyncio.timeout(DEADLINE):
            while _exists(self.pid):  # noqa: ASYNC110 - no child of ours
                await asyncio.sleep(0.01)

    async def end(self) -> None:
        """The host goes away; the guest must follow."""
        self.channel.close()
        await self.gone()
        if self.forked:
            await self.forked.end(grace=0)

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)


def inherited() -> dict[str, str]:
    """The environment of guests: they may keep compiled modules."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def _printed(line: str) -> None:
    print(line, file=sys.stderr)  # noqa: T201 - pytest shows it where a test fails


def _exists(pid: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


class Guests:
    """Fresh guests, forked where the system can."""

    def __init__(self, project: Path, environment: Mapping[str, str], fork_server: ForkServer) -> None:
        self._project = project
        self.environment = environment
        self.fork_server = fork_server

    async def take(self, project: Path | None = None) -> GuestProcess:
        guest = await GuestProcess.fork(self.fork_server, project or self._project, self.environment)
        await guest.ready()
        return guest

    @asynccontextmanager
    async def fresh(self, project: Path | None = None) -> AsyncGenerator[GuestProcess]:
        guest = await self.take(project)
        try:
            yield guest
        finally:
            await guest.end()


def parts_of(event: JsonObject) -> list[JsonObject]:
    """The parts of an event's content."""
    content: JsonObject = event.get("content") or {}
    return list(content.get("parts", []))


class Waiting:
    """A call of a paused turn, as a thread reads it from the events."""

    def __init__(self, event: JsonObject, call: JsonObject) -> None:
        self.request_id: str = call["id"]
        self.name: str = call["name"]
        self.branch: str | None = event.get("branch")
        self.author: str = event["author"]
        original: JsonObject = call.get("args", {}).get("originalFunctionCall") or call
        self.tool: str = original["name"]
        self.call_id: str = original["id"]
        payload: JsonObject = call.get("args", {}).get("toolConfirmation", {}).get("payload") or {}
        self.pause = PausedCall.model_validate(payload[PAYLOAD_KEY]) if PAYLOAD_KEY in payload else None
        self.args: JsonObject = (self.pause and self.pause.arguments) or original.get("args", {})

    def answer(self, response: JsonObject) -> BranchAnswer:
        return BranchAnswer(request_id=self.request_id, name=self.name, branch=self.branch, response=response)

    def denied(self, message: str = "no") -> BranchAnswer:
        return self.answer({"confirmed": False, "payload": {"code": "approval-denied", "message": message}})

    def done(self, end: CallEnd) -> BranchAnswer:
        outcome = end.outcome
        if outcome.kind == "failed":
            return self.answer({"confirmed": False, "payload": {"code": outcome.code, "message": outcome.message}})
        assert outcome.kind == "done", outcome
        payload = {"result": outcome.result, "state": outcome.state_delta, "actions": outcome.actions}
        return self.answer({"confirmed": True, "payload": payload})


class FakeThread:
    """Holds a session's events as JSON, nothing else, and hands them to whichever guest comes next."""

    def __init__(
        self, agent: str, *, thread_id: str = "t-1", principal: str = "ana", state: JsonObject | None = None
    ) -> None:
        self.agent, self.thread_id, self.principal = agent, thread_id, principal
        self.initial = state or {}
        self.events: list[JsonObject] = []
        self.progress: list[JsonObject] = []
        self.temp: JsonObject = {}
        self.run = 0
        self.given = LegInput()
        self.asked: list[SessionWanted] = []
        self.limits = LegLimits()

    @property
    def run_id(self) -> str:
        return f"run-{self.run}"

    @property
    def base(self) -> Base:
        return Base(count=len(self.events), head=self.events[-1]["id"] if self.events else "")

    @property
    def state(self) -> JsonObject:
        state = dict(self.initial)
        for event in self.events:
            state.update(event.get("actions", {}).get("stateDelta", {}))
        return state

    @property
    def waiting(self) -> list[Waiting]:
        run = [event for event in self.events if event.get("invocationId") == self.run_id]
        parts = [(event, part) for event in run for part in parts_of(event)]
        answered = {p["functionResponse"]["id"] for e, p in parts if "functionResponse" in p and e["author"] == "user"}
        return [
            Waiting(event, part["functionCall"])
            for event, part in parts
            if (part.get("functionCall") or {}).get("id") in set(event.get("longRunningToolIds", [])) - answered
        ]

    @property
    def answer_text(self) -> str:
        texts: list[str] = [part["text"] for event in self.events[-4:] for part in parts_of(event) if "text" in part]
        return texts[-1] if texts else ""

    async def say(self, guest: GuestProcess, text: str, **more: Any) -> LegEnd:
        self.run += 1
        self.temp = {}
        return await self.leg(guest, LegInput(message={"role": "user", "parts": [{"text": text}]}, **more))

    async def answer(self, guest: GuestProcess, *answers: BranchAnswer) -> LegEnd:
        return await self.leg(guest, LegInput(answers=answers))

    async def leg(self, guest: GuestProcess, given: LegInput) -> LegEnd:
        self.given = given
        return await self.attempt(guest)

    async def attempt(self, guest: GuestProcess, on_event: Callable[[JsonObject], None] | None = None) -> LegEnd:
        """One attempt at the leg that is due. What it tells is progress until it ends."""
        asked = RunLeg(
            thread_id=self.thread_id,
            principal=self.principal,
            agent=self.agent,
            run_id=self.run_id,
            base=self.base,
            given=self.given,
            progress=tuple(self.progress),
            temp=self.temp,
            limits=self.limits,
        )

        def noted(note: JsonObject) -> None:
            self.progress.append(note["event"])
            if on_event:
                on_event(note["event"])

        end = await guest.ask("leg", asked, LegEnd, on_note=noted, serve={"session": self.session})
        if not (end.outcome.kind == "failed" and end.outcome.retryable):
            self.events += self.progress
            self.progress = []
        self.temp = end.temp
        return end

    async def session(self, body: JsonObject) -> SessionGiven:
        wanted = SessionWanted.model_validate(body)
        self.asked.append(wanted)
        if wanted.state_only:
            return SessionGiven(state=self.state)
        since = wanted.since
        known = since.count == 0 or (
            since.count <= len(self.events) and self.events[since.count - 1]["id"] == since.head
        )
        base = since if known else Base()
        return SessionGiven(base=base, events=tuple(self.events[base.count :]), state=self.initial, given=self.given)

    def call(self, waiting: Waiting, *, approved: bool = True, **more: Any) -> RunCall:
        values: JsonObject = {
            "thread_id": self.thread_id,
            "principal": self.principal,
            "agent": self.agent,
            "run_id": self.run_id,
            "key": f"{self.run_id}/{waiting.call_id}",
            "call_id": waiting.call_id,
            "tool": waiting.tool,
            "args": waiting.args,
            "fingerprint": waiting.pause.fingerprint if waiting.pause else "",
            "idempotency_key": f"key-{waiting.call_id}",
            "approved": approved,
            "author": waiting.author,
            "branch": waiting.branch,
        }
        return RunCall.model_validate({**values, **more})

    async def make(self, guest: GuestProcess, waiting: Waiting, *, approved: bool = True, **more: Any) -> CallEnd:
        asked = self.call(waiting, approved=approved, **more)
        return await guest.ask("call", asked, CallEnd, serve={"session": self.session})

    async def yield_leg(self, guest: GuestProcess) -> None:
        await guest.ask("yield_leg", YieldLeg(thread_id=self.thread_id), Frame)
