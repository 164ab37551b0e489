"""The names that others may import. None of them goes away or changes its meaning without a new major version."""

from __future__ import annotations

import importlib

import pytest

PUBLIC = {
    "agent_adapter": (
        "AdapterError Allow ApprovalAlreadyDecided ApprovalDecision ApprovalDenied ApprovalError ApprovalPending "
        "ApprovalPort ApprovalRecord ApprovalRequest ApprovalStore ApprovalUnknown Ask Block CallableGuard "
        "CallableOutputGuard CallbackApproval DeferredApproval EventStream Executor FlowError GuardrailBlocked "
        "InputGuard Ledger LedgerEntry MemoryApprovalStore MemoryLedger ModelError OutputGuard Permission "
        "PreparedCall Replace RunEvent RunLimitExceeded RunLimits RunMeter SensitiveDataGuard ToolArgsInvalid ToolCall "
        "ToolContext ToolError ToolRegistry ToolSchemaError ToolSpec ToolUsageError ask_each get_integration "
        "to_gemini_parameters"
    ),
    "agent_adapter.integrations.adk": (
        "INTEGRATION AdkIntegration RunLimitsPlugin adk_tool adk_tools bind_context is_waiting resolve_confirmations"
    ),
    "agent_adapter.mcp": "McpTools add_mcp",
    "agentvisor.adk": "Here current register_agent",
    "agentvisor.local_gemini": (
        "Call Conversation Fault LocalGemini Script ScriptInvalidError SeenRequest Turn load_script problems_of"
    ),
    "client": "ListedThread Thread ThreadApprovals Threads Waiting",
}


@pytest.mark.parametrize("module", PUBLIC)
def test_the_public_names_are_these(module: str) -> None:
    assert sorted(importlib.import_module(module).__all__) == sorted(PUBLIC[module].split())


@pytest.mark.parametrize("module", PUBLIC)
def test_every_public_name_is_there(module: str) -> None:
    imported = importlib.import_module(module)
    assert [name for name in PUBLIC[module].split() if not hasattr(imported, name)] == []
