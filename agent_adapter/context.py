"""What a tool may know of the call it serves."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import MutableMapping
from dataclasses import dataclass, field
from typing import Any

from agent_adapter.approval.decision import ApprovalDecision


@dataclass(frozen=True, slots=True, kw_only=True)
class Permission:
    """A decision that was made before the call reaches the executor, and the call it is bound to.

    It counts only when `digest` is the `call_digest` of the very call; otherwise it is ignored and the port is asked.
    That it is used once is the promise of whoever hands it over.
    """

    digest: str
    decision: ApprovalDecision


def _new_id() -> str:
    return uuid.uuid4().hex


def _new_state() -> dict[str, Any]:
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolContext:
    """One call: annotate a tool's parameter with this type, under any name, and the tool receives it."""

    run: str = field(default_factory=_new_id)
    """The run (in ADK: the invocation). Unique among all that share an approval store."""
    call: str = field(default_factory=_new_id)
    """The call. Unique within its run."""
    thread: str = ""
    principal: str = ""
    """The authenticated caller; never taken from the model."""
    state: MutableMapping[str, Any] = field(default_factory=_new_state)
    """The session's state: JSON values by key."""
    idempotency_key: str = ""
    """The same for every attempt of this call, another for any other. Derived from thread, run and call if unset."""
    attempt: int = 1
    permission: Permission | None = None
    framework: Any = None
    """The framework's own context of this call, where there is one."""

    def __post_init__(self) -> None:
        if not self.idempotency_key:
            name = "\x1f".join((self.thread, self.run, self.call)).encode("utf-8", "surrogatepass")
            object.__setattr__(self, "idempotency_key", hashlib.sha256(name).hexdigest()[:40])

    @property
    def approval(self) -> ApprovalDecision | None:
        """The decision under which this call runs, if one was needed."""
        return self.permission.decision if self.permission else None
