"""Check that the files of a registered version are still what was registered, before the version is used.

`models.policy_folder` computes the hashes. Files on another machine are checked by the engine of that machine.
"""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from uuid import UUID

from offing.core.errors import Conflict
from offing.models.policy_folder import PolicyHashes, describe_damage, hash_policy
from offing.storage import policy_versions
from offing.storage.policy_versions import PolicyVersionRow
from offing.storage.pool import Connection, Database

WEIGHT_KINDS = ("full", "lora")
"""Kinds of versions that have files."""


def hash_files(folder: Path, base: PolicyVersionRow | None) -> PolicyHashes:
    """Return the hashes of a folder as the policy engine computes them.

    `base` is the version with the full weights under an adapter. An adapter without its own tokenizer or template has
    those of its base; full weights without them have empty hashes.
    """
    return hash_policy(folder, None if base is None else hashes_from_version(base))


def hashes_from_version(version: PolicyVersionRow) -> PolicyHashes:
    return PolicyHashes(version.sha256, version.tokenizer_sha256, version.template_sha256)


async def check_files(database: Database, tenant_id: UUID, version: PolicyVersionRow) -> None:
    """Check a version and the versions it depends on.

    Raises Conflict with the version, the file and the solution.
    """
    async with database.transaction(tenant_id) as connection:
        base_versions = await _list_base_versions(connection, version)
    await asyncio.to_thread(_check_base_files, base_versions)


async def _list_base_versions(connection: Connection, version: PolicyVersionRow) -> list[PolicyVersionRow]:
    """Return the version and, for an adapter, the versions that it was trained over."""
    versions = [version]
    while versions[-1].kind == "lora" and versions[-1].parent_id is not None:
        versions.append(await policy_versions.get_version(connection, versions[-1].parent_id))
    return versions


def _check_base_files(versions: Sequence[PolicyVersionRow]) -> None:
    """Check versions, each of which depends on the next."""
    for version, base in zip(versions, [*versions[1:], None], strict=True):
        if damage := _find_damage(version, base):
            remedy = (
                f"Restore the files, or run `offing policy set-state {version.label} blocked` and use another version."
            )
            raise Conflict(f"{version.label} is damaged: {damage}, in {version.uri}.", remedy)


def _find_damage(version: PolicyVersionRow, base: PolicyVersionRow | None) -> str:
    """Return the damage of a version's files in words. Empty if none is known on this machine."""
    elsewhere = version.kind not in WEIGHT_KINDS or not Path(version.uri).is_dir()
    if elsewhere or (version.kind == "lora" and base is None):
        return ""
    return describe_damage(Path(version.uri), hashes_from_version(version), base and hashes_from_version(base))
