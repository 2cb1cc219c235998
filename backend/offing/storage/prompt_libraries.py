"""Prompt libraries as rows: the files of a policy version of kind `prompts`, letter by letter, never changed."""

from collections.abc import Mapping
from uuid import UUID

from offing.core.errors import NotFound
from offing.core.prompt_library import CASES, EXPERIENCES
from offing.storage.pool import Connection

ADD = """
    insert into prompt_library (policy_version_id, tenant_id, experiences, cases) values (%s, %s, %s, %s)
"""

FILES = """
    select l.experiences, l.cases, v.sha256
      from prompt_library l join policy_version v on v.id = l.policy_version_id
     where v.name = %s and v.version = %s
"""


async def add(connection: Connection, tenant: UUID, version: UUID, files: Mapping[str, str]) -> None:
    """Store a version's files in the transaction that registers it."""
    await connection.execute(ADD, (version, tenant, files[EXPERIENCES], files[CASES]))


async def files(connection: Connection, name: str, version: int) -> tuple[dict[str, str], str]:
    """Files by name, and the hash that the version is registered under. Raises NotFound."""
    row = await (await connection.execute(FILES, (name, version))).fetchone()
    if row is None:
        raise NotFound("prompt library", f"{name}@{version}")
    experiences, cases, sha256 = row
    return {EXPERIENCES: experiences, CASES: cases}, sha256
