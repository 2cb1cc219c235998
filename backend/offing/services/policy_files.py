"""Whether the files of a registered version are still what was registered, asked before anybody is to rely on them.

The only home of that question for rows; what a file's hash is, `models.policy_folder` says. Files that lie on another
machine are that machine's engine's to look at.
"""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from uuid import UUID

from offing.core.errors import Conflict
from offing.models.policy_folder import Hashes, damage
from offing.storage import policy_versions
from offing.storage.policy_versions import VersionRow
from offing.storage.pool import Connection, Database

WEIGHTS = ("full", "lora")
"""Kinds that have files."""


def registered_hashes(version: VersionRow) -> Hashes:
    return Hashes(version.sha256, version.tokenizer_sha256, version.template_sha256)


async def refuse_damaged(database: Database, tenant: UUID, version: VersionRow) -> None:
    """The version, and what it stands on. Raises Conflict that names the version, the file and the way out."""
    async with database.transaction(tenant) as connection:
        standing = await _standing(connection, version)
    await asyncio.to_thread(_refuse_damaged, standing)


async def _standing(connection: Connection, version: VersionRow) -> list[VersionRow]:
    """The version, and below an adapter what it was trained over."""
    found = [version]
    while found[-1].kind == "lora" and found[-1].parent is not None:
        found.append(await policy_versions.by_id(connection, found[-1].parent))
    return found


def _refuse_damaged(standing: Sequence[VersionRow]) -> None:
    """Each stands on the next."""
    for version, base in zip(standing, [*standing[1:], None], strict=True):
        if told := _damage(version, base):
            remedy = f"Put it back, or say `offing policy state {version.label} bad` and use another version."
            raise Conflict(f"{version.label} is damaged: {told}, in {version.uri}.", remedy)


def _damage(version: VersionRow, base: VersionRow | None) -> str:
    """In words. Empty: none is known of here."""
    elsewhere = version.kind not in WEIGHTS or not Path(version.uri).is_dir()
    if elsewhere or (version.kind == "lora" and base is None):
        return ""
    return damage(Path(version.uri), registered_hashes(version), base and registered_hashes(base))
