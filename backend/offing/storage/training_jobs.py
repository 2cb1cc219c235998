"""Training jobs as rows.

This module creates and claims jobs and commits each training step with all of its decisions in
one transaction. A job belongs to one process at a time. Each write checks its fencing token in
the statement that updates the job, so a process whose claim on the job has ended can commit nothing. The key of
the ledger ensures that a job uses each rollout only once.
"""

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

import orjson
from psycopg.errors import UniqueViolation
from psycopg.rows import class_row
from psycopg.types.json import Jsonb

from offing.core.errors import Conflict, LeaseLostError, NotFound
from offing.storage.pool import Connection, Database
from offing.storage.training_metrics import store_metrics

COLUMNS = """
    id, kind, name, config, config_sha256, seed, data_until, data_pass, last_group_completed_at, last_group_id,
    state, requested_action, phase, step, planned_steps, last_good_step,
    group_count, rollout_count, checkpoint, worker, fence, produced_version_id, stop_reason, error, created_at,
    started_at,
    ended_at
"""

INSERT_JOB = f"""
    insert into training_job (id, tenant_id, kind, name, config, config_sha256, seed)
    values (%(id)s, %(tenant)s, %(kind)s, %(name)s, %(config)s, %(config_sha256)s, %(seed)s)
    returning {COLUMNS}
"""

GET_JOB = f"select {COLUMNS} from training_job where id = %s"

LOCK_JOB = f"select {COLUMNS} from training_job where id = %s for update"

LIST_IDS_WITH_SUFFIX = "select id from training_job where id::text like '%%' || %s order by id desc limit 2"

LIST_JOBS = f"""
    select {COLUMNS} from training_job
     where (%(state)s::text is null or state = %(state)s) and (%(before)s::uuid is null or id < %(before)s)
     order by id desc limit %(limit)s
"""

FIND_JOB_BY_CONFIG = f"""
    select {COLUMNS} from training_job where config_sha256 = %s and state <> 'cancelled' order by id desc limit 1
"""

CLAIM_JOB = "select job_id, tenant_id, fence from app.claim_training_job(%s, %s, %s)"

CLAIM_DISTILLATION_JOB = "select job_id, tenant_id, fence from app.claim_distillation_job(%s, %s)"

FIND_DISTILLATION_JOB = f"""
    select {COLUMNS} from training_job
     where kind = 'prompt_library' and name = %s and state in ('queued', 'running', 'paused')
"""

RENEW_LEASE = """
    update training_job set lease_until = clock_timestamp() + %(term)s::interval, phase = coalesce(%(phase)s, phase)
     where id = %(job)s and fence = %(fence)s and state = 'running' returning requested_action
"""

IS_RELEASED = "select 1 from training_job where id = %s and fence = %s and state <> 'running'"
"""Only the process that claimed a job ends its execution, so it was released with this fencing
token.
"""

SET_PLANNED_STEPS = f"""
    update training_job set planned_steps = %s where id = %s and fence = %s and state = 'running' returning {COLUMNS}
"""

COMMIT_STEP = """
    update training_job
       set step = %(step)s, last_good_step = %(good_step)s, checkpoint = %(checkpoint)s, phase = %(phase)s,
           group_count = group_count + %(groups)s, rollout_count = rollout_count + %(kept)s,
           data_pass = %(round)s, last_group_completed_at = %(after_at)s, last_group_id = %(after_group)s,
           lease_until = clock_timestamp() + %(term)s::interval
     where id = %(job)s and fence = %(fence)s and state = 'running' and step = %(step)s - 1
    returning requested_action
"""

INSERT_LEDGER = """
    insert into ledger (job_id, run_id, tenant_id, step, reason)
    select %(job)s, used.run, %(tenant)s, %(step)s, used.reason
      from unnest(%(runs)s::uuid[], %(reasons)s::text[]) as used(run, reason)
      join run on run.id = used.run
"""
"""A run that was erased meanwhile has no row to which the ledger could refer."""

INSERT_LEDGER_IF_ABSENT = f"{INSERT_LEDGER} on conflict (job_id, run_id) do nothing"
"""For a later data pass, which was configured. The first decision stays in the ledger."""

STORE_PLUGIN_STATE = """
    insert into plugin_state (job_id, name, tenant_id, step, body)
    select %(job)s, name, %(tenant)s, %(step)s, body from jsonb_each(%(tables)s) as kept(name, body)
        on conflict (job_id, name) do update set step = excluded.step, body = excluded.body
"""

GET_PLUGIN_STATE = "select name, body from plugin_state where job_id = %s"

RELEASE_JOB = f"""
    update training_job
       set state = %(state)s, stop_reason = %(reason)s, error = %(error)s, phase = '', requested_action = null,
       worker = '',
           lease_until = null, produced_version_id = coalesce(%(produced)s, produced_version_id),
           checkpoint = coalesce(%(checkpoint)s, checkpoint),
           ended_at = case when %(state)s in ('done', 'failed', 'cancelled') then clock_timestamp() end
     where id = %(job)s and fence = %(fence)s and state = 'running'
    returning {COLUMNS}
"""

SET_PRODUCED_VERSION = """
    update training_job set produced_version_id = %s, phase = 'registered'
     where id = %s and fence = %s and state = 'running' returning id
"""

REQUEST_ACTION = f"""
    update training_job
       set requested_action = case when state = 'running' then %(wish)s end,
           state = case when state = 'running' then state when %(wish)s = 'pause' then 'paused' else 'cancelled' end,
           ended_at = case when state <> 'running' and %(wish)s = 'cancel' then clock_timestamp() else ended_at end
     where id = %(job)s
    returning {COLUMNS}
"""

RESUME_JOB = f"""
    update training_job
       set requested_action = null, state = case when state = 'running' then state else 'queued' end, ended_at = null,
       error = '',
           stop_reason = ''
     where id = %s returning {COLUMNS}
"""

COUNT_LEDGER_REASONS = "select reason, count(*) from ledger where job_id = %s group by reason order by reason"


@dataclass(frozen=True, slots=True)
class TrainingJobRow:
    """A training job as stored."""

    id: UUID
    kind: str
    name: str
    """Name of the policy of which the job makes a version."""
    config: dict[str, Any]
    config_sha256: str
    seed: int
    data_until: datetime
    """The job's data are the groups that became complete by this time."""
    data_pass: int
    """Number of the data pass, from 1."""
    last_group_completed_at: datetime | None
    """With `after_group`, the last group that the job has read. `None` means that it has read none."""
    last_group_id: UUID | None
    state: str
    requested_action: str | None
    """`pause` or `cancel`, handled at the next training step. `None` means that the job continues."""
    phase: str
    step: int
    """Number of committed training steps."""
    planned_steps: int | None
    """Number of training steps that the job will have. `None` before its first process has found it."""
    last_good_step: int
    """The last training step at which the guards found no violation."""
    group_count: int
    rollout_count: int
    """Rollouts that were trained on, each counted once."""
    checkpoint: str
    """Folder of the committed step. Empty means the initial policy."""
    worker: str
    fence: int
    produced_version_id: UUID | None
    stop_reason: str
    error: str
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None


@dataclass(frozen=True, slots=True)
class JobFencingToken:
    """The right to write to a job. The next claim of the job has a larger number."""

    job_id: UUID
    tenant_id: UUID
    fence: int


@dataclass(frozen=True, slots=True)
class CommittedStep:
    """The result of a training step, committed in one transaction."""

    step: int
    last_good_step: int
    checkpoint: str
    ledger_reasons: Mapping[UUID, str]
    """Ledger reason of each rollout that was read."""
    group_count: int = 0
    last_group_key: tuple[datetime, UUID] | None = None
    """Key of the last group that was read. `None` means that none was read."""
    data_pass: int = 1
    """Number of the data pass to which the training step belongs."""
    metrics: Mapping[str, float] = field(default_factory=dict[str, float])
    plugin_state: Mapping[str, Any] = field(default_factory=dict[str, Any])
    phase: str = ""


async def insert_job(
    connection: Connection,
    tenant_id: UUID,
    job_id: UUID,
    *,
    kind: str,
    name: str,
    config: Mapping[str, Any],
    config_sha256: str,
    seed: int,
) -> TrainingJobRow:
    """Store a new job, queued.

    Raises `Conflict` if another job already distills for the same prompt library.
    """
    values = {
        "id": job_id,
        "tenant": tenant_id,
        "kind": kind,
        "name": name,
        "config": _jsonb(config),
        "config_sha256": config_sha256,
        "seed": seed,
    }
    with _raise_conflict(name):
        row = await _fetch_job(connection, INSERT_JOB, values)
    assert row is not None
    return row


async def get_job(connection: Connection, job_id: UUID) -> TrainingJobRow:
    """Return a job. Raises `NotFound` if it does not exist."""
    return _require_job(await _fetch_job(connection, GET_JOB, (job_id,)), job_id)


async def lock_job(connection: Connection, job_id: UUID) -> TrainingJobRow:
    """Return a job, locked against changes until the transaction ends.

    Raises `NotFound` if it does not exist.
    """
    return _require_job(await _fetch_job(connection, LOCK_JOB, (job_id,)), job_id)


async def list_ids_with_suffix(connection: Connection, suffix: str) -> list[UUID]:
    """Return at most two jobs whose id ends with `suffix`."""
    return [id for (id,) in await (await connection.execute(LIST_IDS_WITH_SUFFIX, (suffix,))).fetchall()]


async def list_jobs(connection: Connection, state: str | None, before: UUID | None, limit: int) -> list[TrainingJobRow]:
    """Return jobs after `before`, newest first."""
    async with connection.cursor(row_factory=class_row(TrainingJobRow)) as cursor:
        await cursor.execute(LIST_JOBS, {"state": state, "before": before, "limit": limit})
        return await cursor.fetchall()


async def find_job_by_config(connection: Connection, config_sha256: str) -> TrainingJobRow | None:
    """Return the latest job with this configuration hash that was not cancelled.

    `None` means that there is none.
    """
    return await _fetch_job(connection, FIND_JOB_BY_CONFIG, (config_sha256,))


async def find_distillation_job(connection: Connection, name: str) -> TrainingJobRow | None:
    """Return the distillation job of a prompt library that has not ended.

    `None` means that there is none.
    """
    return await _fetch_job(connection, FIND_DISTILLATION_JOB, (name,))


async def claim_job(
    database: Database, job_id: UUID | None, worker: str, lease_seconds: float
) -> JobFencingToken | None:
    """Claim a queued job, or one whose process crashed.

    If `job_id` is `None`, claim the oldest of any tenant, except jobs of a training loop, which need
    the loop's process to collect rollouts. `None` means that there is none.
    """
    rows = await database.call_function(CLAIM_JOB, (job_id, worker, f"{lease_seconds} seconds"))
    return JobFencingToken(*rows[0]) if rows else None


async def claim_created_job(
    connection: Connection, job_id: UUID, worker: str, lease_seconds: float
) -> JobFencingToken | None:
    """Claim a job in the transaction that creates or resumes it, so that no other process can claim it first.

    `None` means that another process runs it.
    """
    cursor = await connection.execute(CLAIM_JOB, (job_id, worker, f"{lease_seconds} seconds"))
    row = await cursor.fetchone()
    return JobFencingToken(*row) if row else None


async def claim_distillation_job(database: Database, worker: str, lease_seconds: float) -> JobFencingToken | None:
    """Claim the oldest distillation job of any tenant, as `claim_job` does.

    `None` means that there is none.
    """
    rows = await database.call_function(CLAIM_DISTILLATION_JOB, (worker, f"{lease_seconds} seconds"))
    return JobFencingToken(*rows[0]) if rows else None


async def renew_lease(
    connection: Connection, fencing_token: JobFencingToken, lease_seconds: float, phase: str | None = None
) -> str | None:
    """Renew the lease and return the requested action.

    Raises `LeaseLostError` if another process has claimed the job or it was released.
    """
    values = {
        "job": fencing_token.job_id,
        "fence": fencing_token.fence,
        "term": f"{lease_seconds} seconds",
        "phase": phase,
    }
    row = await (await connection.execute(RENEW_LEASE, values)).fetchone()
    if row is None:
        raise LeaseLostError(f"job {fencing_token.job_id} belongs to another process")
    return row[0]


async def is_released(connection: Connection, fencing_token: JobFencingToken) -> bool:
    """Return whether the process has released the job and no other process has claimed it since."""
    return (
        await (await connection.execute(IS_RELEASED, (fencing_token.job_id, fencing_token.fence))).fetchone()
        is not None
    )


async def set_planned_steps(
    connection: Connection, fencing_token: JobFencingToken, planned_steps: int | None
) -> TrainingJobRow:
    """Store how many training steps the job will have. Raises `LeaseLostError`."""
    async with connection.cursor(row_factory=class_row(TrainingJobRow)) as cursor:
        values = (planned_steps, fencing_token.job_id, fencing_token.fence)
        row = await (await cursor.execute(SET_PLANNED_STEPS, values)).fetchone()
    if row is None:
        raise LeaseLostError(f"job {fencing_token.job_id} belongs to another process")
    return row


async def store_initial_state(
    connection: Connection, fencing_token: JobFencingToken, lease_seconds: float, plugin_state: Mapping[str, Any]
) -> None:
    """Store the plug-in state before the first training step. Raises `LeaseLostError`."""
    await renew_lease(connection, fencing_token, lease_seconds)
    common = {"job": fencing_token.job_id, "tenant": fencing_token.tenant_id, "step": 0}
    await connection.execute(STORE_PLUGIN_STATE, common | {"tables": _jsonb(plugin_state)})


async def commit_step(
    connection: Connection, fencing_token: JobFencingToken, lease_seconds: float, step: CommittedStep
) -> str | None:
    """Commit a training step in one transaction and return the requested action.

    Raises `LeaseLostError`. Also raises an error if the ledger already contains one of the
    rollouts.
    """
    values = {
        "job": fencing_token.job_id,
        "fence": fencing_token.fence,
        "term": f"{lease_seconds} seconds",
        "step": step.step,
        "good_step": step.last_good_step,
        "checkpoint": step.checkpoint,
        "phase": step.phase,
        "groups": step.group_count,
        "kept": sum(reason == "used" for reason in step.ledger_reasons.values()) if step.data_pass == 1 else 0,
        "round": step.data_pass,
        "after_at": step.last_group_key[0] if step.last_group_key else None,
        "after_group": step.last_group_key[1] if step.last_group_key else None,
    }
    row = await (await connection.execute(COMMIT_STEP, values)).fetchone()
    if row is None:
        raise LeaseLostError(
            f"job {fencing_token.job_id} belongs to another process, or step {step.step} is not its next step"
        )
    common = {"job": fencing_token.job_id, "tenant": fencing_token.tenant_id, "step": step.step}
    use = INSERT_LEDGER if step.data_pass == 1 else INSERT_LEDGER_IF_ABSENT
    await connection.execute(
        use, common | {"runs": list(step.ledger_reasons), "reasons": list(step.ledger_reasons.values())}
    )
    await store_metrics(connection, fencing_token.tenant_id, fencing_token.job_id, step.step, step.metrics)
    await connection.execute(STORE_PLUGIN_STATE, common | {"tables": _jsonb(step.plugin_state)})
    return row[0]


async def get_plugin_state(connection: Connection, job_id: UUID) -> dict[str, Any]:
    """Return the state of the plug-ins at the committed step, by table."""
    return dict(await (await connection.execute(GET_PLUGIN_STATE, (job_id,))).fetchall())


async def release_job(
    connection: Connection,
    fencing_token: JobFencingToken,
    state: str,
    *,
    stop_reason: str = "",
    error: str = "",
    produced_version_id: UUID | None = None,
    checkpoint: str | None = None,
) -> TrainingJobRow:
    """Release a job with a new state.

    If `checkpoint` is `None`, keep the committed one. Raises `LeaseLostError`.
    """
    values = {
        "job": fencing_token.job_id,
        "fence": fencing_token.fence,
        "state": state,
        "reason": stop_reason,
        "error": error,
        "produced": produced_version_id,
        "checkpoint": checkpoint,
    }
    row = await _fetch_job(connection, RELEASE_JOB, values)
    if row is None:
        raise LeaseLostError(f"job {fencing_token.job_id} belongs to another process")
    return row


async def set_produced_version(connection: Connection, fencing_token: JobFencingToken, policy_version_id: UUID) -> None:
    """Record the policy version that the job produced. Raises `LeaseLostError`."""
    if (
        await (
            await connection.execute(
                SET_PRODUCED_VERSION, (policy_version_id, fencing_token.job_id, fencing_token.fence)
            )
        ).fetchone()
        is None
    ):
        raise LeaseLostError(f"job {fencing_token.job_id} belongs to another process")


async def request_action(connection: Connection, job_id: UUID, action: str) -> TrainingJobRow:
    """Request a pause or cancellation of a running job.

    If no process runs it, do it at once. The caller has locked the job.
    """
    return _require_job(await _fetch_job(connection, REQUEST_ACTION, {"job": job_id, "wish": action}), job_id)


async def resume_job(connection: Connection, job_id: UUID) -> TrainingJobRow:
    """Withdraw a requested action, or queue a paused or ended job again.

    The caller has locked the job. Raises `Conflict` if another job distills for the same prompt
    library by now.
    """
    with _raise_conflict("the same prompt library"):
        return _require_job(await _fetch_job(connection, RESUME_JOB, (job_id,)), job_id)


async def count_ledger_reasons(connection: Connection, job_id: UUID) -> dict[str, int]:
    """Return the number of rollouts in the ledger of a job, by reason."""
    return dict(await (await connection.execute(COUNT_LEDGER_REASONS, (job_id,))).fetchall())


@contextmanager
def _raise_conflict(name: str) -> Generator[None]:
    try:
        yield
    except UniqueViolation as error:
        raise Conflict(f"Another job is distilling {name}.", "Wait until it ends, or cancel it.") from error


async def _fetch_job(
    connection: Connection, query: str, values: Sequence[Any] | Mapping[str, Any]
) -> TrainingJobRow | None:
    async with connection.cursor(row_factory=class_row(TrainingJobRow)) as cursor:
        await cursor.execute(query.encode(), values)
        return await cursor.fetchone()


def _require_job(row: TrainingJobRow | None, job_id: UUID) -> TrainingJobRow:
    if row is None:
        raise NotFound("training job", str(job_id))
    return row


def _jsonb(value: object) -> Jsonb:
    return Jsonb(value, dumps=lambda v: orjson.dumps(v, option=orjson.OPT_SERIALIZE_NUMPY))
