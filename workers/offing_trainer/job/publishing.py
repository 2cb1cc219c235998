"""A job's weights as a registered policy version: files first, whole and under their final name, then the row.

The only home of that order. Done again after a loss at any point it ends with one folder and one row: the same weights
have the same hash, and a folder that a lost attempt left under the next number is taken as it is.
"""

import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from offing.clock import new_id
from offing.core.errors import Conflict
from offing.models.policy_folder import Hashes, hashes_in, is_adapter, note_sums, weights_sha256
from offing.services.policy_files import registered_hashes
from offing.storage import policy_versions, training_events, training_jobs
from offing.storage.policy_versions import NewVersion, VersionRow
from offing.storage.pool import Connection, Database
from offing.storage.training_jobs import Hold

Kind = Literal["full", "lora"]


@dataclass(frozen=True, slots=True)
class Made:
    """What is to be registered."""

    name: str
    parent: VersionRow
    base: VersionRow | None
    """Full weights under an adapter. None: the export is full weights."""
    lineage: Mapping[str, Any]


def exported(policies: Path, job: object, export: Callable[[Path], None]) -> Path:
    """The job's weights in a folder aside, among the policies so that renaming it is one step; of an earlier attempt
    nothing stays."""
    policies.mkdir(parents=True, exist_ok=True)
    aside = policies / f".export-{job}"
    shutil.rmtree(aside, ignore_errors=True)
    export(aside)
    note_sums(aside)
    return aside


async def registered(
    database: Database, held: Hold, made: Made, files: Path, said: Callable[[str], None]
) -> VersionRow:
    """Name the files and register them as a candidate, in the transaction in which the job says what it produced.

    Weights that the name has already keep their version. Raises Fenced, with nothing registered.
    """
    hashes = hashes_of(files, made.base)
    kind: Kind = "lora" if is_adapter(files) else "full"
    async with database.transaction(held.tenant) as connection:
        await policy_versions.one_at_a_time(connection, made.name)
        row = await policy_versions.same(connection, made.name, hashes.weights, kind)
        if row is None:
            number, place = await _placed(connection, made.name, files)
            said("named")
            row, _ = await policy_versions.add(connection, held.tenant, _version(made, kind, hashes, number, place))
        await training_jobs.set_produced(connection, held, row.id)
        detail = {"policy": row.label, "sha256": row.sha256}
        await training_events.add(connection, held.tenant, "registered", detail, job=held.job, policy=row.id)
    shutil.rmtree(files, ignore_errors=True)
    return row


def hashes_of(folder: Path, base: VersionRow | None) -> Hashes:
    """As the engine computes them. `base`: what an adapter stands on."""
    return hashes_in(folder, None if base is None else registered_hashes(base))


async def _placed(connection: Connection, name: str, files: Path) -> tuple[int, Path]:
    """The next number and its folder, which holds the files from now on. The name is held by the transaction."""
    number = await policy_versions.next_number(connection, name)
    place = files.with_name(f"{name}@{number}")
    if place.exists():
        if weights_sha256(place) != weights_sha256(files):
            raise Conflict(
                f"{place} holds other weights, and is no registered version.",
                f"Register it with `offing policy add {name} {place}`, or move it away, and resume the job.",
            )
        return number, place
    os.rename(files, place)
    _flush(place.parent)
    return number, place


def _version(made: Made, kind: Kind, hashes: Hashes, number: int, place: Path) -> NewVersion:
    return NewVersion(
        id=new_id(),
        name=made.name,
        kind=kind,
        uri=str(place.resolve()),
        sha256=hashes.weights,
        tokenizer_sha256=hashes.tokenizer,
        template_sha256=hashes.template,
        base_model=made.parent.base_model,
        parent=made.base.id if made.base else made.parent.id,
        lineage=made.lineage,
        version=number,
    )


def _flush(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
