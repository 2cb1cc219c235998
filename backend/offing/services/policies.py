"""Policy versions: registering them, changing their state, and pinning those that a request names.

Weights are files on the engine's machine; here are their names, hashes and lineage.
"""

import hashlib
import re
from collections.abc import Mapping
from uuid import UUID

from offing.clock import new_id
from offing.core.errors import Conflict, InvalidInput
from offing.core.model import EngineChoice
from offing.services import policy_files
from offing.storage import policy_versions, training_events
from offing.storage.evaluations import ScoreRow, scores
from offing.storage.policy_versions import NewVersion, VersionRow
from offing.storage.pool import Connection, Database
from offing.storage.training_events import Event

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")

PROMPTS = "prompts"
"""The kind that is text: a prompt library, which `services.prompt_library` registers."""

UNREAD = frozenset({"extractive", "rules", "scripted"})
"""Engines that read no prompt, so that a library would do nothing."""

ACTIVE = "active"
"""In place of a version: the one that is active when a run is made."""

KINDS = ("full", "lora")
"""Of weights."""

FOLLOWING: Mapping[str, frozenset[str]] = {
    "candidate": frozenset({"canary", "active", "retired", "bad"}),
    "canary": frozenset({"candidate", "active", "retired", "bad"}),
    "active": frozenset({"retired", "bad"}),
    "retired": frozenset({"candidate", "active", "bad"}),
    "bad": frozenset(),
}
"""States that a version may have next. `bad` is for good; a retired one can be made active again."""


def parsed(text: str, field: str) -> tuple[str, int]:
    """Name and version of NAME@VERSION. Raises InvalidInput that names `field`."""
    name, _, version = text.rpartition("@")
    if not NAME.fullmatch(name) or not re.fullmatch(r"[1-9]\d{0,8}", version):
        raise InvalidInput(field, f"{text!r} is not NAME@VERSION", "Write for instance planner@3.")
    return name, int(version)


async def register(
    database: Database,
    tenant: UUID,
    *,
    name: str,
    kind: str,
    uri: str,
    sha256: str,
    tokenizer_sha256: str,
    template_sha256: str,
    parent: str = "",
    base_model: str = "",
) -> tuple[VersionRow, bool]:
    """Register files under the next version of a name, and whether that is new: the same files keep their version.

    `parent`: NAME@VERSION, registered. Empty: it has none. Raises InvalidInput.
    """
    if not NAME.fullmatch(name):
        remedy = "Use letters, digits, dots, dashes and underscores, at most 100."
        raise InvalidInput("name", f"{name!r} cannot name a policy", remedy)
    if kind not in KINDS:
        raise InvalidInput("kind", f"there is no kind {kind!r}", f"Use one of: {', '.join(KINDS)}.")
    if kind == "lora" and not parent and not base_model:
        raise InvalidInput("parent", "an adapter needs the weights that it stands on", "Name its parent or base model.")
    async with database.transaction(tenant) as connection:
        above = await known(connection, parent, "parent") if parent else None
        new = NewVersion(
            id=new_id(),
            name=name,
            kind=kind,
            uri=uri,
            sha256=sha256,
            tokenizer_sha256=tokenizer_sha256,
            template_sha256=template_sha256,
            base_model=base_model or (above.base_model if above else ""),
            parent=above.id if above else None,
        )
        return await policy_versions.add(connection, tenant, new)


async def known(connection: Connection, text: str, field: str) -> VersionRow:
    """The version that NAME@VERSION names. Raises InvalidInput when it is not registered."""
    name, version = parsed(text, field)
    row = await policy_versions.by_name(connection, name, version)
    if row is None:
        remedy = "Register it with `offing policy add`, or see `offing policy list`."
        raise InvalidInput(field, f"there is no policy {text}", remedy)
    return row


async def pinned(connection: Connection, engines: Mapping[str, EngineChoice]) -> dict[str, UUID]:
    """Ids of the versions that answer roles, by role, and of the libraries that `ROLE library` shows; they stay usable
    until the transaction ends.

    Raises InvalidInput for one that is not registered, or is bad.
    """
    found: dict[str, UUID] = {}
    for role, choice in engines.items():
        if choice.library:
            found[f"{role} library"] = (await _library(connection, role, choice)).id
        if choice.engine != "policy":
            continue
        version = await known(connection, choice.model, f"policies.{role}")
        if version.state == "bad":
            remedy = "Name another version; see `offing policy list`."
            raise InvalidInput(f"policies.{role}", f"{choice.model} is marked as bad", remedy)
        found[role] = version.id
    return found


async def resolved(connection: Connection, engines: Mapping[str, EngineChoice], key: UUID) -> dict[str, EngineChoice]:
    """Engines with a number where a policy or library is named without one: `NAME@active`, or `NAME` alone.

    The active version answers; for `NAME` alone, the canary does for its share of keys, always the same for a key. So
    runs keep the version that they began with. Raises InvalidInput for a name without an active version.
    """
    return {role: await _resolved(connection, role, choice, key) for role, choice in engines.items()}


async def _resolved(connection: Connection, role: str, choice: EngineChoice, key: UUID) -> EngineChoice:
    if choice.engine == "policy":
        model = await _numbered(connection, f"policies.{role}", choice.model, key)
        choice = choice.model_copy(update={"model": model})
    if choice.library:
        library = await _numbered(connection, f"engines.{role}.library", choice.library, key)
        choice = choice.model_copy(update={"library": library})
        await _library(connection, role, choice)
    return choice


async def _numbered(connection: Connection, field: str, text: str, key: UUID) -> str:
    """What a policy or library is called with its number."""
    name, at, version = text.partition("@")
    if not name or (at and version != ACTIVE):
        return text
    row = None if at else await _canary(connection, name, key)
    row = row or await policy_versions.in_state(connection, name, "active")
    if row is None:
        remedy = f"Name a version, such as {name}@1, or promote one with `offing policy promote`."
        raise InvalidInput(field, f"{name} has no active version", remedy)
    return row.label


async def _library(connection: Connection, role: str, choice: EngineChoice) -> VersionRow:
    """The version of a prompt library that a role's prompt is to show. Raises InvalidInput where it cannot."""
    field = f"engines.{role}.library"
    if choice.engine in UNREAD or choice.form == "compact":
        who = f"the form {choice.form}" if choice.form == "compact" else f"the engine {choice.engine}"
        raise InvalidInput(field, f"{who} reads no prompt library", "Choose a language model, or leave it out.")
    row = await known(connection, choice.library, field)
    if row.kind != PROMPTS or row.state == "bad":
        told = "is marked as bad" if row.state == "bad" else f"holds weights ({row.kind}), not text"
        raise InvalidInput(field, f"{choice.library} {told}", "Name another version; see `offing policy list`.")
    return row


async def _canary(connection: Connection, name: str, key: UUID) -> VersionRow | None:
    """The canary, if this key falls into its share."""
    row = await policy_versions.in_state(connection, name, "canary")
    drawn = int.from_bytes(hashlib.blake2b(name.encode() + key.bytes, digest_size=8).digest(), "big") / 2**64
    return row if row is not None and drawn < (row.canary_share or 0.0) else None


async def page(
    database: Database, tenant: UUID, name: str | None, before: UUID | None, limit: int
) -> tuple[list[VersionRow], UUID | None]:
    """Versions, newest first, and where the next page begins. None: this was the last."""
    async with database.transaction(tenant) as connection:
        found = await policy_versions.latest(connection, name, before, limit + 1)
    return found[:limit], found[limit - 1].id if len(found) > limit else None


async def one(database: Database, tenant: UUID, id: UUID) -> VersionRow:
    """Raises NotFound."""
    async with database.transaction(tenant) as connection:
        return await policy_versions.by_id(connection, id)


async def named(database: Database, tenant: UUID, text: str, field: str = "policy") -> VersionRow:
    """The version that NAME@VERSION names. Raises InvalidInput that names `field`."""
    async with database.transaction(tenant) as connection:
        return await known(connection, text, field)


async def events(database: Database, tenant: UUID, id: UUID, after: UUID | None, limit: int) -> list[Event]:
    """What was decided about a version, in order. Raises NotFound."""
    async with database.transaction(tenant) as connection:
        await policy_versions.by_id(connection, id)
        return await training_events.listed(connection, policy=id, after=after, limit=limit)


async def evaluations(
    database: Database, tenant: UUID, policy: UUID | None, name: str | None, before: UUID | None, limit: int
) -> tuple[list[ScoreRow], UUID | None]:
    """Evaluations of a version, of a name, or all, newest first, and where the next page begins. None: the last."""
    async with database.transaction(tenant) as connection:
        found = await scores(connection, policy, name, before, limit + 1)
    return found[:limit], found[limit - 1].id if len(found) > limit else None


async def change_state(database: Database, tenant: UUID, id: UUID, state: str) -> VersionRow:
    """Move a version to another state; making one active retires the one that was. The same state is no change.

    Raises NotFound, and Conflict for a state that may not follow its present one or where its files are damaged.
    """
    if state in ("active", "canary"):
        await policy_files.refuse_damaged(database, tenant, await one(database, tenant, id))
    async with database.transaction(tenant) as connection:
        await policy_versions.one_at_a_time(connection, (await policy_versions.by_id(connection, id)).name)
        row = await policy_versions.locked(connection, id)
        if row.state == state:
            return row
        if state not in FOLLOWING[row.state]:
            after = ", ".join(sorted(FOLLOWING[row.state])) or "none"
            raise Conflict(f"{row.label} is {row.state}.", f"States that may follow: {after}.")
        before = await policy_versions.in_state(connection, row.name, "active") if state == "active" else None
        made = await policy_versions.set_state(connection, row, state)
        kind = {"active": "promoted", "canary": "canary"}.get(state, "state")
        policy = row.label
        detail = {"policy": policy, "from": row.state, "to": state, "before": before and str(before.id)}
        await training_events.add(connection, tenant, kind, {**detail, "gate": "not asked"}, policy=made.id)
        return made
