"""Tools for agents: defined once, checked, approved by people, run, accounted for. Imports no framework."""

from agent_adapter.approval.batch import ask_each
from agent_adapter.approval.decision import ApprovalDecision, ApprovalRequest
from agent_adapter.approval.ports import ApprovalPort, CallbackApproval, DeferredApproval
from agent_adapter.approval.stores import ApprovalRecord, ApprovalStore, MemoryApprovalStore
from agent_adapter.context import Permission, ToolContext
from agent_adapter.errors import (
    AdapterError,
    ApprovalAlreadyDecided,
    ApprovalDenied,
    ApprovalError,
    ApprovalPending,
    ApprovalUnknown,
    FlowError,
    GuardrailBlocked,
    ModelError,
    RunLimitExceeded,
    ToolArgsInvalid,
    ToolError,
    ToolSchemaError,
    ToolUsageError,
)
from agent_adapter.events import EventStream, RunEvent
from agent_adapter.executor import Executor, ToolCall
from agent_adapter.guards import (
    Allow,
    Ask,
    Block,
    CallableGuard,
    CallableOutputGuard,
    InputGuard,
    OutputGuard,
    Replace,
)
from agent_adapter.guards.sensitive import SensitiveDataGuard
from agent_adapter.integrations import get_integration
from agent_adapter.ledger import Ledger, LedgerEntry, MemoryLedger
from agent_adapter.limits import RunLimits, RunMeter
from agent_adapter.preparation import PreparedCall
from agent_adapter.registry import ToolRegistry
from agent_adapter.schema.gemini import to_gemini_parameters
from agent_adapter.spec import ToolSpec

__all__ = [
    "AdapterError",
    "Allow",
    "ApprovalAlreadyDecided",
    "ApprovalDecision",
    "ApprovalDenied",
    "ApprovalError",
    "ApprovalPending",
    "ApprovalPort",
    "ApprovalRecord",
    "ApprovalRequest",
    "ApprovalStore",
    "ApprovalUnknown",
    "Ask",
    "Block",
    "CallableGuard",
    "CallableOutputGuard",
    "CallbackApproval",
    "DeferredApproval",
    "EventStream",
    "Executor",
    "FlowError",
    "GuardrailBlocked",
    "InputGuard",
    "Ledger",
    "LedgerEntry",
    "MemoryApprovalStore",
    "MemoryLedger",
    "ModelError",
    "OutputGuard",
    "Permission",
    "PreparedCall",
    "Replace",
    "RunEvent",
    "RunLimitExceeded",
    "RunLimits",
    "RunMeter",
    "SensitiveDataGuard",
    "ToolArgsInvalid",
    "ToolCall",
    "ToolContext",
    "ToolError",
    "ToolRegistry",
    "ToolSchemaError",
    "ToolSpec",
    "ToolUsageError",
    "ask_each",
    "get_integration",
    "to_gemini_parameters",
]
