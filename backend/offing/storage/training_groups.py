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

GROUPS = """
    select g.id, g.task_id, g.state, g.completed_at, g.size, g.graph,
           coalesce(m.members, '{}'), coalesce(m.runs, '{}'), coalesce(m.outcomes, '{}'), coalesce(m.rewards, '{}'),
           coalesce(m.last, '{}'), coalesce(p.policies, '{}')
      from rollout_group g
      left join task t on t.id = g.task_id
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
         where %(roles)s::text[] is null or pinned.role = any(%(roles)s)) as p on true
     where g.state <> 'open' and g.completed_at <= %(until)s
       and (%(after_at)s::timestamptz is null or (g.completed_at, g.id) > (%(after_at)s, %(after_group)s))
       and (%(since)s::timestamptz is null or g.completed_at >= %(since)s)
       and (%(graph)s::text is null or g.graph = %(graph)s)
       and (%(batches)s::uuid[] is null or g.batch_id = any(%(batches)s))
       and (%(dataset)s::text is null or t.dataset = %(dataset)s)
       and (%(split)s::text is null or t.split = %(split)s)
       and g.tags || coalesce(t.tags, '{}') @> %(tags)s
     order by g.completed_at, g.id limit %(limit)s
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


async def page(
    connection: Connection,
    wanted: GroupQuery,
    until: datetime,
    after: tuple[datetime, UUID] | None,
    limit: int,
) -> list[GroupHead]:
    """Groups that follow `after` and were complete by `until`, the first to become so first."""
    at, group = after or (None, None)
    values: dict[str, Any] = {
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
        "limit": limit,
    }
    rows = await (await connection.execute(GROUPS, values, prepare=False)).fetchall()
    return [_head(row) for row in rows]


async def facts(connection: Connection, runs: Sequence[UUID]) -> Mapping[UUID, RunFacts]:
    """What rollouts cost, by run."""
    rows = await (await connection.execute(FACTS, (list(runs),))).fetchall()
    return {run: RunFacts(*costs) for run, *costs in rows}


async def newest(connection: Connection) -> tuple[datetime, datetime | None]:
    """The store's clock, and when a group last became complete. None: none ever did."""
    row = await (await connection.execute(NOW)).fetchone()
    assert row is not None
    return row[0], row[1]


def _head(row: Sequence[Any]) -> GroupHead:
    id, task, state, at, size, graph, members, runs, outcomes, rewards, last, policies = row
    found = tuple(Member(*one) for one in zip(members, runs, outcomes, rewards, last, strict=True))
    return GroupHead(id, task, state, at, size, graph, found, tuple(dict.fromkeys(policies)))
