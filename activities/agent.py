"""The port to agents: legs, run in guests."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from temporalio import activity
from temporalio.client import Client

from activities.caller import calling_thread
from activities.leg import Leg
from activities.questions import AskedThreads
from activities.thread_session import ThreadSession
from agentvisor.host.guests import GuestProcesses
from agentvisor.host.stored_events import StoredEvents
from workflows.messages import WAITING_ATTRIBUTES, Failed, LegResult, RunAgent
from workflows.ports import AgentActivities


class GuestAgentActivities(AgentActivities):
    """Runs the legs of threads in the guests of their agent's project.

    `projects`: by agent name. `attributes`: the search attributes that exist in this namespace.
    """

    def __init__(
        self,
        client: Client,
        projects: Mapping[str, GuestProcesses],
        *,
        task_queue: str,
        attributes: Collection[str],
        stored: StoredEvents,
    ) -> None:
        self._projects = projects
        self._threads = AskedThreads(client, task_queue=task_queue)
        self._stored = stored
        self._attributes = tuple(sorted(WAITING_ATTRIBUTES & set(attributes)))

    @activity.defn
    async def run_agent(self, leg: RunAgent) -> LegResult:
        thread = self._threads.questions(calling_thread())
        await thread.leave_lost_worker()
        guests = self._projects.get(leg.agent)
        if guests is None:
            return LegResult(outcome=_unknown_agent(leg.agent, self._projects))
        return await Leg(leg, guests, ThreadSession(thread, self._stored), attributes=self._attributes).run()


def _unknown_agent(name: str, projects: Mapping[str, object]) -> Failed:
    has = ", ".join(sorted(projects)) or "none"
    text = f"This worker has no agent {name!r}; it has: {has}. Start a worker with that project, or name one of these."
    return Failed(code="unknown-agent", message=text)
