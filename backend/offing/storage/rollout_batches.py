"""Rollout batches and groups as rows.

This module stores requests for rollouts, creates the runs in bulk and reports progress. A group
and its runs are created by one statement, so no group exists without its runs.
`storage.rollouts` finalizes rollouts.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import orjson
from psycopg.rows import class_row
from psycopg.types.json import Jsonb

from offing.core.errors import NotFound
from offing.core.judge_budget import NO_JUDGE_LIMIT, JudgeBudget
from offing.core.model import EngineConfig, describe_engine, engine_to_json
from offing.storage.pool import Connection

BATCH_COLUMNS = """
    id, name, request, group_count, created_at, cancelled_at, stop_reason, judge_max_calls, judge_max_cost_usd,
    judge_calls, judge_cost_usd
"""

INSERT_BATCH = f"""
    insert into rollout_batch (id, tenant_id, name, request, group_count, idempotency_key, request_sha256,
                               judge_max_calls, judge_max_cost_usd)
    values (%s, %s, %s, %s, %s, %s, %s, %s, %s) returning {BATCH_COLUMNS}
"""

FIND_EARLIER_BATCH = f"select {BATCH_COLUMNS}, request_sha256 from rollout_batch where idempotency_key = %s"

GET_BATCH = f"select {BATCH_COLUMNS} from rollout_batch where id = %s"

LIST_BATCHES = f"""
    select {BATCH_COLUMNS}
      from rollout_batch where %(before)s::uuid is null or id < %(before)s order by id desc limit %(limit)s
"""

LIST_GROUPED_TASKS = "select task_id from rollout_group where batch_id = %s"

CREATE_GROUPS = """
    with batch_now as (
      select id from rollout_batch where id = %(batch)s and cancelled_at is null for share),
    wanted as (
      select t.* from unnest(%(groups)s::uuid[], %(tasks)s::uuid[], %(group_seeds)s::bigint[]) as t(id, task, seed)
       where exists (select from batch_now)),
    made as (
      insert into rollout_group (id, tenant_id, batch_id, task_id, graph, graph_version, engines, policy_version_ids,
                                 scorers,
                                 size, seed, max_attempts, tags)
      select id, %(tenant)s, %(batch)s, task, %(graph)s, %(graph_version)s, %(engines)s, %(policies)s, %(scorers)s,
             %(size)s, seed, %(attempts)s, %(tags)s
        from wanted
      on conflict (batch_id, task_id) do nothing
      returning id, task_id),
    members as (
      select m.*, made.id as group_id, task.question, task.scope,
             left(regexp_replace(task.question, '\\s+', ' ', 'g'), 160) as title
        from unnest(%(member_groups)s::uuid[], %(members)s::integer[], %(runs)s::uuid[], %(threads)s::uuid[],
                    %(seeds)s::bigint[]) as m(of_group, member, run, thread, seed)
        join made on made.id = m.of_group
        join task on task.id = made.task_id),
    threads as (
      insert into thread (id, tenant_id, title, kind) select thread, %(tenant)s, title, 'rollout' from members),
    runs as (
      insert into run (id, tenant_id, thread_id, graph, graph_version, question, engines, tool_policy,
                       tool_policy_sha256, budget,
                       scope, seed, traceparent, kind, durability, status, next_seq)
      select run, %(tenant)s, thread, %(graph)s, %(graph_version)s, question, %(engines)s, %(policy)s,
             %(policy_sha256)s, %(budget)s, scope || %(scope)s, seed, %(traceparent)s, 'rollout', %(durability)s,
             'queued', 2
        from members),
    firsts as (
      insert into step (run_id, seq, tenant_id, fence, kind, label, title, payload)
      select run, 1, %(tenant)s, 0, 'queued', 'queued', title,
             jsonb_build_object('question', question, 'graph', %(graph)s::text, 'engines', %(answering)s::jsonb)
        from members)
    insert into rollout (run_id, group_id, tenant_id, member)
    select run, group_id, %(tenant)s, member from members
    returning run_id
"""
"""A cancelled batch gets no more groups, and a task gets only one group per batch."""

GET_PROGRESS = """
    select b.id, g.group_count, o.open, g.complete, g.incomplete, g.rollouts + o.rollouts as rollouts, o.waiting,
           o.running, o.unfinalized, g.finalized + o.finalized as finalized, g.failed + o.failed as failed,
           (g.reward_sum + o.reward_sum) / nullif(g.rewards + o.rewards, 0) as mean_reward
      from rollout_batch b
      cross join lateral (
        select count(*) as group_count, count(*) filter (where state = 'complete') as complete,
               count(*) filter (where state = 'incomplete') as incomplete,
               coalesce(sum(rollout_count), 0)::bigint as rollouts,
               coalesce(sum(finalized_count), 0)::bigint as finalized,
               coalesce(sum(infra_error_count), 0)::bigint as failed,
               coalesce(sum(reward_count), 0)::bigint as rewards, coalesce(sum(reward_sum), 0) as reward_sum
          from rollout_group where batch_id = b.id) as g
      cross join lateral (
        select count(distinct og.id) as open, count(rollout.run_id) as rollouts,
               count(*) filter (where run.status in ('queued', 'waiting', 'paused')) as waiting,
               count(*) filter (where run.status = 'running') as running,
               count(*) filter (where run.ended_at is not null and rollout.finalized_at is null) as unfinalized,
               count(rollout.finalized_at) as finalized,
               count(*) filter (where rollout.outcome = 'infra_error') as failed,
               count(rollout.reward) as rewards, coalesce(sum(rollout.reward), 0) as reward_sum
          from rollout_group og left join rollout on rollout.group_id = og.id left join run on run.id = rollout.run_id
         where og.batch_id = b.id and og.state = 'open') as o
     where b.id = any(%s)
"""
"""Ended groups have stored sums. Only the rollouts of open groups are read."""

CANCEL_BATCH = (
    "update rollout_batch set cancelled_at = coalesce(cancelled_at, clock_timestamp()) where id = %s returning id"
)

CANCEL_UNCLAIMED_RUNS = """
    with due as (
      select r.id, r.next_seq from run r
       where r.id in (select o.run_id from rollout o join rollout_group g on g.id = o.group_id
                       where g.batch_id = %(batch)s)
         and r.status in ('queued', 'waiting', 'paused')
       order by r.id limit %(most)s for update of r skip locked),
    ended as (
      update run set status = 'cancelled', stop_reason = 'cancelled', cancel_mode = 'discard', waiting_for = null,
                     not_before = null, next_seq = run.next_seq + 1, ended_at = clock_timestamp()
        from due where run.id = due.id returning run.id, due.next_seq as seq)
    insert into step (run_id, seq, tenant_id, fence, kind, label, title, payload)
    select id, seq, %(tenant)s, 0, 'ended', 'ended', 'Ended: cancelled', %(payload)s from ended
    returning run_id
"""
"""Runs without a claim. Those that a worker is claiming at this moment are left to
REQUEST_CANCEL_OF_RUNNING.
"""

REQUEST_CANCEL_OF_RUNNING = """
    update run set cancel_mode = 'discard'
     where id in (select o.run_id from rollout o join rollout_group g on g.id = o.group_id where g.batch_id = %s)
       and ended_at is null
    returning id
"""

GROUP_COLUMNS = """
    g.id, g.batch_id, g.task_id, task.question, g.graph, g.graph_version, g.engines, g.policy_version_ids, g.scorers,
    g.size, g.seed, g.max_attempts, g.tags, g.state, g.created_at, g.completed_at
"""

GET_GROUP = f"select {GROUP_COLUMNS} from rollout_group g join task on task.id = g.task_id where g.id = %s"

LIST_GROUPS = f"""
    select {GROUP_COLUMNS} from rollout_group g join task on task.id = g.task_id
     where (%(batch)s::uuid is null or g.batch_id = %(batch)s) and (%(state)s::text is null or g.state = %(state)s)
       and (%(graph)s::text is null or g.graph = %(graph)s) and (%(before)s::uuid is null or g.id < %(before)s)
     order by g.id desc limit %(limit)s
"""


@dataclass(frozen=True, slots=True)
class RolloutBatchRow:
    """A request to collect rollouts."""

    id: UUID
    name: str
    request: dict[str, Any]
    """The request without its tasks."""
    group_count: int
    """Number of requested groups."""
    created_at: datetime
    cancelled_at: datetime | None
    stop_reason: str
    """`judge_budget` if the batch was stopped because its judges had spent their budget. Else empty."""
    judge_max_calls: int | None
    judge_max_cost_usd: Decimal | None
    judge_calls: int
    """Calls of judges so far."""
    judge_cost_usd: Decimal
    """Their cost, and the most that the calls which run now may cost."""

    @property
    def judge_budget(self) -> JudgeBudget:
        return JudgeBudget(self.judge_max_calls, self.judge_max_cost_usd)


@dataclass(frozen=True, slots=True)
class BatchProgress:
    """Counts of a batch. Retries count as separate rollouts."""

    id: UUID
    """Id of the batch."""
    group_count: int
    """Number of existing groups."""
    open: int
    complete: int
    incomplete: int
    rollouts: int
    waiting: int
    running: int
    unfinalized: int
    """Rollouts that have ended and have not been scored by all scorers."""
    finalized: int
    failed: int
    """Rollouts finalized as an infrastructure error."""
    mean_reward: float | None
    """`None` means that no rollout has a reward."""


@dataclass(frozen=True, slots=True)
class PinnedConfig:
    """The configuration that all groups of a batch share. Each group stores its own copy."""

    graph: str
    graph_version: str
    engines: Mapping[str, EngineConfig]
    policy_version_ids: Mapping[str, UUID]
    """Policy version id by role."""
    scorers: Sequence[Mapping[str, Any]]
    """Keys: name, version, weight, options."""
    size: int
    max_attempts: int
    tags: Sequence[str]
    tool_policy: Mapping[str, Any]
    """The tool policy."""
    tool_policy_sha256: str
    budget: Mapping[str, Any]
    durability: str
    traceparent: str | None = None
    scope: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Fields that replace those of the tasks' scopes."""


@dataclass(frozen=True, slots=True)
class NewGroupMember:
    group_id: UUID
    member: int
    run_id: UUID
    thread_id: UUID
    seed: int


@dataclass(frozen=True, slots=True)
class NewGroup:
    id: UUID
    task_id: UUID
    seed: int
    members: tuple[NewGroupMember, ...]


@dataclass(frozen=True, slots=True)
class GroupRow:
    """A group as stored, with the question of its task."""

    id: UUID
    batch_id: UUID
    task_id: UUID
    question: str
    graph: str
    graph_version: str
    engines: dict[str, Any]
    policy_version_ids: dict[str, Any]
    scorers: list[dict[str, Any]]
    size: int
    seed: int
    max_attempts: int
    tags: list[str]
    state: str
    created_at: datetime
    completed_at: datetime | None


@dataclass(frozen=True, slots=True)
class GroupFilter:
    """Filter of a list of groups. `None` means any."""

    batch_id: UUID | None = None
    state: str | None = None
    graph: str | None = None


async def insert_batch(
    connection: Connection,
    tenant_id: UUID,
    batch_id: UUID,
    *,
    name: str,
    request: Mapping[str, Any],
    group_count: int,
    idempotency_key: str | None,
    request_sha256: str,
    judge_budget: JudgeBudget = NO_JUDGE_LIMIT,
) -> RolloutBatchRow:
    """Store a rollout batch.

    In the same transaction, the caller has checked that the idempotency key is new.
    """
    async with connection.cursor(row_factory=class_row(RolloutBatchRow)) as cursor:
        limits = (judge_budget.max_calls, judge_budget.max_cost_usd)
        await cursor.execute(
            INSERT_BATCH,
            (batch_id, tenant_id, name, _jsonb(request), group_count, idempotency_key, request_sha256, *limits),
        )
        row = await cursor.fetchone()
    assert row is not None
    return row


async def find_earlier_batch(connection: Connection, idempotency_key: str) -> tuple[RolloutBatchRow, str] | None:
    """Return the batch that was created with an idempotency key and the hash of its request.

    `None` means that the key is new.
    """
    row = await (await connection.execute(FIND_EARLIER_BATCH, (idempotency_key,))).fetchone()
    return None if row is None else (RolloutBatchRow(*row[:-1]), row[-1])


async def get_batch(connection: Connection, batch_id: UUID) -> RolloutBatchRow:
    """Return a group. Raises `NotFound` if it does not exist."""
    row = await (await connection.execute(GET_BATCH, (batch_id,))).fetchone()
    if row is None:
        raise NotFound("batch", str(batch_id))
    return RolloutBatchRow(*row)


async def list_batches(connection: Connection, before: UUID | None, limit: int) -> list[RolloutBatchRow]:
    """Return batches after `before`, newest first."""
    rows = await (await connection.execute(LIST_BATCHES, {"before": before, "limit": limit})).fetchall()
    return [RolloutBatchRow(*row) for row in rows]


async def list_grouped_task_ids(connection: Connection, batch_id: UUID) -> set[UUID]:
    """Return the tasks that already have a group in this batch."""
    return {task for (task,) in await (await connection.execute(LIST_GROUPED_TASKS, (batch_id,))).fetchall()}


async def create_groups(
    connection: Connection, tenant_id: UUID, batch_id: UUID, config: PinnedConfig, groups: Sequence[NewGroup]
) -> list[UUID]:
    """Create groups with all of their runs, queued.

    Return the ids of the runs; a task that already has a group gets none.
    """
    members = [member for group in groups for member in group.members]
    values = {
        **_group_parameters(config),
        "tenant": tenant_id,
        "batch": batch_id,
        "groups": [g.id for g in groups],
        "tasks": [g.task_id for g in groups],
        "group_seeds": [g.seed for g in groups],
        "member_groups": [m.group_id for m in members],
        "members": [m.member for m in members],
        "runs": [m.run_id for m in members],
        "threads": [m.thread_id for m in members],
        "seeds": [m.seed for m in members],
    }
    return [run for (run,) in await (await connection.execute(CREATE_GROUPS, values)).fetchall()]


async def get_progress(connection: Connection, batch_ids: Sequence[UUID]) -> dict[UUID, BatchProgress]:
    """Return the progress of batches by id."""
    async with connection.cursor(row_factory=class_row(BatchProgress)) as cursor:
        await cursor.execute(GET_PROGRESS, (list(batch_ids),))
        return {one.id: one for one in await cursor.fetchall()}


async def cancel_batch(connection: Connection, batch_id: UUID) -> None:
    """Mark a batch as cancelled.

    It gets no more groups and no retries. Raises `NotFound` if it does not exist.
    """
    if await (await connection.execute(CANCEL_BATCH, (batch_id,))).fetchone() is None:
        raise NotFound("batch", str(batch_id))


async def cancel_unclaimed_runs(connection: Connection, tenant_id: UUID, batch_id: UUID, limit: int) -> int:
    """End at most `limit` runs of the batch that have no claim. Return the number of ended runs."""
    payload = {"status": "cancelled", "stop_reason": "cancelled", "detail": "", "report_version": None}
    values = {"tenant": tenant_id, "batch": batch_id, "most": limit, "payload": _jsonb(payload)}
    return len(await (await connection.execute(CANCEL_UNCLAIMED_RUNS, values)).fetchall())


async def request_cancel_of_running(connection: Connection, batch_id: UUID) -> list[UUID]:
    """Request the cancellation of all runs of the batch that have not ended. Return their ids."""
    return [run for (run,) in await (await connection.execute(REQUEST_CANCEL_OF_RUNNING, (batch_id,))).fetchall()]


async def get_group(connection: Connection, group_id: UUID) -> GroupRow:
    """Return a group. Raises `NotFound` if it does not exist."""
    row = await (await connection.execute(GET_GROUP, (group_id,))).fetchone()
    if row is None:
        raise NotFound("group", str(group_id))
    return GroupRow(*row)


async def list_groups(
    connection: Connection, group_filter: GroupFilter, before: UUID | None, limit: int
) -> list[GroupRow]:
    """Return groups after `before`, newest first."""
    values = {
        "batch": group_filter.batch_id,
        "state": group_filter.state,
        "graph": group_filter.graph,
        "before": before,
        "limit": limit,
    }
    return [GroupRow(*row) for row in await (await connection.execute(LIST_GROUPS, values)).fetchall()]


def _group_parameters(config: PinnedConfig) -> dict[str, Any]:
    engines = {role: engine_to_json(choice) for role, choice in config.engines.items()}
    who = {role: describe_engine(choice) for role, choice in config.engines.items()}
    return {
        "graph": config.graph,
        "graph_version": config.graph_version,
        "engines": _jsonb(engines),
        "answering": _jsonb(who),
        "policies": _jsonb({role: str(id) for role, id in config.policy_version_ids.items()}),
        "scorers": _jsonb(list(config.scorers)),
        "size": config.size,
        "attempts": config.max_attempts,
        "tags": list(config.tags),
        "policy": _jsonb(config.tool_policy),
        "policy_sha256": config.tool_policy_sha256,
        "budget": _jsonb(config.budget),
        "durability": config.durability,
        "traceparent": config.traceparent,
        "scope": _jsonb(config.scope),
    }


def _jsonb(value: object) -> Jsonb:
    return Jsonb(value, dumps=orjson.dumps)
