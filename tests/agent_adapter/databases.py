"""Empty databases of a real PostgreSQL server."""

from __future__ import annotations

import uuid

from tests.store.postgresql import Postgresql


async def new_schema(server: Postgresql) -> str:
    """A URL under which tables are in a schema of their own."""
    schema = f"s{uuid.uuid4().hex}"
    await server.execute(f"CREATE SCHEMA {schema}")
    return f"{server.url}&search_path={schema}"
