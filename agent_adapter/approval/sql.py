"""Approvals in a SQL database: SQLite or PostgreSQL through SQLAlchemy, for several processes at once."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from importlib import import_module
from pathlib import Path
from typing import Any, cast

from sqlalchemy import (
    URL,
    BigInteger,
    Column,
    ColumnElement,
    Index,
    Integer,
    MetaData,
    Row,
    String,
    Table,
    Text,
    Update,
    and_,
    delete,
    event,
    or_,
    select,
    text,
    update,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.schema import CreateIndex, CreateTable

from agent_adapter.approval.decision import ApprovalDecision, ApprovalRequest
from agent_adapter.approval.stores import ApprovalRecord, Status
from agent_adapter.errors import ApprovalUnknown, ToolUsageError

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LOCK = 0x61615F6170  # of whoever makes the table in PostgreSQL, where "if not exists" can still collide
_PATIENCE = 30.0
_SQLITE = frozenset({"sqlite", "sqlite+aiosqlite"})
_POSTGRESQL = frozenset({"postgresql", "postgres", "postgresql+asyncpg"})

_approvals = Table(
    "agent_adapter_approvals",
    MetaData(),
    Column("number", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True),
    Column("id", String(255), nullable=False, unique=True),
    Column("status", String(16), nullable=False),
    Column("request", Text, nullable=False),
    Column("decision", Text),
    Column("recorded_at", BigInteger, nullable=False),
    Column("expires_at", BigInteger),
    Index("agent_adapter_approvals_status", "status"),
)
_columns = _approvals.c


def _now() -> datetime:
    return datetime.now(UTC)


class SqlApprovalStore:
    """An ApprovalStore in a table of its own, `agent_adapter_approvals`. Every change is decided by one statement.

    `SqlApprovalStore.open(url)` brings its own engine; the constructor takes one of yours (call `create` once). An
    engine belongs to one event loop. The clocks of the processes decide what has expired: keep them together.
    What people are asked stands in the table as it was asked: protect it like the data the tools work on.
    """

    def __init__(self, engine: AsyncEngine, *, now: Callable[[], datetime] = _now) -> None:
        if engine.dialect.name not in {"sqlite", "postgresql"}:
            msg = f"Approvals cannot be kept in {engine.dialect.name}. Use SQLite or PostgreSQL."
            raise ToolUsageError(msg)
        self._engine = engine
        self._now = now

    @classmethod
    @asynccontextmanager
    async def open(cls, url: str, *, now: Callable[[], datetime] = _now) -> AsyncGenerator[SqlApprovalStore]:
        """A store on the database of this URL: `sqlite:///FILE` or `postgresql://…`. Makes the table; ends with it."""
        engine = _engine_of(url)
        try:
            store = cls(engine, now=now)
            await store.create()
            yield store
        finally:
            await engine.dispose()

    async def create(self) -> None:
        """Make the table where there is none; of several processes that do so at once, one does it."""
        async with self._engine.begin() as connection:
            if self._engine.dialect.name == "postgresql":
                await connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})
            await connection.execute(CreateTable(_approvals, if_not_exists=True))
            for index in _approvals.indexes:
                await connection.execute(CreateIndex(index, if_not_exists=True))

    async def record(self, request: ApprovalRequest, *, lifetime: timedelta | None) -> ApprovalRecord:
        now = self._now()
        insert = sqlite.insert if self._engine.dialect.name == "sqlite" else postgresql.insert
        statement = insert(_approvals).values(
            id=request.id,
            status="pending",
            request=request.model_dump_json(),
            recorded_at=_microseconds(now),
            expires_at=None if lifetime is None else _microseconds(now + lifetime),
        )
        async with self._engine.begin() as connection:
            await connection.execute(statement.on_conflict_do_nothing(index_elements=["id"]))
            return await self._read(connection, request.id)

    async def get(self, approval: str) -> ApprovalRecord:
        async with self._engine.connect() as connection:
            return await self._read(connection, approval)

    async def pending(self) -> list[ApprovalRecord]:
        statement = select(_approvals).where(self._is_pending()).order_by(_columns.recorded_at, _columns.number)
        async with self._engine.connect() as connection:
            return [self._as_record(row) for row in await connection.execute(statement)]

    async def decide(self, approval: str, decision: ApprovalDecision) -> ApprovalRecord:
        status = "approved" if decision.approved else "denied"
        change = update(_approvals).values(status=status, decision=decision.model_dump_json())
        return (await self._change(change, [approval], self._is_pending()))[0]

    async def withdraw(self, approval: str) -> ApprovalRecord:
        open_or_unused = or_(self._is_pending(), _columns.status == "approved")
        return (await self._change(update(_approvals).values(status="withdrawn"), [approval], open_or_unused))[0]

    async def consume(self, approvals: Sequence[str]) -> list[ApprovalRecord]:
        if not approvals:
            return []
        change = update(_approvals).values(status="consumed")
        return await self._change(change, list(dict.fromkeys(approvals)), _columns.status == "approved")

    async def forget(self, *, before: datetime) -> int:
        """Delete what has its end and was recorded before this moment; returns how many.

        The same call would be asked about again afterwards: keep records longer than any run lives.
        """
        ended = and_(_columns.recorded_at < _microseconds(before), ~self._is_pending(), _columns.status != "approved")
        async with self._engine.begin() as connection:
            return (await connection.execute(delete(_approvals).where(ended))).rowcount

    async def _change(self, change: Update, approvals: list[str], allowed: ColumnElement[bool]) -> list[ApprovalRecord]:
        """Change all of them, each if it is allowed at this very moment, or none."""
        # locked in one order: two batches that share approvals cannot wait for each other
        candidates = (
            select(_columns.id).where(_columns.id.in_(approvals), allowed).order_by(_columns.id).with_for_update()
        )
        statement = change.where(_columns.id.in_(candidates), allowed).returning(*_columns)
        async with self._engine.connect() as connection:
            changed = {row.id: self._as_record(row) for row in await connection.execute(statement)}
            if len(changed) == len(approvals):
                await connection.commit()
                return [changed[approval] for approval in approvals]
            await connection.rollback()
            return await self._refuse(connection, [name for name in approvals if name not in changed])

    async def _refuse(self, connection: AsyncConnection, approvals: list[str]) -> list[ApprovalRecord]:
        for approval in approvals:
            record = await self._read(connection, approval)
            raise record.already_decided()
        raise AssertionError  # at least one was not changed

    async def _read(self, connection: AsyncConnection, approval: str) -> ApprovalRecord:
        row = (await connection.execute(select(_approvals).where(_columns.id == approval))).one_or_none()
        if row is None:
            raise ApprovalUnknown(approval)
        return self._as_record(row)

    def _is_pending(self) -> ColumnElement[bool]:
        in_time = or_(_columns.expires_at.is_(None), _columns.expires_at > _microseconds(self._now()))
        return and_(_columns.status == "pending", in_time)

    def _as_record(self, row: Row[Any]) -> ApprovalRecord:
        expires_at = None if row.expires_at is None else _moment(row.expires_at)
        late = row.status == "pending" and expires_at is not None and self._now() >= expires_at
        return ApprovalRecord(
            request=ApprovalRequest.model_validate_json(row.request),
            status="expired" if late else cast("Status", row.status),
            recorded_at=_moment(row.recorded_at),
            expires_at=expires_at,
            decision=None if row.decision is None else ApprovalDecision.model_validate_json(row.decision),
        )


def _microseconds(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(microseconds=1)


def _moment(microseconds: int) -> datetime:
    return _EPOCH + timedelta(microseconds=microseconds)


def _engine_of(url: str) -> AsyncEngine:
    scheme, separator, rest = url.partition("://")
    if separator and scheme in _POSTGRESQL:
        # asyncpg reads the URL itself, so that it means what it means to libpq: sslmode, several hosts, search_path
        return create_async_engine(
            "postgresql+asyncpg://",
            async_creator=_connector(f"postgresql://{rest}"),
            hide_parameters=True,
            pool_pre_ping=True,
        )
    if not separator or scheme not in _SQLITE:
        msg = "The URL of an approval store is sqlite:///FILE or postgresql://USER:PASSWORD@HOST/DATABASE."
        raise ToolUsageError(msg)
    file = rest.removeprefix("/")
    if not rest.startswith("/") or file in {"", ":memory:"}:
        msg = "An approval store in SQLite needs a file: sqlite:///FILE. For one process use MemoryApprovalStore."
        raise ToolUsageError(msg)
    if not Path(file).exists():
        Path(file).touch(mode=0o600)  # its -wal and -shm get the same rights
    engine = create_async_engine(
        URL.create("sqlite+aiosqlite", database=file),
        hide_parameters=True,
        pool_size=1,  # it has one writer at a time
        max_overflow=0,
        connect_args={"timeout": _PATIENCE},
    )
    event.listen(engine.sync_engine, "connect", _write_ahead)
    return engine


def _connector(url: str) -> Callable[[], Awaitable[Any]]:
    try:
        asyncpg: Any = import_module("asyncpg")  # an extra, without types
    except ImportError as problem:
        msg = "Approvals in PostgreSQL need its driver: pip install 'agentvisor-temporal[postgres]'."
        raise ToolUsageError(msg) from problem

    async def connect() -> Any:
        try:
            return await asyncpg.connect(url, timeout=_PATIENCE)
        except ValueError:  # its text quotes the URL
            msg = "The URL of the approval store cannot be read as a PostgreSQL URL. Encode special characters with %."
            raise ToolUsageError(msg) from None

    return connect


def _write_ahead(connection: Any, _record: object) -> None:
    cursor = connection.cursor()
    cursor.execute("PRAGMA journal_mode=WAL")
    cursor.execute("PRAGMA synchronous=FULL")  # a used approval must survive a power cut, since its effect does
    cursor.close()
