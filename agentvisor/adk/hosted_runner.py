"""The ADK Runner of a guest: a user's App with the host's plugins around its own, and runs that keep their id."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable
from functools import cache
from typing import Any

from google.adk.agents.invocation_context import InvocationContext
from google.adk.agents.run_config import RunConfig, ToolThreadPoolConfig
from google.adk.apps import App, ResumabilityConfig
from google.adk.runners import Runner
from google.adk.sessions import BaseSessionService, Session
from google.adk.telemetry import TelemetryConfig

from agentvisor.adk.events import of_run, open_calls
from agentvisor.adk.here import running_run
from agentvisor.adk.plugins import FirstPlugin, LastPlugin
from agentvisor.adk.project_rules import ProjectRules

SYNC_TOOLS_AT_ONCE = 64


@cache
def run_config() -> RunConfig:
    """Shared by all runs: building one costs a millisecond, and so does reading the environment for its telemetry."""
    return RunConfig(
        tool_thread_pool_config=ToolThreadPoolConfig(max_workers=SYNC_TOOLS_AT_ONCE),
        max_llm_calls=sys.maxsize - 1,  # the thread carries the run's limits
        telemetry=TelemetryConfig(),  # ADK would make one for every span
    )


class HostedRunner(Runner):
    """Invocation ids are run ids, whatever the root agent is and also on an empty session."""

    def _new_invocation_context(
        self, session: Session, *, invocation_id: str | None = None, **others: Any
    ) -> InvocationContext:
        return super()._new_invocation_context(session, invocation_id=invocation_id or running_run(), **others)

    async def _run_post_invocation_compaction(self, *, session: Session) -> None:
        """Events of a paused turn must stay as they are until it goes on."""
        run_id = running_run() or ""
        if not open_calls(of_run(session.events, run_id)):
            await super()._run_post_invocation_compaction(session=session)


def hosted_runner(app: App, sessions: BaseSessionService, rules: ProjectRules) -> HostedRunner:
    """A runner for this app: its plugins keep their order, ours stand around them; its runs can be resumed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # ADK calls resumability experimental
        resumable = ResumabilityConfig(is_resumable=True)
    plugins = [FirstPlugin(), *_own(app.plugins), LastPlugin(rules)]
    hosted = app.model_copy(update={"plugins": plugins, "resumability_config": resumable})
    return HostedRunner(app=hosted, session_service=sessions)


def _own(plugins: Iterable[Any]) -> list[Any]:
    return [plugin for plugin in plugins if not isinstance(plugin, FirstPlugin | LastPlugin)]
