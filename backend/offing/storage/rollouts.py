"""Rollouts as rows: finalizing them, and lists of them.

The row of the group is locked first, so that rollouts of one group are finalized one after
another. Rows of ended runs are only read.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, LiteralString
from uuid import UUID

from offing.core.errors import NotFound
from offing.core.report import Report
from offing.core.run import RunStatus, StopReason
from offing.core.scoring import Reference
from offing.core.trajectory import Outcome
from offing.storage import reports
from offing.storage.pool import Connection, Database
from offing.storage.tasks import reference_from_parts

LOCK_GROUP = """
    select g.id, g.batch_id, g.size, g.max_attempts, g.scorers from rollout_group g
     where g.id = (select group_id from rollout where run_id = %s)
       for no key update of g
"""

FIND_UNFINALIZED_ROLLOUT = """
    select o.member, o.attempt, r.status, r.stop_reason, r.question, r.seed, f.task_id is not null as has_reference,
           f.answers, f.evidence, f.rubric,
           (select max(version) from report where run_id = r.id) as report_version,
           (select body->'answer'->>'text' from report where run_id = r.id order by version desc limit 1) as answer,
           exists (select from reward where run_id = r.id and target = 'run') as was_scored
      from rollout o
      join run r on r.id = o.run_id
      join rollout_group g on g.id = o.group_id
      left join task_reference f on f.task_id = g.task_id
     where o.run_id = %s and o.finalized_at is null and r.ended_at is not null
"""
"""No row means that the rollout has been finalized or has not ended. It is read after the lock, so
that it sees what others have finalized.
"""

ACQUIRE_SCORING = """
    update rollout set due_at = clock_timestamp() + %s::interval
     where run_id = %s and finalized_at is null and due_at <= clock_timestamp()
    returning run_id
"""

POSTPONE_SCORING = """
    update rollout set due_at = clock_timestamp() + %s::interval where run_id = %s and finalized_at is null
"""

FINALIZE_ROLLOUT = """
    update rollout set outcome = %s, reward = %s, finalized_at = clock_timestamp()
     where run_id = %s and finalized_at is null
"""

RETRY_ROLLOUT = """
    with going_on as (
      select b.id from rollout_batch b
       where b.id = (select g.batch_id from rollout o join rollout_group g on g.id = o.group_id
                      where o.run_id = %(run)s)
         and b.cancelled_at is null for share),
    thread_now as (
      insert into thread (id, tenant_id, title, kind)
      select %(thread)s, t.tenant_id, t.title, 'rollout'
        from run r join thread t on t.id = r.thread_id where r.id = %(run)s and exists (select from going_on)),
    run_now as (
      insert into run (id, tenant_id, thread_id, graph, graph_version, question, engines, tool_policy,
                       tool_policy_sha256, budget,
                       scope, seed, traceparent, kind, durability, status, next_seq)
      select %(again)s, tenant_id, %(thread)s, graph, graph_version, question, engines, tool_policy,
             tool_policy_sha256, budget,
             scope, seed, traceparent, kind, durability, 'queued', 2
        from run where id = %(run)s and exists (select from going_on)),
    first as (
      insert into step (run_id, seq, tenant_id, fence, kind, label, title, payload)
      select %(again)s, 1, tenant_id, 0, kind, label, title, payload 
        from step where run_id = %(run)s and seq = 1 and exists (select from going_on))
    insert into rollout (run_id, group_id, tenant_id, member, attempt, parent_id)
    select %(again)s, group_id, tenant_id, member, attempt + 1, parent_id
      from rollout where run_id = %(run)s and exists (select from going_on)
    returning run_id
"""
"""The batch is locked in share mode: either a cancellation sees this run, or the run is not
created.
"""

COMPLETE_GROUP = """
    with latest as (
      select distinct on (member) finalized_at, outcome, reward from rollout
       where group_id = %(group)s order by member, attempt desc),
    counted as (
      select count(*) filter (where finalized_at is not null) as final,
             count(*) filter (where outcome = 'infra_error' or (%(weighted)s and reward is null)) as gone
        from latest)
    update rollout_group g set state = case when gone > 0 then 'incomplete' else 'complete' end,
                               completed_at = clock_timestamp()
      from counted where g.id = %(group)s and g.state = 'open' and final = g.size
"""
"""A group ends when the last attempt of each member is finalized. If a member was deleted, the
group is incomplete.
"""

SWEEP_ROLLOUTS = "select run_id, tenant_id from app.sweep_rollouts(%s, %s)"

COLUMNS = """
    o.run_id, o.group_id, g.batch_id, g.task_id, o.member, o.attempt, g.graph,
    r.question, r.status, r.stop_reason, r.seed, r.turns, r.tokens, o.outcome, o.reward, r.created_at, r.ended_at,
    o.finalized_at
"""

GET_ROLLOUT = f"""
    select {COLUMNS} from rollout o join rollout_group g on g.id = o.group_id join run r on r.id = o.run_id
     where o.run_id = %s
"""

LIST_ROLLOUTS_OF_GROUP = f"""
    select {COLUMNS} from rollout o join rollout_group g on g.id = o.group_id join run r on r.id = o.run_id
     where o.group_id = %s order by o.member, o.attempt
"""

FROM_ROLLOUTS: LiteralString = """
    from rollout o join rollout_group g on g.id = o.group_id join run r on r.id = o.run_id
"""


@dataclass(frozen=True, slots=True)
class LockedGroup:
    """A group that is locked until the transaction ends."""

    id: UUID
    batch_id: UUID
    size: int
    max_attempts: int
    """Maximum number of attempts per member."""
    scorers: list[dict[str, Any]]

    @property
    def has_reward(self) -> bool:
        """Whether its rollouts have a reward."""
        return any(scorer["weight"] for scorer in self.scorers)


@dataclass(frozen=True, slots=True)
class UnfinalizedRollout:
    """A rollout whose run has ended and that has not been finalized."""

    run_id: UUID
    member: int
    attempt: int
    status: RunStatus
    stop_reason: StopReason
    question: str
    seed: int
    reference: Reference | None
    """`None` means that its task has none."""
    report_version: int | None
    """`None` means that the run has no report."""
    answer: str
    """The report's short answer as written. Empty if there is none."""
    was_scored: bool
    """Whether scoring has been attempted before."""


@dataclass(frozen=True, slots=True)
class RolloutRow:
    """A rollout with its run, as lists show it."""

    run_id: UUID
    group_id: UUID
    batch_id: UUID
    task_id: UUID
    member: int
    attempt: int
    graph: str
    question: str
    status: str
    stop_reason: str | None
    seed: int
    turns: int
    tokens: int
    outcome: str | None
    """`None` means that it has not been finalized."""
    reward: float | None
    created_at: datetime
    ended_at: datetime | None
    finalized_at: datetime | None


@dataclass(frozen=True, slots=True)
class RolloutFilter:
    """Filter of a list of rollouts. `None` means any."""

    batch_id: UUID | None = None
    outcome: Outcome | None = None
    is_finalized: bool | None = None
    graph: str | None = None


async def lock_unfinalized_rollout(
    connection: Connection, run_id: UUID
) -> tuple[LockedGroup, UnfinalizedRollout] | None:
    """Lock the group of a rollout that must be finalized, and return both.

    `None` means that the run is not a rollout, has not ended, or has been finalized. In a pipelined transaction, this
    is one round trip.
    """
    groups = await connection.execute(LOCK_GROUP, (run_id,))
    rollouts = await connection.execute(FIND_UNFINALIZED_ROLLOUT, (run_id,))
    group, rollout = await groups.fetchone(), await rollouts.fetchone()
    return None if group is None or rollout is None else (LockedGroup(*group), _unfinalized_from_row(run_id, rollout))


def _unfinalized_from_row(run_id: UUID, row: tuple[Any, ...]) -> UnfinalizedRollout:
    member, attempt, status, reason, question, seed, has_reference, *parts, report, answer, tried = row
    reference = reference_from_parts(*parts) if has_reference else None
    stop = StopReason(reason) if reason else StopReason.NO_PROGRESS
    return UnfinalizedRollout(
        run_id, member, attempt, RunStatus(status), stop, question, seed, reference, report, answer or "", tried
    )


async def find_report(connection: Connection, rollout: UnfinalizedRollout) -> Report | None:
    """Return the latest report of a rollout. `None` means that it has none."""
    return None if rollout.report_version is None else await reports.find_own_report(connection, rollout.run_id)


async def acquire_scoring(connection: Connection, run_id: UUID, lease_seconds: float) -> bool:
    """Acquire the right to score a rollout for `lease_seconds`.

    Return false if another worker scores it or it is not due yet.
    """
    return (
        await (await connection.execute(ACQUIRE_SCORING, (f"{lease_seconds} seconds", run_id))).fetchone() is not None
    )


async def postpone_scoring(connection: Connection, run_id: UUID, delay_seconds: float) -> None:
    """Postpone the scoring of a rollout by `delay_seconds`."""
    await connection.execute(POSTPONE_SCORING, (f"{delay_seconds} seconds", run_id))


async def finalize_rollout(connection: Connection, run_id: UUID, outcome: Outcome, reward: float | None) -> None:
    """Finalize a rollout. Do nothing if it has been finalized before."""
    await connection.execute(FINALIZE_ROLLOUT, (outcome, reward, run_id))


async def retry_rollout(connection: Connection, run_id: UUID, new_run_id: UUID, new_thread_id: UUID) -> bool:
    """Queue a retry of a rollout: a new run for the same member with the same seed.

    Return false if the batch was cancelled.
    """
    cursor = await connection.execute(RETRY_ROLLOUT, {"run": run_id, "again": new_run_id, "thread": new_thread_id})
    return await cursor.fetchone() is not None


async def complete_group(connection: Connection, group: LockedGroup) -> None:
    """End a group as `complete` or `incomplete` if all of its members are final."""
    await connection.execute(COMPLETE_GROUP, {"group": group.id, "weighted": group.has_reward})


async def list_overdue_rollouts(database: Database, overdue_seconds: float, limit: int) -> list[tuple[UUID, UUID]]:
    """Return run and tenant of rollouts of all tenants that are overdue by `overdue_seconds`."""
    return [
        (run, tenant)
        for run, tenant in await database.call_function(SWEEP_ROLLOUTS, (f"{overdue_seconds} seconds", limit))
    ]


async def get_rollout(connection: Connection, run_id: UUID) -> RolloutRow:
    """Return a rollout. Raises `NotFound` if it does not exist."""
    row = await (await connection.execute(GET_ROLLOUT, (run_id,))).fetchone()
    if row is None:
        raise NotFound("rollout", str(run_id))
    return RolloutRow(*row)


async def list_rollouts_of_group(connection: Connection, group_id: UUID) -> list[RolloutRow]:
    """Return all attempts of all members of a group, in order."""
    return [
        RolloutRow(*row) for row in await (await connection.execute(LIST_ROLLOUTS_OF_GROUP, (group_id,))).fetchall()
    ]


async def list_rollouts(
    connection: Connection, rollout_filter: RolloutFilter, before: UUID | None, limit: int
) -> list[RolloutRow]:
    """Return rollouts after `before`, newest first."""
    finalized = rollout_filter.is_finalized
    # A condition is written only for a filter that is used, so that the planner can choose an index that fits.
    optional: tuple[tuple[bool, LiteralString], ...] = (
        (rollout_filter.batch_id is not None, "g.batch_id = %(batch)s"),
        (rollout_filter.outcome is not None, "o.outcome = %(outcome)s"),
        (finalized is True, "o.finalized_at is not null"),
        (finalized is False, "o.finalized_at is null"),
        (rollout_filter.graph is not None, "g.graph = %(graph)s"),
        (before is not None, "o.run_id < %(before)s"),
    )
    where = " and ".join([condition for is_used, condition in optional if is_used] or ["true"])
    statement = f"select {COLUMNS} {FROM_ROLLOUTS} where {where} order by o.run_id desc limit %(limit)s"
    values = {
        "batch": rollout_filter.batch_id,
        "outcome": rollout_filter.outcome,
        "graph": rollout_filter.graph,
        "before": before,
        "limit": limit,
    }
    return [RolloutRow(*row) for row in await (await connection.execute(statement, values)).fetchall()]
