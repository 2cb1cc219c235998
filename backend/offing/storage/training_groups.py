"""Rollout groups as a training job reads them: in the order in which they became complete.

Only reads. The rollouts of a group are the last attempt of each member. Earlier attempts failed
for reasons that are unrelated to a policy.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from offing.storage.pool import Connection

MATCHES_QUERY = """
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
"""Groups of evaluations are trained on only if their tag is requested."""

LIST_GROUPS = f"""
    with g as materialized (
      select g.* from rollout_group g left join task t on t.id = g.task_id
       where {MATCHES_QUERY}
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
          from policy_version v join jsonb_each_text(g.policy_version_ids) as pinned(role, id) on v.id = pinned.id::uuid
         where v.kind <> 'prompt_library'
           and (%(roles)s::text[] is null or pinned.role = any(%(roles)s))) as p on true
     order by g.completed_at, g.id
"""
"""The groups are selected first, so that their contents are aggregated for these groups only."""

COUNT_GROUPS = f"""
    select g.state, count(*) from rollout_group g left join task t on t.id = g.task_id where {MATCHES_QUERY} group
    by g.state
"""

LIST_TURN_STATS = f"""
    with wanted as (
      select g.id from rollout_group g left join task t on t.id = g.task_id where {MATCHES_QUERY}),
    standing as (
      select distinct on (o.group_id, o.member) o.run_id, o.outcome
        from rollout o join wanted on wanted.id = o.group_id order by o.group_id, o.member, o.attempt desc),
    said as (
      select s.run_id, role_call.trainable, role_call.quarantine, role_call.tokenizer_sha256, role_call.policy,
             octet_length(role_call.completion_ids) / 3 as sampled
        from standing s join role_call on role_call.run_id = s.run_id
       where s.outcome is distinct from 'infra_error' and role_call.completion <> ''
         and (%(roles)s::text[] is null or role_call.role = any(%(roles)s)))
    select trainable, quarantine <> '', tokenizer_sha256, policy, count(*), count(distinct run_id),
           coalesce(sum(sampled), 0)
      from said group by 1, 2, 3, 4 order by 1, 2, 3, 4
"""

COUNT_ROLLOUT_LENGTHS = f"""
    with wanted as (
      select g.id from rollout_group g left join task t on t.id = g.task_id where {MATCHES_QUERY}),
    rollouts as (
      select o.run_id, sum(octet_length(role_call.completion_ids) / 3) as sampled
        from rollout o join wanted on wanted.id = o.group_id
             join role_call on role_call.run_id = o.run_id and role_call.trainable = 'rl'
                          and (%(roles)s::text[] is null or role_call.role = any(%(roles)s))
       where o.outcome is distinct from 'infra_error' group by o.run_id)
    select power(2, floor(log(2, greatest(sampled, 1)::numeric)))::bigint, count(*) from rollouts group by 1 order by 1
"""

GET_ROLLOUT_STATS = """
    select r.id, r.turns, r.tokens, coalesce(r.cost_usd, 0)::float8,
           (select count(*) from step s where s.run_id = r.id and s.kind = 'tool_result')
      from run r where r.id = any(%s)
"""

GET_HIGH_WATER_MARK = "select clock_timestamp(), (select max(completed_at) from rollout_group)"


@dataclass(frozen=True, slots=True)
class GroupQuery:
    """Filter of groups. `None` and empty values mean any."""

    graph: str | None = None
    batch_ids: tuple[UUID, ...] = ()
    dataset: str | None = None
    split: str | None = None
    tags: tuple[str, ...] = ()
    """The group or its task must have all of these tags."""
    since: datetime | None = None
    """Only groups that became complete at this time or later."""
    roles: tuple[str, ...] = ()
    """Roles whose policies are returned."""


@dataclass(frozen=True, slots=True)
class GroupMember:
    """One rollout of a group."""

    member: int
    run_id: UUID
    outcome: str
    """Empty if not known."""
    reward: float | None
    is_last_attempt: bool
    """False if there is a later attempt."""


@dataclass(frozen=True, slots=True)
class GroupSummary:
    """A group without its tokens."""

    id: UUID
    task_id: UUID
    state: str
    """`complete` or `incomplete`."""
    completed_at: datetime
    size: int
    graph: str
    members: tuple[GroupMember, ...]
    policy_labels: tuple[str, ...]
    """NAME@VERSION pinned for the roles of the query."""

    @property
    def final_members(self) -> tuple[GroupMember, ...]:
        """The last attempt of each member, without those that ended with an infrastructure error."""
        return tuple(m for m in self.members if m.is_last_attempt and m.outcome != "infra_error")

    @property
    def is_informative(self) -> bool:
        """Whether the rewards of its members differ."""
        return len({m.reward for m in self.final_members}) > 1


@dataclass(frozen=True, slots=True)
class RolloutStats:
    """Usage of a rollout."""

    turns: int
    tokens: int
    cost_usd: float
    tool_call_count: int


@dataclass(frozen=True, slots=True)
class TurnStats:
    """Statistics of role calls with the same training properties."""

    trainable: str
    """`rl`, `sft` or `none`."""
    is_quarantined: bool
    tokenizer_sha256: str
    policy: str
    """NAME@VERSION. Empty if no policy sampled the completions."""
    turn_count: int
    rollout_count: int
    token_count: int
    """Number of sampled tokens."""


async def list_groups(
    connection: Connection,
    query: GroupQuery,
    until: datetime,
    after: tuple[datetime, UUID] | None,
    limit: int,
) -> list[GroupSummary]:
    """Return groups after `after` that became complete by `until`, in the order of completion."""
    values = _query_parameters(query, until, after) | {"limit": limit}
    rows = await (await connection.execute(LIST_GROUPS, values, prepare=False)).fetchall()
    return [_summary_from_row(row) for row in rows]


async def count_groups(connection: Connection, query: GroupQuery, until: datetime) -> dict[str, int]:
    """Return the number of groups by state."""
    rows = await (
        await connection.execute(COUNT_GROUPS, _query_parameters(query, until, None), prepare=False)
    ).fetchall()
    return dict(rows)


async def list_turn_stats(connection: Connection, query: GroupQuery, until: datetime) -> list[TurnStats]:
    """Return statistics of the role calls of these groups, without reading tokens."""
    rows = await (
        await connection.execute(LIST_TURN_STATS, _query_parameters(query, until, None), prepare=False)
    ).fetchall()
    return [TurnStats(*row) for row in rows]


async def count_rollout_lengths(connection: Connection, query: GroupQuery, until: datetime) -> dict[int, int]:
    """Return the number of rollouts by trained tokens.

    Key k counts rollouts with at least k and fewer than 2k tokens.
    """
    rows = await (
        await connection.execute(COUNT_ROLLOUT_LENGTHS, _query_parameters(query, until, None), prepare=False)
    ).fetchall()
    return dict(rows)


async def list_all_groups(connection: Connection, query: GroupQuery, until: datetime) -> list[GroupSummary]:
    """Return all groups, without a limit, to count the stale ones. Tokens are not read."""
    values = _query_parameters(query, until, None) | {"limit": None}
    return [
        _summary_from_row(row)
        for row in await (await connection.execute(LIST_GROUPS, values, prepare=False)).fetchall()
    ]


async def get_rollout_stats(connection: Connection, run_ids: Sequence[UUID]) -> Mapping[UUID, RolloutStats]:
    """Return the usage of rollouts by run."""
    rows = await (await connection.execute(GET_ROLLOUT_STATS, (list(run_ids),))).fetchall()
    return {run: RolloutStats(*costs) for run, *costs in rows}


async def get_high_water_mark(connection: Connection) -> tuple[datetime, datetime | None]:
    """Return the database's current time, and when a group last became complete.

    `None` means that none ever did.
    """
    row = await (await connection.execute(GET_HIGH_WATER_MARK)).fetchone()
    assert row is not None
    return row[0], row[1]


def _query_parameters(query: GroupQuery, until: datetime, after: tuple[datetime, UUID] | None) -> dict[str, Any]:
    at, group = after or (None, None)
    return {
        "graph": query.graph,
        "batches": list(query.batch_ids) or None,
        "dataset": query.dataset,
        "split": query.split,
        "tags": list(query.tags),
        "since": query.since,
        "roles": list(query.roles) or None,
        "until": until,
        "after_at": at,
        "after_group": group,
    }


def _summary_from_row(row: Sequence[Any]) -> GroupSummary:
    id, task, state, at, size, graph, members, runs, outcomes, rewards, last, policies = row
    group_members = tuple(GroupMember(*one) for one in zip(members, runs, outcomes, rewards, last, strict=True))
    return GroupSummary(id, task, state, at, size, graph, group_members, tuple(dict.fromkeys(policies)))
