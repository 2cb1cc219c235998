"""Training jobs as people handle them: ask for one, look at it, pause it, go on, cancel it.

Only the trainer advances jobs; it also checks the chain of plug-ins, which needs packages that the platform does
without.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import orjson

from offing.clock import new_id
from offing.core.errors import Conflict, InvalidInput, NotFound
from offing.services import policies, policy_files
from offing.storage import training_events, training_jobs
from offing.storage.pool import Database
from offing.storage.training_events import Event
from offing.storage.training_jobs import JobRow, Metric

ENDED = frozenset({"done", "cancelled"})
"""A job in one of these states is over for good; a failed one can go on from its last good checkpoint."""

LARGEST_CONFIG = 64_000
"""Bytes of JSON."""


@dataclass(frozen=True, slots=True)
class SeenJob:
    """A job with what it decided about rollouts so far."""

    job: JobRow
    ledger: Mapping[str, int]
    """Rollouts by reason."""


async def create(database: Database, tenant: UUID, tables: Mapping[str, Any], *, kind: str = "train") -> JobRow:
    """Queue a job. `tables`: its configuration, as in a TOML file. Raises InvalidInput."""
    body = _canonical(tables)
    if len(body) > LARGEST_CONFIG:
        raise InvalidInput("config", f"more than {LARGEST_CONFIG} bytes", "Name a recipe and say what differs.")
    policy = tables.get("policy")
    if not isinstance(policy, str):
        raise InvalidInput("config.policy", "is missing", "Name the version to begin with, such as planner@1.")
    await policy_files.refuse_damaged(database, tenant, await policies.named(database, tenant, policy, "config.policy"))
    async with database.transaction(tenant) as connection:
        parent = await policies.known(connection, policy, "config.policy")
        if parent.state == "bad" or parent.kind == "prompts":
            why = "is marked as bad" if parent.state == "bad" else "has no weights"
            raise InvalidInput("config.policy", f"{policy} {why}", "See `offing policy list`.")
        job = await training_jobs.insert(
            connection, tenant, new_id(), kind=kind, name=_name(tables, parent.name), config=tables,
            config_sha256=hashlib.sha256(body).hexdigest(), seed=_seed(tables),
        )  # fmt: skip
        await training_events.add(connection, tenant, "created", {"policy": policy}, job=job.id)
    return job


async def earlier(database: Database, tenant: UUID, tables: Mapping[str, Any]) -> JobRow | None:
    """The latest job of the very same configuration that was not cancelled. None: there is none."""
    digest = hashlib.sha256(_body(tables)).hexdigest()
    async with database.transaction(tenant) as connection:
        return await training_jobs.of_config(connection, digest)


async def page(
    database: Database, tenant: UUID, state: str | None, before: UUID | None, limit: int
) -> tuple[list[JobRow], UUID | None]:
    """Jobs, newest first, and where the next page begins. None: this was the last."""
    async with database.transaction(tenant) as connection:
        found = await training_jobs.latest(connection, state, before, limit + 1)
    return found[:limit], found[limit - 1].id if len(found) > limit else None


async def rewards(database: Database, tenant: UUID, jobs: Sequence[UUID]) -> Mapping[UUID, float]:
    """Mean reward of the last step that has one, by job."""
    async with database.transaction(tenant) as connection:
        return await training_jobs.last_values(connection, jobs, "reward")


async def one(database: Database, tenant: UUID, job: UUID) -> SeenJob:
    """Raises NotFound."""
    async with database.transaction(tenant) as connection:
        row = await training_jobs.by_id(connection, job)
        return SeenJob(row, await training_jobs.ledger_counts(connection, job))


async def find(database: Database, tenant: UUID, text: str) -> UUID:
    """A job by its id or by the last characters of it. Raises NotFound and InvalidInput."""
    async with database.transaction(tenant) as connection:
        found = await training_jobs.ending_with(connection, text)
    if not found:
        raise NotFound("training job", text)
    if len(found) > 1:
        raise InvalidInput("JOB", f"{text!r} fits several jobs", "Write more of its last characters.")
    return found[0]


async def metrics(
    database: Database, tenant: UUID, job: UUID, after: int, names: Sequence[str] | None, limit: int
) -> list[Metric]:
    """Figures of the steps after `after`, of whole steps, at most about `limit`. Raises NotFound."""
    async with database.transaction(tenant) as connection:
        await training_jobs.by_id(connection, job)
        found = await training_jobs.metrics_since(connection, job, after, names, limit + 1)
    if len(found) <= limit:
        return found
    whole = [m for m in found if m.step < found[-1].step]
    return whole or found[:limit]


async def events(database: Database, tenant: UUID, job: UUID, after: UUID | None, limit: int) -> list[Event]:
    """What was decided about a job, in order. Raises NotFound."""
    async with database.transaction(tenant) as connection:
        await training_jobs.by_id(connection, job)
        return await training_events.listed(connection, job=job, after=after, limit=limit)


async def cancel(database: Database, tenant: UUID, job: UUID) -> JobRow:
    """End a job after the step that it is in; what it committed stays. Raises NotFound and Conflict."""
    return await _wish(database, tenant, job, "cancel")


async def pause(database: Database, tenant: UUID, job: UUID) -> JobRow:
    """Let a job rest after the step that it is in. Raises NotFound and Conflict."""
    return await _wish(database, tenant, job, "pause")


async def resume(database: Database, tenant: UUID, job: UUID) -> JobRow:
    """Queue a job that rests or failed, to go on from its last checkpoint. Raises NotFound and Conflict."""
    async with database.transaction(tenant) as connection:
        row = await training_jobs.locked(connection, job)
        if row.state in ENDED:
            raise Conflict(f"The job is {row.state}.", "Make a new one.")
        row = await training_jobs.go_on(connection, job)
        await training_events.add(connection, tenant, "resumed", {}, job=job)
    return row


async def _wish(database: Database, tenant: UUID, job: UUID, wish: str) -> JobRow:
    async with database.transaction(tenant) as connection:
        row = await training_jobs.locked(connection, job)
        if row.state in ENDED or (row.state == "failed" and wish == "pause"):
            raise Conflict(f"The job is {row.state}.", "Nothing is left to do for it.")
        row = await training_jobs.set_wish(connection, job, wish)
        await training_events.add(connection, tenant, f"{wish} asked", {}, job=job)
    return row


def _canonical(tables: Mapping[str, Any]) -> bytes:
    """Raises InvalidInput for what the database cannot hold."""
    try:
        body = _body(tables)
    except TypeError as error:
        raise InvalidInput(
            "config", f"it is no plain JSON: {error}", "Use numbers of 64 bits, texts and lists."
        ) from None
    if b"\\u0000" in body:
        raise InvalidInput("config", "a text has a NUL character", "Leave it out.")
    return body


def _name(tables: Mapping[str, Any], otherwise: str) -> str:
    name = tables.get("name") or otherwise
    if not isinstance(name, str) or not policies.NAME.fullmatch(name):
        remedy = "Use letters, digits, dots, dashes and underscores, at most 100."
        raise InvalidInput("config.name", f"{name!r} cannot name a policy", remedy)
    return name


def _body(tables: Mapping[str, Any]) -> bytes:
    return orjson.dumps(tables, option=orjson.OPT_SORT_KEYS)


def _seed(tables: Mapping[str, Any]) -> int:
    learner: dict[str, Any] = tables.get("learner") or {}
    seed = learner.get("seed", 0)
    return seed if isinstance(seed, int) else 0
