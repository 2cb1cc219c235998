"""Finished runs as training data, read page by page in the order in which they became final. Reads only.

The only home of these queries. A page is a few runs; of their tokens no more than a batch of segments is read at once.
Column order is a contract between each query and the function below it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from offing.core.episode import Cost, Episode, References, Score, ToolUse
from offing.core.errors import NotFound
from offing.storage.pool import Connection

PAGE_LIMIT = 256
"""Runs of a page at most, whatever is asked for."""

BATCH_BYTES = 4 * 2**20
"""Bytes of tokens that are read at once, unless a single segment has more."""

COLUMNS = """
    r.id, r.kind, r.graph, r.graph_version, r.question, r.seed, r.status, r.stop_reason, o.outcome, o.reward,
    r.created_at, r.started_at, r.ended_at, o.settled_at, o.group_id, g.state, g.size, g.batch_id, g.task_id,
    coalesce(t.dataset, ''), coalesce(t.split, ''), coalesce(t.name, ''), o.member, o.attempt,
    coalesce(g.tags, '{}') || coalesce(t.tags, '{}')
"""

JOINED = "left join rollout_group g on g.id = o.group_id left join task t on t.id = g.task_id"

SHARED = """
       and (%(graph)s::text is null or r.graph = %(graph)s)
       and (%(status)s::text is null or r.status = %(status)s)
       and (%(policy)s::text is null
            or exists (select from turn where turn.run_id = r.id and turn.policy = %(policy)s))
"""

ROLLOUTS = f"""
    select {COLUMNS}
      from rollout o join run r on r.id = o.run_id {JOINED}
     where o.settled_at is not null
       and (%(after_at)s::timestamptz is null or (o.settled_at, o.run_id) > (%(after_at)s, %(after_run)s))
       and (%(since)s::timestamptz is null or o.settled_at >= %(since)s)
       and (%(until)s::timestamptz is null or o.settled_at < %(until)s)
       and case when %(outcomes)s::text[] is null then o.outcome is distinct from 'infra_error'
                else o.outcome = any(%(outcomes)s) end
       and (%(min_reward)s::float8 is null or o.reward >= %(min_reward)s)
       and (%(max_reward)s::float8 is null or o.reward <= %(max_reward)s)
       and (%(batch)s::uuid is null or g.batch_id = %(batch)s)
       and (%(group)s::uuid is null or o.group_id = %(group)s)
       and (%(dataset)s::text is null or t.dataset = %(dataset)s)
       and (%(split)s::text is null or t.split = %(split)s)
       and g.tags || coalesce(t.tags, '{{}}') @> %(tags)s
       {SHARED}
     order by o.settled_at, o.run_id limit %(limit)s
"""
"""Rollouts that are final, the first to become so first."""

OF_GROUPS = f"""
    select {COLUMNS}
      from rollout o join run r on r.id = o.run_id {JOINED}
     where o.group_id = any(%s) and o.settled_at is not null and o.outcome is distinct from 'infra_error'
     order by o.settled_at, o.run_id
"""

ASKED = f"""
    select {COLUMNS}
      from run r left join rollout o on false {JOINED}
     where r.kind = 'ask' and r.ended_at is not null
       and (%(after_at)s::timestamptz is null or (r.ended_at, r.id) > (%(after_at)s, %(after_run)s))
       and (%(since)s::timestamptz is null or r.ended_at >= %(since)s)
       and (%(until)s::timestamptz is null or r.ended_at < %(until)s)
       {SHARED}
     order by r.ended_at, r.id limit %(limit)s
"""
"""Runs that a person asked for; they belong to no group and have no reward of their own."""

ONE = f"""
    select {COLUMNS} from run r left join rollout o on o.run_id = r.id {JOINED} where r.id = %s
"""

NEWEST = """
    select clock_timestamp(),
           greatest((select max(settled_at) from rollout), (select max(ended_at) from run where kind = 'ask'))
"""

SCORES = """
    select distinct on (run_id, target, claim, turn_seq, scorer)
           run_id, scorer, scorer_version, value, failure, turn_seq
      from reward where run_id = any(%b) and target in ('run', 'turn', 'report')
     order by run_id, target, claim, turn_seq, scorer, version desc
"""
"""The latest opinion of each scorer."""

COSTS = """
    select r.id, r.turns - coalesce((r.forked_spent->>'turns')::integer, 0), spoken.prompt, spoken.completion,
           (r.usd - coalesce((r.forked_spent->>'usd')::numeric, 0))::float8,
           r.work_seconds - coalesce((r.forked_spent->>'seconds')::float8, 0),
           (select count(*) from step
             where step.run_id = r.id and step.kind = 'tool' and step.seq > coalesce(r.forked_at, 0))
      from run r,
           lateral (select coalesce(sum(prompt_tokens), 0) as prompt, coalesce(sum(completion_tokens), 0) as completion
                      from turn where turn.run_id = r.id and turn.seq > coalesce(r.forked_at, 0)) as spoken
     where r.id = any(%b)
"""
"""What a fork copied counts with the run that it was made in."""

REFERENCES = "select task_id, answers, evidence from task_reference where task_id = any(%s)"

SIZES = """
    select wanted.run, found.*
      from unnest(%(runs)b::uuid[]) with ordinality as wanted(run, nth),
           lateral (
             select segment,
                    sum(octet_length(prompt_ids) + octet_length(completion_ids) + octet_length(logprobs)
                        + coalesce(octet_length(entropy), 0))
                      filter (where %(roles)s::text[] is null or turn.role = any(%(roles)s)),
                    count(*) filter (where completion <> '' and completion_ids is null)
               from turn where turn.run_id = wanted.run group by segment order by segment
           ) as found
     order by wanted.nth
"""
"""Null where there is nothing to read; the last column counts turns of which only the text is known."""

TOOLS = """
    select run_id, seq, turn, payload->>'tool', payload->'args', payload->'content', payload->>'status',
           payload->>'message', at, coalesce(payload->>'origin', 'unknown'), coalesce(payload->>'trust', 'untrusted')
      from step where run_id = %s and kind = 'tool' order by seq
"""

POLICY_PLACES = "select name || '@' || version, uri from policy_version where name || '@' || version = any(%s)"

EARLIER = """
    select earlier.question, coalesce(report.body->'answer'->>'text', report.body->>'title')
      from run cross join app.thread_line(run.thread_id) as line
           join run earlier
             on earlier.thread_id = line.thread_id and earlier.status = 'done'
                and earlier.created_at < least(run.created_at, line.before)
           join lateral (select body from report where report.run_id = earlier.id order by version desc limit 1)
             as report on true
     where run.id = %s order by earlier.created_at desc limit 5
"""
"""What the run was told of its thread when it began."""

Place = tuple[datetime, UUID]
"""Where a page ended: when its last run became final, and its id."""


@dataclass(frozen=True, slots=True)
class Query:
    """Which runs. None, or an empty tuple: any."""

    kind: str = "rollout"
    """rollout, or ask: what people asked for, which has no outcome, reward or group to filter by."""
    graph: str | None = None
    policy: str | None = None
    """NAME@VERSION that sampled at least one turn."""
    status: str | None = None
    outcomes: tuple[str, ...] = ()
    """Empty: all but infra_error, which says nothing about a policy."""
    min_reward: float | None = None
    max_reward: float | None = None
    since: datetime | None = None
    """Final at that time or later."""
    until: datetime | None = None
    """Final before that time."""
    tags: tuple[str, ...] = ()
    """All of them, of group or task."""
    batch: UUID | None = None
    group: UUID | None = None
    dataset: str | None = None
    split: str | None = None
    roles: tuple[str, ...] = ()
    """Segments of these roles only."""


async def newest(connection: Connection) -> tuple[datetime, datetime | None]:
    """The store's clock, and when a run last became final. None: none ever did."""
    row = await (await connection.execute(NEWEST)).fetchone()
    assert row is not None
    return row[0], row[1]


async def page(
    connection: Connection, wanted: Query, after: Place | None, limit: int, *, references: bool = False
) -> list[Episode]:
    """The runs that follow `after`, at most `PAGE_LIMIT`, with their scores; reference answers only if asked for."""
    at, run = after or (None, None)
    values = {name: getattr(wanted, name) for name in Query.__slots__} | {
        "outcomes": list(wanted.outcomes) or None,
        "tags": list(wanted.tags),
        "after_at": at,
        "after_run": run,
        "limit": min(limit, PAGE_LIMIT),
    }
    query = ASKED if wanted.kind == "ask" else ROLLOUTS
    rows = await (await connection.execute(query, values, prepare=False)).fetchall()
    return await _completed(connection, rows, references)


async def of_groups(connection: Connection, groups: Sequence[UUID]) -> list[Episode]:
    """All final runs of some groups with their scores, those that a fault ended left out."""
    rows = await (await connection.execute(OF_GROUPS, (list(groups),))).fetchall()
    return await _completed(connection, rows, references=False)


async def episode(connection: Connection, run: UUID, *, references: bool = False) -> Episode:
    """One run, final or not. Raises NotFound."""
    rows = await (await connection.execute(ONE, (run,))).fetchall()
    if not rows:
        raise NotFound("run", str(run))
    return (await _completed(connection, rows, references))[0]


async def batches(
    connection: Connection, runs: Sequence[UUID], roles: Sequence[str] = (), most: int = BATCH_BYTES
) -> tuple[list[list[tuple[UUID, int]]], int]:
    """The segments that have ids, run by run in the order given, in portions of at most `most` bytes of tokens.

    And the number of turns, whatever their role, of which only the text is known.
    """
    cursor = await connection.execute(SIZES, {"runs": list(runs), "roles": list(roles) or None})
    found: list[list[tuple[UUID, int]]] = []
    room = without = 0
    for run, idx, size, unknown in await cursor.fetchall():
        without += unknown
        if size is None:
            continue
        if size > room or not found:
            found.append([])
            room = most
        found[-1].append((run, idx))
        room -= size
    return found, without


async def tools(connection: Connection, run: UUID) -> tuple[ToolUse, ...]:
    """The run's tool calls, in order."""
    return tuple(ToolUse(*row[1:]) for row in await (await connection.execute(TOOLS, (run,))).fetchall())


async def last_state(connection: Connection, run: UUID) -> Mapping[str, Any] | None:
    """The graph's state as it was last saved. None: it never was."""
    from offing.storage import checkpoint_reading
    from offing.storage.plain_state import serializer

    return await checkpoint_reading.last_state(connection, serializer(), run)


async def earlier_answers(connection: Connection, run: UUID) -> tuple[tuple[str, str], ...]:
    """Questions and short answers of the thread before this run, oldest first."""
    rows = await (await connection.execute(EARLIER, (run,))).fetchall()
    return tuple((question, answer) for question, answer in reversed(rows))


async def policy_places(connection: Connection, names: Sequence[str]) -> dict[str, str]:
    """Where the files of policy versions lie, by NAME@VERSION."""
    return dict(await (await connection.execute(POLICY_PLACES, (list(names),))).fetchall())


async def _completed(connection: Connection, rows: Sequence[Sequence[Any]], references: bool) -> list[Episode]:
    scores: dict[UUID, list[Score]] = {row[0]: [] for row in rows}
    for run, *score in await (await connection.execute(SCORES, (list(scores),))).fetchall():
        scores[run].append(Score(*score))
    costs = {run: Cost(*cost) for run, *cost in await (await connection.execute(COSTS, (list(scores),))).fetchall()}
    tasks = [row[18] for row in rows if row[18]] if references else []
    known = await _references(connection, tasks)
    return [_episode(row, tuple(scores[row[0]]), known.get(row[18]), costs[row[0]]) for row in rows]


async def _references(connection: Connection, tasks: Sequence[UUID]) -> Mapping[UUID, References]:
    if not tasks:
        return {}
    rows = await (await connection.execute(REFERENCES, (list(tasks),))).fetchall()
    return {task: References(tuple(answers), tuple(evidence)) for task, answers, evidence in rows}


def _episode(row: Sequence[Any], scores: tuple[Score, ...], references: References | None, cost: Cost) -> Episode:
    (run, kind, graph, version, question, seed, status, stop, outcome, reward) = row[:10]
    (created, started, ended, settled, group, state, size, batch, task) = row[10:19]
    (dataset, split, name, member, attempt, tags) = row[19:]
    return Episode(
        run=run,
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
        settled_at=settled,
        group=group,
        group_state=state,
        group_size=size,
        batch=batch,
        task=task,
        dataset=dataset,
        split=split,
        task_name=name,
        member=member,
        attempt=attempt,
        tags=tuple(tags),
        scores=scores,
        references=references,
        cost=cost,
    )
