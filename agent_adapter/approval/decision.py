"""What is asked about a call, and what a person said."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Literal, Self

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, StrictBool, StrictStr, model_validator

from agent_adapter.approval.digest import digest

Expires = float | Literal["never"] | None
"""Seconds until an approval expires; "never"; None: whatever the port or the host uses."""


def _now() -> datetime:
    return datetime.now(UTC)


class ApprovalDecision(BaseModel):
    """A person's answer. `approved` is true or false, never "true" or 1.

    `edited_args` replace the arguments of the call as a whole; they are validated, guarded and judged again before the
    call runs. They go with an approval only.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    approved: StrictBool
    edited_args: dict[str, Any] | None = None
    reason: StrictStr | None = Field(default=None, max_length=4000)
    decided_by: StrictStr | None = None
    decided_at: AwareDatetime = Field(default_factory=_now)
    lapsed: Literal["expired", "withdrawn"] | None = None
    """Set where nobody decided: a refusal that is not a person's "no"."""

    @model_validator(mode="after")
    def _refusals_change_nothing(self) -> Self:
        if not self.approved and self.edited_args is not None:
            msg = "edited_args go with approved: true only"
            raise ValueError(msg)
        if self.approved and self.lapsed is not None:
            msg = "what is approved has not lapsed"
            raise ValueError(msg)
        return self


class ApprovalRequest(BaseModel):
    """The question put to a person: this tool, with these validated arguments."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    """Stable for one call with these arguments: asking again is the same question."""
    run: str
    call: str
    tool: str
    arguments: dict[str, Any]
    fingerprint: str = ""
    """The tool as it was when it was asked about: `ToolSpec.fingerprint`."""
    thread: str = ""
    principal: str = ""
    effect: Literal["read", "write"] = "write"
    summary: str | None = None
    reason: str | None = None
    """Why it is asked, where a guard wanted it."""
    expires: Expires = None
    asked_at: AwareDatetime = Field(default_factory=_now)
    metadata: dict[str, Any] = {}


def approval_id(*, run: str, call: str, tool: str, fingerprint: str, arguments: dict[str, Any]) -> str:
    """The id of the approval of exactly this call. Runs must be unique among all that share a store."""
    return "ap-" + digest([run, call, tool, fingerprint, arguments])[:32]
