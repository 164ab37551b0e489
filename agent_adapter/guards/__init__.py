"""Guards: what looks at arguments and results, and what one of them may say."""

from agent_adapter.guards.base import (
    Allow,
    Ask,
    Block,
    CallableGuard,
    CallableOutputGuard,
    Guard,
    GuardFunction,
    InputGuard,
    OutputGuard,
    Replace,
    Verdict,
)

__all__ = [
    "Allow",
    "Ask",
    "Block",
    "CallableGuard",
    "CallableOutputGuard",
    "Guard",
    "GuardFunction",
    "InputGuard",
    "OutputGuard",
    "Replace",
    "Verdict",
]
