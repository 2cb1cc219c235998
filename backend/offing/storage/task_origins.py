"""Where tasks that were made from runs come from, and the runs that tasks can be made from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import orjson
from psycopg.rows import class_row
from psycopg.types.json import Jsonb

from offing.storage.pool import Connection

LIST_ASKED_RUNS = """
    with asked as materialized (select * from run where kind = 'interactive' and ended_at is not null)
    select r.id, r.thread_id, r.question, r.scope, r.graph, r.forked_from_id, r.created_at, c.may_learn,
           array(select tag from run_tag where run_id = r.id order by position) as tags,
           exists (select from run e where e.thread_id = r.thread_id
                                       and (e.created_at, e.id) < (r.created_at, r.id)) as is_follow_up,
           (select o.split_run_id from task_origin o join task k on k.id = o.task_id
             where o.run_id = r.id and k.dataset = any(%(datasets)s)
             order by o.is_current desc limit 1) as recorded_split_run_id
      from asked r join app.list_learning_consent((select array_agg(id) from asked)) c on c.run_id = r.id
     order by r.created_at, r.id
"""

FIND_LATEST_REQUEST = "select request from task_set where dataset = %s order by created_at desc, id desc limit 1"

LOCK_DATASET = "select pg_advisory_xact_lock(hashtextextended(%s || ' ' || %s, 0))"

INSERT_SET = """
    insert into task_set (id, tenant_id, dataset, request, left_out, train_count, held_out_count, created_by)
    values (%s, %s, %s, %s, %s, %s, %s, %s)
"""

RETIRE_ORIGINS = """
    update task_origin o set is_current = false from task k
     where k.id = o.task_id and k.dataset = any(%s) and not o.task_id = any(%s) and o.is_current
"""

INSERT_ORIGINS = """
    insert into task_origin (task_id, tenant_id, task_set_id, run_id, split_run_id, signals)
    select task_id, %(tenant)s, %(set)s, run_id, split_run_id, signals
      from jsonb_to_recordset(%(origins)s) as o(task_id uuid, run_id uuid, split_run_id uuid, signals jsonb)
    on conflict (task_id) do update
       set task_set_id = excluded.task_set_id, run_id = excluded.run_id, split_run_id = excluded.split_run_id,
           signals = excluded.signals, is_current = true
"""

IS_SELECTABLE = """
    not exists (select from task_origin o
                 where o.task_id = task.id and not (o.is_current and app.may_learn_from(o.run_id)))
"""
"""Condition on a task: it was not made from a run, or from one that may still be learned from."""

LIST_ORIGINS = f"""
    select o.task_id, o.run_id, o.split_run_id, o.signals, task.dataset, task.split, {IS_SELECTABLE} as is_selectable
      from task_origin o join task on task.id = o.task_id where task.dataset = any(%s) order by o.task_id
"""

DELETE_UNUSED_TASKS = """
    delete from task k using task_origin o
     where o.task_id = k.id and o.run_id = any(%s)
       and not exists (select from rollout_group where task_id = k.id)
       and not exists (select from experiment_task where task_id = k.id)
       and not exists (select from evaluation_result where task_id = k.id)
"""


@dataclass(frozen=True, slots=True)
class AskedRunRow:
    """An interactive run that has ended."""

    id: UUID
    thread_id: UUID
    question: str
    scope: dict[str, Any]
    graph: str
    forked_from_id: UUID | None
    created_at: datetime
    may_learn: bool
    tags: list[str]
    is_follow_up: bool
    recorded_split_run_id: UUID | None
    """Cluster of the run in an earlier set of the dataset. `None` means that no task was made from it."""


@dataclass(frozen=True, slots=True)
class TaskOriginRow:
    """What a task was made from."""

    task_id: UUID
    run_id: UUID
    split_run_id: UUID
    signals: list[dict[str, Any]]
    dataset: str
    split: str
    is_selectable: bool
    """Whether new collections and evaluations use the task."""


async def list_asked_runs(connection: Connection, datasets: Sequence[str]) -> list[AskedRunRow]:
    """Return all ended interactive runs, oldest first, with what earlier sets of the datasets recorded of them."""
    async with connection.cursor(row_factory=class_row(AskedRunRow)) as cursor:
        await cursor.execute(LIST_ASKED_RUNS, {"datasets": list(datasets)})
        return await cursor.fetchall()


async def find_latest_request(connection: Connection, dataset: str) -> dict[str, Any] | None:
    """Return the latest request for a dataset. `None` means that none was made from runs."""
    row = await (await connection.execute(FIND_LATEST_REQUEST, (dataset,))).fetchone()
    return None if row is None else row[0]


async def lock_dataset(connection: Connection, tenant_id: UUID, dataset: str) -> None:
    """Let other requests for the dataset wait until the transaction ends."""
    await connection.execute(LOCK_DATASET, (str(tenant_id), dataset))


async def insert_set(
    connection: Connection,
    tenant_id: UUID,
    set_id: UUID,
    dataset: str,
    request: Mapping[str, Any],
    left_out: Sequence[Mapping[str, Any]],
    counts: tuple[int, int],
    created_by: str,
) -> None:
    """Store a request with what it left out. `counts` are the tasks to train on and the held-out ones."""
    values = (set_id, tenant_id, dataset, _jsonb(request), _jsonb(left_out), *counts, created_by)
    await connection.execute(INSERT_SET, values)


async def replace_origins(
    connection: Connection, tenant_id: UUID, set_id: UUID, datasets: Sequence[str], origins: Sequence[Mapping[str, Any]]
) -> None:
    """Store where the tasks of a set come from. Other tasks of the datasets stay, but are not selected any more."""
    await connection.execute(RETIRE_ORIGINS, (list(datasets), [one["task_id"] for one in origins]))
    values = {"tenant": tenant_id, "set": set_id, "origins": _jsonb(origins)}
    await connection.execute(INSERT_ORIGINS, values)


async def list_origins(connection: Connection, datasets: Sequence[str]) -> list[TaskOriginRow]:
    """Return what the tasks of datasets were made from. Tasks that were not made from runs are left out."""
    async with connection.cursor(row_factory=class_row(TaskOriginRow)) as cursor:
        await cursor.execute(LIST_ORIGINS, (list(datasets),))
        return await cursor.fetchall()


async def delete_unused_tasks(connection: Connection, run_ids: Sequence[UUID]) -> None:
    """Delete the tasks made from these runs that no rollout, experiment or evaluation has used."""
    await connection.execute(DELETE_UNUSED_TASKS, (list(run_ids),))


def _jsonb(value: Any) -> Jsonb:
    return Jsonb(value, dumps=orjson.dumps)
