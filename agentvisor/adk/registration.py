"""The agents a project registers while it is imported."""

from __future__ import annotations

from typing import Any, TypeVar

Agent = TypeVar("Agent")

_registered: list[Any] = []


def register_agent(agent: Agent) -> Agent:
    """Announce an agent (or an ADK App) of this project; returns it.

    Registering the same object again changes nothing. Raises TypeError for what has no `name`.
    """
    if not isinstance(getattr(agent, "name", None), str):
        msg = f"register_agent() takes an ADK agent or App, not {type(agent).__name__}. Pass the agent object itself."
        raise TypeError(msg)
    if not any(known is agent for known in _registered):
        _registered.append(agent)
    return agent


def registered_agents() -> tuple[Any, ...]:
    """What was registered, in order."""
    return tuple(_registered)
