"""The Store: what must outlive histories and be shared by all workers. Made by `Store.open`."""

from agentvisor.host.store.blobs import BlobRef, Blobs
from agentvisor.host.store.errors import (
    BlobDamaged,
    BlobError,
    BlobNotFound,
    BlobRefused,
    BlobTooLarge,
    StoreError,
    StoreMisconfigured,
    StoreTooNew,
    StoreUnavailable,
)
from agentvisor.host.store.spent_calls import SpentCall, SpentCalls
from agentvisor.host.store.store import Store

__all__ = [
    "BlobDamaged",
    "BlobError",
    "BlobNotFound",
    "BlobRef",
    "BlobRefused",
    "BlobTooLarge",
    "Blobs",
    "SpentCall",
    "SpentCalls",
    "Store",
    "StoreError",
    "StoreMisconfigured",
    "StoreTooNew",
    "StoreUnavailable",
]
