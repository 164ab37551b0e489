"""The requests a local model has seen."""

from __future__ import annotations

from collections import deque
from dataclasses import asdict, dataclass, field, replace
from threading import Lock
from typing import Any

from agentvisor.local_gemini.choice import system_text
from agentvisor.local_gemini.history import JsonObject, contents_of, user_text


@dataclass(frozen=True)
class SeenRequest:
    """One request and what became of it. `number` counts from 1.

    `status` is the HTTP status of the reply, None while it is held or delayed; `ended` says more: `answered`, `refused`
    (the request or the script is wrong), `fault` (scripted), `gone` (the client hung up first).
    """

    number: int
    path: str
    api_key: str | None
    headers: dict[str, str] = field(repr=False)
    model: str = ""
    verb: str = ""
    body: JsonObject = field(default_factory=JsonObject, repr=False)
    conversation: str | None = None
    turn: int | None = None
    status: int | None = None
    ended: str | None = None

    @property
    def contents(self) -> list[JsonObject]:
        """The conversation as the model was shown it."""
        return contents_of(self.body)

    @property
    def system(self) -> str:
        """The system instruction as text."""
        return system_text(self.body)

    @property
    def user_texts(self) -> list[str]:
        """What the user said, oldest first."""
        return [text for content in self.contents if (text := user_text(content)) is not None]

    @property
    def tools(self) -> list[JsonObject]:
        """The declared functions."""
        groups: list[dict[str, list[JsonObject]]] = self.body.get("tools") or []
        return [declared for group in groups for declared in group.get("functionDeclarations", [])]


class RequestLog:
    """The last `size` requests, in order of arrival. Safe to read from another thread."""

    def __init__(self, size: int) -> None:
        self._seen: deque[SeenRequest] = deque(maxlen=size)
        self._count = 0
        self._lock = Lock()

    def add(self, **known: Any) -> int:
        """Record a request; returns its number."""
        with self._lock:
            self._count += 1
            self._seen.append(SeenRequest(number=self._count, **known))
            return self._count

    def note(self, number: int, **known: Any) -> None:
        """Record what became of a request."""
        with self._lock:
            for at in range(len(self._seen) - 1, -1, -1):
                if self._seen[at].number == number:
                    self._seen[at] = replace(self._seen[at], **known)
                    return

    def since(self, number: int = 0) -> list[SeenRequest]:
        """The requests after this number."""
        with self._lock:
            return [seen for seen in self._seen if seen.number > number]

    def dump(self, number: int = 0) -> list[JsonObject]:
        """The same as JSON."""
        return [asdict(seen) for seen in self.since(number)]
