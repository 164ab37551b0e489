"""Pydantic's JSON, written and read as Temporal's own pydantic converter does it, without making that anew each time.

The SDK asks for a data converter in the context of every workflow task, activity and command, and makes a payload
converter for each, with a cache of type adapters that is empty. This one knows no contexts and keeps what it made.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Self, cast

from temporalio.contrib.pydantic import PydanticPayloadConverter
from temporalio.converter import DataConverter, PayloadConverter, SerializationContext


@dataclass(frozen=True)
class ContextFreeDataConverter(DataConverter):
    """A data converter that is the same in every context: for one whose parts do not look at it."""

    def with_context(self, context: SerializationContext) -> Self:
        del context
        return self


DATA_CONVERTER: DataConverter = ContextFreeDataConverter(
    payload_converter_class=cast("type[PayloadConverter]", cache(PydanticPayloadConverter))
)
