"""What a guest serves: legs, calls, checks and probes of the project it loaded."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from pydantic import BaseModel

from agentvisor.adk.call import Calls
from agentvisor.adk.hosted_runner import HostedRunner, hosted_runner
from agentvisor.adk.leg import Leg
from agentvisor.adk.project_code import ProjectCode
from agentvisor.adk.sessions import LiveSessions
from agentvisor.channel import JsonObject, Refused, Request
from agentvisor.protocol import Frame, LegEnd, RunCall, RunLeg, YieldLeg


class Guest:
    """Serves one project. Threads run side by side; a thread has one leg at a time."""

    def __init__(self, project: ProjectCode) -> None:
        self._sessions = LiveSessions()
        self._rules = project.rules
        self._runners = {name: hosted_runner(app, self._sessions, self._rules) for name, app in project.apps.items()}
        self._calls = Calls(self._runner, self._rules)
        self._legs: dict[str, tuple[Leg, asyncio.Task[LegEnd]]] = {}
        self._serves: dict[str, Callable[[JsonObject, Request], Awaitable[BaseModel]]] = {
            "leg": self._leg,
            "yield_leg": self._yield_leg,
            "call": lambda body, request: self._calls.make(RunCall.model_validate(body), request),
            "check": lambda body, request: self._calls.check(RunCall.model_validate(body), request),
            "probe": lambda body, request: self._calls.probe(RunCall.model_validate(body), request),
        }

    async def handle(self, op: str, body: JsonObject, request: Request) -> BaseModel:
        """Serve one request of the host."""
        serve = self._serves.get(op)
        if serve is None:
            raise Refused("unknown-operation", f"This guest does not know {op!r}. Use one version for host and guest.")
        return await serve(body, request)

    async def _leg(self, body: JsonObject, request: Request) -> LegEnd:
        asked = RunLeg.model_validate(body)
        leg = Leg(asked, request, runner=self._runner(asked.agent), sessions=self._sessions, rules=self._rules)
        before = self._legs.get(asked.thread_id)
        task = asyncio.ensure_future(self._after(before, leg))
        self._legs[asked.thread_id] = leg, task
        try:
            return await task
        finally:
            task.cancel()
            if self._legs.get(asked.thread_id) == (leg, task):
                del self._legs[asked.thread_id]

    async def _after(self, before: tuple[Leg, asyncio.Task[LegEnd]] | None, leg: Leg) -> LegEnd:
        """A second attempt ends a first one that is still alive here."""
        if before and not before[1].done():
            before[1].cancel()
            await asyncio.wait([before[1]])
        return await leg.run()

    async def _yield_leg(self, body: JsonObject, request: Request) -> Frame:
        del request
        running = self._legs.get(YieldLeg.model_validate(body).thread_id)
        if running:
            running[0].yield_soon()
        return Frame()

    def _runner(self, agent: str) -> HostedRunner:
        """The registered agent of this name; the project's root agent for any other (the host knows the names)."""
        return self._runners.get(agent) or next(iter(self._runners.values()))
