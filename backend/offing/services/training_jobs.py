"""Create, list, read, pause, resume and cancel training jobs.

Only the trainer advances jobs. It also checks the pipeline, because that needs packages that the platform
does not install.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any
from uuid import UUID

import orjson

from offing.clock import new_id
from offing.core.errors import Conflict, InvalidInput, NotFound
from offing.core.judge_budget import NO_JUDGE_LIMIT, JudgeBudget, JudgeUsage
from offing.core.time_left import RECENT_STEPS, estimate_seconds_left
from offing.services import policies, policy_files
from offing.storage import judge_budgets, training_events, training_jobs, training_metrics
from offing.storage.pool import Connection, Database
from offing.storage.training_events import TrainingEvent
from offing.storage.training_jobs import JobFencingToken, TrainingJobRow
from offing.storage.training_metrics import TrainingMetric

ENDED_STATES = frozenset({"done", "cancelled"})
"""States in which a job has ended permanently. A failed job can continue from its last good checkpoint."""

MAX_CONFIG_BYTES = 64_000
"""Maximum bytes of the configuration as JSON."""


@dataclass(frozen=True, slots=True)
class JobWithLedger:
    """A job with its ledger so far."""

    job: TrainingJobRow
    ledger: Mapping[str, int]
    """Number of rollouts by ledger reason."""
    seconds_left: float | None
    """Estimated seconds that the remaining training steps take. `None` if they are not known, and for a job that does
    not run.
    """
    judges: JudgeUsage
    """What the judges of all batches that the job has collected have used."""


@dataclass(frozen=True, slots=True)
class JobClaimant:
    """A process that runs a job itself."""

    process: str
    """Its name, from `get_process_name`."""
    lease_seconds: float


async def create_job(
    database: Database, tenant_id: UUID, tables: Mapping[str, Any], *, kind: str = "train"
) -> TrainingJobRow:
    """Queue a job. `tables` is its configuration with the structure of the TOML file. Raises InvalidInput."""
    body = await _check_config(database, tenant_id, tables)
    async with database.transaction(tenant_id) as connection:
        return await _insert_job(connection, tenant_id, tables, body, kind)


async def create_claimed_job(
    database: Database, tenant_id: UUID, tables: Mapping[str, Any], claimant: JobClaimant
) -> JobFencingToken:
    """Create a job and claim it, so that no trainer process can run it instead. Raises InvalidInput."""
    body = await _check_config(database, tenant_id, tables)
    async with database.transaction(tenant_id) as connection:
        job = await _insert_job(connection, tenant_id, tables, body, "train")
        return await _claim(connection, job.id, claimant)


async def _check_config(database: Database, tenant_id: UUID, tables: Mapping[str, Any]) -> bytes:
    """Check the configuration and the files of its policy. Returns the configuration as canonical JSON."""
    body = _canonical_json(tables)
    if len(body) > MAX_CONFIG_BYTES:
        raise InvalidInput(
            "config", f"more than {MAX_CONFIG_BYTES} bytes", "Use a recipe and list only the differences."
        )
    policy = tables.get("policy")
    if not isinstance(policy, str):
        raise InvalidInput("config.policy", "is missing", "Give the version to start from, such as planner@1.")
    await policy_files.check_files(
        database, tenant_id, await policies.get_version_by_name(database, tenant_id, policy, "config.policy")
    )
    return body


async def _insert_job(
    connection: Connection, tenant_id: UUID, tables: Mapping[str, Any], body: bytes, kind: str
) -> TrainingJobRow:
    policy = tables["policy"]
    parent = await policies.require_version(connection, policy, "config.policy")
    if parent.state == "blocked" or parent.kind == "prompt_library":
        why = "is blocked" if parent.state == "blocked" else "has no weights"
        raise InvalidInput("config.policy", f"{policy} {why}", "See `offing policy list`.")
    job = await training_jobs.insert_job(
        connection, tenant_id, new_id(), kind=kind, name=_job_name(tables, parent.name), config=tables,
        config_sha256=hashlib.sha256(body).hexdigest(), seed=_job_seed(tables),
    )  # fmt: skip
    await training_events.insert_event(connection, tenant_id, "created", {"policy": policy}, job_id=job.id)
    return job


async def _claim(connection: Connection, job_id: UUID, claimant: JobClaimant) -> JobFencingToken:
    token = await training_jobs.claim_created_job(connection, job_id, claimant.process, claimant.lease_seconds)
    if token is None:
        raise Conflict(f"Another process runs job {job_id}.", "If that process has crashed, try again in a minute.")
    return token


async def find_same_job(database: Database, tenant_id: UUID, tables: Mapping[str, Any]) -> TrainingJobRow | None:
    """Return the latest job with exactly this configuration that was not cancelled, or `None`."""
    digest = hashlib.sha256(_encode_config(tables)).hexdigest()
    async with database.transaction(tenant_id) as connection:
        return await training_jobs.find_job_by_config(connection, digest)


async def list_jobs(
    database: Database, tenant_id: UUID, state: str | None, before_id: UUID | None, limit: int
) -> tuple[list[TrainingJobRow], UUID | None]:
    """List jobs, newest first, with the start of the next page. `None` means that this is the last page."""
    async with database.transaction(tenant_id) as connection:
        jobs = await training_jobs.list_jobs(connection, state, before_id, limit + 1)
    return jobs[:limit], jobs[limit - 1].id if len(jobs) > limit else None


async def get_last_rewards(database: Database, tenant_id: UUID, job_ids: Sequence[UUID]) -> Mapping[UUID, float]:
    """Return the mean reward of the last training step that has one, by job."""
    async with database.transaction(tenant_id) as connection:
        return await training_metrics.get_last_metric_values(connection, job_ids, "reward")


async def get_job(database: Database, tenant_id: UUID, job_id: UUID) -> JobWithLedger:
    """Return a job with its ledger. Raises NotFound."""
    async with database.transaction(tenant_id) as connection:
        row = await training_jobs.get_job(connection, job_id)
        ledger = await training_jobs.count_ledger_reasons(connection, job_id)
        recent = await training_metrics.list_recent_values(connection, job_id, "seconds_step", RECENT_STEPS)
        calls, cost_usd = await judge_budgets.sum_usage(connection, f"{job_id}/")
    remaining = None if row.planned_steps is None or row.state != "running" else row.planned_steps - row.step
    judges = JudgeUsage(calls, cost_usd, read_judge_budget(row.config))
    return JobWithLedger(row, ledger, estimate_seconds_left(recent, remaining), judges)


def read_judge_budget(config: Mapping[str, Any]) -> JudgeBudget:
    """Return the budget of all batches of a job, as `judge_budget` of its table `collect` says.

    The trainer checks the table when the job starts. Until then, a value that is no number is read as no limit.
    """
    match config.get("collect"):
        case {"judge_budget": {**limits}}:
            calls, cost = limits.get("max_calls"), limits.get("max_cost_usd")
        case _:
            return NO_JUDGE_LIMIT
    return JudgeBudget(
        calls if isinstance(calls, int) else None, Decimal(str(cost)) if isinstance(cost, int | float) else None
    )


async def resolve_job_id(database: Database, tenant_id: UUID, text: str) -> UUID:
    """Return the id of the job with this id or these last characters of it. Raises NotFound and InvalidInput."""
    async with database.transaction(tenant_id) as connection:
        job_ids = await training_jobs.list_ids_with_suffix(connection, text)
    if not job_ids:
        raise NotFound("training job", text)
    if len(job_ids) > 1:
        raise InvalidInput("JOB", f"{text!r} matches several jobs", "Use more of the last characters of the id.")
    return job_ids[0]


async def list_metrics(
    database: Database, tenant_id: UUID, job_id: UUID, after_step: int, names: Sequence[str] | None, limit: int
) -> list[TrainingMetric]:
    """List the metrics of training steps after `after_step`, of whole steps, at most about `limit`.

    Raises NotFound.
    """
    async with database.transaction(tenant_id) as connection:
        await training_jobs.get_job(connection, job_id)
        metrics = await training_metrics.list_metrics_since(connection, job_id, after_step, names, limit + 1)
    if len(metrics) <= limit:
        return metrics
    whole = [m for m in metrics if m.step < metrics[-1].step]
    return whole or metrics[:limit]


async def list_events(
    database: Database, tenant_id: UUID, job_id: UUID, after_id: UUID | None, limit: int
) -> list[TrainingEvent]:
    """List the decisions about a job, in order. Raises NotFound."""
    async with database.transaction(tenant_id) as connection:
        await training_jobs.get_job(connection, job_id)
        return await training_events.list_events(connection, job_id=job_id, after=after_id, limit=limit)


async def cancel_job(database: Database, tenant_id: UUID, job_id: UUID) -> TrainingJobRow:
    """Cancel a job after its current training step. Committed steps are kept. Raises NotFound and Conflict."""
    return await _set_requested_action(database, tenant_id, job_id, "cancel")


async def pause_job(database: Database, tenant_id: UUID, job_id: UUID) -> TrainingJobRow:
    """Pause a job after its current training step. Raises NotFound and Conflict."""
    return await _set_requested_action(database, tenant_id, job_id, "pause")


async def resume_job(database: Database, tenant_id: UUID, job_id: UUID) -> TrainingJobRow:
    """Queue a paused or failed job to continue from its last checkpoint. Raises NotFound and Conflict."""
    async with database.transaction(tenant_id) as connection:
        return await _resume_job(connection, tenant_id, await training_jobs.lock_job(connection, job_id))


async def resume_claimed_job(
    database: Database, tenant_id: UUID, job_id: UUID, claimant: JobClaimant
) -> JobFencingToken:
    """Resume a job and claim it. A running job is claimed if its process has crashed.

    Raises NotFound, and Conflict if the job has ended or another process runs it.
    """
    async with database.transaction(tenant_id) as connection:
        row = await training_jobs.lock_job(connection, job_id)
        if row.state != "running":
            await _resume_job(connection, tenant_id, row)
        return await _claim(connection, job_id, claimant)


async def _resume_job(connection: Connection, tenant_id: UUID, row: TrainingJobRow) -> TrainingJobRow:
    """Queue a locked job. Raises Conflict if it has ended."""
    if row.state in ENDED_STATES:
        raise Conflict(f"The job is {row.state}.", "Create a new job.")
    resumed = await training_jobs.resume_job(connection, row.id)
    await training_events.insert_event(connection, tenant_id, "resumed", {}, job_id=row.id)
    return resumed


async def _set_requested_action(database: Database, tenant_id: UUID, job_id: UUID, action: str) -> TrainingJobRow:
    async with database.transaction(tenant_id) as connection:
        row = await training_jobs.lock_job(connection, job_id)
        if row.state in ENDED_STATES:
            raise Conflict(f"The job is {row.state}.", "Only a job that has not ended can be paused or cancelled.")
        if row.state == "failed" and action == "pause":
            raise Conflict("The job has failed.", "Resume it to continue from its last checkpoint, or cancel it.")
        row = await training_jobs.request_action(connection, job_id, action)
        await training_events.insert_event(connection, tenant_id, f"{action}_requested", {}, job_id=job_id)
    return row


def _canonical_json(tables: Mapping[str, Any]) -> bytes:
    """Return the configuration as canonical JSON.

    Raises InvalidInput for values that the database cannot store.
    """
    try:
        body = _encode_config(tables)
    except TypeError as error:
        raise InvalidInput(
            "config", f"it is not plain JSON: {error}", "Use 64-bit numbers, strings, booleans, lists and tables."
        ) from None
    if b"\\u0000" in body:
        raise InvalidInput("config", "a text contains a NUL character", "Remove it.")
    return body


def _job_name(tables: Mapping[str, Any], default: str) -> str:
    name = tables.get("name") or default
    if not isinstance(name, str) or not policies.NAME_PATTERN.fullmatch(name):
        remedy = "Use at most 100 letters, digits, dots, dashes and underscores."
        raise InvalidInput("config.name", f"{name!r} is not a valid policy name", remedy)
    return name


def _encode_config(tables: Mapping[str, Any]) -> bytes:
    return orjson.dumps(tables, option=orjson.OPT_SORT_KEYS)


def _job_seed(tables: Mapping[str, Any]) -> int:
    learner: dict[str, Any] = tables.get("learner") or {}
    seed = learner.get("seed", 0)
    return seed if isinstance(seed, int) else 0
