"""The search attributes of threads, as far as this namespace has them."""

from __future__ import annotations

import structlog
from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.operatorservice.v1 import AddSearchAttributesRequest, ListSearchAttributesRequest
from temporalio.client import Client
from temporalio.service import RPCError

_TYPES: dict[str, IndexedValueType.ValueType] = {
    "AgentName": IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD,
    "Principal": IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD,
    "PendingTools": IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD_LIST,
    "WaitingSince": IndexedValueType.INDEXED_VALUE_TYPE_DATETIME,
}

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


async def existing_search_attributes(client: Client) -> frozenset[str]:
    """Which of the threads' search attributes exist here, with the right type. Threads work without any."""
    try:
        listed = await client.operator_service.list_search_attributes(
            ListSearchAttributesRequest(namespace=client.namespace), retry=True
        )
    except RPCError as problem:
        log.warning("search-attributes.unknown", reason=problem.message)
        return frozenset()
    return frozenset(name for name, type_ in _TYPES.items() if listed.custom_attributes.get(name) == type_)


async def register_search_attributes(client: Client) -> frozenset[str]:
    """Register what is missing, as far as allowed; return the names that exist afterwards."""
    existing = await existing_search_attributes(client)
    missing = [name for name in _TYPES if name not in existing]
    for name in missing:  # one by one: a namespace may have room for some
        try:
            await client.operator_service.add_search_attributes(
                AddSearchAttributesRequest(namespace=client.namespace, search_attributes={name: _TYPES[name]}),
                retry=True,
            )
        except RPCError as problem:
            log.warning("search-attribute.not-registered", name=name, reason=problem.message)
    return await existing_search_attributes(client) if missing else existing
