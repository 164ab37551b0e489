"""What can go wrong when talking to threads, by who must act. Match on `kind`, never on text.

ThreadsError
├── CallerError           the caller must ask for something else
│   ├── InvalidThreadId   invalid-thread-id
│   ├── InvalidValue      invalid-value         not JSON, or not what the operation takes
│   ├── TooLarge          too-large
│   ├── ThreadNotFound    thread-not-found
│   ├── ThreadClosed      thread-closed
│   ├── ThreadExists      thread-exists
│   ├── RunNotFound       run-not-found
│   └── Refused           the thread's own kind (already-decided, being-decided, tool-args-invalid, …)
└── OperatorError         whoever runs the system must act
    ├── NoWorker          no-worker
    ├── ThreadStuck       thread-stuck          its workflow tasks fail
    └── TemporalUnavailable  temporal-unavailable
"""

from __future__ import annotations


class ThreadsError(Exception):
    """Base of all errors of this package. `kind` is stable; the text is for people and ends with the way out."""

    kind = "error"

    @property
    def message(self) -> str:
        return str(self)


class CallerError(ThreadsError):
    """The caller must ask for something else."""


class OperatorError(ThreadsError):
    """Whoever runs the system must act; the same request may succeed afterwards."""


class InvalidThreadId(CallerError):
    kind = "invalid-thread-id"

    def __init__(self, thread_id: str) -> None:
        super().__init__(
            f"{thread_id[:200]!r} is not a thread id. Use 1 to 128 letters, digits, '.', '_' or '-', "
            "beginning with a letter or digit."
        )


class InvalidValue(CallerError):
    kind = "invalid-value"


class TooLarge(CallerError):
    kind = "too-large"


class ThreadNotFound(CallerError):
    kind = "thread-not-found"

    def __init__(self, thread_id: str) -> None:
        super().__init__(f"There is no thread {thread_id!r}. List threads for those that exist, or create it.")


class ThreadClosed(CallerError):
    kind = "thread-closed"

    def __init__(self, thread_id: str) -> None:
        super().__init__(f"Thread {thread_id!r} is closed and takes nothing more. Create one with another id.")


class ThreadExists(CallerError):
    kind = "thread-exists"

    def __init__(self, thread_id: str) -> None:
        super().__init__(f"There is, or was, a thread {thread_id!r} already. Choose another id, or get that thread.")


class RunNotFound(CallerError):
    kind = "run-not-found"

    def __init__(self, thread_id: str, run_id: str) -> None:
        super().__init__(f"Thread {thread_id!r} knows no run {run_id!r}. Look at the thread for the runs it remembers.")


class Refused(CallerError):
    """The thread itself said no. `kind` is the thread's."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class NoWorker(OperatorError):
    kind = "no-worker"

    def __init__(self, task_queue: str, *, note: str) -> None:
        super().__init__(
            f"No worker answers on task queue {task_queue!r}. {note} Start one with `python worker.py --project DIR`, "
            "or set TEMPORAL_ADDRESS to the server where one works."
        )


class ThreadStuck(OperatorError):
    kind = "thread-stuck"

    def __init__(self, thread_id: str) -> None:
        super().__init__(
            f"The workflow tasks of thread {thread_id!r} fail and are tried again. "
            "The Temporal Web UI and the worker's log say why; deploy a mended worker and it goes on."
        )


class TemporalUnavailable(OperatorError):
    kind = "temporal-unavailable"
