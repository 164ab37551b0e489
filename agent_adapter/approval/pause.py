"""What a paused call says about itself: written where the call pauses, read by whoever holds the approval."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

PAYLOAD_KEY = "paused_call"
"""Key under which a PausedCall stands in the payload of an ADK tool confirmation request."""


class PausedCall(BaseModel):
    """A tool call that pauses its turn, with all that its approval and its later execution need to know.

    Fields that equal their default are not written (`dump`): the payload stands in a session event.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    approval: bool = False
    """A person must approve; otherwise the call only runs outside the turn."""
    arguments: dict[str, Any] | None = None
    """The validated arguments, where they differ from what the model sent."""
    fingerprint: str = ""
    """Digest of the tool's name, version, schema and rule."""
    effect: Literal["read", "write"] = "write"
    idempotent: bool = False
    probe: bool = False
    editable: bool = True
    timeout: float | None = None
    """Seconds one attempt may take; None: the host's default."""
    retries: int | None = None
    """Further attempts of an idempotent call; None: the host's default."""
    cost: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    """What the call takes of the run's cost limit."""
    expires: float | Literal["never"] | None = None
    """Seconds until the approval expires; None: the host's default."""
    summary: str | None = None
    """One line for a person, without secrets."""

    def dump(self) -> dict[str, Any]:
        """The JSON object that stands in the event."""
        return self.model_dump(mode="json", exclude_defaults=True)
