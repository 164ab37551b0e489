"""What can go wrong with the Store, by who must act. Match on `kind`, never on text.

StoreError
├── BlobError            the caller must ask for something else
│   ├── BlobRefused          blob-refused           not JSON
│   ├── BlobTooLarge         blob-too-large
│   └── BlobNotFound         blob-not-found         this thread has no such blob
├── BlobDamaged          blob-damaged           whoever keeps the backups
├── StoreUnavailable     store-unavailable      whoever runs the database; the same may succeed later
├── StoreMisconfigured   store-misconfigured    whoever wrote AGENTVISOR_STORE
└── StoreTooNew          store-too-new          whoever deploys
"""

from __future__ import annotations


class StoreError(Exception):
    """Base of all errors of the Store. `kind` is stable; the text is for people and ends with the way out."""

    kind = "error"


class BlobError(StoreError):
    """The caller must ask for something else."""


class BlobRefused(BlobError):
    kind = "blob-refused"

    def __init__(self, why: str) -> None:
        super().__init__(f"The value cannot be read back as it is: {why}. Give JSON: text keys, lists, finite numbers.")


class BlobTooLarge(BlobError):
    kind = "blob-too-large"

    def __init__(self, size: int, *, limit: int) -> None:
        super().__init__(f"The value has {size} bytes as JSON, {limit} are allowed. Keep it elsewhere and pass a link.")


class BlobNotFound(BlobError):
    kind = "blob-not-found"

    def __init__(self, thread: str, digest: str) -> None:
        super().__init__(
            f"Thread {thread!r} has no blob {digest!r}: it was deleted, or is in another Store. "
            "Give this worker the AGENTVISOR_STORE of the one that put it."
        )


class BlobDamaged(StoreError):
    kind = "blob-damaged"

    def __init__(self, thread: str, digest: str) -> None:
        super().__init__(f"Blob {digest!r} of thread {thread!r} is not what was stored. Restore it from a backup.")


class StoreUnavailable(StoreError):
    """The database did not do what was asked, or nobody knows whether it did. To ask again is always safe."""

    kind = "store-unavailable"


class StoreMisconfigured(StoreError):
    kind = "store-misconfigured"


class StoreTooNew(StoreError):
    kind = "store-too-new"

    def __init__(self, found: int, *, known: int) -> None:
        super().__init__(f"The Store has schema {found}, this version knows {known}. Run the version that migrated it.")
