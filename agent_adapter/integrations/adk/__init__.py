"""Google ADK: tools of a registry as ADK tools, and approvals over ADK's tool confirmation."""

from agent_adapter.integrations.adk.confirmations import resolve_confirmations
from agent_adapter.integrations.adk.context import bind_context
from agent_adapter.integrations.adk.hosted import is_waiting
from agent_adapter.integrations.adk.integration import INTEGRATION, AdkIntegration
from agent_adapter.integrations.adk.limits import RunLimitsPlugin
from agent_adapter.integrations.adk.tool import adk_tool, adk_tools

__all__ = [
    "INTEGRATION",
    "AdkIntegration",
    "RunLimitsPlugin",
    "adk_tool",
    "adk_tools",
    "bind_context",
    "is_waiting",
    "resolve_confirmations",
]
