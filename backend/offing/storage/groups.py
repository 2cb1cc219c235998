"""Batches and groups as rows: asking for rollouts, making them in bulk, and how far they are.

A group and its runs are made by one statement, so there is never a group without its runs. Settling is in
`storage.rollouts`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import orjson
from psycopg.rows import class_row
from psycopg.types.json import Jsonb

from offing.core.errors import NotFound
from offing.core.model import EngineChoice, answering
from offing.storage.pool import Connection

BATCH_COLUMNS = "id, name, request, groups, created_at, cancelled_at"

INSERT_BATCH = f"""
    insert into batch (id, tenant_id, name, request, groups, idempotency_key, request_sha256)
    values (%s, %s, %s, %s, %s, %s, %s) returning {BATCH_COLUMNS}
"""

EARLIER_BATCH = f"select {BATCH_COLUMNS}, request_sha256 from batch where idempotency_key = %s"

BATCH = f"select {BATCH_COLUMNS} from batch where id = %s"

BATCHES = f"""
    select {BATCH_COLUMNS} from batch where %(before)s::uuid is null or id < %(before)s order by id desc limit %(limit)s
"""

MADE = "select task_id from rollout_group where batch_id = %s"

CREATE = """
    with batch_now as (
      select id from batch where id = %(batch)s and cancelled_at is null for share),
    wanted as (
      select t.* from unnest(%(groups)s::uuid[], %(tasks)s::uuid[], %(group_seeds)s::bigint[]) as t(id, task, seed)
       where exists (select from batch_now)),
    made as (
      insert into rollout_group (id, tenant_id, batch_id, task_id, graph, graph_version, engines, policies, scorers,
                                 size, seed, attempts, tags)
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
      insert into run (id, tenant_id, thread_id, graph, graph_version, question, engines, policy, policy_sha256, budget,
                       scope, seed, traceparent, kind, durability, status, next_seq)
      select run, %(tenant)s, thread, %(graph)s, %(graph_version)s, question, %(engines)s, %(policy)s,
             %(policy_sha256)s, %(budget)s, scope, seed, %(traceparent)s, 'rollout', %(durability)s, 'queued', 2
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
"""A cancelled batch gets no further groups, and a task no second group in a batch."""

PROGRESS = """
    select b.id, g.made, g.open, g.complete, g.short, o.rollouts, o.waiting, o.running, o.unsettled, o.settled,
           o.failed, o.mean_reward
      from batch b
      cross join lateral (
        select count(*) as made, count(*) filter (where state = 'open') as open,
               count(*) filter (where state = 'complete') as complete, count(*) filter (where state = 'short') as short
          from rollout_group where batch_id = b.id) as g
      cross join lateral (
        select count(*) as rollouts,
               count(*) filter (where run.status in ('queued', 'waiting', 'paused')) as waiting,
               count(*) filter (where run.status = 'running') as running,
               count(*) filter (where run.ended_at is not null and rollout.settled_at is null) as unsettled,
               count(*) filter (where rollout.settled_at is not null) as settled,
               count(*) filter (where rollout.outcome = 'infra_error') as failed,
               avg(rollout.reward) as mean_reward
          from rollout_group join rollout on rollout.group_id = rollout_group.id join run on run.id = rollout.run_id
         where rollout_group.batch_id = b.id) as o
     where b.id = any(%s)
"""

CANCEL = "update batch set cancelled_at = coalesce(cancelled_at, clock_timestamp()) where id = %s returning id"

CANCEL_IDLE = """
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
"""Runs that nobody works on; those that a worker is just claiming are left to CANCEL_RUNNING."""

CANCEL_RUNNING = """
    update run set cancel_mode = 'discard'
     where id in (select o.run_id from rollout o join rollout_group g on g.id = o.group_id where g.batch_id = %s)
       and ended_at is null
    returning id
"""

GROUP_COLUMNS = """
    g.id, g.batch_id as batch, g.task_id as task, task.question, g.graph, g.graph_version, g.engines, g.policies,
    g.scorers, g.size, g.seed, g.attempts, g.tags, g.state, g.created_at, g.completed_at
"""

GROUP = f"select {GROUP_COLUMNS} from rollout_group g join task on task.id = g.task_id where g.id = %s"

GROUPS = f"""
    select {GROUP_COLUMNS} from rollout_group g join task on task.id = g.task_id
     where (%(batch)s::uuid is null or g.batch_id = %(batch)s) and (%(state)s::text is null or g.state = %(state)s)
       and (%(graph)s::text is null or g.graph = %(graph)s) and (%(before)s::uuid is null or g.id < %(before)s)
     order by g.id desc limit %(limit)s
"""


@dataclass(frozen=True, slots=True)
class BatchRow:
    """A request to collect rollouts."""

    id: UUID
    name: str
    request: dict[str, Any]
    """As it was made, without its tasks."""
    groups: int
    """How many it asked for."""
    created_at: datetime
    cancelled_at: datetime | None


@dataclass(frozen=True, slots=True)
class Progress:
    """Counts over a batch; retries are rollouts of their own."""

    id: UUID
    """The batch."""
    made: int
    """Groups that exist."""
    open: int
    complete: int
    short: int
    rollouts: int
    waiting: int
    running: int
    unsettled: int
    """Ended, and not yet scored, or not yet by all scorers."""
    settled: int
    failed: int
    """Settled as an infrastructure error."""
    mean_reward: float | None
    """None: nothing has a reward."""


@dataclass(frozen=True, slots=True)
class Pinned:
    """What all groups of a batch have in common; each group keeps it for itself."""

    graph: str
    graph_version: str
    engines: Mapping[str, EngineChoice]
    policies: Mapping[str, UUID]
    """Version id by role."""
    scorers: Sequence[Mapping[str, Any]]
    """name, version, weight, options."""
    size: int
    attempts: int
    tags: Sequence[str]
    policy: Mapping[str, Any]
    """The tool policy."""
    policy_sha256: str
    budget: Mapping[str, Any]
    durability: str
    traceparent: str | None = None


@dataclass(frozen=True, slots=True)
class NewMember:
    group: UUID
    member: int
    run: UUID
    thread: UUID
    seed: int


@dataclass(frozen=True, slots=True)
class NewGroup:
    id: UUID
    task: UUID
    seed: int
    members: tuple[NewMember, ...]


@dataclass(frozen=True, slots=True)
class GroupRow:
    """A group as stored, with its task's question."""

    id: UUID
    batch: UUID
    task: UUID
    question: str
    graph: str
    graph_version: str
    engines: dict[str, Any]
    policies: dict[str, Any]
    scorers: list[dict[str, Any]]
    size: int
    seed: int
    attempts: int
    tags: list[str]
    state: str
    created_at: datetime
    completed_at: datetime | None


@dataclass(frozen=True, slots=True)
class GroupFilter:
    """Which groups a list shows. None: any."""

    batch: UUID | None = None
    state: str | None = None
    graph: str | None = None


async def insert_batch(
    connection: Connection,
    tenant: UUID,
    id: UUID,
    *,
    name: str,
    request: Mapping[str, Any],
    groups: int,
    key: str | None,
    digest: str,
) -> BatchRow:
    """Store a request. The caller has looked for an earlier one with the same key, in the same transaction."""
    async with connection.cursor(row_factory=class_row(BatchRow)) as cursor:
        await cursor.execute(INSERT_BATCH, (id, tenant, name, _jsonb(request), groups, key, digest))
        row = await cursor.fetchone()
    assert row is not None
    return row


async def batch_before(connection: Connection, key: str) -> tuple[BatchRow, str] | None:
    """The batch that a key made earlier, with the hash of its request. None: the key is new."""
    row = await (await connection.execute(EARLIER_BATCH, (key,))).fetchone()
    return None if row is None else (BatchRow(*row[:-1]), row[-1])


async def batch(connection: Connection, id: UUID) -> BatchRow:
    """Raises NotFound."""
    row = await (await connection.execute(BATCH, (id,))).fetchone()
    if row is None:
        raise NotFound("batch", str(id))
    return BatchRow(*row)


async def batches(connection: Connection, before: UUID | None, limit: int) -> list[BatchRow]:
    """Batches that follow `before`, newest first."""
    rows = await (await connection.execute(BATCHES, {"before": before, "limit": limit})).fetchall()
    return [BatchRow(*row) for row in rows]


async def tasks_made(connection: Connection, batch: UUID) -> set[UUID]:
    """Tasks that have their group in this batch."""
    return {task for (task,) in await (await connection.execute(MADE, (batch,))).fetchall()}


async def create(
    connection: Connection, tenant: UUID, batch: UUID, pinned: Pinned, groups: Sequence[NewGroup]
) -> list[UUID]:
    """Make groups with all of their runs, queued. The runs made: none for a task that has its group already."""
    members = [member for group in groups for member in group.members]
    values = {
        **_common(pinned),
        "tenant": tenant,
        "batch": batch,
        "groups": [g.id for g in groups],
        "tasks": [g.task for g in groups],
        "group_seeds": [g.seed for g in groups],
        "member_groups": [m.group for m in members],
        "members": [m.member for m in members],
        "runs": [m.run for m in members],
        "threads": [m.thread for m in members],
        "seeds": [m.seed for m in members],
    }
    return [run for (run,) in await (await connection.execute(CREATE, values)).fetchall()]


async def progress(connection: Connection, batches: Sequence[UUID]) -> dict[UUID, Progress]:
    """How far batches are, by id."""
    async with connection.cursor(row_factory=class_row(Progress)) as cursor:
        await cursor.execute(PROGRESS, (list(batches),))
        return {one.id: one for one in await cursor.fetchall()}


async def cancel(connection: Connection, batch: UUID) -> None:
    """Mark a batch as cancelled: nothing is added to it, and nothing of it is tried again. Raises NotFound."""
    if await (await connection.execute(CANCEL, (batch,))).fetchone() is None:
        raise NotFound("batch", str(batch))


async def cancel_idle(connection: Connection, tenant: UUID, batch: UUID, most: int) -> int:
    """End up to `most` of its runs that no worker holds; how many."""
    payload = {"status": "cancelled", "stop_reason": "cancelled", "detail": "", "report_version": None}
    values = {"tenant": tenant, "batch": batch, "most": most, "payload": _jsonb(payload)}
    return len(await (await connection.execute(CANCEL_IDLE, values)).fetchall())


async def cancel_running(connection: Connection, batch: UUID) -> list[UUID]:
    """Ask for the end of those that have not ended; which."""
    return [run for (run,) in await (await connection.execute(CANCEL_RUNNING, (batch,))).fetchall()]


async def group(connection: Connection, id: UUID) -> GroupRow:
    """Raises NotFound."""
    row = await (await connection.execute(GROUP, (id,))).fetchone()
    if row is None:
        raise NotFound("group", str(id))
    return GroupRow(*row)


async def groups(connection: Connection, wanted: GroupFilter, before: UUID | None, limit: int) -> list[GroupRow]:
    """Groups that follow `before`, newest first."""
    values = {
        "batch": wanted.batch,
        "state": wanted.state,
        "graph": wanted.graph,
        "before": before,
        "limit": limit,
    }
    return [GroupRow(*row) for row in await (await connection.execute(GROUPS, values)).fetchall()]


def _common(pinned: Pinned) -> dict[str, Any]:
    engines = {role: choice.model_dump() for role, choice in pinned.engines.items()}
    who = {role: answering(choice) for role, choice in pinned.engines.items()}
    return {
        "graph": pinned.graph,
        "graph_version": pinned.graph_version,
        "engines": _jsonb(engines),
        "answering": _jsonb(who),
        "policies": _jsonb({role: str(id) for role, id in pinned.policies.items()}),
        "scorers": _jsonb(list(pinned.scorers)),
        "size": pinned.size,
        "attempts": pinned.attempts,
        "tags": list(pinned.tags),
        "policy": _jsonb(pinned.policy),
        "policy_sha256": pinned.policy_sha256,
        "budget": _jsonb(pinned.budget),
        "durability": pinned.durability,
        "traceparent": pinned.traceparent,
    }


def _jsonb(value: object) -> Jsonb:
    return Jsonb(value, dumps=orjson.dumps)
