"""Prompt libraries as rows: the files of a policy version of kind `prompt_library`, stored unchanged."""

from collections.abc import Mapping
from uuid import UUID

from offing.core.errors import NotFound
from offing.core.prompt_library import CASES, EXPERIENCES
from offing.storage.pool import Connection

INSERT_FILES = """
    insert into prompt_library (policy_version_id, tenant_id, experiences, cases) values (%s, %s, %s, %s)
"""

GET_FILES = """
    select l.experiences, l.cases, v.sha256
      from prompt_library l join policy_version v on v.id = l.policy_version_id
     where v.name = %s and v.version = %s
"""


async def insert_files(
    connection: Connection, tenant_id: UUID, policy_version_id: UUID, files: Mapping[str, str]
) -> None:
    """Store a version's files in the transaction that registers it."""
    await connection.execute(INSERT_FILES, (policy_version_id, tenant_id, files[EXPERIENCES], files[CASES]))


async def get_files(connection: Connection, name: str, version: int) -> tuple[dict[str, str], str]:
    """Return the files by name, and the hash of the registered version.

    Raises `NotFound` if it does not exist.
    """
    row = await (await connection.execute(GET_FILES, (name, version))).fetchone()
    if row is None:
        raise NotFound("prompt library", f"{name}@{version}")
    experiences, cases, sha256 = row
    return {EXPERIENCES: experiences, CASES: cases}, sha256
