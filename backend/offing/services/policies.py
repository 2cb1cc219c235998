"""Register policy versions, change their state, and pin those that a request names.

Weights are files on the machine of the engine; the database has their names, hashes and lineage.
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from offing.clock import new_id
from offing.core.errors import Conflict, InvalidInput
from offing.core.model import EngineConfig
from offing.models.policy_folder import PolicyHashes
from offing.models.prompt_formats import COMPACT_FORMATS
from offing.services import policy_files
from offing.storage import policy_versions, training_events
from offing.storage.evaluations import EvaluationSummary, list_summaries
from offing.storage.policy_versions import NewPolicyVersion, PolicyVersionRow
from offing.storage.pool import Connection, Database
from offing.storage.training_events import TrainingEvent

NAME_PATTERN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")

PROMPT_LIBRARY_KIND = "prompt_library"
"""The kind of a version that is text: a prompt library, which `services.prompt_library` registers."""

PROMPTLESS_ENGINES = frozenset({"extractive", "rules", "scripted"})
"""Engines that read no prompt, so that a prompt library would have no effect."""

ACTIVE_ALIAS = "active"
"""Used in place of a version: the one that is active when a run is created."""

WEIGHT_KINDS = ("full", "lora")
"""Kinds of versions that are weights."""

ALLOWED_TRANSITIONS: Mapping[str, frozenset[str]] = {
    "candidate": frozenset({"canary", "active", "retired", "blocked"}),
    "canary": frozenset({"candidate", "active", "retired", "blocked"}),
    "active": frozenset({"retired", "blocked"}),
    "retired": frozenset({"candidate", "active", "blocked"}),
    "blocked": frozenset(),
}
"""States that may follow each state of a version. `blocked` is permanent; a retired version can be made active again.
"""


def parse_version_name(text: str, field: str) -> tuple[str, int]:
    """Parse NAME@VERSION. Raises InvalidInput with the name of the field."""
    name, _, version = text.rpartition("@")
    if not NAME_PATTERN.fullmatch(name) or not re.fullmatch(r"[1-9]\d{0,8}", version):
        raise InvalidInput(field, f"{text!r} is not NAME@VERSION", "Use a form such as planner@3.")
    return name, int(version)


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyRegistration:
    """Weights to register as the next version of a name."""

    name: str
    kind: str
    """`full` or `lora`."""
    uri: str
    """Folder on the machine of the engine."""
    hashes: PolicyHashes
    parent_version: str = ""
    """Registered NAME@VERSION that the weights were trained from. Empty means that there is none."""
    base_model: str = ""
    """Name of the original model. Empty means that of the parent."""

    def check(self) -> None:
        """Raise InvalidInput for a name or kind that cannot be registered, and for an adapter without a base."""
        if not NAME_PATTERN.fullmatch(self.name):
            remedy = "Use at most 100 letters, digits, dots, dashes and underscores."
            raise InvalidInput("name", f"{self.name!r} is not a valid policy name", remedy)
        if self.kind not in WEIGHT_KINDS:
            raise InvalidInput("kind", f"there is no kind {self.kind!r}", f"Use one of: {', '.join(WEIGHT_KINDS)}.")
        if self.kind == "lora" and not self.parent_version and not self.base_model:
            raise InvalidInput("parent", "an adapter needs a parent version or a base model", "Give one of the two.")


async def register_version(
    database: Database, tenant_id: UUID, registration: PolicyRegistration
) -> tuple[PolicyVersionRow, bool]:
    """Register files as the next version of a name. Returns the version and whether it is new.

    Files that are already registered keep their version. Raises InvalidInput.
    """
    registration.check()
    async with database.transaction(tenant_id) as connection:
        label = registration.parent_version
        parent = await require_version(connection, label, "parent") if label else None
        return await policy_versions.insert_version(connection, tenant_id, _build_version(registration, parent))


def _build_version(registration: PolicyRegistration, parent: PolicyVersionRow | None) -> NewPolicyVersion:
    return NewPolicyVersion(
        id=new_id(),
        name=registration.name,
        kind=registration.kind,
        uri=registration.uri,
        sha256=registration.hashes.weights,
        tokenizer_sha256=registration.hashes.tokenizer,
        template_sha256=registration.hashes.template,
        base_model=registration.base_model or (parent.base_model if parent else ""),
        parent_id=parent.id if parent else None,
    )


async def require_version(connection: Connection, text: str, field: str) -> PolicyVersionRow:
    """Return the version that NAME@VERSION names. Raises InvalidInput if it is not registered."""
    name, version = parse_version_name(text, field)
    row = await policy_versions.find_version(connection, name, version)
    if row is None:
        remedy = "Register it with `offing policy add`, or see `offing policy list`."
        raise InvalidInput(field, f"there is no policy {text}", remedy)
    return row


async def pin_versions(connection: Connection, engines: Mapping[str, EngineConfig]) -> dict[str, UUID]:
    """Return the ids of the versions that answer roles, by role, and of prompt libraries under `ROLE library`.

    They stay usable until the transaction ends. Raises InvalidInput for a version that is not registered or is blocked.
    """
    pins: dict[str, UUID] = {}
    for role, choice in engines.items():
        if choice.prompt_library:
            pins[f"{role} library"] = (await _require_library(connection, role, choice)).id
        if choice.engine != "policy":
            continue
        version = await require_version(connection, choice.model, f"policies.{role}")
        if version.state == "blocked":
            remedy = "Choose another version; see `offing policy list`."
            raise InvalidInput(f"policies.{role}", f"{choice.model} is blocked", remedy)
        pins[role] = version.id
    return pins


async def resolve_versions(
    connection: Connection, engines: Mapping[str, EngineConfig], sampling_key: UUID
) -> dict[str, EngineConfig]:
    """Replace `NAME@active` and `NAME` by a version in the engine configs of roles.

    The active version answers. For `NAME` alone, the canary answers its fraction of sampling keys; the same key
    always gets the same version. Runs keep the version that they started with. Raises InvalidInput for a name
    without an active version.
    """
    return {role: await _resolve_engine(connection, role, choice, sampling_key) for role, choice in engines.items()}


async def _resolve_engine(
    connection: Connection, role: str, engine_config: EngineConfig, sampling_key: UUID
) -> EngineConfig:
    if engine_config.engine == "policy":
        model = await _resolve_version_name(connection, f"policies.{role}", engine_config.model, sampling_key)
        engine_config = engine_config.model_copy(update={"model": model})
    if engine_config.prompt_library:
        library = await _resolve_version_name(
            connection, f"engines.{role}.prompt_library", engine_config.prompt_library, sampling_key
        )
        engine_config = engine_config.model_copy(update={"prompt_library": library})
        await _require_library(connection, role, engine_config)
    return engine_config


async def _resolve_version_name(connection: Connection, field: str, text: str, sampling_key: UUID) -> str:
    """Return the name of a policy or prompt library with its version."""
    name, at, version = text.partition("@")
    if not name or (at and version != ACTIVE_ALIAS):
        return text
    row = None if at else await _pick_canary(connection, name, sampling_key)
    row = row or await policy_versions.find_version_in_state(connection, name, "active")
    if row is None:
        remedy = f"Give a version, such as {name}@1, or promote one with `offing policy promote`."
        raise InvalidInput(field, f"{name} has no active version", remedy)
    return row.label


async def _require_library(connection: Connection, role: str, engine_config: EngineConfig) -> PolicyVersionRow:
    """Return the version of the prompt library for a role's prompt.

    Raises InvalidInput if the role cannot use it.
    """
    field = f"engines.{role}.prompt_library"
    if engine_config.engine in PROMPTLESS_ENGINES or engine_config.prompt_format in COMPACT_FORMATS:
        who = (
            f"the prompt format {engine_config.prompt_format}"
            if engine_config.prompt_format in COMPACT_FORMATS
            else f"the engine {engine_config.engine}"
        )
        raise InvalidInput(
            field, f"{who} does not use a prompt library", "Choose a language model, or leave the prompt library out."
        )
    row = await require_version(connection, engine_config.prompt_library, field)
    if row.kind != PROMPT_LIBRARY_KIND or row.state == "blocked":
        problem = "is blocked" if row.state == "blocked" else f"contains weights ({row.kind}), not text"
        raise InvalidInput(
            field, f"{engine_config.prompt_library} {problem}", "Choose another version; see `offing policy list`."
        )
    return row


async def _pick_canary(connection: Connection, name: str, sampling_key: UUID) -> PolicyVersionRow | None:
    """Return the canary if this key falls into its fraction, else `None`."""
    row = await policy_versions.find_version_in_state(connection, name, "canary")
    drawn = int.from_bytes(hashlib.blake2b(name.encode() + sampling_key.bytes, digest_size=8).digest(), "big") / 2**64
    return row if row is not None and drawn < (row.canary_fraction or 0.0) else None


async def list_versions(
    database: Database, tenant_id: UUID, name: str | None, before_id: UUID | None, limit: int
) -> tuple[list[PolicyVersionRow], UUID | None]:
    """List versions, newest first, with the start of the next page. `None` means that this is the last page."""
    async with database.transaction(tenant_id) as connection:
        rows = await policy_versions.list_versions(connection, name, before_id, limit + 1)
    return rows[:limit], rows[limit - 1].id if len(rows) > limit else None


async def get_version(database: Database, tenant_id: UUID, version_id: UUID) -> PolicyVersionRow:
    """Return a version. Raises NotFound."""
    async with database.transaction(tenant_id) as connection:
        return await policy_versions.get_version(connection, version_id)


async def get_version_by_name(
    database: Database, tenant_id: UUID, text: str, field: str = "policy"
) -> PolicyVersionRow:
    """Return the version that NAME@VERSION names. Raises InvalidInput with the name of the field."""
    async with database.transaction(tenant_id) as connection:
        return await require_version(connection, text, field)


async def list_events(
    database: Database, tenant_id: UUID, version_id: UUID, after_id: UUID | None, limit: int
) -> list[TrainingEvent]:
    """List the decisions about a version, in order. Raises NotFound."""
    async with database.transaction(tenant_id) as connection:
        await policy_versions.get_version(connection, version_id)
        return await training_events.list_events(connection, policy_version_id=version_id, after=after_id, limit=limit)


async def list_evaluations(
    database: Database, tenant_id: UUID, version_id: UUID | None, name: str | None, before_id: UUID | None, limit: int
) -> tuple[list[EvaluationSummary], UUID | None]:
    """List evaluations of a version, of a name, or all, newest first, with the start of the next page or `None`."""
    async with database.transaction(tenant_id) as connection:
        summaries = await list_summaries(connection, version_id, name, before_id, limit + 1)
    return summaries[:limit], summaries[limit - 1].id if len(summaries) > limit else None


async def set_version_state(database: Database, tenant_id: UUID, version_id: UUID, state: str) -> PolicyVersionRow:
    """Set the state of a version.

    Activating a version retires the active one; setting the same state changes nothing.

    Raises NotFound, and Conflict if the state may not follow the present one or the files are damaged.
    """
    if state in ("active", "canary"):
        await policy_files.check_files(database, tenant_id, await get_version(database, tenant_id, version_id))
    async with database.transaction(tenant_id) as connection:
        await policy_versions.lock_name(connection, (await policy_versions.get_version(connection, version_id)).name)
        row = await policy_versions.lock_version(connection, version_id)
        if row.state == state:
            return row
        if state not in ALLOWED_TRANSITIONS[row.state]:
            after = ", ".join(sorted(ALLOWED_TRANSITIONS[row.state])) or "none"
            raise Conflict(f"The version {row.label} is {row.state}.", f"Possible next states: {after}.")
        before = (
            await policy_versions.find_version_in_state(connection, row.name, "active") if state == "active" else None
        )
        changed = await policy_versions.set_state(connection, row, state)
        kind = {"active": "promoted", "canary": "canary"}.get(state, "state")
        policy = row.label
        detail = {"policy": policy, "from": row.state, "to": state, "before": before and str(before.id)}
        await training_events.insert_event(
            connection, tenant_id, kind, {**detail, "gate": "skipped"}, policy_version_id=changed.id
        )
        return changed
