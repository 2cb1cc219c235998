"""Runs as lists and pages show them: summaries, filters and marks of their steps."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, LiteralString
from uuid import UUID

from psycopg import AsyncCursor
from psycopg.rows import TupleRow

from offing.core.errors import NotFound
from offing.core.run import RunStatus
from offing.core.step import Step, StepKind
from offing.core.step_summary import SUMMARIZED_CALLS
from offing.storage import runs
from offing.storage.pagination import PageKey
from offing.storage.pool import Connection
from offing.storage.run_filter import IS_INTERRUPTED, RunFilter, get_parameters, list_conditions
from offing.storage.run_labels import NO_LABELS, RunLabels
from offing.storage.runs import RunRow
from offing.storage.steps import step_from_row

SUMMARY_COLUMNS = f"""
    {runs.COLUMNS}, lease_until,
    (select count(*) from input_request
      where input_request.run_id = run.id and responded_at is null and run.ended_at is null) as pending_input_requests,
    coalesce(nullif(title, ''),
             (select body->>'title' from report where report.run_id = run.id order by version desc limit 1)),
    title, array(select tag from run_tag where run_tag.run_id = run.id order by position), pinned_at, archived_at,
    (select count(*) from (select from run other where other.thread_id = run.thread_id limit 100) as of_thread),
    {IS_INTERRUPTED}
"""

GET_RUN_SUMMARY = f"select {SUMMARY_COLUMNS} from run where id = %s"

LIST_RUNS = f"select {SUMMARY_COLUMNS} from run where kind = %(kind)s"

FILTER_RUN_IDS = "select id from run where kind = %(kind)s"

LIST_RUNS_OF_TAG = f"""
    select {SUMMARY_COLUMNS} from run_tag join run on run.id = run_tag.run_id
     where run_tag.tag = %(tag)s and kind = %(kind)s
"""
"""Reads the runs of a tag in the order of the list."""

STEP_MARK = """
      case when not ok or kind = 'failure' then 'f'
           when kind in ('user_message', 'resumed', 'input_response') then 'h'
           when kind = 'report' then 'w'
           when kind = 'verification' or label = 'verify' then 'v'
           when kind = 'memory' or label = 'memory' then 'm'
           when label = 'search' then 's'
           when label = 'read' then 'r'
           when label = 'calculate' then 'c'
           when kind in ('plan', 'analysis') or label = 'plan' then 'p'
           else 'n' end
"""
"""The letter of a step. The letters are those of the API's `step_marks`."""

RENDER_STEP_MARKS = f"""
    select coalesce(string_agg({STEP_MARK}, '' order by seq), '') from step where run_id = %s and seq > %s
"""
"""The step minimap: one letter per step."""

SAMPLE_STEP_MARKS = f"""
    select run.id, (
      select coalesce(string_agg({STEP_MARK}, '' order by seq), '')
        from step
       where run_id = run.id and seq = any(array(
         select 1 + (place * (run.next_seq - 2)::bigint) / greatest(1, least(%(count)s, run.next_seq - 1) - 1)
           from generate_series(0, least(%(count)s, run.next_seq - 1) - 1) as place)))
      from run where id = any(%(runs)s)
"""
"""The marks of steps at equal distances, with the first and the last. The number of rows that it reads is bounded."""

GET_TOKEN_DETAILS = """
    select coalesce(sum(prompt_tokens), 0)::bigint, coalesce(sum(completion_tokens), 0)::bigint,
           coalesce(sum(cached_prompt_tokens), 0)::bigint, coalesce(sum(reasoning_tokens), 0)::bigint
      from role_call where run_id = %s
"""

GET_RUN_STATUS = "select status from run where id = %s"

LIST_EXISTING_RUNS = "select id from run where id = any(%s)"

LIST_STEP_SUMMARIES = """
    select seq, kind, title, case when kind in ('tool_result', 'plan', 'analysis')
                                    or (kind = 'role_call' and label <> all(%(summarized)s))
                                  then '{}'::jsonb else payload end,
           label, detail, ok, ms, tokens, turn, at, fence, null, null, null, ''
      from step where run_id = %(run)s and seq > %(after)s and (%(kind)s::text is null or kind = %(kind)s)
     order by seq limit %(limit)s
"""
"""Steps without payloads that are large and that no summary needs. Those of tool results are read one at a time."""

MAX_SAMPLED_MARKS = 600
"""Maximum number of step marks of a run in a list."""

LIST_RUNS_OF_THREADS = f"select {SUMMARY_COLUMNS} from run where thread_id = any(%s) order by created_at, id"


@dataclass(frozen=True, slots=True)
class RunSummary:
    """A run with the additional fields of a list."""

    run: RunRow
    title: str | None
    """The title that a person gave it, else that of its latest report."""
    lease_until: datetime | None
    pending_input_requests: int = 0
    """Number of pending input requests."""
    labels: RunLabels = NO_LABELS
    thread_run_count: int = 1
    """Number of runs of its thread, at most 100."""
    is_interrupted: bool = False
    """Whether it stopped at an interrupt or a breakpoint of its graph, and no run of its thread followed."""

    @property
    def page_key(self) -> PageKey:
        """Where a list by time continues after this run."""
        return self.run.created_at, self.run.id


@dataclass(frozen=True, slots=True)
class TokenDetails:
    """Tokens of a run's role calls. Calls that failed and child runs are not included."""

    prompt_tokens: int
    completion_tokens: int
    cached_prompt_tokens: int
    """The part of `prompt_tokens` that providers read from their caches. 0 also means unknown."""
    reasoning_tokens: int
    """The part of `completion_tokens` that models thought before they answered. 0 also means unknown."""


async def get_run_summary(connection: Connection, run_id: UUID) -> RunSummary:
    """Return a thread. Raises `NotFound` if it does not exist."""
    row = await (await connection.execute(GET_RUN_SUMMARY, (run_id,))).fetchone()
    if row is None:
        raise NotFound("run", str(run_id))
    return _summary_from_row(row)


class SentState:
    """Queries of a run's summary, marks and steps that may be waiting in a pipeline."""

    def __init__(
        self,
        run_id: UUID,
        summary: AsyncCursor[TupleRow],
        marks: AsyncCursor[TupleRow],
        steps: AsyncCursor[TupleRow] | None,
    ) -> None:
        self._run_id, self._summary, self._marks, self._steps = run_id, summary, marks, steps

    async def read(self) -> tuple[RunSummary, str, list[Step]]:
        """Return the summary, the marks and the steps. Raises `NotFound` if the run does not exist."""
        row, marks = await self._summary.fetchone(), await self._marks.fetchone()
        if row is None:
            raise NotFound("run", str(self._run_id))
        steps = [step_from_row(step) for step in await self._steps.fetchall()] if self._steps else []
        return _summary_from_row(row), marks[0] if marks else "", steps


async def send_state_query(connection: Connection, run_id: UUID, *, marks_after: int, step_limit: int) -> SentState:
    """Ask for a run's summary, the marks of its steps after `marks_after`, and its first `step_limit` steps.

    In a pipelined transaction, this does not wait. A `step_limit` of 0 asks for no steps.
    """
    summary = await connection.execute(GET_RUN_SUMMARY, (run_id,))
    marks = await connection.execute(RENDER_STEP_MARKS, (run_id, marks_after))
    steps = await _send_step_query(connection, run_id, 0, step_limit, None) if step_limit else None
    return SentState(run_id, summary, marks, steps)


async def get_token_details(connection: Connection, run_id: UUID) -> TokenDetails:
    """Return the tokens of a run's role calls. All are 0 for a run without any."""
    row = await (await connection.execute(GET_TOKEN_DETAILS, (run_id,))).fetchone()
    assert row is not None
    return TokenDetails(*row)


async def list_runs(
    connection: Connection, run_filter: RunFilter, before: PageKey | None, limit: int, *, oldest_first: bool = False
) -> list[RunSummary]:
    """Return runs after `before`, newest first or oldest first."""
    is_of_tag = run_filter.tag is not None
    key: tuple[LiteralString, LiteralString] = (
        ("run_created_at", "run_tag.run_id") if is_of_tag else ("created_at", "id")
    )
    conditions = list_conditions(run_filter, key[0])
    if before is not None:
        is_after: LiteralString = ">" if oldest_first else "<"
        conditions.append(f"({key[0]}, {key[1]}) {is_after} (%(before_at)s, %(before_id)s)")
    direction: LiteralString = "asc" if oldest_first else "desc"
    order: LiteralString = f"order by {key[0]} {direction}, {key[1]} {direction} limit %(limit)s"
    statement: LiteralString = " and ".join((LIST_RUNS_OF_TAG if is_of_tag else LIST_RUNS, *conditions))
    values = {**get_parameters(run_filter), "limit": limit}
    if before is not None:
        values |= {"before_at": before[0], "before_id": before[1]}
    return await _query_summaries(connection, f"{statement} {order}", values)


async def list_runs_among(
    connection: Connection, run_filter: RunFilter, run_ids: Sequence[UUID], limit: int
) -> list[RunSummary]:
    """Return those of the given runs that pass the filter, newest first."""
    if not run_ids:
        return []
    statement = " and ".join((LIST_RUNS, *_conditions_among(run_filter)))
    values = {**get_parameters(run_filter), "among": list(run_ids), "limit": limit}
    return await _query_summaries(connection, f"{statement} order by created_at desc, id desc limit %(limit)s", values)


async def filter_run_ids(connection: Connection, run_filter: RunFilter, run_ids: Sequence[UUID]) -> list[UUID]:
    """Return the ids of those of the given runs that pass the filter, in any order."""
    if not run_ids:
        return []
    statement = " and ".join((FILTER_RUN_IDS, *_conditions_among(run_filter)))
    values = {**get_parameters(run_filter), "among": list(run_ids)}
    return [id for (id,) in await (await connection.execute(statement, values, prepare=False)).fetchall()]


async def count_runs(connection: Connection, filters: Sequence[RunFilter], limit: int) -> list[int]:
    """Return for each filter how many runs pass it, at most `limit`. Filters by tag are not supported."""
    counts: list[int] = []
    for run_filter in filters:
        conditions = list_conditions(run_filter, "created_at")
        statement: LiteralString = " and ".join(("select from run where kind = %(kind)s", *conditions))
        values = {**get_parameters(run_filter), "limit": limit}
        counted: LiteralString = f"select count(*) from ({statement} limit %(limit)s) as passing"
        row = await (await connection.execute(counted, values, prepare=False)).fetchone()
        counts.append(row[0] if row else 0)
    return counts


def _conditions_among(run_filter: RunFilter) -> list[LiteralString]:
    conditions: list[LiteralString] = ["id = any(%(among)s)", *list_conditions(run_filter, "created_at")]
    if run_filter.tag is not None:
        conditions.append("exists (select from run_tag where run_tag.run_id = run.id and tag = %(tag)s)")
    return conditions


async def _query_summaries(
    connection: Connection, statement: LiteralString, values: Mapping[str, Any]
) -> list[RunSummary]:
    # A plan for any values would not use the indexes that contain only some of the runs.
    cursor = await connection.execute(statement, values, prepare=False)
    return [_summary_from_row(row) for row in await cursor.fetchall()]


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


async def sample_step_marks(connection: Connection, run_ids: Sequence[UUID]) -> dict[UUID, str]:
    """Return the marks of each step of these runs, or of `MAX_SAMPLED_MARKS` steps at equal distances."""
    values = {"runs": list(run_ids), "count": MAX_SAMPLED_MARKS}
    return dict(await (await connection.execute(SAMPLE_STEP_MARKS, values)).fetchall())


async def list_step_summaries(
    connection: Connection, run_id: UUID, after_seq: int, limit: int, kind: StepKind | None = None
) -> list[Step]:
    """Return the steps after `after_seq`, in order and only with the payloads that their summaries need.

    If `kind` is `None`, return all kinds.
    """
    sent = await _send_step_query(connection, run_id, after_seq, limit, kind)
    return [step_from_row(row) for row in await sent.fetchall()]


async def _send_step_query(
    connection: Connection, run_id: UUID, after_seq: int, limit: int, kind: StepKind | None
) -> AsyncCursor[TupleRow]:
    values = {
        "run": run_id,
        "after": after_seq,
        "limit": limit,
        "kind": kind,
        "summarized": list(SUMMARIZED_CALLS),
    }
    return await connection.execute(LIST_STEP_SUMMARIES, values)


async def list_runs_of_threads(connection: Connection, thread_ids: Sequence[UUID]) -> dict[UUID, list[RunSummary]]:
    """Return the runs of each thread, oldest first."""
    by_thread: dict[UUID, list[RunSummary]] = {id: [] for id in thread_ids}
    for row in await (await connection.execute(LIST_RUNS_OF_THREADS, (list(thread_ids),))).fetchall():
        summary = _summary_from_row(row)
        by_thread[summary.run.thread_id].append(summary)
    return by_thread


def _summary_from_row(row: Sequence[Any]) -> RunSummary:
    *columns, lease_until, questions, title, given_title, tags, pinned_at, archived_at, thread_runs, interrupted = row
    labels = RunLabels(given_title, tuple(tags), pinned_at, archived_at)
    return RunSummary(runs.run_from_row(columns), title, lease_until, questions, labels, thread_runs, interrupted)
