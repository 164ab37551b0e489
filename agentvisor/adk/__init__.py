"""What an agent project may import, without any framework: its registration, and where its code runs."""

from agentvisor.adk.here import Here, current
from agentvisor.adk.registration import register_agent

__all__ = ["Here", "current", "register_agent"]
