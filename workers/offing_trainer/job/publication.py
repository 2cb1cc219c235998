"""Registration of a job's weights as a policy version: complete files first, then the row.

It can be repeated after a crash at any point and ends with one folder and one row. Equal weights
have equal hashes, and a folder that a failed attempt left under the next number is reused.
"""

import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from offing.clock import new_id
from offing.core.errors import Conflict
from offing.models.policy_folder import PolicyHashes, hash_weights, is_adapter, write_sums
from offing.services.policy_files import hash_files
from offing.storage import policy_versions, training_events, training_jobs
from offing.storage.policy_versions import NewPolicyVersion, PolicyVersionRow
from offing.storage.pool import Connection, Database
from offing.storage.training_jobs import JobFencingToken

WeightsKind = Literal["full", "lora"]


@dataclass(frozen=True, slots=True)
class Registration:
    """What is to be registered."""

    name: str
    parent: PolicyVersionRow
    base: PolicyVersionRow | None
    """Full weights under an adapter. `None` means that the export has full weights."""
    lineage: Mapping[str, Any]


def export_weights(policy_dir: Path, job: object, export: Callable[[Path], None]) -> Path:
    """Export the job's weights to a temporary folder. Files of an earlier attempt are removed.

    The folder is inside the policy directory, so that it can be renamed atomically.
    """
    policy_dir.mkdir(parents=True, exist_ok=True)
    folder = policy_dir / f".export-{job}"
    shutil.rmtree(folder, ignore_errors=True)
    export(folder)
    write_sums(folder)
    return folder


async def register_version(
    database: Database,
    fencing_token: JobFencingToken,
    registration: Registration,
    files: Path,
    on_phase: Callable[[str], None],
) -> PolicyVersionRow:
    """Rename the files and register them as a candidate, in the transaction that sets the job's product.

    If the name already has a version with these weights, that version is returned. Raises
    LeaseLostError, and then nothing is registered.
    """
    hashes = hash_files(files, registration.base)
    kind: WeightsKind = "lora" if is_adapter(files) else "full"
    async with database.transaction(fencing_token.tenant_id) as connection:
        await policy_versions.lock_name(connection, registration.name)
        row = await policy_versions.find_identical_version(connection, registration.name, hashes.weights, kind)
        if row is None:
            number, folder = await _move_to_version_folder(connection, registration.name, files)
            on_phase("named")
            row, _ = await policy_versions.insert_version(
                connection, fencing_token.tenant_id, _build_version(registration, kind, hashes, number, folder)
            )
        await training_jobs.set_produced_version(connection, fencing_token, row.id)
        detail = {"policy": row.label, "sha256": row.sha256}
        await training_events.insert_event(
            connection,
            fencing_token.tenant_id,
            "registered",
            detail,
            job_id=fencing_token.job_id,
            policy_version_id=row.id,
        )
    shutil.rmtree(files, ignore_errors=True)
    return row


async def _move_to_version_folder(connection: Connection, name: str, files: Path) -> tuple[int, Path]:
    """Move the files to the folder of the next version number. The transaction locks the name."""
    number = await policy_versions.get_next_number(connection, name)
    folder = files.with_name(f"{name}@{number}")
    if folder.exists():
        if hash_weights(folder) != hash_weights(files):
            raise Conflict(
                f"{folder} contains other weights and is not a registered version.",
                f"Register it with `offing policy add {name} {folder}`, or move it elsewhere. Then resume the job.",
            )
        return number, folder
    os.rename(files, folder)
    _fsync_folder(folder.parent)
    return number, folder


def _build_version(
    registration: Registration, kind: WeightsKind, hashes: PolicyHashes, number: int, folder: Path
) -> NewPolicyVersion:
    return NewPolicyVersion(
        id=new_id(),
        name=registration.name,
        kind=kind,
        uri=str(folder.resolve()),
        sha256=hashes.weights,
        tokenizer_sha256=hashes.tokenizer,
        template_sha256=hashes.template,
        base_model=registration.parent.base_model,
        parent_id=registration.base.id if registration.base else registration.parent.id,
        lineage=registration.lineage,
        version=number,
    )


def _fsync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
