"""A process with the shop's agent in plain ADK: `python -m tests.adk.plain_payer URL FILE`.

Its input has lines `start SESSION`, `yes SESSION`, `no SESSION` and `resume SESSION`, where SESSION is a file that
holds the paused session; it answers each with a word. Payments add a line to FILE.
"""

from __future__ import annotations

import asyncio
import sys
import warnings
from pathlib import Path
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.models.google_llm import Gemini
from google.adk.runners import InMemoryRunner
from google.adk.sessions import Session
from google.genai import types

from agent_adapter import AdapterError, ApprovalDecision, ApprovalPending, DeferredApproval, Executor, ToolRegistry
from agent_adapter.approval.sql import SqlApprovalStore
from agent_adapter.context import ToolContext
from agent_adapter.integrations.adk import adk_tools, resolve_confirmations

registry = ToolRegistry()
file = Path(sys.argv[2])


@registry.tool(confirm=True)
def pay(order: str, context: ToolContext) -> str:
    """Pay."""
    with file.open("ab", buffering=0) as effects:
        effects.write(f"{order} {context.run}\n".encode())
    return "paid"


class Process:
    """One agent, and the store it shares with others."""

    def __init__(self, store: SqlApprovalStore) -> None:
        self.store = store
        self.port = DeferredApproval(store)
        tools = adk_tools(registry, executor=Executor(registry, approval=self.port))
        agent = LlmAgent(name="shop", model=Gemini(model="gemini-2.5-flash"), tools=[*tools])
        self.runner = InMemoryRunner(agent=agent, app_name="shop")

    async def start(self, path: Path) -> str:
        session = await self.runner.session_service.create_session(app_name="shop", user_id="u")
        await self._send(session.id, types.Content(role="user", parts=[types.Part(text="go")]))
        path.write_text((await self._session(session.id)).model_dump_json(by_alias=True))
        try:
            await self._answer(session.id)
        except ApprovalPending:
            return "waits"
        return "does-not-wait"

    async def decide(self, path: Path, *, approved: bool) -> str:
        session = Session.model_validate_json(path.read_text())
        runs = {event.invocation_id for event in session.events}
        for record in await self.store.pending():
            if record.request.run in runs:
                await self.store.decide(record.id, ApprovalDecision(approved=approved))
                return "decided"
        return "none-waits"

    async def resume(self, path: Path) -> str:
        session = await self._loaded(Session.model_validate_json(path.read_text()))
        message = await self._answer(session)
        assert message
        [response] = await self._send(session, message)
        return "rejected" if "error" in response else response["result"]

    async def _answer(self, session: str) -> types.Content | None:
        return await resolve_confirmations((await self._session(session)).events, self.port, registry)

    async def _loaded(self, session: Session) -> str:
        service: Any = self.runner.session_service
        if await service.get_session(app_name="shop", user_id="u", session_id=session.id) is None:
            ours = await service.create_session(app_name="shop", user_id="u", session_id=session.id)
            for event in session.events:
                await service.append_event(ours, event)
        return session.id

    async def _session(self, session: str) -> Session:
        found = await self.runner.session_service.get_session(app_name="shop", user_id="u", session_id=session)
        assert found
        return found

    async def _send(self, session: str, message: types.Content) -> list[Any]:
        run = self.runner.run_async(user_id="u", session_id=session, new_message=message)
        return [found.response async for event in run for found in event.get_function_responses()]


async def act(process: Process, word: str, path: Path) -> str:
    try:
        if word == "start":
            return await process.start(path)
        if word == "resume":
            return await process.resume(path)
        return await process.decide(path, approved=word == "yes")
    except AdapterError as problem:
        return problem.kind


async def main() -> None:
    async with SqlApprovalStore.open(sys.argv[1]) as store:
        process = Process(store)
        while line := await asyncio.to_thread(sys.stdin.readline):
            word, path = line.split()
            print(await act(process, word, Path(path)), flush=True)  # noqa: T201


warnings.simplefilter("ignore")
asyncio.run(main())
