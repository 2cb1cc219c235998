"""Runs as rows: submitting, claiming, handing back, and what people ask of a run.

The only home of the run protocol's statements but for appending, which is in `storage.steps`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import orjson
from psycopg.errors import UniqueViolation
from psycopg.types.json import Jsonb

from offing.core.errors import Conflict, Fenced, NotFound
from offing.core.model import EngineChoice
from offing.core.run import TERMINAL, Budget, CancelMode, Fence, RunStatus, Spent, StopReason
from offing.storage.fencing import OURS, ours
from offing.storage.pool import Connection, Database

COLUMNS = """
    id, thread_id, graph, graph_version, question, engines, policy, policy_sha256, budget, scope, seed, status,
    stop_reason, error, waiting_for, fence, cancel_mode, pause_requested, deadline_at, turns, tokens, usd, work_seconds,
    next_seq, created_at, started_at, ended_at, traceparent, kind, durability, waiting_since, forked_from, forked_at,
    forked_kind
"""

INSERT_RUN = f"""
    insert into run (id, tenant_id, thread_id, graph, graph_version, question, engines, policy, policy_sha256, budget,
                     policy_given, scope, seed, idempotency_key, request_sha256, traceparent, deadline_at, kind,
                     durability, status)
    values (%(id)s, %(tenant)s, %(thread)s, %(graph)s, %(graph_version)s, %(question)s, %(engines)s, %(policy)s,
            %(policy_sha256)s, %(budget)s, %(policy_given)s, %(scope)s, %(seed)s, %(idempotency_key)s,
            %(request_sha256)s, %(traceparent)s, %(deadline)s, %(kind)s, %(durability)s, 'queued')
    returning {COLUMNS}
"""

ONE_AT_A_TIME = "select pg_advisory_xact_lock(hashtextextended(%s || app.tenant()::text, 0))"
"""Submissions with the same key follow one another, so that the second finds what the first has made."""

EARLIER_SUBMISSION = f"select {COLUMNS}, request_sha256 from run where idempotency_key = %s"

BY_ID = f"select {COLUMNS} from run where id = %s"

LATEST = f"select {COLUMNS} from run where kind = 'ask' order by created_at desc, id desc limit %s"

ENDING_WITH = "select id from run where id::text like '%%' || %s order by created_at desc limit 3"

LOCKED = f"select {COLUMNS} from run where id = %s for update"

CLAIM = "select tenant, fence, thread, lost, stalled from app.claim_run(%s, %s, %s)"

CLAIM_NEXT = """
    select tenant, run, fence, thread, lost, stalled, rollout from app.claim_next(%s, %s, %s, %s, %s)
"""

HEARTBEAT = "select run, cancel_mode, pause_requested, overdue from app.heartbeat(%s, %s, %s)"

WATCH = "select app.watch_leases('run', %s)"

SWEEP = "select app.sweep_runs(%s, %s, %s)"

REOPEN = """
    update run set epoch = epoch + 1, lease_until = clock_timestamp() + %s::interval
     where id = %s and fence = %s and status = 'running' returning epoch
"""
"""Whatever the epoch was: a try whose answer was lost has raised it already. The fence protects here, not the clock."""

HAND_BACK = f"""
    update run
       set status = %(status)s, owner = null, lease_until = null, stop_reason = %(stop_reason)s, error = %(error)s,
           waiting_for = %(waiting_for)s, not_before = clock_timestamp() + %(wait)s::interval,
           pause_requested = pause_requested and %(status)s = 'queued',
           queued_at = case when %(status)s = 'queued' then clock_timestamp() else queued_at end,
           published_at = clock_timestamp(),
           ended_at = case when %(status)s in ('done', 'failed', 'cancelled', 'dead') then clock_timestamp() end
     where {OURS}
    returning id
"""
"""A worker lets go of a run it still owns."""

HANDED_BACK = "select 1 from run where id = %(run)s and fence = %(fence)s and status <> 'running'"
"""Nobody but the claim itself ends its work: whoever changes the run's status later finds it handed back."""

SET_STATUS = """
    update run
       set status = %(status)s, stop_reason = %(stop_reason)s, waiting_for = %(waiting_for)s, not_before = null,
           pause_requested = false, queued_at = clock_timestamp(), published_at = clock_timestamp(),
           ended_at = case when %(status)s in ('done', 'failed', 'cancelled', 'dead') then clock_timestamp() end
     where id = %(run)s
"""
"""Outside a claim, on a row that the transaction has locked."""

QUEUE_WAITING = f"{SET_STATUS} and status = 'waiting'"
"""The run waited, and what it waited for is there. It holds the row's lock until the transaction ends."""

WISH = (
    "select id, cancel_mode, pause_requested, coalesce(deadline_at <= clock_timestamp(), false) from run where id = %s"
)

ALL_ENDED = """
    select not exists (select from run where id = any(%s) and status not in ('done', 'failed', 'cancelled', 'dead'))
"""

UNTIL_DEADLINE = "select extract(epoch from deadline_at - clock_timestamp())::float8 from run where id = %s"

WANT_CANCEL = "update run set cancel_mode = %s, pause_requested = false where id = %s"
"""An earlier wish to pause it is withdrawn."""

WANT_PAUSE = "update run set pause_requested = %s where id = %s"

EARLIER_ANSWERS = """
    select run.question, coalesce(report.body->'answer'->>'text', report.body->>'title')
      from app.thread_line(%s) as line
           join run on run.thread_id = line.thread_id and run.created_at < line.before
           join lateral (select body from report where report.run_id = run.id order by version desc limit 1)
             as report on true
     where run.id <> %s and run.status = 'done'
     order by run.created_at desc limit %s
"""


@dataclass(frozen=True, slots=True)
class RunRow:
    """A run as stored."""

    id: UUID
    thread: UUID
    graph: str
    graph_version: str
    question: str
    engines: dict[str, EngineChoice]
    policy: dict[str, Any]
    policy_sha256: str
    budget: Budget
    scope: dict[str, Any]
    seed: int
    status: RunStatus
    stop_reason: StopReason | None
    error: str | None
    waiting_for: str | None
    fence: int
    cancel_mode: CancelMode | None
    pause_requested: bool
    deadline: datetime | None
    spent: Spent
    last_seq: int
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    traceparent: str | None
    kind: str
    """ask or rollout."""
    durability: str
    """sync, or exit: nothing is written before the slice ends, and a lost slice is done again."""
    waiting_since: datetime | None
    """When its present wait, or while it runs its last one, began. None: it has ended."""
    forked_from: UUID | None = None
    """The run that it is a fork of. None: it is no fork, or that run is gone."""
    forked_at: int | None = None
    """Its last step that was copied from that run. None: it is no fork."""
    forked_kind: str | None = None
    """What the first of its origins was: ask, rollout or child. None: it is no fork."""

    @property
    def terminal(self) -> bool:
        return self.status in TERMINAL

    @property
    def keeps_own_items(self) -> bool:
        """Whether its graph has LangGraph's store to itself, as a rollout has and a fork of one."""
        return "rollout" in (self.kind, self.forked_kind)


@dataclass(frozen=True, slots=True)
class NewRun:
    """What a submission stores."""

    id: UUID
    thread: UUID
    graph: str
    graph_version: str
    question: str
    engines: Mapping[str, EngineChoice]
    policy: Mapping[str, Any]
    policy_sha256: str
    budget: Budget
    scope: Mapping[str, Any]
    seed: int = 0
    deadline: datetime | None = None
    idempotency_key: str | None = None
    request_sha256: str | None = None
    traceparent: str | None = None
    kind: str = "ask"
    durability: str = "sync"
    policy_given: Mapping[str, Any] | None = None
    """The policy that was asked for. None: the run has the default."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A worker's hold on a run."""

    fence: Fence
    lost: bool
    """The run was taken from a worker whose lease had passed."""
    stalled: int
    """Such losses in a row without progress."""


@dataclass(frozen=True, slots=True)
class NextRun:
    """A claimed run, with its class."""

    claim: Claim
    rollout: bool
    """False: it is interactive: a person has started it, or a run that a person has started."""


@dataclass(frozen=True, slots=True)
class Wish:
    """What a heartbeat learns about a run it still holds."""

    run: UUID
    cancel: CancelMode | None
    pause: bool
    overdue: bool


@dataclass(frozen=True, slots=True)
class Release:
    """How a slice ends."""

    status: RunStatus
    stop_reason: StopReason | None = None
    error: str | None = None
    waiting_for: str | None = None
    wait_seconds: float | None = None
    """For a waiting or queued run: not before then. None: at once, or when asked."""


async def insert(connection: Connection, tenant: UUID, new: NewRun) -> RunRow:
    """Store a submitted run. Raises Conflict when its thread has one that has not ended."""
    try:
        async with connection.transaction():
            cursor = await connection.execute(INSERT_RUN, {**_stored(new), "tenant": tenant})
            return run_of(await cursor.fetchone())
    except UniqueViolation as error:
        if error.diag.constraint_name != "run_one_active_a_thread":
            raise
        raise Conflict("This thread has a run that has not ended.", "Wait for it, or cancel it first.") from error


async def submitted_before(connection: Connection, idempotency_key: str) -> tuple[RunRow, str] | None:
    """The run that a key made earlier, with the hash of its request. None: the key is new, and ours until we commit."""
    await connection.execute(ONE_AT_A_TIME, (idempotency_key,))
    row = await (await connection.execute(EARLIER_SUBMISSION, (idempotency_key,))).fetchone()
    return None if row is None else (run_of(row[:-1]), row[-1])


async def by_id(connection: Connection, run: UUID) -> RunRow:
    row = await (await connection.execute(BY_ID, (run,))).fetchone()
    if row is None:
        raise NotFound("run", str(run))
    return run_of(row)


async def latest(connection: Connection, limit: int) -> list[RunRow]:
    """The tenant's newest runs, rollouts left out."""
    return [run_of(row) for row in await (await connection.execute(LATEST, (limit,))).fetchall()]


async def ending_with(connection: Connection, text: str) -> list[UUID]:
    """Up to three runs whose id ends with `text`: a person's way to name a run."""
    return [id_ for (id_,) in await (await connection.execute(ENDING_WITH, (text,))).fetchall()]


async def locked(connection: Connection, run: UUID) -> RunRow:
    """The run, held against claims and other wishes until the transaction ends."""
    row = await (await connection.execute(LOCKED, (run,))).fetchone()
    if row is None:
        raise NotFound("run", str(run))
    return run_of(row)


async def claim(database: Database, run: UUID, worker: str, term: float) -> Claim | None:
    """Take a run that nobody holds. None: there is nothing to take, and the hint can be dropped."""
    rows = await database.platform(CLAIM, (run, worker, f"{term} seconds"))
    if not rows:
        return None
    tenant, number, thread, lost, stalled = rows[0]
    return Claim(Fence(tenant, run, number, thread), lost, stalled)


async def claim_next(
    database: Database, worker: str, term: float, *, room: int, rollout_room: int, also: Sequence[UUID] = ()
) -> list[NextRun]:
    """Take up to `room` queued runs, of them at most `rollout_room` rollouts: those that are next.

    Fewer than `room`: no more are queued, except rollouts where `rollout_room` was the limit. `also`: what `sweep`
    found.
    """
    rows = await database.platform(CLAIM_NEXT, (worker, f"{term} seconds", room, rollout_room, list(also)))
    return [
        NextRun(Claim(Fence(tenant, run, number, thread), lost, stalled), rollout)
        for tenant, run, number, thread, lost, stalled, rollout in rows
    ]


async def sweep(database: Database, forgotten_after: float, term: float, most: int = 500) -> list[UUID]:
    """Runs that are not queued and can be claimed: their worker was lost, or the time that they waited for has come.

    After a gap in which nobody was here, one whose lease has passed is left to its owner for one more term.
    """
    await database.platform(WATCH, (f"{term} seconds",))
    rows = await database.platform(SWEEP, (f"{forgotten_after} seconds", f"{term} seconds", most))
    return [run for (run,) in rows]


async def reopen(connection: Connection, fence: Fence, term: float) -> Fence:
    """Begin the claim's next epoch, for a worker that is about to read the journal again in this transaction.

    Waits for every transaction of the run that the server has under way, and no later one of an earlier epoch gets
    through. Raises Fenced when the run is no longer ours.
    """
    row = await (await connection.execute(REOPEN, (f"{term} seconds", fence.run, fence.number))).fetchone()
    if row is None:
        raise Fenced(str(fence.run), fence.number)
    return replace(fence, epoch=row[0])


async def hand_back(connection: Connection, fence: Fence, release: Release) -> None:
    """End a claim. Raises Fenced when it is no longer ours."""
    parameters = {
        **ours(fence),
        "status": release.status,
        "stop_reason": release.stop_reason,
        "error": release.error,
        "waiting_for": release.waiting_for,
        "wait": None if release.wait_seconds is None else f"{release.wait_seconds} seconds",
    }
    if await (await connection.execute(HAND_BACK, parameters)).fetchone() is None:
        raise Fenced(str(fence.run), fence.number)


async def handed_back(connection: Connection, fence: Fence) -> bool:
    """Whether this claim has handed the run back. False also when somebody else has claimed it since."""
    return await (await connection.execute(HANDED_BACK, ours(fence))).fetchone() is not None


async def set_status(
    connection: Connection,
    run: UUID,
    status: RunStatus,
    stop_reason: StopReason | None = None,
    waiting_for: str | None = None,
) -> None:
    """Move a run that no worker holds. The caller has locked it and knows that the move is allowed."""
    parameters = {"run": run, "status": status, "stop_reason": stop_reason, "waiting_for": waiting_for}
    await connection.execute(SET_STATUS, parameters)


async def queue_waiting(connection: Connection, run: UUID) -> bool:
    """Let a run that waits go on; its row is locked from then on. False: it does not wait, so it will see by itself."""
    parameters = {"run": run, "status": RunStatus.QUEUED, "stop_reason": None, "waiting_for": None}
    return (await connection.execute(QUEUE_WAITING, parameters)).rowcount > 0


async def wish(connection: Connection, run: UUID) -> Wish:
    """What people want of a run, as of now."""
    row = await (await connection.execute(WISH, (run,))).fetchone()
    if row is None:
        raise NotFound("run", str(run))
    return wish_of(row)


async def all_ended(connection: Connection, wanted: Sequence[UUID]) -> bool:
    """Whether none of these runs goes on; one that does not exist does not."""
    row = await (await connection.execute(ALL_ENDED, (list(wanted),))).fetchone()
    return bool(row and row[0])


async def until_deadline(connection: Connection, run: UUID) -> float | None:
    """Seconds until a run's deadline, below 0 once it has passed. None: it has none."""
    row = await (await connection.execute(UNTIL_DEADLINE, (run,))).fetchone()
    return row[0] if row else None


async def want_cancel(connection: Connection, run: UUID, mode: CancelMode) -> None:
    await connection.execute(WANT_CANCEL, (mode, run))


async def want_pause(connection: Connection, run: UUID, wanted: bool) -> None:
    await connection.execute(WANT_PAUSE, (wanted, run))


def wish_of(row: Sequence[Any]) -> Wish:
    """A row of HEARTBEAT."""
    run, cancel, pause, overdue = row
    return Wish(run, CancelMode(cancel) if cancel else None, pause, overdue)


async def earlier_answers(connection: Connection, thread: UUID, run: UUID, most: int) -> tuple[tuple[str, str], ...]:
    """Questions and short answers of a thread's earlier runs, oldest first."""
    rows = await (await connection.execute(EARLIER_ANSWERS, (thread, run, most))).fetchall()
    return tuple((question, answer) for question, answer in reversed(rows))


def run_of(row: Sequence[Any] | None) -> RunRow:
    """A row of `COLUMNS` as a run."""
    assert row is not None
    (id_, thread, graph, version, question, engines, policy, policy_sha256, budget, scope, seed, status) = row[:12]
    (stop, error, waiting, fence, cancel, pause, deadline, turns, tokens, usd, seconds) = row[12:23]
    (next_seq, created, started, ended, traceparent, kind, durability, waiting_since, *forked) = row[23:]
    return RunRow(
        id_,
        thread,
        graph,
        version,
        question,
        {role: EngineChoice.model_validate(choice) for role, choice in engines.items()},
        policy,
        policy_sha256,
        budget_of(budget),
        scope,
        seed,
        RunStatus(status),
        StopReason(stop) if stop else None,
        error,
        waiting,
        fence,
        CancelMode(cancel) if cancel else None,
        pause,
        deadline,
        Spent(turns, tokens, usd, seconds),
        next_seq - 1,
        created,
        started,
        ended,
        traceparent,
        kind,
        durability,
        waiting_since,
        *forked,
    )


def budget_of(stored: Mapping[str, Any]) -> Budget:
    usd = stored.get("usd")
    return Budget(stored["turns"], stored.get("tokens"), None if usd is None else Decimal(usd), stored.get("seconds"))


def budget_json(budget: Budget) -> dict[str, Any]:
    """As `budget_of` reads it."""
    usd = None if budget.usd is None else str(budget.usd)
    return {"turns": budget.turns, "tokens": budget.tokens, "usd": usd, "seconds": budget.seconds}


def _stored(new: NewRun) -> dict[str, Any]:
    return {
        "id": new.id,
        "thread": new.thread,
        "graph": new.graph,
        "graph_version": new.graph_version,
        "question": new.question,
        "engines": _jsonb({role: choice.model_dump() for role, choice in new.engines.items()}),
        "policy": _jsonb(new.policy),
        "policy_sha256": new.policy_sha256,
        "policy_given": None if new.policy_given is None else _jsonb(new.policy_given),
        "budget": _jsonb(budget_json(new.budget)),
        "scope": _jsonb(new.scope),
        "seed": new.seed,
        "deadline": new.deadline,
        "idempotency_key": new.idempotency_key,
        "request_sha256": new.request_sha256,
        "traceparent": new.traceparent,
        "kind": new.kind,
        "durability": new.durability,
    }


def _jsonb(value: object) -> Jsonb:
    return Jsonb(value, dumps=orjson.dumps)
