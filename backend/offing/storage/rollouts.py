"""Rollouts as rows: what settling one reads and writes, and lists of them.

The group's row is locked first, so that the settles of one group follow one another; the rows of runs that have ended
are only read.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from offing.core.errors import NotFound
from offing.core.report import Report
from offing.core.run import RunStatus, StopReason
from offing.core.scoring import Reference
from offing.core.trajectory import Outcome
from offing.storage import reports
from offing.storage.pool import Connection, Database
from offing.storage.tasks import reference_of

LOCK = """
    select g.id, g.size, g.attempts, g.scorers from rollout_group g
     where g.id = (select group_id from rollout where run_id = %s)
       for no key update of g
"""

CASE = """
    select o.member, o.attempt, r.status, r.stop_reason, r.question, r.seed, f.answers, f.evidence,
           (select max(version) from report where run_id = r.id) as report,
           (select body->'answer'->>'text' from report where run_id = r.id order by version desc limit 1) as answer,
           exists (select from reward where run_id = r.id and target = 'run') as tried
      from rollout o
      join run r on r.id = o.run_id
      join rollout_group g on g.id = o.group_id
      left join task_reference f on f.task_id = g.task_id
     where o.run_id = %s and o.settled_at is null and r.ended_at is not null
"""
"""No row: it has been settled, or has not ended. Read after the lock, so that it sees what others have settled."""

TAKE = """
    update rollout set due_at = clock_timestamp() + %s::interval
     where run_id = %s and settled_at is null and due_at <= clock_timestamp()
    returning run_id
"""

POSTPONE = """
    update rollout set due_at = clock_timestamp() + %s::interval where run_id = %s and settled_at is null
"""

FINISH = """
    update rollout set outcome = %s, reward = %s, settled_at = clock_timestamp()
     where run_id = %s and settled_at is null returning run_id
"""

RETRY = """
    with going_on as (
      select b.id from batch b
       where b.id = (select g.batch_id from rollout o join rollout_group g on g.id = o.group_id
                      where o.run_id = %(run)s)
         and b.cancelled_at is null for share),
    thread_now as (
      insert into thread (id, tenant_id, title, kind)
      select %(thread)s, t.tenant_id, t.title, 'rollout'
        from run r join thread t on t.id = r.thread_id where r.id = %(run)s and exists (select from going_on)),
    run_now as (
      insert into run (id, tenant_id, thread_id, graph, graph_version, question, engines, policy, policy_sha256, budget,
                       scope, seed, traceparent, kind, durability, status, next_seq)
      select %(again)s, tenant_id, %(thread)s, graph, graph_version, question, engines, policy, policy_sha256, budget,
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
"""The batch is shared, so that whoever cancels it sees this run, or this run is not made."""

COMPLETE = """
    with latest as (
      select distinct on (member) settled_at, outcome, reward from rollout
       where group_id = %(group)s order by member, attempt desc),
    counted as (
      select count(*) filter (where settled_at is not null) as final,
             count(*) filter (where outcome = 'infra_error' or (%(weighted)s and reward is null)) as gone
        from latest)
    update rollout_group g set state = case when gone > 0 then 'short' else 'complete' end,
                               completed_at = clock_timestamp()
      from counted where g.id = %(group)s and g.state = 'open' and final = g.size
    returning g.state
"""
"""A group ends when the last attempt of each member is settled; a member that is gone leaves it short."""

SWEEP = "select run, tenant from app.sweep_rollouts(%s, %s)"

COLUMNS = """
    o.run_id as run, o.group_id as group, g.batch_id as batch, g.task_id as task, o.member, o.attempt, g.graph,
    r.question, r.status, r.stop_reason, r.seed, r.turns, r.tokens, o.outcome, o.reward, r.created_at, r.ended_at,
    o.settled_at
"""

ROLLOUT = f"""
    select {COLUMNS} from rollout o join rollout_group g on g.id = o.group_id join run r on r.id = o.run_id
     where o.run_id = %s
"""

OF_GROUP = f"""
    select {COLUMNS} from rollout o join rollout_group g on g.id = o.group_id join run r on r.id = o.run_id
     where o.group_id = %s order by o.member, o.attempt
"""

LIST = f"""
    select {COLUMNS} from rollout o join rollout_group g on g.id = o.group_id join run r on r.id = o.run_id
     where (%(batch)s::uuid is null or g.batch_id = %(batch)s)
       and (%(outcome)s::text is null or o.outcome = %(outcome)s)
       and (%(settled)s::boolean is null or (o.settled_at is not null) = %(settled)s)
       and (%(graph)s::text is null or g.graph = %(graph)s) and (%(before)s::uuid is null or o.run_id < %(before)s)
     order by o.run_id desc limit %(limit)s
"""


@dataclass(frozen=True, slots=True)
class LockedGroup:
    """A group that no other settle changes until the transaction ends."""

    id: UUID
    size: int
    attempts: int
    """Runs of a member at most."""
    scorers: list[dict[str, Any]]

    @property
    def weighted(self) -> bool:
        """Whether its rollouts have a reward at all."""
        return any(scorer["weight"] for scorer in self.scorers)


@dataclass(frozen=True, slots=True)
class Ended:
    """A rollout whose run has ended and that nobody has settled."""

    run: UUID
    member: int
    attempt: int
    status: RunStatus
    stop_reason: StopReason
    question: str
    seed: int
    reference: Reference | None
    """None: its task has none."""
    report_version: int | None
    """None: the run left no report."""
    answer: str
    """The report's short answer as it was written. Empty: there is none."""
    tried: bool
    """Scorers have been asked about it before."""


@dataclass(frozen=True, slots=True)
class RolloutRow:
    """A rollout with its run, as lists show it."""

    run: UUID
    group: UUID
    batch: UUID
    task: UUID
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
    """None: it has not been settled."""
    reward: float | None
    created_at: datetime
    ended_at: datetime | None
    settled_at: datetime | None


@dataclass(frozen=True, slots=True)
class RolloutFilter:
    """Which rollouts a list shows. None: any."""

    batch: UUID | None = None
    outcome: Outcome | None = None
    settled: bool | None = None
    graph: str | None = None


async def lock(connection: Connection, run: UUID) -> LockedGroup | None:
    """The run's group, held. None: the run is no rollout."""
    row = await (await connection.execute(LOCK, (run,))).fetchone()
    return None if row is None else LockedGroup(*row)


async def ended(connection: Connection, run: UUID) -> Ended | None:
    """What there is to settle. None: nothing, since it has been settled, or has not ended."""
    row = await (await connection.execute(CASE, (run,))).fetchone()
    if row is None:
        return None
    member, attempt, status, reason, question, seed, answers, evidence, report, answer, tried = row
    reference = None if answers is None else reference_of(answers, evidence)
    stop = StopReason(reason) if reason else StopReason.NO_PROGRESS
    return Ended(run, member, attempt, RunStatus(status), stop, question, seed, reference, report, answer or "", tried)


async def report(connection: Connection, case: Ended) -> Report | None:
    """Its latest report. None: there is none."""
    return None if case.report_version is None else await reports.latest(connection, case.run)


async def take(connection: Connection, run: UUID, seconds: float) -> bool:
    """Keep others from scoring it for so long. False: somebody else does so now, or its time has not come."""
    return await (await connection.execute(TAKE, (f"{seconds} seconds", run))).fetchone() is not None


async def postpone(connection: Connection, run: UUID, seconds: float) -> None:
    """Look at it again only then."""
    await connection.execute(POSTPONE, (f"{seconds} seconds", run))


async def finish(connection: Connection, run: UUID, outcome: Outcome, reward: float | None) -> bool:
    """Settle it, once. False: it was settled already."""
    return await (await connection.execute(FINISH, (outcome, reward, run))).fetchone() is not None


async def retry(connection: Connection, run: UUID, again: UUID, thread: UUID) -> bool:
    """Queue the same member with the same seed as a new run. False: its batch was cancelled."""
    cursor = await connection.execute(RETRY, {"run": run, "again": again, "thread": thread})
    return await cursor.fetchone() is not None


async def complete(connection: Connection, group: LockedGroup) -> str | None:
    """End the group if all of its members are final. complete or short; None: it is still open, or ended earlier."""
    row = await (await connection.execute(COMPLETE, {"group": group.id, "weighted": group.weighted})).fetchone()
    return None if row is None else row[0]


async def sweep(database: Database, forgotten_after: float, most: int) -> list[tuple[UUID, UUID]]:
    """Run and tenant of rollouts that are due for longer than that, of all tenants."""
    return [(run, tenant) for run, tenant in await database.platform(SWEEP, (f"{forgotten_after} seconds", most))]


async def rollout(connection: Connection, run: UUID) -> RolloutRow:
    """Raises NotFound."""
    row = await (await connection.execute(ROLLOUT, (run,))).fetchone()
    if row is None:
        raise NotFound("rollout", str(run))
    return RolloutRow(*row)


async def of_group(connection: Connection, group: UUID) -> list[RolloutRow]:
    """All attempts of all members, in order."""
    return [RolloutRow(*row) for row in await (await connection.execute(OF_GROUP, (group,))).fetchall()]


async def latest(connection: Connection, wanted: RolloutFilter, before: UUID | None, limit: int) -> list[RolloutRow]:
    """Rollouts that follow `before`, newest first."""
    values = {
        "batch": wanted.batch,
        "outcome": wanted.outcome,
        "settled": wanted.settled,
        "graph": wanted.graph,
        "before": before,
        "limit": limit,
    }
    return [RolloutRow(*row) for row in await (await connection.execute(LIST, values)).fetchall()]
