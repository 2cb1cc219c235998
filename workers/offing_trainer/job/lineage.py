"""The policy versions that a job starts from, and the full weights under adapters."""

import os
from dataclasses import dataclass

from offing.core.errors import InvalidInput
from offing.storage import policy_versions
from offing.storage.policy_versions import PolicyVersionRow
from offing.storage.pool import Connection
from offing_trainer.config import TrainConfig


@dataclass(frozen=True, slots=True)
class JobPolicies:
    """The policy versions that a job names, with their folders."""

    start: PolicyVersionRow
    base: PolicyVersionRow | None
    """Full weights under an adapter. `None` means that `start` has full weights."""
    reference: PolicyVersionRow | None
    """Reference policy. `None` means `start`."""
    reference_base: PolicyVersionRow | None = None
    """Full weights under a reference policy that is an adapter."""


async def load_job_policies(connection: Connection, config: TrainConfig) -> JobPolicies:
    """Load the versions that a configuration names.

    Raises InvalidInput if a version does not exist or its folder is not on this machine.
    """
    start = await _get_version(connection, config.policy, "policy")
    reference = (
        await _get_version(connection, config.reference_policy, "reference_policy") if config.reference_policy else None
    )
    under = await _find_base(connection, reference) if reference else None
    return JobPolicies(start, await _find_base(connection, start), reference, under)


async def _find_base(connection: Connection, version: PolicyVersionRow) -> PolicyVersionRow | None:
    """Find the full weights of an adapter, through all adapters that it was trained from."""
    base = version
    while base.kind == "lora" and base.parent_id is not None:
        base = await policy_versions.get_version(connection, base.parent_id)
    return None if base is version else base


async def _get_version(connection: Connection, text: str, field: str) -> PolicyVersionRow:
    name, _, number = text.rpartition("@")
    row = await policy_versions.find_version(connection, name, int(number)) if number.isdigit() else None
    if row is None or not os.path.isdir(row.uri):  # noqa: ASYNC240  # one look at a local disk
        problem = f"there is no policy {text}" if row is None else f"its folder {row.uri} is not on this machine"
        raise InvalidInput(field, problem, "See `offing policy list`.")
    return row
