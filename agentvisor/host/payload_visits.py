"""Temporal's SDK goes through all payloads of a workflow task six times, for codecs and external storage.

Where a worker's data converter has neither, none of that can change a payload, and takes a seventh of the worker's
Python; here it is left out. Whatever has a codec or an external storage is visited as ever.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any

import temporalio.bridge.worker
from temporalio.converter import DataConverter


def leave_out_idle_visits() -> None:
    """In this process, for all workers. To do it twice is as good as once."""
    try:
        from temporalio.converter._extstore import StorageOperationMetrics  # noqa: PLC0415 - may be gone one day
    except ImportError:
        return  # another version of the SDK: its own way is never wrong, only slower
    for name in ("decode_activation", "encode_completion"):
        visit = getattr(temporalio.bridge.worker, name, None)
        if visit is not None and not hasattr(visit, "__wrapped__"):
            setattr(temporalio.bridge.worker, name, _unless_idle(visit, nothing=StorageOperationMetrics))


def _unless_idle(
    visit: Callable[..., Awaitable[Any]], *, nothing: Callable[[], object]
) -> Callable[..., Awaitable[Any]]:
    """`nothing`: makes what a visit returns that stored and fetched nothing."""

    @wraps(visit)
    async def visited(message: Any, data_converter: DataConverter, *args: Any, **options: Any) -> Any:
        if data_converter.payload_codec is None and data_converter.external_storage is None:
            return nothing()
        return await visit(message, data_converter, *args, **options)

    return visited
