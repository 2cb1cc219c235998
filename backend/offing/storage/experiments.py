"""Experiments as rows: pinned configurations, the tasks, the result of each task, and the verdicts of a judge."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any, Literal
from uuid import UUID

import orjson
from psycopg.rows import class_row
from psycopg.types.json import Jsonb

from offing.core.errors import NotFound
from offing.storage.pool import Connection

Verdict = Literal["first", "second", "tie"]
"""Which of two reports a judge prefers, by the position in which it was shown."""

LOCK_REQUEST = "select pg_advisory_xact_lock(hashtextextended('experiment ' || %s, 0))"
"""Serializes requests of the same experiment until the transaction ends."""

COLUMNS = "id, name, dataset, seed, scorers, judge, created_at, completed_at"

FIND_LATEST = f"select {COLUMNS} from experiment where request_sha256 = %s order by id desc limit 1"

GET_EXPERIMENT = f"select {COLUMNS} from experiment where id = %s"

LIST_EXPERIMENTS = f"""
    select {COLUMNS} from experiment where %(before)s::uuid is null or id < %(before)s order by id desc limit %(limit)s
"""

INSERT_EXPERIMENT = """
    insert into experiment (id, tenant_id, name, dataset, seed, scorers, judge, request_sha256)
    values (%(id)s, %(tenant)s, %(name)s, %(dataset)s, %(seed)s, %(scorers)s, %(judge)s, %(sha256)s)
"""

INSERT_TASKS = """
    insert into experiment_task (experiment_id, task_id, tenant_id, number)
    select %(id)s, t.task, %(tenant)s, t.number - 1 from unnest(%(tasks)s::uuid[]) with ordinality as t(task, number)
"""

INSERT_CONFIGURATION = """
    insert into experiment_configuration
           (experiment_id, number, tenant_id, name, graph, graph_version, engines, policy_version_ids, budget, scope)
    values (%(id)s, %(number)s, %(tenant)s, %(name)s, %(graph)s, %(graph_version)s, %(engines)s, %(policies)s,
            %(budget)s, %(scope)s)
"""

SET_BATCH = "update experiment_configuration set batch_id = %s where experiment_id = %s and number = %s"

LIST_CONFIGURATIONS = """
    select experiment_id, number, name, graph, graph_version, engines, policy_version_ids, budget, scope, batch_id
      from experiment_configuration where experiment_id = any(%s) order by experiment_id, number
"""

LIST_TASKS = """
    select t.id, t.name, t.question, r.task_id is not null and r.answers is not null,
           r.answers is not null and r.answers = '[]'
      from experiment_task e join task t on t.id = e.task_id left join task_reference r on r.task_id = t.id
     where e.experiment_id = %s order by e.number
"""

LIST_ENDED_ROLLOUTS = """
    select distinct on (g.task_id) g.task_id, o.run_id, coalesce(o.outcome, ''), r.turns, r.tokens, r.cost_usd,
           r.work_seconds,
           (select p.body->'answer'->>'text' from report p where p.run_id = r.id order by p.version desc limit 1)
      from rollout_group g join rollout o on o.group_id = g.id join run r on r.id = o.run_id
     where g.batch_id = %s and o.member = 0
     order by g.task_id, o.attempt desc
"""
"""The last attempt of each task."""

INSERT_RESULTS = """
    insert into experiment_result (experiment_id, number, task_id, tenant_id, run_id, outcome, has_abstained, scores,
                                   turns, tokens, cost_usd, seconds)
    select %(id)s, %(number)s, r.task_id, %(tenant)s, r.run_id, r.outcome, r.has_abstained, r.scores, r.turns,
           r.tokens, r.cost_usd, r.seconds
      from jsonb_to_recordset(%(results)s) as r(task_id uuid, run_id uuid, outcome text, has_abstained boolean,
           scores jsonb, turns integer, tokens bigint, cost_usd numeric, seconds double precision)
        on conflict do nothing
"""

LIST_RESULTS = """
    select number, task_id, run_id, outcome, has_abstained, scores, turns, tokens, cost_usd::float8 as cost_usd, seconds
      from experiment_result where experiment_id = %s
"""

STORE_JUDGEMENT = """
    insert into experiment_judgment as j (experiment_id, number, task_id, is_swapped, tenant_id, run_id, base_run_id,
                                           verdict, reason, model, tokens, cost_usd)
    values (%(id)s, %(number)s, %(task)s, %(swapped)s, %(tenant)s, %(run)s, %(base_run)s, %(verdict)s, %(reason)s,
            %(model)s, %(tokens)s, %(cost_usd)s)
        on conflict (experiment_id, number, task_id, is_swapped) do update
       set verdict = excluded.verdict, reason = excluded.reason, model = excluded.model,
           tokens = j.tokens + excluded.tokens, cost_usd = j.cost_usd + excluded.cost_usd,
           created_at = clock_timestamp()
     where j.verdict is null
"""
"""A failure is replaced by a later attempt, and a verdict never. The usage of all attempts is added up."""

LIST_JUDGEMENTS = """
    select number, task_id, is_swapped, verdict, reason, model, tokens, cost_usd::float8 as cost_usd
      from experiment_judgment where experiment_id = %s order by number, task_id, is_swapped
"""

COMPLETE = "update experiment set completed_at = clock_timestamp() where id = %s and completed_at is null"


@dataclass(frozen=True, slots=True)
class ExperimentRow:
    """An experiment without its configurations and results."""

    id: UUID
    name: str
    dataset: str
    seed: int
    scorers: list[dict[str, Any]]
    """Keys: name, weight, options."""
    judge: dict[str, Any] | None
    """Engine config of the judge that compares reports. `None` means no judge."""
    created_at: datetime
    completed_at: datetime | None
    """`None` means that it is not complete."""


@dataclass(frozen=True, slots=True)
class ConfigurationRow:
    """A configuration of an experiment, as pinned."""

    experiment_id: UUID
    number: int
    """From 0. The others are compared with number 0."""
    name: str
    graph: str
    graph_version: str
    engines: dict[str, Any]
    policy_version_ids: dict[str, str]
    """Policy version id by role."""
    budget: dict[str, Any]
    scope: dict[str, Any]
    """Fields that are added to the scope of each task."""
    batch_id: UUID | None
    """`None` means that its rollouts were not requested yet, or that the batch was deleted."""


@dataclass(frozen=True, slots=True)
class NewConfiguration:
    """A configuration to store."""

    name: str
    graph: str
    graph_version: str
    engines: Mapping[str, Any]
    policy_version_ids: Mapping[str, str]
    budget: Mapping[str, Any]
    scope: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ExperimentTaskRow:
    id: UUID
    name: str
    question: str
    has_reference: bool
    """Whether it is known how the question is answered, or that it has no answer."""
    is_unanswerable: bool
    """Whether the correct response is that there is no answer."""


@dataclass(frozen=True, slots=True)
class EndedRollout:
    """The last attempt of a task."""

    task_id: UUID
    run_id: UUID
    outcome: str
    turns: int
    tokens: int
    cost_usd: Decimal
    seconds: float
    """Working time."""
    answer: str | None
    """The short answer of the report as written. `None` means that there is none."""


@dataclass(frozen=True, slots=True)
class ResultRow:
    """The result of one task under one configuration."""

    number: int
    task_id: UUID
    run_id: UUID | None
    outcome: str
    has_abstained: bool
    scores: dict[str, float | None]
    """Value by scorer. `None` means that the scorer failed. A scorer that does not apply to the task is left out."""
    turns: int
    tokens: int
    cost_usd: float
    seconds: float


@dataclass(frozen=True, slots=True)
class JudgmentRow:
    """One comparison of the reports of a configuration and of configuration 0."""

    number: int
    task_id: UUID
    is_swapped: bool
    """Whether the report of configuration `number` was shown first."""
    verdict: Verdict | None
    """`None` means that the judge failed."""
    reason: str
    model: str
    tokens: int
    cost_usd: float


async def lock_request(connection: Connection, request_sha256: str) -> None:
    """Wait until no other transaction creates the same experiment."""
    await connection.execute(LOCK_REQUEST, (request_sha256,))


async def find_latest(connection: Connection, request_sha256: str) -> ExperimentRow | None:
    """Return the latest experiment with this request. `None` means that there is none."""
    async with connection.cursor(row_factory=class_row(ExperimentRow)) as cursor:
        await cursor.execute(FIND_LATEST, (request_sha256,))
        return await cursor.fetchone()


async def insert_experiment(
    connection: Connection,
    tenant_id: UUID,
    new: Mapping[str, Any],
    task_ids: Sequence[UUID],
    configurations: Sequence[NewConfiguration],
) -> None:
    """Store an experiment. `new` contains id, name, dataset, seed, scorers, judge and sha256."""
    judge = None if new["judge"] is None else _jsonb(new["judge"])
    values = {**new, "tenant": tenant_id, "scorers": _jsonb(new["scorers"]), "judge": judge}
    await connection.execute(INSERT_EXPERIMENT, values)
    await connection.execute(INSERT_TASKS, {"id": new["id"], "tenant": tenant_id, "tasks": list(task_ids)})
    for number, one in enumerate(configurations):
        row = {
            "id": new["id"],
            "number": number,
            "tenant": tenant_id,
            "name": one.name,
            "graph": one.graph,
            "graph_version": one.graph_version,
            "engines": _jsonb(one.engines),
            "policies": _jsonb(one.policy_version_ids),
            "budget": _jsonb(one.budget),
            "scope": _jsonb(one.scope),
        }
        await connection.execute(INSERT_CONFIGURATION, row)


async def get_experiment(connection: Connection, experiment_id: UUID) -> ExperimentRow:
    """Return an experiment. Raises `NotFound` if it does not exist."""
    async with connection.cursor(row_factory=class_row(ExperimentRow)) as cursor:
        await cursor.execute(GET_EXPERIMENT, (experiment_id,))
        row = await cursor.fetchone()
    if row is None:
        raise NotFound("experiment", str(experiment_id))
    return row


async def list_experiments(connection: Connection, before: UUID | None, limit: int) -> list[ExperimentRow]:
    """Return experiments after `before`, newest first."""
    async with connection.cursor(row_factory=class_row(ExperimentRow)) as cursor:
        await cursor.execute(LIST_EXPERIMENTS, {"before": before, "limit": limit})
        return await cursor.fetchall()


async def list_configurations(connection: Connection, experiment_ids: Sequence[UUID]) -> list[ConfigurationRow]:
    """Return the configurations of experiments, in order."""
    async with connection.cursor(row_factory=class_row(ConfigurationRow)) as cursor:
        await cursor.execute(LIST_CONFIGURATIONS, (list(experiment_ids),))
        return await cursor.fetchall()


async def set_batch(connection: Connection, experiment_id: UUID, number: int, batch_id: UUID) -> None:
    """Store which batch collects the rollouts of a configuration."""
    await connection.execute(SET_BATCH, (batch_id, experiment_id, number))


async def list_tasks(connection: Connection, experiment_id: UUID) -> list[ExperimentTaskRow]:
    """Return the tasks of an experiment in order. Deleted tasks are left out."""
    rows = await (await connection.execute(LIST_TASKS, (experiment_id,))).fetchall()
    return [ExperimentTaskRow(*row) for row in rows]


async def list_ended_rollouts(connection: Connection, batch_id: UUID) -> list[EndedRollout]:
    """Return the last attempt of each task of a batch that has ended."""
    rows = await (await connection.execute(LIST_ENDED_ROLLOUTS, (batch_id,))).fetchall()
    return [EndedRollout(*row) for row in rows]


async def insert_results(
    connection: Connection, tenant_id: UUID, experiment_id: UUID, number: int, results: Sequence[Mapping[str, Any]]
) -> None:
    """Store the results of a configuration. Stored results stay unchanged."""
    values = {"id": experiment_id, "tenant": tenant_id, "number": number, "results": _jsonb(list(results))}
    await connection.execute(INSERT_RESULTS, values)


async def list_results(connection: Connection, experiment_id: UUID) -> list[ResultRow]:
    """Return the results of all configurations."""
    async with connection.cursor(row_factory=class_row(ResultRow)) as cursor:
        await cursor.execute(LIST_RESULTS, (experiment_id,))
        return await cursor.fetchall()


async def store_judgment(
    connection: Connection,
    tenant_id: UUID,
    experiment_id: UUID,
    judgment: JudgmentRow,
    run_id: UUID,
    base_run_id: UUID,
) -> None:
    """Store the result of one comparison. A verdict is never replaced."""
    values = {
        "id": experiment_id,
        "tenant": tenant_id,
        "number": judgment.number,
        "task": judgment.task_id,
        "swapped": judgment.is_swapped,
        "run": run_id,
        "base_run": base_run_id,
        "verdict": judgment.verdict,
        "reason": judgment.reason,
        "model": judgment.model,
        "tokens": judgment.tokens,
        "cost_usd": judgment.cost_usd,
    }
    await connection.execute(STORE_JUDGEMENT, values)


async def list_judgments(connection: Connection, experiment_id: UUID) -> list[JudgmentRow]:
    """Return all comparisons of an experiment."""
    async with connection.cursor(row_factory=class_row(JudgmentRow)) as cursor:
        await cursor.execute(LIST_JUDGEMENTS, (experiment_id,))
        return await cursor.fetchall()


async def complete(connection: Connection, experiment_id: UUID) -> None:
    """Mark an experiment as complete. A complete experiment stays unchanged."""
    await connection.execute(COMPLETE, (experiment_id,))


def _jsonb(value: object) -> Jsonb:
    return Jsonb(value, dumps=lambda plain: orjson.dumps(plain, default=str))
