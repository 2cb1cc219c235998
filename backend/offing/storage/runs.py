"""Runs as rows: submission, claims, release, and control requests.

This module contains all statements of the run protocol except appending, which is in
`storage.steps`.
"""

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import orjson
from psycopg import AsyncCursor
from psycopg.errors import ForeignKeyViolation, UniqueViolation
from psycopg.rows import TupleRow
from psycopg.types.json import Jsonb

from offing.core.errors import Conflict, NotFound
from offing.core.follow_up import FollowUp, follow_up_from_json, follow_up_to_json
from offing.core.interaction import Interaction
from offing.core.model import EngineConfig, engine_from_json, engine_to_json
from offing.core.report_style import ReportStyle
from offing.core.run import TERMINAL_STATUSES, Budget, CancelMode, Depth, RunStatus, RunUsage, StopReason
from offing.storage.pool import Connection

COLUMNS = """
    id, thread_id, graph, graph_version, question, engines, tool_policy, tool_policy_sha256, budget, scope, seed,
    status,
    stop_reason, error, waiting_for, fence, cancel_mode, pause_requested, deadline_at, turns, tokens, cost_usd,
    work_seconds,
    next_seq, created_at, started_at, ended_at, traceparent, kind, durability, waiting_since, forked_from_id,
    forked_at_seq,
    forked_kind, report_style, follow_up, interactions, protocol
"""

INSERT_RUN = f"""
    insert into run (id, tenant_id, thread_id, graph, graph_version, question, engines, tool_policy,
                     tool_policy_sha256, budget,
                     requested_tool_policy, scope, seed, idempotency_key, request_sha256, traceparent, deadline_at,
                     kind,
                     durability, report_style, follow_up, interactions, protocol, enqueued, status, next_seq)
    values (%(id)s, %(tenant)s, %(thread)s, %(graph)s, %(graph_version)s, %(question)s, %(engines)s, %(policy)s,
            %(policy_sha256)s, %(budget)s, %(policy_given)s, %(scope)s, %(seed)s, %(idempotency_key)s,
            %(request_sha256)s, %(traceparent)s, %(deadline)s, %(kind)s, %(durability)s,
            %(report_style)s, %(follow_up)s, %(interactions)s, %(protocol)s, %(enqueued)s,
            case when %(enqueued)s then 'waiting' else 'queued' end, %(next_seq)s)
    returning {COLUMNS}
"""

LOCK_IDEMPOTENCY_KEY = "select pg_advisory_xact_lock(hashtextextended(%s || app.current_tenant_id()::text, 0))"
"""Serializes submissions with the same idempotency key, so that the second one finds the run of the
first.
"""

FIND_EARLIER_SUBMISSION = f"select {COLUMNS}, request_sha256 from run where idempotency_key = %s"

GET_RUN = f"select {COLUMNS} from run where id = %s"

LIST_IDS_WITH_SUFFIX = "select app.find_runs_by_id_end(%s, 3)"

LOCK_RUN = f"select {COLUMNS} from run where id = %s for update"

SET_RUN_STATUS = """
    update run
       set status = %(status)s, stop_reason = %(stop_reason)s, waiting_for = %(waiting_for)s, not_before = null,
           pause_requested = false, queued_at = clock_timestamp(), dispatched_at = clock_timestamp(),
           ended_at = case when %(status)s in ('done', 'failed', 'cancelled') then clock_timestamp() end
     where id = %(run)s
"""
"""For use outside a claim, on a row that the transaction has locked."""

REQUEUE_WAITING_RUN = f"{SET_RUN_STATUS} and status = 'waiting'"
"""The run was waiting and its wait condition is met. The statement holds the row's lock until the
transaction ends.
"""

GET_CONTROL_REQUEST = (
    "select id, cancel_mode, pause_requested, coalesce(deadline_at <= clock_timestamp(), false) from run where id = %s"
)

HAVE_ENDED = """
    select not exists (select from run where id = any(%s) and status not in ('done', 'failed', 'cancelled'))
"""

SECONDS_TO_DEADLINE = "select extract(epoch from deadline_at - clock_timestamp())::float8 from run where id = %s"

REQUEST_CANCEL = "update run set cancel_mode = %s, pause_requested = false where id = %s"
"""Also withdraws an earlier request to pause."""

REQUEST_PAUSE = "update run set pause_requested = %s where id = %s"

LIST_EARLIER_ANSWERS = """
    select run.question, coalesce(report.body->'answer'->>'text', report.body->>'title')
      from run as current cross join app.thread_lineage(%(thread)s) as line
           join run on run.thread_id = line.thread_id and run.created_at < line.visible_before
           join lateral (select body from report where report.run_id = run.id
                                                    and (edited_by is null or created_at < current.created_at)
                          order by version desc limit 1) as report on true
     where current.id = %(run)s and run.id <> current.id and run.status = 'done'
     order by run.created_at desc limit %(limit)s
"""
"""Versions that a person saves after the run was created are left out, so that a claim and a replay read the same."""


@dataclass(frozen=True, slots=True)
class RunRow:
    """A run as stored."""

    id: UUID
    thread_id: UUID
    graph: str
    graph_version: str
    question: str
    engines: dict[str, EngineConfig]
    tool_policy: dict[str, Any]
    tool_policy_sha256: str
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
    deadline_at: datetime | None
    usage: RunUsage
    last_seq: int
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    traceparent: str | None
    kind: str
    """`interactive`, `rollout` or `child`."""
    durability: str
    """`sync`, or `exit`: nothing is written before the slice ends, and a slice is repeated after a crash."""
    waiting_since: datetime | None
    """When the current wait began; for a running run, when its last one began. `None` means that
    the run has ended.
    """
    forked_from: UUID | None = None
    """The run from which this run was forked. `None` means that it is not a fork or that the other
    run was deleted.
    """
    forked_at: int | None = None
    """The last step that was copied from the other run. `None` means that the run is not a fork."""
    forked_kind: str | None = None
    """The kind of its first origin: `interactive`, `rollout` or `child`. `None` means that the run
    is not a fork.
    """
    report_style: ReportStyle | None = None
    """What the user asks of the form of the report. `None` means nothing."""
    follow_up: FollowUp | None = None
    """The earlier report that the run is about. `None` means that there is none."""
    interactions: frozenset[Interaction] = frozenset()
    """When the run asks a person before it researches. Empty means never."""
    protocol: str | None = None
    """The protocol of the client that made the run, such as `langgraph`. `None` means Offing's own."""

    @property
    def is_terminal(self) -> bool:
        return self.status in TERMINAL_STATUSES

    @property
    def has_own_store(self) -> bool:
        """Whether its graph has a private LangGraph store, as rollouts and their forks have."""
        return "rollout" in (self.kind, self.forked_kind)


@dataclass(frozen=True, slots=True)
class NewRun:
    """The fields of a new run."""

    id: UUID
    thread_id: UUID
    graph: str
    graph_version: str
    question: str
    engines: Mapping[str, EngineConfig]
    tool_policy: Mapping[str, Any]
    tool_policy_sha256: str
    budget: Budget
    scope: Mapping[str, Any]
    seed: int = 0
    deadline_at: datetime | None = None
    idempotency_key: str | None = None
    request_sha256: str | None = None
    traceparent: str | None = None
    kind: str = "interactive"
    durability: str = "sync"
    requested_tool_policy: Mapping[str, Any] | None = None
    """The tool policy of the request. `None` means that the run has the default."""
    report_style: ReportStyle | None = None
    """What the user asks of the form of the report. `None` means nothing."""
    follow_up: FollowUp | None = None
    interactions: frozenset[Interaction] = frozenset()
    """When the run asks a person before it researches. Empty means never."""
    protocol: str | None = None
    """The protocol of the client that makes the run. `None` means Offing's own."""
    enqueued: bool = False
    """Whether the run waits for the earlier runs of its thread."""


@dataclass(frozen=True, slots=True)
class ControlRequest:
    """The control request of a run, as a heartbeat returns it."""

    run_id: UUID
    cancel_mode: CancelMode | None
    pause_requested: bool
    deadline_passed: bool


async def insert_run(connection: Connection, tenant_id: UUID, new: NewRun) -> RunRow:
    """Store a submitted run. Raises `Conflict` if its thread has a run that has not ended, `NotFound` without it."""
    with insert_errors(new.thread_id):
        async with connection.transaction():
            return await (await send_insert(connection, tenant_id, new)).read_run()


class SentRun:
    """An insert of a run that may be waiting in a pipeline."""

    def __init__(self, cursor: AsyncCursor[TupleRow], new: NewRun) -> None:
        self._cursor, self.id, self.thread_id = cursor, new.id, new.thread_id

    async def read_run(self) -> RunRow:
        """Return the run as it was inserted. Waits for it if its transaction is still in progress."""
        return run_from_row(await self._cursor.fetchone())


async def send_insert(connection: Connection, tenant_id: UUID, new: NewRun, *, first_steps: int = 0) -> SentRun:
    """Store a submitted run. `first_steps` is the number of steps that `steps.send_first` stores after it.

    In a pipelined transaction, this does not wait. The transaction then raises the errors of `insert_errors`.
    """
    parameters = {**_run_parameters(new), "tenant": tenant_id, "next_seq": 1 + first_steps}
    return SentRun(await connection.execute(INSERT_RUN, parameters), new)


@contextmanager
def insert_errors(thread_id: UUID | None) -> Generator[None]:
    """Raise `Conflict` if the thread of a new run has a run that has not ended, `NotFound` without the thread.

    `None` means a new thread, which can have no such error.
    """
    try:
        yield
    except ForeignKeyViolation as error:  # its last run was deleted at the same moment
        if error.diag.constraint_name != "run_tenant_id_thread_id_fkey":
            raise
        raise NotFound("thread", str(thread_id)) from error
    except UniqueViolation as error:
        if error.diag.constraint_name != "run_one_active_per_thread":
            raise
        raise Conflict("This thread has an active run.", "Wait until it ends, or cancel it first.") from error


async def find_earlier_submission(connection: Connection, idempotency_key: str) -> tuple[RunRow, str] | None:
    """Return the run of an idempotency key with the hash of its request.

    `None` means that the key is new. Other submissions with the same key then wait until this
    transaction ends.
    """
    await connection.execute(LOCK_IDEMPOTENCY_KEY, (idempotency_key,))
    row = await (await connection.execute(FIND_EARLIER_SUBMISSION, (idempotency_key,))).fetchone()
    return None if row is None else (run_from_row(row[:-1]), row[-1])


async def get_run(connection: Connection, run_id: UUID) -> RunRow:
    row = await (await connection.execute(GET_RUN, (run_id,))).fetchone()
    if row is None:
        raise NotFound("run", str(run_id))
    return run_from_row(row)


async def list_ids_with_suffix(connection: Connection, suffix: str) -> list[UUID]:
    """Return at most three ids of runs that end with `suffix`.

    People can name a run by the end of its id.
    """
    return [id_ for (id_,) in await (await connection.execute(LIST_IDS_WITH_SUFFIX, (suffix,))).fetchall()]


async def lock_run(connection: Connection, run_id: UUID) -> RunRow:
    """Return the run, locked against claims and other control requests until the transaction ends."""
    row = await (await connection.execute(LOCK_RUN, (run_id,))).fetchone()
    if row is None:
        raise NotFound("run", str(run_id))
    return run_from_row(row)


async def set_run_status(
    connection: Connection,
    run_id: UUID,
    status: RunStatus,
    stop_reason: StopReason | None = None,
    waiting_for: str | None = None,
) -> None:
    """Set the status of a run without a claim.

    The caller has locked the run and checked that the transition is allowed.
    """
    parameters = {"run": run_id, "status": status, "stop_reason": stop_reason, "waiting_for": waiting_for}
    await connection.execute(SET_RUN_STATUS, parameters)


async def requeue_waiting_run(connection: Connection, run_id: UUID) -> bool:
    """Requeue a waiting run and lock its row.

    Return false if the run is not waiting, in which case it finds the change itself.
    """
    parameters = {"run": run_id, "status": RunStatus.QUEUED, "stop_reason": None, "waiting_for": None}
    return (await connection.execute(REQUEUE_WAITING_RUN, parameters)).rowcount > 0


async def get_control_request(connection: Connection, run_id: UUID) -> ControlRequest:
    """Return the current control request of a run. Raises `NotFound` if the run does not exist."""
    row = await (await connection.execute(GET_CONTROL_REQUEST, (run_id,))).fetchone()
    if row is None:
        raise NotFound("run", str(run_id))
    return control_request_from_row(row)


async def have_ended(connection: Connection, run_ids: Sequence[UUID]) -> bool:
    """Return whether all of these runs have ended. A run that does not exist counts as ended."""
    row = await (await connection.execute(HAVE_ENDED, (list(run_ids),))).fetchone()
    return bool(row and row[0])


async def find_seconds_to_deadline(connection: Connection, run_id: UUID) -> float | None:
    """Return the seconds until a run's deadline, negative if it has passed.

    `None` means that the run has no deadline.
    """
    row = await (await connection.execute(SECONDS_TO_DEADLINE, (run_id,))).fetchone()
    return row[0] if row else None


async def request_cancel(connection: Connection, run_id: UUID, mode: CancelMode) -> None:
    await connection.execute(REQUEST_CANCEL, (mode, run_id))


async def request_pause(connection: Connection, run_id: UUID, pause: bool) -> None:
    await connection.execute(REQUEST_PAUSE, (pause, run_id))


def control_request_from_row(row: Sequence[Any]) -> ControlRequest:
    """Convert a row of `GET_CONTROL_REQUEST`, or of `claims.RENEW_LEASES`."""
    run, cancel, pause, overdue = row
    return ControlRequest(run, CancelMode(cancel) if cancel else None, pause, overdue)


async def list_earlier_answers(
    connection: Connection, thread_id: UUID, run_id: UUID, limit: int
) -> tuple[tuple[str, str], ...]:
    """Return questions and short answers of a thread's earlier runs, oldest first."""
    values = {"thread": thread_id, "run": run_id, "limit": limit}
    rows = await (await connection.execute(LIST_EARLIER_ANSWERS, values)).fetchall()
    return tuple((question, answer) for question, answer in reversed(rows))


def run_from_row(row: Sequence[Any] | None) -> RunRow:
    """Convert a row of `COLUMNS` to a run."""
    assert row is not None
    (id_, thread, graph, version, question, engines, policy, policy_sha256, budget, scope, seed, status) = row[:12]
    (stop, error, waiting, fence, cancel, pause, deadline, turns, tokens, usd, seconds) = row[12:23]
    (next_seq, created, started, ended, traceparent, kind, durability, waiting_since) = row[23:31]
    (*forked, style, follow_up, interactions, protocol) = row[31:]
    return RunRow(
        id_,
        thread,
        graph,
        version,
        question,
        {role: engine_from_json(choice) for role, choice in engines.items()},
        policy,
        policy_sha256,
        parse_budget(budget),
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
        RunUsage(turns, tokens, usd, seconds),
        next_seq - 1,
        created,
        started,
        ended,
        traceparent,
        kind,
        durability,
        waiting_since,
        *forked,
        report_style=parse_report_style(style),
        follow_up=None if follow_up is None else follow_up_from_json(follow_up),
        interactions=frozenset(map(Interaction, interactions)),
        protocol=protocol,
    )


def parse_report_style(stored: Mapping[str, Any] | None) -> ReportStyle | None:
    return None if stored is None else ReportStyle.model_validate(stored)


def parse_budget(stored: Mapping[str, Any]) -> Budget:
    usd = stored.get("max_cost_usd")
    return Budget(
        stored["max_turns"],
        stored.get("max_tokens"),
        None if usd is None else Decimal(usd),
        stored.get("max_seconds"),
        Depth(stored.get("depth", Depth.STANDARD)),
    )


def budget_to_json(budget: Budget) -> dict[str, Any]:
    """Return the budget as JSON, the inverse of `parse_budget`."""
    usd = None if budget.max_cost_usd is None else str(budget.max_cost_usd)
    return {
        "max_turns": budget.max_turns,
        "max_tokens": budget.max_tokens,
        "max_cost_usd": usd,
        "max_seconds": budget.max_seconds,
        **budget.depth_field(),
    }


def _run_parameters(new: NewRun) -> dict[str, Any]:
    return {
        "id": new.id,
        "thread": new.thread_id,
        "graph": new.graph,
        "graph_version": new.graph_version,
        "question": new.question,
        "engines": _jsonb({role: engine_to_json(choice) for role, choice in new.engines.items()}),
        "policy": _jsonb(new.tool_policy),
        "policy_sha256": new.tool_policy_sha256,
        "policy_given": None if new.requested_tool_policy is None else _jsonb(new.requested_tool_policy),
        "budget": _jsonb(budget_to_json(new.budget)),
        "scope": _jsonb(new.scope),
        "seed": new.seed,
        "deadline": new.deadline_at,
        "idempotency_key": new.idempotency_key,
        "request_sha256": new.request_sha256,
        "traceparent": new.traceparent,
        "kind": new.kind,
        "durability": new.durability,
        "report_style": None if new.report_style is None else _jsonb(new.report_style.model_dump(mode="json")),
        "follow_up": None if new.follow_up is None else _jsonb(follow_up_to_json(new.follow_up)),
        "interactions": sorted(new.interactions),
        "protocol": new.protocol,
        "enqueued": new.enqueued,
    }


def _jsonb(value: object) -> Jsonb:
    return Jsonb(value, dumps=orjson.dumps)
