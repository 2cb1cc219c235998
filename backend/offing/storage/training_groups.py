"""Groups of rollouts as a training job takes them: in the order in which they became complete. Reads only.

Which rollouts a group stands for is decided here: the last attempt of each member; earlier attempts failed for reasons
that say nothing about a policy.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from offing.storage.pool import Connection

WANTED = """
           g.state <> 'open' and g.completed_at <= %(until)s
       and (%(after_at)s::timestamptz is null or (g.completed_at, g.id) > (%(after_at)s, %(after_group)s))
       and (%(since)s::timestamptz is null or g.completed_at >= %(since)s)
       and (%(graph)s::text is null or g.graph = %(graph)s)
       and (%(batches)s::uuid[] is null or g.batch_id = any(%(batches)s))
       and (%(dataset)s::text is null or t.dataset = %(dataset)s)
       and (%(split)s::text is null or t.split = %(split)s)
       and g.tags || coalesce(t.tags, '{}') @> %(tags)s
       and ('evaluation' = any(%(tags)s) or not 'evaluation' = any(g.tags))
"""
"""What an evaluation collected is trained on only when it is asked for by its tag."""

GROUPS = f"""
    with g as materialized (
      select g.* from rollout_group g left join task t on t.id = g.task_id
       where {WANTED}
       order by g.completed_at, g.id limit %(limit)s)
    select g.id, g.task_id, g.state, g.completed_at, g.size, g.graph,
           coalesce(m.members, '{{}}'), coalesce(m.runs, '{{}}'), coalesce(m.outcomes, '{{}}'),
           coalesce(m.rewards, '{{}}'), coalesce(m.last, '{{}}'), coalesce(p.policies, '{{}}')
      from g
      left join lateral (
        select array_agg(o.member order by o.member, o.attempt) as members,
               array_agg(o.run_id order by o.member, o.attempt) as runs,
               array_agg(coalesce(o.outcome, '') order by o.member, o.attempt) as outcomes,
               array_agg(o.reward order by o.member, o.attempt) as rewards,
               array_agg(o.last order by o.member, o.attempt) as last
          from (select *, attempt = max(attempt) over (partition by member) as last
                  from rollout where group_id = g.id) as o) as m on true
      left join lateral (
        select array_agg(v.name || '@' || v.version order by v.name, v.version) as policies
          from policy_version v join jsonb_each_text(g.policies) as pinned(role, id) on v.id = pinned.id::uuid
         where v.kind <> 'prompts'
           and (%(roles)s::text[] is null or pinned.role = any(%(roles)s))) as p on true
     order by g.completed_at, g.id
"""
"""Chosen first, so that what is in a group is put together for those alone."""

COUNT = f"""
    select g.state, count(*) from rollout_group g left join task t on t.id = g.task_id where {WANTED} group by g.state
"""

INSPECT = f"""
    with wanted as (
      select g.id from rollout_group g left join task t on t.id = g.task_id where {WANTED}),
    standing as (
      select distinct on (o.group_id, o.member) o.run_id, o.outcome
        from rollout o join wanted on wanted.id = o.group_id order by o.group_id, o.member, o.attempt desc),
    said as (
      select s.run_id, turn.trainable, turn.quarantine, turn.tokenizer_sha256, turn.policy,
             octet_length(turn.completion_ids) / 3 as sampled
        from standing s join turn on turn.run_id = s.run_id
       where s.outcome is distinct from 'infra_error' and turn.completion <> ''
         and (%(roles)s::text[] is null or turn.role = any(%(roles)s)))
    select trainable, quarantine <> '', tokenizer_sha256, policy, count(*), count(distinct run_id),
           coalesce(sum(sampled), 0)
      from said group by 1, 2, 3, 4 order by 1, 2, 3, 4
"""

LENGTHS = f"""
    with wanted as (
      select g.id from rollout_group g left join task t on t.id = g.task_id where {WANTED}),
    rollouts as (
      select o.run_id, sum(octet_length(turn.completion_ids) / 3) as sampled
        from rollout o join wanted on wanted.id = o.group_id
             join turn on turn.run_id = o.run_id and turn.trainable = 'rl'
                          and (%(roles)s::text[] is null or turn.role = any(%(roles)s))
       where o.outcome is distinct from 'infra_error' group by o.run_id)
    select power(2, floor(log(2, greatest(sampled, 1)::numeric)))::bigint, count(*) from rollouts group by 1 order by 1
"""

FACTS = """
    select r.id, r.turns, r.tokens, coalesce(r.usd, 0)::float8,
           (select count(*) from step s where s.run_id = r.id and s.kind = 'tool')
      from run r where r.id = any(%s)
"""

NOW = "select clock_timestamp(), (select max(completed_at) from rollout_group)"


@dataclass(frozen=True, slots=True)
class GroupQuery:
    """Which groups. None, or empty: any."""

    graph: str | None = None
    batches: tuple[UUID, ...] = ()
    dataset: str | None = None
    split: str | None = None
    tags: tuple[str, ...] = ()
    """All of them, of group or task."""
    since: datetime | None = None
    """Complete at that time or later."""
    roles: tuple[str, ...] = ()
    """Whose policies are told."""


@dataclass(frozen=True, slots=True)
class Member:
    """One rollout of a group."""

    member: int
    run: UUID
    outcome: str
    """Empty: not known."""
    reward: float | None
    last: bool
    """False: an attempt that another one followed."""


@dataclass(frozen=True, slots=True)
class GroupHead:
    """A group without its tokens."""

    id: UUID
    task: UUID
    state: str
    """complete or short."""
    completed_at: datetime
    size: int
    graph: str
    members: tuple[Member, ...]
    policies: tuple[str, ...]
    """NAME@VERSION that were pinned for the roles asked about."""

    @property
    def standing(self) -> tuple[Member, ...]:
        """The last attempt of each member, without those that an infrastructure error ended."""
        return tuple(m for m in self.members if m.last and m.outcome != "infra_error")

    @property
    def informative(self) -> bool:
        """Whether its rewards differ."""
        return len({m.reward for m in self.standing}) > 1


@dataclass(frozen=True, slots=True)
class RunFacts:
    """What a rollout cost."""

    turns: int
    tokens: int
    usd: float
    tool_calls: int


@dataclass(frozen=True, slots=True)
class Turns:
    """Turns that have the same to say about training."""

    trainable: str
    """rl, sft or none."""
    quarantined: bool
    tokenizer_sha256: str
    policy: str
    """NAME@VERSION. Empty: not a policy's."""
    turns: int
    rollouts: int
    tokens: int
    """Sampled ones."""


async def page(
    connection: Connection,
    wanted: GroupQuery,
    until: datetime,
    after: tuple[datetime, UUID] | None,
    limit: int,
) -> list[GroupHead]:
    """Groups that follow `after` and were complete by `until`, the first to become so first."""
    values = _values(wanted, until, after) | {"limit": limit}
    rows = await (await connection.execute(GROUPS, values, prepare=False)).fetchall()
    return [_head(row) for row in rows]


async def count(connection: Connection, wanted: GroupQuery, until: datetime) -> dict[str, int]:
    """How many groups there are, by state."""
    rows = await (await connection.execute(COUNT, _values(wanted, until, None), prepare=False)).fetchall()
    return dict(rows)


async def inspect(connection: Connection, wanted: GroupQuery, until: datetime) -> list[Turns]:
    """What the turns of these groups are, without reading a token."""
    rows = await (await connection.execute(INSPECT, _values(wanted, until, None), prepare=False)).fetchall()
    return [Turns(*row) for row in rows]


async def lengths(connection: Connection, wanted: GroupQuery, until: datetime) -> dict[int, int]:
    """Rollouts by their trained tokens: how many have at least so many and fewer than twice as many."""
    rows = await (await connection.execute(LENGTHS, _values(wanted, until, None), prepare=False)).fetchall()
    return dict(rows)


async def all_heads(connection: Connection, wanted: GroupQuery, until: datetime) -> list[GroupHead]:
    """The groups without a limit, for counting what is stale; tokens are not read."""
    values = _values(wanted, until, None) | {"limit": None}
    return [_head(row) for row in await (await connection.execute(GROUPS, values, prepare=False)).fetchall()]


async def facts(connection: Connection, runs: Sequence[UUID]) -> Mapping[UUID, RunFacts]:
    """What rollouts cost, by run."""
    rows = await (await connection.execute(FACTS, (list(runs),))).fetchall()
    return {run: RunFacts(*costs) for run, *costs in rows}


async def newest(connection: Connection) -> tuple[datetime, datetime | None]:
    """The store's clock, and when a group last became complete. None: none ever did."""
    row = await (await connection.execute(NOW)).fetchone()
    assert row is not None
    return row[0], row[1]


def _values(wanted: GroupQuery, until: datetime, after: tuple[datetime, UUID] | None) -> dict[str, Any]:
    at, group = after or (None, None)
    return {
        "graph": wanted.graph,
        "batches": list(wanted.batches) or None,
        "dataset": wanted.dataset,
        "split": wanted.split,
        "tags": list(wanted.tags),
        "since": wanted.since,
        "roles": list(wanted.roles) or None,
        "until": until,
        "after_at": at,
        "after_group": group,
    }


def _head(row: Sequence[Any]) -> GroupHead:
    id, task, state, at, size, graph, members, runs, outcomes, rewards, last, policies = row
    found = tuple(Member(*one) for one in zip(members, runs, outcomes, rewards, last, strict=True))
    return GroupHead(id, task, state, at, size, graph, found, tuple(dict.fromkeys(policies)))
