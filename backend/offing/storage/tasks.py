"""Tasks as rows, each stored once by its content.

Their reference answers are in a separate table. Runs never read that table. `get_references` is
for scoring, and for finding out whether a task can be scored.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import orjson
from psycopg.rows import class_row
from psycopg.types.json import Jsonb

from offing.core.errors import NotFound
from offing.core.scoring import Reference, reference_from_json, reference_to_json
from offing.storage.pool import Connection
from offing.storage.task_origins import IS_SELECTABLE

STORE_TASKS = """
    with given as (
      select * from jsonb_to_recordset(%(tasks)s) as t(id uuid, split text, name text, question text, scope jsonb,
             difficulty double precision, tags text[], content_sha256 text, reference jsonb)),
    new as (
      insert into task (id, tenant_id, dataset, split, name, question, scope, difficulty, tags, content_sha256)
      select id, %(tenant)s, %(dataset)s, split, name, question, scope, difficulty, tags, content_sha256 from given
      on conflict (tenant_id, dataset, content_sha256) do nothing
      returning id, content_sha256)
    insert into task_reference (task_id, tenant_id, answers, evidence, rubric)
    select new.id, %(tenant)s, nullif(given.reference->'answers', 'null'), given.reference->'evidence',
           coalesce(given.reference->'rubric', '[]')
      from new join given using (id)
     where jsonb_typeof(given.reference) = 'object'
"""

FIND_STORED_TASKS = "select id, content_sha256 from task where dataset = %s and content_sha256 = any(%s)"

COLUMNS = "id, dataset, split, name, question, scope, difficulty, tags, content_sha256, created_at"

GET_TASKS = f"select {COLUMNS} from task where id = any(%s)"

LIST_TASKS_OF_DATASET = f"select {COLUMNS} from task where dataset = %s and {IS_SELECTABLE} order by id limit %s"

SAMPLE_TASKS = f"""
    select id from task where dataset = %s and {IS_SELECTABLE} order by md5(content_sha256 || %s::text), id limit %s
"""
"""The order depends on the content and the seed only."""

LIST_TASKS = f"""
    select {COLUMNS} from task
     where (%(dataset)s::text is null or dataset = %(dataset)s) and (%(before)s::uuid is null or id < %(before)s)
     order by id desc limit %(limit)s
"""

GET_REFERENCES = "select task_id, answers, evidence, rubric from task_reference where task_id = any(%s)"

GET_ACCEPTED_ANSWERS = "select task_id, answers from task_reference where task_id = any(%s) and answers is not null"


@dataclass(frozen=True, slots=True)
class NewTask:
    """A new task."""

    id: UUID
    """Used if the task is new. A task with the same content keeps its existing id."""
    question: str
    scope: Mapping[str, Any]
    content_sha256: str
    reference: Reference | None
    split: str = ""
    name: str = ""
    difficulty: float | None = None
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TaskRow:
    """A task without its reference."""

    id: UUID
    dataset: str
    split: str
    name: str
    question: str
    scope: dict[str, Any]
    difficulty: float | None
    tags: list[str]
    content_sha256: str
    """Hash that includes the reference, so it must not be shown to users."""
    created_at: datetime


async def store_tasks(connection: Connection, tenant_id: UUID, dataset: str, tasks: Sequence[NewTask]) -> list[UUID]:
    """Store the tasks that are new. Return the ids of all tasks in the given order."""
    new_tasks = Jsonb([_task_to_json(task) for task in tasks], dumps=orjson.dumps)
    await connection.execute(STORE_TASKS, {"tenant": tenant_id, "dataset": dataset, "tasks": new_tasks})
    hashes = [task.content_sha256 for task in tasks]
    ids = {
        digest: id for id, digest in await (await connection.execute(FIND_STORED_TASKS, (dataset, hashes))).fetchall()
    }
    return [ids[digest] for digest in hashes]


async def get_tasks(connection: Connection, task_ids: Sequence[UUID]) -> list[TaskRow]:
    """Return tasks in the given order. Raises `NotFound` for the first one that does not exist."""
    async with connection.cursor(row_factory=class_row(TaskRow)) as cursor:
        await cursor.execute(GET_TASKS, (list(task_ids),))
        by_id = {task.id: task for task in await cursor.fetchall()}
    for id in task_ids:
        if id not in by_id:
            raise NotFound("task", str(id))
    return [by_id[id] for id in task_ids]


async def list_tasks_of_dataset(connection: Connection, dataset: str, limit: int) -> list[TaskRow]:
    """Return the first tasks of a dataset, in the order in which they were stored.

    Tasks made from runs that may not be learned from any more are left out.
    """
    async with connection.cursor(row_factory=class_row(TaskRow)) as cursor:
        await cursor.execute(LIST_TASKS_OF_DATASET, (dataset, limit))
        return await cursor.fetchall()


async def sample_task_ids(connection: Connection, dataset: str, seed: int, limit: int) -> list[UUID]:
    """Return random tasks of a dataset, each at most once. The same seed returns the same tasks."""
    return [id for (id,) in await (await connection.execute(SAMPLE_TASKS, (dataset, seed, limit))).fetchall()]


async def list_tasks(connection: Connection, dataset: str | None, before: UUID | None, limit: int) -> list[TaskRow]:
    """Return tasks after `before`, newest first.

    If `dataset` is `None`, return those of all datasets.
    """
    async with connection.cursor(row_factory=class_row(TaskRow)) as cursor:
        await cursor.execute(LIST_TASKS, {"dataset": dataset, "before": before, "limit": limit})
        return await cursor.fetchall()


async def get_references(connection: Connection, task_ids: Sequence[UUID]) -> dict[UUID, Reference]:
    """Return the references by task. Tasks without a reference are left out."""
    rows = await (await connection.execute(GET_REFERENCES, (list(task_ids),))).fetchall()
    return {id: reference_from_parts(*parts) for id, *parts in rows}


async def get_accepted_answers(connection: Connection, task_ids: Sequence[UUID]) -> dict[UUID, tuple[str, ...]]:
    """Return the accepted answers by task, without evidence.

    Empty means that the question has no answer. Tasks whose correct answer is unknown are left out.
    """
    rows = await (await connection.execute(GET_ACCEPTED_ANSWERS, (list(task_ids),))).fetchall()
    return {id: tuple(accepted) for id, accepted in rows}


def reference_from_parts(
    answers: Sequence[str] | None, evidence: Sequence[Mapping[str, Any]], rubric: Sequence[Mapping[str, Any]]
) -> Reference:
    """Build a reference from its columns."""
    return reference_from_json({"answers": answers, "evidence": evidence, "rubric": rubric})


def _task_to_json(task: NewTask) -> dict[str, Any]:
    reference = task.reference
    return {
        "id": task.id,
        "split": task.split,
        "name": task.name,
        "question": task.question,
        "scope": task.scope,
        "difficulty": task.difficulty,
        "tags": task.tags,
        "content_sha256": task.content_sha256,
        "reference": None if reference is None else reference_to_json(reference),
    }
