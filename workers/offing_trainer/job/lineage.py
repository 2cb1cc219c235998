"""The versions that a job begins with, as its configuration names them, and what they stand on.

The only home of what an adapter's full weights are.
"""

import os
from dataclasses import dataclass

from offing.core.errors import InvalidInput
from offing.storage import policy_versions
from offing.storage.policy_versions import VersionRow
from offing.storage.pool import Connection
from offing_trainer.config import TrainConfig


@dataclass(frozen=True, slots=True)
class Policies:
    """The versions that a job names, with their folders."""

    start: VersionRow
    base: VersionRow | None
    """Full weights under an adapter. None: `start` is full weights."""
    reference: VersionRow | None
    """None: `start`."""
    reference_base: VersionRow | None = None
    """Full weights under a reference that is an adapter."""


async def policies_of(connection: Connection, config: TrainConfig) -> Policies:
    """Raises InvalidInput for a version that there is not, or whose folder is not on this machine."""
    start = await _version(connection, config.policy, "policy")
    reference = await _version(connection, config.reference, "reference") if config.reference else None
    under = await _base(connection, reference) if reference else None
    return Policies(start, await _base(connection, start), reference, under)


async def _base(connection: Connection, version: VersionRow) -> VersionRow | None:
    """The full weights that an adapter stands on, through whatever adapters it was trained from."""
    base = version
    while base.kind == "lora" and base.parent is not None:
        base = await policy_versions.by_id(connection, base.parent)
    return None if base is version else base


async def _version(connection: Connection, text: str, field: str) -> VersionRow:
    name, _, number = text.rpartition("@")
    row = await policy_versions.by_name(connection, name, int(number)) if number.isdigit() else None
    if row is None or not os.path.isdir(row.uri):  # noqa: ASYNC240  # one look at a local disk
        problem = f"there is no policy {text}" if row is None else f"its folder {row.uri} is not on this machine"
        raise InvalidInput(field, problem, "See `offing policy list`.")
    return row
