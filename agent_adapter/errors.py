"""One tree of errors, split by who must act.

AdapterError
├── ModelError               the model: it is shown the error as the result of its call, and tries something else
│   ├── ToolArgsInvalid      tool-args-invalid
│   ├── ToolError            tool-error
│   ├── ApprovalDenied       approval-denied
│   ├── GuardrailBlocked     guardrail-blocked
│   └── RunLimitExceeded     run-limit-exceeded
├── ApprovalError            the person who approves
│   ├── ApprovalPending      approval-pending: somebody must decide, then the call is made again
│   ├── ApprovalAlreadyDecided   approval-already-decided: nothing to do
│   └── ApprovalUnknown      approval-unknown: the id is wrong
├── ToolUsageError           tool-usage: whoever wrote the tool or the code that calls this library
│   └── ToolSchemaError      tool-schema: its argument schema cannot be shown to a model
└── FlowError                flow-error: whoever wrote the flow

Match on `kind`, never on the text. Only a ModelError is a result; everything else propagates to the caller.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_adapter.approval.decision import ApprovalRequest


class AdapterError(Exception):
    """Root of all errors of this library. `kind` is stable; `message` is for people."""

    kind: ClassVar[str] = "adapter-error"

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class ModelError(AdapterError):
    """An error that is the result of a call: the model reads it. Its message holds no text of unexpected exceptions."""

    kind: ClassVar[str] = "model-error"
    started: bool = False
    """Whether the tool's function was entered. Set by the executor."""

    def as_result(self) -> dict[str, Any]:
        """The JSON object that the model gets: `{"error": {"kind", "message"}}`."""
        return {"error": {"kind": self.kind, "message": self.message}}


class ToolArgsInvalid(ModelError):
    """The arguments do not fit the tool's schema; nothing was run."""

    kind: ClassVar[str] = "tool-args-invalid"


class ToolError(ModelError):
    """The tool failed. A tool raises it itself to say why: `raise ToolError("No such customer")` reaches the model.

    `outcome_unknown`: the tool was started and nobody knows whether it took effect (a write that ran out of time, a
    result that cannot be shown). Whoever runs the call must not report it as undone.
    """

    kind: ClassVar[str] = "tool-error"

    def __init__(self, message: str, *, outcome_unknown: bool = False) -> None:
        super().__init__(message)
        self.outcome_unknown = outcome_unknown


class ApprovalDenied(ModelError):
    """Nobody approved the call: denied, expired, withdrawn, or there is nobody to ask. Nothing was run."""

    kind: ClassVar[str] = "approval-denied"


class GuardrailBlocked(ModelError):
    """A guard or the tool's own confirm rule stopped the call, or a guard withheld its result."""

    kind: ClassVar[str] = "guardrail-blocked"


class RunLimitExceeded(ModelError):
    """The run has used up a limit; nothing was run."""

    kind: ClassVar[str] = "run-limit-exceeded"


class ApprovalError(AdapterError):
    """An error about an approval, for the person or program that decides it."""

    kind: ClassVar[str] = "approval-error"


class ApprovalPending(ApprovalError):
    """The approval of one call, or of several of one batch, is recorded and not decided yet. Nothing was run.

    `requests` are the ones that wait. Decide each in the store, then make the same call again.
    """

    kind: ClassVar[str] = "approval-pending"

    def __init__(self, requests: Sequence[ApprovalRequest]) -> None:
        self.requests = tuple(requests)
        waiting = ", ".join(f"{request.id!r} ({request.tool})" for request in self.requests)
        super().__init__(f"Waiting for approval of {waiting}. Decide it in the approval store, then resume the run.")


class ApprovalAlreadyDecided(ApprovalError):
    """The approval has its end already: approved, denied, expired, withdrawn or consumed. Nothing changed."""

    kind: ClassVar[str] = "approval-already-decided"

    def __init__(self, approval: str, *, status: str, decided_by: str | None = None) -> None:
        self.approval = approval
        self.status = status
        self.decided_by = decided_by
        by = f" by {decided_by!r}" if decided_by else ""
        super().__init__(f"Approval {approval!r} was already {status}{by}. Nothing to do.")


class ApprovalUnknown(ApprovalError):
    """No approval has this id."""

    kind: ClassVar[str] = "approval-unknown"

    def __init__(self, approval: str) -> None:
        self.approval = approval
        super().__init__(f"No approval {approval!r} is recorded. List the pending ones and use one of their ids.")


class ToolUsageError(AdapterError):
    """The code that defines or calls a tool is wrong. The text names the tool and the way out."""

    kind: ClassVar[str] = "tool-usage"


class ToolSchemaError(ToolUsageError):
    """A schema of arguments cannot be shown to a model. `path` is the place in it."""

    kind: ClassVar[str] = "tool-schema"

    def __init__(self, problem: str, *, path: str, tool: str | None = None) -> None:
        self.problem = problem
        self.path = path
        self.tool = tool
        of = f" of tool {tool!r}" if tool else ""
        super().__init__(f"The argument schema{of} at {path} {problem}.")


class FlowError(AdapterError):
    """A flow is wrong or cannot go on."""

    kind: ClassVar[str] = "flow-error"
