"""Runs as lists and pages show them: summaries, filters and marks of their steps."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from offing.core.errors import NotFound
from offing.core.run import RunStatus
from offing.core.step import Step, StepKind
from offing.storage import runs
from offing.storage.pagination import PageKey
from offing.storage.pool import Connection
from offing.storage.runs import RunRow
from offing.storage.steps import step_from_row

SUMMARY_COLUMNS = f"""
    {runs.COLUMNS}, lease_until,
    (select count(*) from input_request
      where input_request.run_id = run.id and responded_at is null and run.ended_at is null) as pending_input_requests,
    (select body->>'title' from report where report.run_id = run.id order by version desc limit 1) as title
"""

GET_RUN_SUMMARY = f"select {SUMMARY_COLUMNS} from run where id = %s"

LIST_RUNS = f"""
    select {SUMMARY_COLUMNS} from run
     where kind = %(kind)s
       and (%(status)s::text is null or status = %(status)s)
       and (%(graph)s::text is null or graph = %(graph)s)
       and (%(thread)s::uuid is null or thread_id = %(thread)s)
       and (%(text)s::text is null or strpos(lower(question), lower(%(text)s)) > 0)
       and (%(before_at)s::timestamptz is null or (created_at, id) < (%(before_at)s, %(before_id)s))
     order by created_at desc, id desc limit %(limit)s
"""

RENDER_STEP_MARKS = """
    select coalesce(string_agg(
      case when not ok or kind = 'failure' then 'f'
           when kind in ('user_message', 'resumed', 'input_response') then 'h'
           when kind = 'report' then 'w'
           when kind = 'verification' or label = 'verify' then 'v'
           when kind = 'memory' or label = 'memory' then 'm'
           when label = 'search' then 's'
           when label = 'read' then 'r'
           when label = 'calculate' then 'c'
           when kind in ('plan', 'analysis') or label = 'plan' then 'p'
           else 'n' end, '' order by seq), '')
      from step where run_id = %s and seq > %s
"""
"""The step minimap: one letter per step. The letters are those of the API's `step_marks`."""

GET_TOKEN_DETAILS = """
    select coalesce(sum(prompt_tokens), 0)::bigint, coalesce(sum(completion_tokens), 0)::bigint,
           coalesce(sum(cached_prompt_tokens), 0)::bigint, coalesce(sum(reasoning_tokens), 0)::bigint
      from role_call where run_id = %s
"""

GET_RUN_STATUS = "select status from run where id = %s"

LIST_EXISTING_RUNS = "select id from run where id = any(%s)"

LIST_STEP_SUMMARIES = """
    select seq, kind, title, '{}'::jsonb, label, detail, ok, ms, tokens, turn, at, fence, null, null, null, ''
      from step where run_id = %(run)s and seq > %(after)s and (%(kind)s::text is null or kind = %(kind)s)
     order by seq limit %(limit)s
"""
"""Steps without their payload."""

LIST_RUNS_OF_THREADS = f"select {SUMMARY_COLUMNS} from run where thread_id = any(%s) order by created_at, id"


@dataclass(frozen=True, slots=True)
class RunSummary:
    """A run with the additional fields of a list."""

    run: RunRow
    title: str | None
    """Title of the latest report."""
    lease_until: datetime | None
    pending_input_requests: int = 0
    """Number of pending input requests."""


@dataclass(frozen=True, slots=True)
class TokenDetails:
    """Tokens of a run's role calls. Calls that failed and child runs are not included."""

    prompt_tokens: int
    completion_tokens: int
    cached_prompt_tokens: int
    """The part of `prompt_tokens` that providers read from their caches. 0 also means unknown."""
    reasoning_tokens: int
    """The part of `completion_tokens` that models thought before they answered. 0 also means unknown."""


@dataclass(frozen=True, slots=True)
class RunFilter:
    """Filter of a list of runs. `None` means any."""

    status: RunStatus | None = None
    graph: str | None = None
    thread_id: UUID | None = None
    text: str | None = None
    """A part of the question, ignoring case."""
    kind: str = "interactive"
    """`interactive` or `rollout`."""


async def get_run_summary(connection: Connection, run_id: UUID) -> RunSummary:
    """Return a thread. Raises `NotFound` if it does not exist."""
    row = await (await connection.execute(GET_RUN_SUMMARY, (run_id,))).fetchone()
    if row is None:
        raise NotFound("run", str(run_id))
    return _summary_from_row(row)


async def get_token_details(connection: Connection, run_id: UUID) -> TokenDetails:
    """Return the tokens of a run's role calls. All are 0 for a run without any."""
    row = await (await connection.execute(GET_TOKEN_DETAILS, (run_id,))).fetchone()
    assert row is not None
    return TokenDetails(*row)


async def list_runs(
    connection: Connection, run_filter: RunFilter, before: PageKey | None, limit: int
) -> list[RunSummary]:
    """Return runs after `before`, newest first."""
    at, id = before or (None, None)
    values = {
        "status": run_filter.status,
        "graph": run_filter.graph,
        "thread": run_filter.thread_id,
        "text": run_filter.text,
        "kind": run_filter.kind,
        "before_at": at,
        "before_id": id,
        "limit": limit,
    }
    return [_summary_from_row(row) for row in await (await connection.execute(LIST_RUNS, values)).fetchall()]


async def get_run_status(connection: Connection, run_id: UUID) -> RunStatus:
    """Return a thread. Raises `NotFound` if it does not exist."""
    row = await (await connection.execute(GET_RUN_STATUS, (run_id,))).fetchone()
    if row is None:
        raise NotFound("run", str(run_id))
    return RunStatus(row[0])


async def check_runs(connection: Connection, run_ids: Sequence[UUID]) -> None:
    """Check that these runs exist. Raises `NotFound` for the first one that does not."""
    existing = {id for (id,) in await (await connection.execute(LIST_EXISTING_RUNS, (list(run_ids),))).fetchall()}
    for run in run_ids:
        if run not in existing:
            raise NotFound("run", str(run))


async def render_step_marks(connection: Connection, run_id: UUID, after_seq: int = 0) -> str:
    """Return one letter for each step after `after_seq`."""
    row = await (await connection.execute(RENDER_STEP_MARKS, (run_id, after_seq))).fetchone()
    return row[0] if row else ""


async def list_step_summaries(
    connection: Connection, run_id: UUID, after_seq: int, limit: int, kind: StepKind | None = None
) -> list[Step]:
    """Return the steps after `after_seq`, in order and without payloads.

    If `kind` is `None`, return all kinds.
    """
    values = {"run": run_id, "after": after_seq, "limit": limit, "kind": kind}
    return [step_from_row(row) for row in await (await connection.execute(LIST_STEP_SUMMARIES, values)).fetchall()]


async def list_runs_of_threads(connection: Connection, thread_ids: Sequence[UUID]) -> dict[UUID, list[RunSummary]]:
    """Return the runs of each thread, oldest first."""
    by_thread: dict[UUID, list[RunSummary]] = {id: [] for id in thread_ids}
    for row in await (await connection.execute(LIST_RUNS_OF_THREADS, (list(thread_ids),))).fetchall():
        summary = _summary_from_row(row)
        by_thread[summary.run.thread_id].append(summary)
    return by_thread


def _summary_from_row(row: Sequence[Any]) -> RunSummary:
    *columns, lease_until, questions, title = row
    return RunSummary(runs.run_from_row(columns), title, lease_until, questions)
