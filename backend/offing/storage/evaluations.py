"""Evaluations as rows: one policy version on one set of tasks, with the result of each rollout."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg.rows import class_row

from offing.core.errors import NotFound
from offing.storage.pool import Connection

COLUMNS = """
    e.id, e.policy_version_id, e.dataset, e.mode, e.graph, e.seed, e.batch_id, e.created_at
"""

INSERT_EVALUATION = """
    insert into evaluation (id, tenant_id, policy_version_id, dataset, mode, graph, seed, batch_id)
    values (%(id)s, %(tenant)s, %(policy)s, %(dataset)s, %(mode)s, %(graph)s, %(seed)s, %(batch)s)
"""

INSERT_RESULTS = """
    insert into evaluation_result (evaluation_id, task_id, member, tenant_id, run_id, reward, outcome, turns, tokens,
                                   metrics)
    select distinct on (g.task_id, o.member) %(id)s, g.task_id, o.member, %(tenant)s, o.run_id,
           case when o.outcome = 'infra_error' then null else o.reward end, coalesce(o.outcome, ''), r.turns, r.tokens,
           jsonb_build_object('cost_usd', r.cost_usd, 'seconds', r.work_seconds) || coalesce(
             (select jsonb_object_agg(scorer, value) from (
                select distinct on (scorer) scorer, value from reward
                 where run_id = o.run_id and target = 'run' and value is not null
                   and scorer in (select one->>'name' from jsonb_array_elements(g.scorers) as one)
                 order by scorer, version desc) as scores), '{}')
      from rollout o join rollout_group g on g.id = o.group_id join run r on r.id = o.run_id
     where g.batch_id = %(batch)s
     order by g.task_id, o.member, o.attempt desc
    returning task_id
"""
"""The last attempt of each member of a batch that has ended."""

LIST_EVALUATIONS = f"""
    select {COLUMNS} from evaluation e
     where policy_version_id = %(policy)s and (%(dataset)s::text is null or dataset = %(dataset)s)
       and (%(mode)s::text is null or mode = %(mode)s)
     order by id desc limit 20
"""

GET_EVALUATION = f"select {COLUMNS} from evaluation e where e.id = %s"

LIST_RESULTS = """
    select task_id, member, reward, outcome, turns, tokens, metrics from evaluation_result where evaluation_id = %s
     order by task_id, member
"""

LIST_SUMMARIES = f"""
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
    select w.*, coalesce(sum(rollouts), 0)::int as rollout_count,
           coalesce(sum(scored), 0)::int as scored_count,
           count(t.mean)::int as task_count, avg(t.mean)::float8 as mean_reward,
           avg(t.mean * t.mean)::float8 as mean_squared_reward,
           min(t.mean)::float8 as least_reward, max(t.mean)::float8 as greatest_reward,
           (sum(answered) / nullif(sum(scored), 0))::float8 as answered_fraction,
           (sum(violated) / nullif(sum(scored), 0))::float8 as violation_fraction,
           (sum(turns) / nullif(sum(rollouts), 0))::float8 as mean_turns,
           (sum(tokens) / nullif(sum(rollouts), 0))::float8 as mean_tokens
      from wanted w left join by_task t on t.evaluation_id = w.id
     group by w.id, w.policy_version_id, w.dataset, w.mode, w.graph, w.seed, w.batch_id, w.created_at, w.name, w.version
     order by w.id desc
"""

LIST_LIVE_REWARDS = """
    select avg(o.reward)::float8 from rollout_group g join rollout o on o.group_id = g.id
     where g.state <> 'open' and g.completed_at > %(since)s and not 'evaluation' = any(g.tags)
       and %(policy)s::text in (select value from jsonb_each_text(g.policy_version_ids))
       and o.finalized_at is not null and o.outcome is distinct from 'infra_error' and o.reward is not null
     group by g.id order by g.completed_at, g.id
"""


@dataclass(frozen=True, slots=True)
class EvaluationRow:
    """One policy version on one set of tasks."""

    id: UUID
    policy_version_id: UUID
    dataset: str
    mode: str
    """`sampled` or `greedy`."""
    graph: str
    seed: int
    batch_id: UUID | None
    """The rollout batch of the evaluation. `None` means that it was erased."""
    created_at: datetime


@dataclass(frozen=True, slots=True)
class EvaluationResultRow:
    task_id: UUID
    member: int
    reward: float | None
    """`None` means that the platform failed."""
    outcome: str
    turns: int
    tokens: int
    metrics: Mapping[str, float] = field(default_factory=dict[str, float])
    """Scores by scorer, `cost_usd` and `seconds`. A scorer that gave no value is left out."""


@dataclass(frozen=True, slots=True)
class EvaluationSummary(EvaluationRow):
    """An evaluation with its aggregated results."""

    name: str
    version: int
    rollout_count: int
    scored_count: int
    """Rollouts with a reward. In the others the platform failed."""
    task_count: int
    """Tasks with at least one scored rollout."""
    mean_reward: float | None
    """Mean over tasks of the mean reward of a task's rollouts. `None` means that nothing was
    scored.
    """
    mean_squared_reward: float | None
    """Mean of the squares of the tasks' means. `None` means that nothing was scored, as in the following fields."""
    least_reward: float | None
    """The least mean of a task."""
    greatest_reward: float | None
    answered_fraction: float | None
    """Fraction of the scored rollouts, as `violation_fraction`."""
    violation_fraction: float | None
    mean_turns: float | None
    """Mean per rollout, as `mean_tokens`. `None` if there are no rollouts."""
    mean_tokens: float | None


async def insert_evaluation(connection: Connection, tenant_id: UUID, new: Mapping[str, Any]) -> int:
    """Store an evaluation with the results of its rollout batch. Return the number of results.

    `new` contains id, policy, dataset, mode, graph, seed and batch.
    """
    await connection.execute(INSERT_EVALUATION, {**new, "tenant": tenant_id})
    values = {"id": new["id"], "batch": new["batch"], "tenant": tenant_id}
    return len(await (await connection.execute(INSERT_RESULTS, values)).fetchall())


async def list_evaluations(
    connection: Connection, policy_version_id: UUID, dataset: str | None, mode: str | None
) -> list[EvaluationRow]:
    """Return the evaluations of a policy version, newest first."""
    async with connection.cursor(row_factory=class_row(EvaluationRow)) as cursor:
        await cursor.execute(LIST_EVALUATIONS, {"policy": policy_version_id, "dataset": dataset, "mode": mode})
        return await cursor.fetchall()


async def get_evaluation(connection: Connection, evaluation_id: UUID) -> EvaluationRow:
    """Return an evaluation. Raises `NotFound` if it does not exist."""
    async with connection.cursor(row_factory=class_row(EvaluationRow)) as cursor:
        await cursor.execute(GET_EVALUATION, (evaluation_id,))
        row = await cursor.fetchone()
    if row is None:
        raise NotFound("evaluation", str(evaluation_id))
    return row


async def list_results(connection: Connection, evaluation_id: UUID) -> list[EvaluationResultRow]:
    """Return the results of an evaluation, ordered by task and member."""
    return [
        EvaluationResultRow(*row) for row in await (await connection.execute(LIST_RESULTS, (evaluation_id,))).fetchall()
    ]


async def list_summaries(
    connection: Connection, policy_version_id: UUID | None, name: str | None, before: UUID | None, limit: int
) -> list[EvaluationSummary]:
    """Return evaluations after `before`, newest first.

    They are those of a policy version, of a policy name, or all.
    """
    values = {"policy": policy_version_id, "name": name, "before": before, "limit": limit}
    async with connection.cursor(row_factory=class_row(EvaluationSummary)) as cursor:
        await cursor.execute(LIST_SUMMARIES, values)
        return await cursor.fetchall()


async def list_live_rewards(connection: Connection, policy_version_id: UUID, since: datetime) -> list[float]:
    """Return the mean reward of each task of a policy version that was completed after a time, the first one first.

    The rollouts of a group are one value, because they have the same task. Those of evaluations are left out, and so
    are groups without a reward.
    """
    values = {"policy": str(policy_version_id), "since": since}
    return [reward for (reward,) in await (await connection.execute(LIST_LIVE_REWARDS, values)).fetchall()]
