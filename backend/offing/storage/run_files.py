"""Files that the code of a run has written, by their hash. Knows nothing of what may be shown of them."""

from dataclasses import dataclass
from uuid import UUID

from psycopg.rows import class_row

from offing.storage.pool import Connection

PUT = """
    insert into run_file (run_id, sha256, name, tenant_id, media_type, body) values (%s, %s, %s, %s, %s, %s)
    on conflict (run_id, sha256, name) do update set created_at = clock_timestamp()
"""
"""What is written again is the latest of its name again."""

KEPT_BYTES = "select coalesce(sum(octet_length(body)), 0) from run_file where tenant_id = %s and run_id = %s"

COLUMNS = "name, sha256, media_type, octet_length(body) as size"

LISTED = f"select {COLUMNS} from run_file where tenant_id = %s and run_id = %s order by created_at, name"

BY_HASH = f"select {COLUMNS}, body from run_file where tenant_id = %s and run_id = %s and sha256 = %s limit 1"

BY_NAME = f"""
    select {COLUMNS}, body from run_file where tenant_id = %s and run_id = %s and name = %s
     order by created_at desc limit 1
"""

DROP = "delete from run_file where tenant_id = %s and run_id = %s"


@dataclass(frozen=True, slots=True)
class FileRow:
    name: str
    sha256: bytes
    media_type: str
    size: int
    """Bytes."""


@dataclass(frozen=True, slots=True)
class BodyRow(FileRow):
    body: bytes


async def put(
    connection: Connection, tenant: UUID, run: UUID, *, name: str, sha256: bytes, media_type: str, body: bytes
) -> None:
    """Keep a file; once, however often the run writes it."""
    await connection.execute(PUT, (run, sha256, name, tenant, media_type, body))


async def kept_bytes(connection: Connection, tenant: UUID, run: UUID) -> int:
    row = await (await connection.execute(KEPT_BYTES, (tenant, run))).fetchone()
    assert row is not None
    return int(row[0])


async def listed(connection: Connection, tenant: UUID, run: UUID) -> list[FileRow]:
    """All of a run, in the order in which they were last written."""
    async with connection.cursor(row_factory=class_row(FileRow)) as cursor:
        await cursor.execute(LISTED, (tenant, run))
        return await cursor.fetchall()


async def by_hash(connection: Connection, tenant: UUID, run: UUID, sha256: bytes) -> BodyRow | None:
    async with connection.cursor(row_factory=class_row(BodyRow)) as cursor:
        await cursor.execute(BY_HASH, (tenant, run, sha256))
        return await cursor.fetchone()


async def by_name(connection: Connection, tenant: UUID, run: UUID, name: str) -> BodyRow | None:
    """The latest of that name."""
    async with connection.cursor(row_factory=class_row(BodyRow)) as cursor:
        await cursor.execute(BY_NAME, (tenant, run, name))
        return await cursor.fetchone()


async def drop(connection: Connection, tenant: UUID, run: UUID) -> None:
    """Remove all files of a run."""
    await connection.execute(DROP, (tenant, run))
