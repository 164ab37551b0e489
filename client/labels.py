"""What a thread carries for people and searches: search attributes, memo, summary and details in the Web UI."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.operatorservice.v1 import ListSearchAttributesRequest
from temporalio.client import Client, WorkflowExecution
from temporalio.common import SearchAttributeKey, SearchAttributePair, TypedSearchAttributes
from temporalio.service import RPCError, RPCStatusCode

from client.rpc import RPC_DEADLINE

AGENT_NAME = "AgentName"
PRINCIPAL = "Principal"
WAITING_SINCE = "WaitingSince"
PENDING_TOOLS = "PendingTools"

_KINDS: dict[str, IndexedValueType.ValueType] = {
    AGENT_NAME: IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD,
    PRINCIPAL: IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD,
    PENDING_TOOLS: IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD_LIST,
    WAITING_SINCE: IndexedValueType.INDEXED_VALUE_TYPE_DATETIME,
}
_AGENT_NAME = SearchAttributeKey.for_keyword(AGENT_NAME)
_PRINCIPAL = SearchAttributeKey.for_keyword(PRINCIPAL)
_WAITING_SINCE = SearchAttributeKey.for_datetime(WAITING_SINCE)
_FOR_ADMINISTRATORS = {
    RPCStatusCode.PERMISSION_DENIED,
    RPCStatusCode.UNAUTHENTICATED,
    RPCStatusCode.UNIMPLEMENTED,
    RPCStatusCode.NOT_FOUND,
}
_KEPT_BYTES = 200


def cut(value: str) -> str:
    """The value, or its first 200 bytes and a hash: the server terminates a workflow over a value of 2,048 bytes."""
    data = value.encode("utf-8", "replace")
    if len(data) <= _KEPT_BYTES:
        return data.decode()
    return f"{data[:_KEPT_BYTES].decode('utf-8', 'ignore')}~{hashlib.sha256(data).hexdigest()[:16]}"


def search_attributes(agent: str, principal: str, *, known: frozenset[str]) -> TypedSearchAttributes:
    """Those of the attributes of a new thread that the namespace knows."""
    values = {_AGENT_NAME: agent, _PRINCIPAL: principal}
    return TypedSearchAttributes(
        [SearchAttributePair(key, cut(value)) for key, value in values.items() if key.name in known]
    )


def memo(agent: str, principal: str) -> dict[str, str]:
    """Shows whose thread it is in listings where no search attribute can be registered."""
    return {"agent": cut(agent), "principal": cut(principal)}


def summary(agent: str, principal: str) -> str:
    return f"{_code(agent)} for {_code(principal)}"


def details(thread_id: str, agent: str, principal: str) -> str:
    return (
        f"**Thread** {_code(thread_id)}\n\n"
        f"- agent: {_code(agent)}\n"
        f"- principal: {_code(principal)}\n\n"
        'Queue a run with the signal `run`: `{"message": "…"}`. What it waits for, and how to answer, stands under '
        "*current details*."
    )


def _code(text: str) -> str:
    shown = "".join(letter if letter.isprintable() and letter != "`" else "?" for letter in text)
    return f"`{shown[:_KEPT_BYTES]}`"


@dataclass(frozen=True)
class Labels:
    """What visibility knows about a thread; empty where it was started without labels."""

    agent: str = ""
    principal: str = ""
    waiting_since: str | None = None
    is_complete: bool = False
    """The thread has its search attributes, so a missing WaitingSince says that it does not wait."""


async def labels_of(execution: WorkflowExecution) -> Labels:
    attributes = execution.typed_search_attributes
    noted = await execution.memo()
    agent, principal = attributes.get(_AGENT_NAME), attributes.get(_PRINCIPAL)
    since = attributes.get(_WAITING_SINCE)
    return Labels(
        agent=agent or str(noted.get("agent", "")),
        principal=principal or str(noted.get("principal", "")),
        waiting_since=since.isoformat(timespec="milliseconds").replace("+00:00", "Z") if since else None,
        is_complete=agent is not None,
    )


class KnownAttributes:
    """Which search attributes the namespace knows. Asks until it knows all of ours, then remembers."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._names: frozenset[str] = frozenset()
        self._refused = False

    async def names(self) -> frozenset[str]:
        if not self._refused and not self._names >= _KINDS.keys():
            self._names = await self._asked()
        return self._names

    def refuse(self) -> None:
        """The server did not take them after all (another type, say): start threads without."""
        self._refused, self._names = True, frozenset()

    async def _asked(self) -> frozenset[str]:
        request: Any = ListSearchAttributesRequest(namespace=self._client.namespace)
        try:
            answer = await self._client.operator_service.list_search_attributes(
                request, retry=True, timeout=RPC_DEADLINE
            )
        except RPCError as problem:
            if problem.status not in _FOR_ADMINISTRATORS:
                raise
            return frozenset({AGENT_NAME, PRINCIPAL})  # try them, and let the server say no
        found = answer.custom_attributes
        return frozenset(name for name, kind in _KINDS.items() if found.get(name) == kind)
