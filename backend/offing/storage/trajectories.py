"""Finished runs as training data, read in pages in the order in which they became final.

Only reads. A page has a limited number of runs, and their tokens are read in batches of
segments. The column order of each query must match the function that uses it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from offing.core.errors import NotFound
from offing.core.trajectory_records import Reference, RewardScore, RunCost, ToolCallRecord, TrajectoryMetadata
from offing.storage.pagination import PageKey
from offing.storage.pool import Connection
from offing.storage.training_signals import IS_NOT_REFUSED

MAX_PAGE_RUNS = 256
"""Maximum number of runs per page, even if the caller requests more."""

MAX_BATCH_BYTES = 4 * 2**20
"""Maximum size of the tokens that are read at once, unless a single segment is larger."""

COLUMNS = """
    r.id, r.kind, r.graph, r.graph_version, r.question, r.seed, r.status, r.stop_reason, o.outcome, o.reward,
    r.created_at, r.started_at, r.ended_at, o.finalized_at, o.group_id, g.state, g.size, g.batch_id, g.task_id,
    coalesce(t.dataset, ''), coalesce(t.split, ''), coalesce(t.name, ''), o.member, o.attempt,
    coalesce(g.tags, '{}') || coalesce(t.tags, '{}')
"""

TASK_JOINS = "left join rollout_group g on g.id = o.group_id left join task t on t.id = g.task_id"

QUERY_CONDITIONS = """
       and (%(graph)s::text is null or r.graph = %(graph)s)
       and (%(status)s::text is null or r.status = %(status)s)
       and (%(policy)s::text is null
            or exists (select from role_call where role_call.run_id = r.id and role_call.policy = %(policy)s))
"""

LIST_ROLLOUTS = f"""
    select {COLUMNS}
      from rollout o join run r on r.id = o.run_id {TASK_JOINS}
     where o.finalized_at is not null
       and (%(after_at)s::timestamptz is null or (o.finalized_at, o.run_id) > (%(after_at)s, %(after_run)s))
       and (%(since)s::timestamptz is null or o.finalized_at >= %(since)s)
       and (%(until)s::timestamptz is null or o.finalized_at < %(until)s)
       and case when %(outcomes)s::text[] is null then o.outcome is distinct from 'infra_error'
                else o.outcome = any(%(outcomes)s) end
       and (%(min_reward)s::float8 is null or o.reward >= %(min_reward)s)
       and (%(max_reward)s::float8 is null or o.reward <= %(max_reward)s)
       and (%(batch_id)s::uuid is null or g.batch_id = %(batch_id)s)
       and (%(group_id)s::uuid is null or o.group_id = %(group_id)s)
       and (%(dataset)s::text is null or t.dataset = %(dataset)s)
       and (%(split)s::text is null or t.split = %(split)s)
       and g.tags || coalesce(t.tags, '{{}}') @> %(tags)s
       {QUERY_CONDITIONS}
     order by o.finalized_at, o.run_id limit %(limit)s
"""
"""Final rollouts, in the order in which they became final."""

LIST_GROUP_ROLLOUTS = f"""
    select {COLUMNS}
      from rollout o join run r on r.id = o.run_id {TASK_JOINS}
     where o.group_id = any(%s) and o.finalized_at is not null and o.outcome is distinct from 'infra_error'
     order by o.finalized_at, o.run_id
"""

LIST_INTERACTIVE_RUNS = f"""
    select {COLUMNS}
      from run r left join rollout o on false {TASK_JOINS}
     where r.kind = 'interactive' and r.ended_at is not null and {IS_NOT_REFUSED}
       and (%(after_at)s::timestamptz is null or (r.ended_at, r.id) > (%(after_at)s, %(after_run)s))
       and (%(since)s::timestamptz is null or r.ended_at >= %(since)s)
       and (%(until)s::timestamptz is null or r.ended_at < %(until)s)
       {QUERY_CONDITIONS}
     order by r.ended_at, r.id limit %(limit)s
"""
"""Interactive runs that may be learned from. They belong to no group and have no reward."""

GET_TRAJECTORY = f"""
    select {COLUMNS} from run r left join rollout o on o.run_id = r.id {TASK_JOINS} where r.id = %s
"""

GET_HIGH_WATER_MARK = """
    select clock_timestamp(),
           greatest((select max(finalized_at) from rollout), (select max(ended_at) from run where kind = 'interactive'))
"""

LIST_SCORES = """
    select distinct on (run_id, target, sentence_id, role_call_seq, scorer)
           run_id, scorer, scorer_version, value, failure, role_call_seq
      from reward where run_id = any(%b) and target in ('run', 'role_call', 'report')
     order by run_id, target, sentence_id, role_call_seq, scorer, version desc
"""
"""The latest score or rating by each scorer or person."""

LIST_COSTS = """
    select r.id, r.turns - coalesce((r.forked_usage->>'turns')::integer, 0), spoken.prompt, spoken.completion,
           (r.cost_usd - coalesce((r.forked_usage->>'cost_usd')::numeric, 0))::float8,
           r.work_seconds - coalesce((r.forked_usage->>'seconds')::float8, 0),
           (select count(*) from step
             where step.run_id = r.id and step.kind = 'tool_result' and step.seq > coalesce(r.forked_at_seq, 0))
      from run r,
           lateral (select coalesce(sum(prompt_tokens), 0) as prompt, coalesce(sum(completion_tokens), 0) as completion
                      from role_call where role_call.run_id = r.id and role_call.seq > coalesce(r.forked_at_seq,
                      0)) as spoken
     where r.id = any(%b)
"""
"""What a fork copied is counted with the run in which it was created."""

LIST_REFERENCES = "select task_id, answers, evidence, rubric from task_reference where task_id = any(%s)"

LIST_SEGMENT_SIZES = """
    select wanted.run, found.*
      from unnest(%(runs)b::uuid[]) with ordinality as wanted(run, nth),
           lateral (
             select segment_idx,
                    sum(octet_length(prompt_ids) + octet_length(completion_ids) + octet_length(logprobs)
                        + coalesce(octet_length(entropy), 0))
                      filter (where %(roles)s::text[] is null or role_call.role = any(%(roles)s)),
                    count(*) filter (where completion <> '' and completion_ids is null)
               from role_call where role_call.run_id = wanted.run group by segment_idx order by segment_idx
           ) as found
     order by wanted.nth
"""
"""Null if there are no tokens to read. The last column counts role calls with text only."""

LIST_TOOL_CALLS = """
    select run_id, seq, turn, payload->>'tool', payload->'args', payload->'content', payload->>'status',
           payload->>'message', at, coalesce(payload->>'origin', 'unknown'), coalesce(payload->>'trust', 'untrusted')
      from step where run_id = %s and kind = 'tool_result' order by seq
"""

GET_POLICY_URIS = "select name || '@' || version, uri from policy_version where name || '@' || version = any(%s)"

LIST_EARLIER_ANSWERS = """
    select earlier.question, coalesce(report.body->'answer'->>'text', report.body->>'title')
      from run cross join app.thread_lineage(run.thread_id) as line
           join run earlier
             on earlier.thread_id = line.thread_id and earlier.status = 'done'
                and earlier.created_at < least(run.created_at, line.visible_before)
           join lateral (select body from report where report.run_id = earlier.id
                                                    and (edited_by is null or created_at < run.created_at)
                          order by version desc limit 1) as report on true
     where run.id = %s order by earlier.created_at desc limit 5
"""
"""The thread's history that the run received when it began."""


@dataclass(frozen=True, slots=True)
class TrajectoryQuery:
    """Filter of runs. `None` and empty tuples mean any."""

    kind: str = "rollout"
    """`rollout` or `interactive`. An interactive run has no outcome, reward or group to filter by."""
    graph: str | None = None
    policy: str | None = None
    """NAME@VERSION that sampled at least one completion."""
    status: str | None = None
    outcomes: tuple[str, ...] = ()
    """Empty means all but `infra_error`, which is unrelated to a policy."""
    min_reward: float | None = None
    max_reward: float | None = None
    since: datetime | None = None
    """Only runs that became final at this time or later."""
    until: datetime | None = None
    """Only runs that became final before this time."""
    tags: tuple[str, ...] = ()
    """The group or its task must have all of these tags."""
    batch_id: UUID | None = None
    group_id: UUID | None = None
    dataset: str | None = None
    split: str | None = None
    roles: tuple[str, ...] = ()
    """Only segments of these roles."""


async def get_high_water_mark(connection: Connection) -> tuple[datetime, datetime | None]:
    """Return the database's current time, and when a run last became final.

    `None` means that none ever did.
    """
    row = await (await connection.execute(GET_HIGH_WATER_MARK)).fetchone()
    assert row is not None
    return row[0], row[1]


async def list_trajectories(
    connection: Connection,
    trajectory_query: TrajectoryQuery,
    after: PageKey | None,
    limit: int,
    *,
    include_references: bool = False,
) -> list[TrajectoryMetadata]:
    """Return at most `MAX_PAGE_RUNS` runs after `after`, with their scores.

    Reference answers are included only on request.
    """
    at, run = after or (None, None)
    values = {name: getattr(trajectory_query, name) for name in TrajectoryQuery.__slots__} | {
        "outcomes": list(trajectory_query.outcomes) or None,
        "tags": list(trajectory_query.tags),
        "after_at": at,
        "after_run": run,
        "limit": min(limit, MAX_PAGE_RUNS),
    }
    query = LIST_INTERACTIVE_RUNS if trajectory_query.kind == "interactive" else LIST_ROLLOUTS
    rows = await (await connection.execute(query, values, prepare=False)).fetchall()
    return await _build_metadata(connection, rows, include_references)


async def list_group_rollouts(connection: Connection, group_ids: Sequence[UUID]) -> list[TrajectoryMetadata]:
    """Return all final runs of some groups with their scores.

    Runs that ended with an infrastructure error are left out.
    """
    rows = await (await connection.execute(LIST_GROUP_ROLLOUTS, (list(group_ids),))).fetchall()
    return await _build_metadata(connection, rows, include_references=False)


async def get_trajectory_metadata(
    connection: Connection, run_id: UUID, *, include_references: bool = False
) -> TrajectoryMetadata:
    """Return the metadata of one run, final or not. Raises `NotFound` if it does not exist."""
    rows = await (await connection.execute(GET_TRAJECTORY, (run_id,))).fetchall()
    if not rows:
        raise NotFound("run", str(run_id))
    return (await _build_metadata(connection, rows, include_references))[0]


async def split_segments(
    connection: Connection, run_ids: Sequence[UUID], roles: Sequence[str] = (), max_bytes: int = MAX_BATCH_BYTES
) -> tuple[list[list[tuple[UUID, int]]], int]:
    """Split segments with token ids into batches of at most `max_bytes` of tokens.

    The segments stay in the given order of runs. Also return the number of role calls, of any
    role, with text only.
    """
    cursor = await connection.execute(LIST_SEGMENT_SIZES, {"runs": list(run_ids), "roles": list(roles) or None})
    chunks: list[list[tuple[UUID, int]]] = []
    remaining = without = 0
    for run, idx, size, unknown in await cursor.fetchall():
        without += unknown
        if size is None:
            continue
        if size > remaining or not chunks:
            chunks.append([])
            remaining = max_bytes
        chunks[-1].append((run, idx))
        remaining -= size
    return chunks, without


async def list_tool_calls(connection: Connection, run_id: UUID) -> tuple[ToolCallRecord, ...]:
    """Return the run's tool calls in order."""
    return tuple(
        ToolCallRecord(*row[1:]) for row in await (await connection.execute(LIST_TOOL_CALLS, (run_id,))).fetchall()
    )


async def find_last_state(connection: Connection, run_id: UUID) -> Mapping[str, Any] | None:
    """Return the last saved state of the graph. `None` means that none was saved."""
    from offing.storage import checkpoint_reads
    from offing.storage.state_serializer import build_serializer

    return await checkpoint_reads.find_last_state(connection, build_serializer(), run_id)


async def list_earlier_answers(connection: Connection, run_id: UUID) -> tuple[tuple[str, str], ...]:
    """Return questions and short answers of the thread before this run, oldest first."""
    rows = await (await connection.execute(LIST_EARLIER_ANSWERS, (run_id,))).fetchall()
    return tuple((question, answer) for question, answer in reversed(rows))


async def get_policy_uris(connection: Connection, labels: Sequence[str]) -> dict[str, str]:
    """Return the locations of the files of policy versions, by NAME@VERSION."""
    return dict(await (await connection.execute(GET_POLICY_URIS, (list(labels),))).fetchall())


async def _build_metadata(
    connection: Connection, rows: Sequence[Sequence[Any]], include_references: bool
) -> list[TrajectoryMetadata]:
    scores: dict[UUID, list[RewardScore]] = {row[0]: [] for row in rows}
    for run, *score in await (await connection.execute(LIST_SCORES, (list(scores),))).fetchall():
        scores[run].append(RewardScore(*score))
    costs = {
        run: RunCost(*cost) for run, *cost in await (await connection.execute(LIST_COSTS, (list(scores),))).fetchall()
    }
    tasks = [row[18] for row in rows if row[18]] if include_references else []
    references = await _read_references(connection, tasks)
    return [_metadata_from_row(row, tuple(scores[row[0]]), references.get(row[18]), costs[row[0]]) for row in rows]


async def _read_references(connection: Connection, task_ids: Sequence[UUID]) -> Mapping[UUID, Reference]:
    if not task_ids:
        return {}
    rows = await (await connection.execute(LIST_REFERENCES, (list(task_ids),))).fetchall()
    return {
        task: Reference(None if answers is None else tuple(answers), tuple(evidence), tuple(rubric))
        for task, answers, evidence, rubric in rows
    }


def _metadata_from_row(
    row: Sequence[Any], scores: tuple[RewardScore, ...], references: Reference | None, cost: RunCost
) -> TrajectoryMetadata:
    (run, kind, graph, version, question, seed, status, stop, outcome, reward) = row[:10]
    (created, started, ended, settled, group, state, size, batch, task) = row[10:19]
    (dataset, split, name, member, attempt, tags) = row[19:]
    return TrajectoryMetadata(
        run_id=run,
        kind=kind,
        graph=graph,
        graph_version=version,
        question=question,
        seed=seed,
        status=status,
        stop_reason=stop,
        outcome=outcome,
        reward=reward,
        created_at=created,
        started_at=started,
        ended_at=ended,
        finalized_at=settled,
        group_id=group,
        group_state=state,
        group_size=size,
        rollout_batch_id=batch,
        task_id=task,
        dataset=dataset,
        split=split,
        task_name=name,
        member=member,
        attempt=attempt,
        tags=tuple(tags),
        scores=scores,
        reference=references,
        cost=cost,
    )
