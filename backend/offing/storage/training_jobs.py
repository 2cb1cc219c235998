"""Training jobs as rows: making, claiming, and one transaction a step with everything that the step decided.

A job belongs to one process at a time. Each write checks its fence number in the statement that moves the job, so that
a process that lost the job can commit nothing. The ledger's key makes sure that no rollout is decided on twice.
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

from offing.core.errors import Conflict, Fenced, NotFound
from offing.storage.pool import Connection, Database

COLUMNS = """
    id, kind, name, config, config_sha256, seed, bound, pass as round, after_at, after_group,
    state, wish, phase, step, good_step,
    groups, rollouts, checkpoint, worker, fence, produced_id as produced, stop_reason, error, created_at, started_at,
    ended_at
"""

INSERT = f"""
    insert into train_job (id, tenant_id, kind, name, config, config_sha256, seed)
    values (%(id)s, %(tenant)s, %(kind)s, %(name)s, %(config)s, %(config_sha256)s, %(seed)s)
    returning {COLUMNS}
"""

BY_ID = f"select {COLUMNS} from train_job where id = %s"

LOCK = f"select {COLUMNS} from train_job where id = %s for update"

ENDING = "select id from train_job where id::text like '%%' || %s order by id desc limit 2"

LIST = f"""
    select {COLUMNS} from train_job
     where (%(state)s::text is null or state = %(state)s) and (%(before)s::uuid is null or id < %(before)s)
     order by id desc limit %(limit)s
"""

OF_CONFIG = f"""
    select {COLUMNS} from train_job where config_sha256 = %s and state <> 'cancelled' order by id desc limit 1
"""

CLAIM = "select job, tenant, fence from app.claim_train_job(%s, %s, %s)"

CLAIM_LEARNING = "select job, tenant, fence from app.claim_learning_job(%s, %s)"

LEARNING = f"""
    select {COLUMNS} from train_job
     where kind = 'prompts' and name = %s and state in ('queued', 'running', 'paused')
"""

HOLD = """
    update train_job set lease_until = clock_timestamp() + %(term)s::interval, phase = coalesce(%(phase)s, phase)
     where id = %(job)s and fence = %(fence)s and state = 'running' returning wish
"""

RELEASED = "select 1 from train_job where id = %s and fence = %s and state <> 'running'"
"""Nobody but who holds a job ends its work, so it was released under this very fence."""

STEP = """
    update train_job
       set step = %(step)s, good_step = %(good_step)s, checkpoint = %(checkpoint)s, phase = %(phase)s,
           groups = groups + %(groups)s, rollouts = rollouts + %(kept)s,
           pass = %(round)s, after_at = %(after_at)s, after_group = %(after_group)s,
           lease_until = clock_timestamp() + %(term)s::interval
     where id = %(job)s and fence = %(fence)s and state = 'running' and step = %(step)s - 1
    returning wish
"""

USE = """
    insert into ledger (train_run, run_id, tenant_id, step, reason)
    select %(job)s, used.run, %(tenant)s, %(step)s, used.reason
      from unnest(%(runs)s::uuid[], %(reasons)s::text[]) as used(run, reason)
      join run on run.id = used.run
"""
"""A run that was erased meanwhile has no row left to be noted for."""

USE_AGAIN = f"{USE} on conflict (train_run, run_id) do nothing"
"""In a later pass, which was asked for; the first decision stands in the ledger."""

METRICS = """
    insert into train_metric (job_id, tenant_id, step, name, value)
    select %(job)s, %(tenant)s, %(step)s, name, value
      from unnest(%(names)s::text[], %(values)s::float8[]) as measured(name, value)
        on conflict (job_id, step, name) do update set value = excluded.value, at = clock_timestamp()
"""

REMEMBER = """
    insert into train_state (job_id, name, tenant_id, step, body)
    select %(job)s, name, %(tenant)s, %(step)s, body from jsonb_each(%(tables)s) as kept(name, body)
        on conflict (job_id, name) do update set step = excluded.step, body = excluded.body
"""

STATE = "select name, body from train_state where job_id = %s"

RELEASE = f"""
    update train_job
       set state = %(state)s, stop_reason = %(reason)s, error = %(error)s, phase = '', wish = null, worker = '',
           lease_until = null, produced_id = coalesce(%(produced)s, produced_id),
           checkpoint = coalesce(%(checkpoint)s, checkpoint),
           ended_at = case when %(state)s in ('done', 'failed', 'cancelled') then clock_timestamp() end
     where id = %(job)s and fence = %(fence)s and state = 'running'
    returning {COLUMNS}
"""

PRODUCED = """
    update train_job set produced_id = %s, phase = 'registered'
     where id = %s and fence = %s and state = 'running' returning id
"""

WISH = f"""
    update train_job
       set wish = case when state = 'running' then %(wish)s end,
           state = case when state = 'running' then state when %(wish)s = 'pause' then 'paused' else 'cancelled' end,
           ended_at = case when state <> 'running' and %(wish)s = 'cancel' then clock_timestamp() else ended_at end
     where id = %(job)s
    returning {COLUMNS}
"""

GO_ON = f"""
    update train_job
       set wish = null, state = case when state = 'running' then state else 'queued' end, ended_at = null, error = '',
           stop_reason = ''
     where id = %s returning {COLUMNS}
"""

METRICS_SINCE = """
    select step, name, value, at from train_metric
     where job_id = %(job)s and step > %(after)s and (%(names)s::text[] is null or name = any(%(names)s))
     order by step, name limit %(limit)s
"""

LAST = """
    select asked.job, found.value
      from unnest(%s::uuid[]) as asked(job)
     cross join lateral (select value from train_metric where job_id = asked.job and name = %s
                          order by step desc limit 1) as found
"""

LEDGER = "select reason, count(*) from ledger where train_run = %s group by reason order by reason"


@dataclass(frozen=True, slots=True)
class JobRow:
    """A training job as stored."""

    id: UUID
    kind: str
    name: str
    """Of the policy that it makes a version of."""
    config: dict[str, Any]
    config_sha256: str
    seed: int
    bound: datetime
    """Groups that were complete by then are its data."""
    round: int
    """Pass through the groups, from 1."""
    after_at: datetime | None
    """With `after_group`: where the groups that it looked at end. None: it looked at none."""
    after_group: UUID | None
    state: str
    wish: str | None
    """pause or cancel, to be seen at the next step. None: to go on."""
    phase: str
    step: int
    """Steps that are committed."""
    good_step: int
    """The last after which the guards found nothing."""
    groups: int
    rollouts: int
    """Trained on, each counted once."""
    checkpoint: str
    """Folder of the committed step. Empty: the policy it began with."""
    worker: str
    fence: int
    produced: UUID | None
    stop_reason: str
    error: str
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None


@dataclass(frozen=True, slots=True)
class Hold:
    """The right to write for a job. Whoever claims it next has a greater number."""

    job: UUID
    tenant: UUID
    fence: int


@dataclass(frozen=True, slots=True)
class StepDone:
    """What a step decided; committed as one."""

    step: int
    good_step: int
    checkpoint: str
    used: Mapping[UUID, str]
    """Reason of each rollout that was looked at."""
    groups: int = 0
    after: tuple[datetime, UUID] | None = None
    """Where the groups that were looked at end. None: at the beginning."""
    round: int = 1
    """Pass through the groups that the step belongs to."""
    metrics: Mapping[str, float] = field(default_factory=dict[str, float])
    state: Mapping[str, Any] = field(default_factory=dict[str, Any])
    phase: str = ""


@dataclass(frozen=True, slots=True)
class Metric:
    step: int
    name: str
    value: float
    at: datetime


async def insert(
    connection: Connection,
    tenant: UUID,
    id: UUID,
    *,
    kind: str,
    name: str,
    config: Mapping[str, Any],
    config_sha256: str,
    seed: int,
) -> JobRow:
    """A new job, queued. Raises Conflict for a second one that learns for the same library."""
    values = {
        "id": id,
        "tenant": tenant,
        "kind": kind,
        "name": name,
        "config": _jsonb(config),
        "config_sha256": config_sha256,
        "seed": seed,
    }
    with _alone(name):
        row = await _one(connection, INSERT, values)
    assert row is not None
    return row


async def by_id(connection: Connection, id: UUID) -> JobRow:
    """Raises NotFound."""
    return _found(await _one(connection, BY_ID, (id,)), id)


async def locked(connection: Connection, id: UUID) -> JobRow:
    """Held against other changes until the transaction ends. Raises NotFound."""
    return _found(await _one(connection, LOCK, (id,)), id)


async def ending_with(connection: Connection, text: str) -> list[UUID]:
    """At most two jobs whose id ends so."""
    return [id for (id,) in await (await connection.execute(ENDING, (text,))).fetchall()]


async def latest(connection: Connection, state: str | None, before: UUID | None, limit: int) -> list[JobRow]:
    """Jobs that follow `before`, newest first."""
    async with connection.cursor(row_factory=class_row(JobRow)) as cursor:
        await cursor.execute(LIST, {"state": state, "before": before, "limit": limit})
        return await cursor.fetchall()


async def of_config(connection: Connection, sha256: str) -> JobRow | None:
    """The latest job with a configuration of this hash that was not cancelled. None: there is none."""
    return await _one(connection, OF_CONFIG, (sha256,))


async def learning(connection: Connection, name: str) -> JobRow | None:
    """The job that makes the next version of a prompt library. None: there is none that has not ended."""
    return await _one(connection, LEARNING, (name,))


async def claim(database: Database, wanted: UUID | None, worker: str, term: float) -> Hold | None:
    """Take a job that waits, or whose process is lost. `wanted` None: the oldest of any tenant. None: there is none."""
    rows = await database.platform(CLAIM, (wanted, worker, f"{term} seconds"))
    return Hold(*rows[0]) if rows else None


async def claim_learning(database: Database, worker: str, term: float) -> Hold | None:
    """Take the oldest job that makes a prompt library, of any tenant, as `claim` does. None: there is none."""
    rows = await database.platform(CLAIM_LEARNING, (worker, f"{term} seconds"))
    return Hold(*rows[0]) if rows else None


async def hold(connection: Connection, held: Hold, term: float, phase: str | None = None) -> str | None:
    """Renew the lease, and what people wish of the job. Raises Fenced when it is no longer ours."""
    values = {"job": held.job, "fence": held.fence, "term": f"{term} seconds", "phase": phase}
    row = await (await connection.execute(HOLD, values)).fetchone()
    if row is None:
        raise Fenced(f"job {held.job} belongs to another process")
    return row[0]


async def is_released(connection: Connection, held: Hold) -> bool:
    """Whether the job was given back by who held it, and by nobody else taken."""
    return await (await connection.execute(RELEASED, (held.job, held.fence))).fetchone() is not None


async def remember(connection: Connection, held: Hold, term: float, state: Mapping[str, Any]) -> None:
    """Store what the job has to know in its first step, before it. Raises Fenced."""
    await hold(connection, held, term)
    common = {"job": held.job, "tenant": held.tenant, "step": 0}
    await connection.execute(REMEMBER, common | {"tables": _jsonb(state)})


async def commit_step(connection: Connection, held: Hold, term: float, done: StepDone) -> str | None:
    """Store a step whole; what people wish of the job. Raises Fenced, and for a rollout that was decided on before."""
    values = {
        "job": held.job,
        "fence": held.fence,
        "term": f"{term} seconds",
        "step": done.step,
        "good_step": done.good_step,
        "checkpoint": done.checkpoint,
        "phase": done.phase,
        "groups": done.groups,
        "kept": sum(reason == "kept" for reason in done.used.values()) if done.round == 1 else 0,
        "round": done.round,
        "after_at": done.after[0] if done.after else None,
        "after_group": done.after[1] if done.after else None,
    }
    row = await (await connection.execute(STEP, values)).fetchone()
    if row is None:
        raise Fenced(f"job {held.job} belongs to another process, or step {done.step} is not its next")
    common = {"job": held.job, "tenant": held.tenant, "step": done.step}
    use = USE if done.round == 1 else USE_AGAIN
    await connection.execute(use, common | {"runs": list(done.used), "reasons": list(done.used.values())})
    names = list(done.metrics)
    await connection.execute(METRICS, common | {"names": names, "values": [float(done.metrics[n]) for n in names]})
    await connection.execute(REMEMBER, common | {"tables": _jsonb(done.state)})
    return row[0]


async def state_of(connection: Connection, job: UUID) -> dict[str, Any]:
    """What plug-ins remember as of the committed step, by table."""
    return dict(await (await connection.execute(STATE, (job,))).fetchall())


async def release(
    connection: Connection,
    held: Hold,
    state: str,
    *,
    reason: str = "",
    error: str = "",
    produced: UUID | None = None,
    checkpoint: str | None = None,
) -> JobRow:
    """Give the job back in another state. `checkpoint` None: as committed. Raises Fenced."""
    values = {
        "job": held.job,
        "fence": held.fence,
        "state": state,
        "reason": reason,
        "error": error,
        "produced": produced,
        "checkpoint": checkpoint,
    }
    row = await _one(connection, RELEASE, values)
    if row is None:
        raise Fenced(f"job {held.job} belongs to another process")
    return row


async def set_produced(connection: Connection, held: Hold, version: UUID) -> None:
    """Note which policy version came of it. Raises Fenced."""
    if await (await connection.execute(PRODUCED, (version, held.job, held.fence))).fetchone() is None:
        raise Fenced(f"job {held.job} belongs to another process")


async def set_wish(connection: Connection, job: UUID, wish: str) -> JobRow:
    """Ask a running job for an end or a pause, or do it at once where nobody works on it. The caller has locked it."""
    return _found(await _one(connection, WISH, {"job": job, "wish": wish}), job)


async def go_on(connection: Connection, job: UUID) -> JobRow:
    """Take a wish back, or queue a job that rests again. The caller has locked it. Raises Conflict where another one
    learns for the same library by now."""
    with _alone("the same library"):
        return _found(await _one(connection, GO_ON, (job,)), job)


async def metrics_since(
    connection: Connection, job: UUID, after: int, names: Sequence[str] | None, limit: int
) -> list[Metric]:
    """Of the steps after `after`, in order; `names` None: all."""
    values = {"job": job, "after": after, "names": list(names) if names else None, "limit": limit}
    async with connection.cursor(row_factory=class_row(Metric)) as cursor:
        await cursor.execute(METRICS_SINCE, values)
        return await cursor.fetchall()


async def last_values(connection: Connection, jobs: Sequence[UUID], name: str) -> dict[UUID, float]:
    """A figure as of the last step that has it, by job."""
    return dict(await (await connection.execute(LAST, (list(jobs), name))).fetchall())


async def ledger_counts(connection: Connection, job: UUID) -> dict[str, int]:
    """Rollouts that the job looked at, by what it decided."""
    return dict(await (await connection.execute(LEDGER, (job,))).fetchall())


@contextmanager
def _alone(name: str) -> Generator[None]:
    try:
        yield
    except UniqueViolation as error:
        raise Conflict(f"A job learns for {name} already.", "Wait for it, or cancel it.") from error


async def _one(connection: Connection, query: str, values: Sequence[Any] | Mapping[str, Any]) -> JobRow | None:
    async with connection.cursor(row_factory=class_row(JobRow)) as cursor:
        await cursor.execute(query.encode(), values)
        return await cursor.fetchone()


def _found(row: JobRow | None, id: UUID) -> JobRow:
    if row is None:
        raise NotFound("training job", str(id))
    return row


def _jsonb(value: object) -> Jsonb:
    return Jsonb(value, dumps=lambda v: orjson.dumps(v, option=orjson.OPT_SERIALIZE_NUMPY))
