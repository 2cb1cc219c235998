"""Evaluations as rows: one policy version on one set of tasks, and how each rollout of it went."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg.rows import class_row

from offing.core.errors import NotFound
from offing.storage.pool import Connection

COLUMNS = """
    e.id, e.policy_version_id as policy, e.dataset, e.mode, e.graph, e.seed, e.batch_id as batch, e.created_at
"""

ADD = """
    insert into evaluation (id, tenant_id, policy_version_id, dataset, mode, graph, seed, batch_id)
    values (%(id)s, %(tenant)s, %(policy)s, %(dataset)s, %(mode)s, %(graph)s, %(seed)s, %(batch)s)
"""

ADD_RESULTS = """
    insert into evaluation_result (evaluation_id, task_id, member, tenant_id, run_id, reward, outcome, turns, tokens)
    select distinct on (g.task_id, o.member) %(id)s, g.task_id, o.member, %(tenant)s, o.run_id,
           case when o.outcome = 'infra_error' then null else o.reward end, coalesce(o.outcome, ''), r.turns, r.tokens
      from rollout o join rollout_group g on g.id = o.group_id join run r on r.id = o.run_id
     where g.batch_id = %(batch)s
     order by g.task_id, o.member, o.attempt desc
    returning task_id
"""
"""The last attempt of each member of a batch that has ended."""

LATEST = f"""
    select {COLUMNS} from evaluation e
     where policy_version_id = %(policy)s and (%(dataset)s::text is null or dataset = %(dataset)s)
       and (%(mode)s::text is null or mode = %(mode)s)
     order by id desc limit 20
"""

BY_ID = f"select {COLUMNS} from evaluation e where e.id = %s"

RESULTS = """
    select task_id, member, reward, outcome, turns, tokens from evaluation_result where evaluation_id = %s
     order by task_id, member
"""

SCORES = f"""
    with wanted as (
        select {COLUMNS}, v.name, v.version from evaluation e join policy_version v on v.id = e.policy_version_id
         where (%(policy)s::uuid is null or v.id = %(policy)s) and (%(name)s::text is null or v.name = %(name)s)
           and (%(before)s::uuid is null or e.id < %(before)s)
         order by e.id desc limit %(limit)s
    ), by_task as (
        select r.evaluation_id, count(*) as rollouts, count(r.reward) as scored, avg(r.reward) as mean,
               count(*) filter (where r.reward is not null and r.outcome = 'answered') as answered,
               count(*) filter (where r.reward is not null and r.outcome = 'violated') as violated,
               sum(r.turns) as turns, sum(r.tokens) as tokens
          from evaluation_result r where r.evaluation_id in (select id from wanted)
         group by r.evaluation_id, r.task_id
    )
    select w.*, coalesce(sum(rollouts), 0)::int as rollouts, coalesce(sum(scored), 0)::int as scored,
           count(t.mean)::int as tasks, avg(t.mean)::float8 as reward, stddev_samp(t.mean)::float8 as spread,
           (sum(answered) / nullif(sum(scored), 0))::float8 as answered,
           (sum(violated) / nullif(sum(scored), 0))::float8 as violated,
           (sum(turns) / nullif(sum(rollouts), 0))::float8 as turns,
           (sum(tokens) / nullif(sum(rollouts), 0))::float8 as tokens
      from wanted w left join by_task t on t.evaluation_id = w.id
     group by w.id, w.policy, w.dataset, w.mode, w.graph, w.seed, w.batch, w.created_at, w.name, w.version
     order by w.id desc
"""

CANARY = """
    select g.task_id, o.member, o.reward, o.outcome, r.turns, r.tokens
      from rollout o join rollout_group g on g.id = o.group_id join run r on r.id = o.run_id
     where o.settled_at is not null and o.outcome is distinct from 'infra_error' and o.reward is not null
       and %(policy)s::text in (select value from jsonb_each_text(g.policies)) and o.settled_at > %(since)s
       and not 'evaluation' = any(g.tags)
"""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """One version on one set of tasks."""

    id: UUID
    policy: UUID
    dataset: str
    mode: str
    """sampled or greedy."""
    graph: str
    seed: int
    batch: UUID | None
    """The rollouts behind it. None: they were erased."""
    created_at: datetime


@dataclass(frozen=True, slots=True)
class ResultRow:
    task: UUID
    member: int
    reward: float | None
    """None: the platform failed."""
    outcome: str
    turns: int
    tokens: int


@dataclass(frozen=True, slots=True)
class ScoreRow(Evaluation):
    """An evaluation with what it came to."""

    name: str
    version: int
    rollouts: int
    scored: int
    """Rollouts with a reward; in the others the platform failed."""
    tasks: int
    """With a scored rollout."""
    reward: float | None
    """Mean over tasks of the mean of a task's rollouts. None: nothing was scored."""
    spread: float | None
    """Standard deviation of the tasks' means. None: there are not two."""
    answered: float | None
    """Share of the scored rollouts; so is `violated`."""
    violated: float | None
    turns: float | None
    """Of a rollout, on average; so is `tokens`. None: there is none."""
    tokens: float | None


async def add(connection: Connection, tenant: UUID, new: Mapping[str, Any]) -> int:
    """Store an evaluation with the results of its batch; how many.

    `new`: id, policy, dataset, mode, graph, seed and batch.
    """
    await connection.execute(ADD, {**new, "tenant": tenant})
    values = {"id": new["id"], "batch": new["batch"], "tenant": tenant}
    return len(await (await connection.execute(ADD_RESULTS, values)).fetchall())


async def latest(connection: Connection, policy: UUID, dataset: str | None, mode: str | None) -> list[Evaluation]:
    """Of a version, newest first."""
    async with connection.cursor(row_factory=class_row(Evaluation)) as cursor:
        await cursor.execute(LATEST, {"policy": policy, "dataset": dataset, "mode": mode})
        return await cursor.fetchall()


async def by_id(connection: Connection, id: UUID) -> Evaluation:
    """Raises NotFound."""
    async with connection.cursor(row_factory=class_row(Evaluation)) as cursor:
        await cursor.execute(BY_ID, (id,))
        row = await cursor.fetchone()
    if row is None:
        raise NotFound("evaluation", str(id))
    return row


async def results(connection: Connection, evaluation: UUID) -> list[ResultRow]:
    """In order of task and member."""
    return [ResultRow(*row) for row in await (await connection.execute(RESULTS, (evaluation,))).fetchall()]


async def scores(
    connection: Connection, policy: UUID | None, name: str | None, before: UUID | None, limit: int
) -> list[ScoreRow]:
    """Evaluations that follow `before`, newest first; of a version, of a name, or all."""
    values = {"policy": policy, "name": name, "before": before, "limit": limit}
    async with connection.cursor(row_factory=class_row(ScoreRow)) as cursor:
        await cursor.execute(SCORES, values)
        return await cursor.fetchall()


async def collected(connection: Connection, policy: UUID, since: datetime) -> Sequence[ResultRow]:
    """What a version's rollouts came to since then, evaluations left out."""
    rows = await (await connection.execute(CANARY, {"policy": str(policy), "since": since})).fetchall()
    return [ResultRow(*row) for row in rows]
