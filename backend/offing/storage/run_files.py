"""Files written by the code of a run, identified by their hash."""

from dataclasses import dataclass
from uuid import UUID

from psycopg.rows import class_row

from offing.storage.pool import Connection

UPSERT_FILE = """
    insert into run_file (run_id, sha256, name, tenant_id, media_type, body) values (%s, %s, %s, %s, %s, %s)
    on conflict (run_id, sha256, name) do update set created_at = clock_timestamp()
"""
"""A file that is written again becomes the latest of its name."""

GET_TOTAL_BYTES = "select coalesce(sum(octet_length(body)), 0) from run_file where tenant_id = %s and run_id = %s"

COLUMNS = "name, sha256, media_type, octet_length(body) as size_bytes"

LIST_FILES_OF_RUN = f"select {COLUMNS} from run_file where tenant_id = %s and run_id = %s order by created_at, name"

FIND_FILE_BY_HASH = f"select {COLUMNS}, body from run_file where tenant_id = %s and run_id = %s and sha256 = %s limit 1"

FIND_FILE_BY_NAME = f"""
    select {COLUMNS}, body from run_file where tenant_id = %s and run_id = %s and name = %s
     order by created_at desc limit 1
"""

DELETE_FILES = "delete from run_file where tenant_id = %s and run_id = %s"


@dataclass(frozen=True, slots=True)
class RunFileRow:
    name: str
    sha256: bytes
    media_type: str
    size_bytes: int
    """Size in bytes."""


@dataclass(frozen=True, slots=True)
class RunFileWithBody(RunFileRow):
    body: bytes


async def upsert_file(
    connection: Connection, tenant_id: UUID, run_id: UUID, *, name: str, sha256: bytes, media_type: str, body: bytes
) -> None:
    """Store a file. A file that is written several times is stored once."""
    await connection.execute(UPSERT_FILE, (run_id, sha256, name, tenant_id, media_type, body))


async def get_total_bytes(connection: Connection, tenant_id: UUID, run_id: UUID) -> int:
    row = await (await connection.execute(GET_TOTAL_BYTES, (tenant_id, run_id))).fetchone()
    assert row is not None
    return int(row[0])


async def list_files_of_run(connection: Connection, tenant_id: UUID, run_id: UUID) -> list[RunFileRow]:
    """Return all files of a run in the order in which they were last written."""
    async with connection.cursor(row_factory=class_row(RunFileRow)) as cursor:
        await cursor.execute(LIST_FILES_OF_RUN, (tenant_id, run_id))
        return await cursor.fetchall()


async def find_file_by_hash(
    connection: Connection, tenant_id: UUID, run_id: UUID, sha256: bytes
) -> RunFileWithBody | None:
    async with connection.cursor(row_factory=class_row(RunFileWithBody)) as cursor:
        await cursor.execute(FIND_FILE_BY_HASH, (tenant_id, run_id, sha256))
        return await cursor.fetchone()


async def find_file_by_name(connection: Connection, tenant_id: UUID, run_id: UUID, name: str) -> RunFileWithBody | None:
    """Return the latest file of a name."""
    async with connection.cursor(row_factory=class_row(RunFileWithBody)) as cursor:
        await cursor.execute(FIND_FILE_BY_NAME, (tenant_id, run_id, name))
        return await cursor.fetchone()


async def delete_files(connection: Connection, tenant_id: UUID, run_id: UUID) -> None:
    """Delete all files of a run."""
    await connection.execute(DELETE_FILES, (tenant_id, run_id))
