"""From AGENTVISOR_STORE to an engine: a SQLite file in WAL, or PostgreSQL. Every statement is a transaction."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from sqlalchemy import URL, event, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from agentvisor.host.store.errors import StoreMisconfigured

_SQLITE = frozenset({"sqlite", "sqlite+aiosqlite"})
_POSTGRESQL = frozenset({"postgresql", "postgres", "postgresql+asyncpg"})
_CONNECTIONS = 8
_CONNECT_SECONDS = 5.0
_EVERY_ENGINE: dict[str, Any] = {
    "isolation_level": "AUTOCOMMIT",
    "skip_autocommit_rollback": True,
    "hide_parameters": True,
}
_FORMS = "Write sqlite:///FILE, or postgresql://USER:PASSWORD@HOST:PORT/DATABASE with special characters %-encoded."


def engine_of(url: str, *, patience: float) -> AsyncEngine:
    """An engine that has not connected yet; the file of a SQLite database exists afterwards.

    Raises StoreMisconfigured. No text of it holds any part of a PostgreSQL URL.
    """
    scheme, separator, rest = url.partition("://")
    if separator and scheme in _SQLITE:
        return _sqlite(url, patience=patience)
    if separator and scheme in _POSTGRESQL:
        return _postgresql(f"postgresql://{rest}", patience=patience)
    raise StoreMisconfigured(
        f"AGENTVISOR_STORE is the URL of neither a SQLite file nor a PostgreSQL database. {_FORMS}"
    )


# ---- SQLite ----------------------------------------------------------------------------------------------------------


def _sqlite(url: str, *, patience: float) -> AsyncEngine:
    engine = create_async_engine(
        URL.create("sqlite+aiosqlite", database=str(_file(url))),
        **_EVERY_ENGINE,
        pool_size=1,  # it has one writer at a time; connections of one process would only poll for each other's locks
        max_overflow=0,
        pool_timeout=patience,
        connect_args={"timeout": patience * 0.8},  # SQLite itself gives up before we do
    )
    event.listen(engine.sync_engine, "connect", _write_ahead)
    return engine


def _file(url: str) -> Path:
    try:
        parts = make_url(url)
    except (ArgumentError, ValueError) as problem:
        raise StoreMisconfigured(f"AGENTVISOR_STORE cannot be read as a URL. {_FORMS}") from problem
    if parts.query or parts.database in (None, "", ":memory:") or parts.host:
        raise StoreMisconfigured(
            f"AGENTVISOR_STORE must name a file and nothing else: what it keeps must outlive the worker. {_FORMS}"
        )
    assert parts.database is not None
    path = Path(parts.database).expanduser().absolute()
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not path.exists():
            path.touch(mode=0o600)  # its -wal and -shm get the same rights
    except OSError as problem:
        raise StoreMisconfigured(
            f"The file {str(path)!r} cannot be made ({problem.strerror}). Set AGENTVISOR_STORE to one that can."
        ) from problem
    return path


def _write_ahead(connection: Any, _record: object) -> None:
    cursor = connection.cursor()
    cursor.execute("PRAGMA journal_mode=WAL")
    cursor.execute("PRAGMA synchronous=FULL")  # a spent call must survive a power cut, since its effect does
    cursor.close()


# ---- PostgreSQL ------------------------------------------------------------------------------------------------------


def _postgresql(dsn: str, *, patience: float) -> AsyncEngine:
    return create_async_engine(
        "postgresql+asyncpg://",
        async_creator=_connector(dsn, timeout=min(patience, _CONNECT_SECONDS)),
        **_EVERY_ENGINE,
        pool_size=_CONNECTIONS,
        max_overflow=0,
        pool_timeout=patience,
    )


def _connector(dsn: str, *, timeout: float) -> Callable[[], Awaitable[Any]]:
    """Asyncpg reads the URL itself, so that it means what it means to libpq: sslmode, PGPASSFILE, several hosts."""
    try:
        asyncpg: Any = import_module("asyncpg")  # an extra, without types
    except ImportError as problem:
        raise StoreMisconfigured(
            "AGENTVISOR_STORE is a PostgreSQL database, and its driver is missing. "
            "Install it: pip install 'agentvisor-temporal[postgres]'."
        ) from problem

    async def connect() -> Any:
        try:
            return await asyncpg.connect(dsn, timeout=timeout)
        except ValueError:  # its text quotes the URL
            raise StoreMisconfigured(f"AGENTVISOR_STORE cannot be read as a PostgreSQL URL. {_FORMS}") from None
        except (asyncpg.PostgresError, asyncpg.InterfaceError) as problem:  # SQLAlchemy 2.0 leaves them as they are
            raise DBAPIError(None, None, problem) from problem

    return connect
