"""Tasks as rows, each stored once by its content; what is known to be right about them lies in a table of its own.

Nothing that a run reads joins that table: `references` is for scoring, and for telling whether a task can be scored.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import orjson
from psycopg.rows import class_row
from psycopg.types.json import Jsonb

from offing.core.errors import NotFound
from offing.core.scoring import Evidence, Reference
from offing.storage.pool import Connection

STORE = """
    with given as (
      select * from jsonb_to_recordset(%(tasks)s) as t(id uuid, split text, name text, question text, scope jsonb,
             difficulty double precision, tags text[], content_sha256 text, reference jsonb)),
    new as (
      insert into task (id, tenant_id, dataset, split, name, question, scope, difficulty, tags, content_sha256)
      select id, %(tenant)s, %(dataset)s, split, name, question, scope, difficulty, tags, content_sha256 from given
      on conflict (tenant_id, dataset, content_sha256) do nothing
      returning id, content_sha256)
    insert into task_reference (task_id, tenant_id, answers, evidence)
    select new.id, %(tenant)s, given.reference->'answers', given.reference->'evidence'
      from new join given using (id)
     where jsonb_typeof(given.reference) = 'object'
"""

STORED = "select id, content_sha256 from task where dataset = %s and content_sha256 = any(%s)"

COLUMNS = "id, dataset, split, name, question, scope, difficulty, tags, content_sha256, created_at"

BY_IDS = f"select {COLUMNS} from task where id = any(%s)"

OF_DATASET = f"select {COLUMNS} from task where dataset = %s order by id limit %s"

DRAWN = "select id from task where dataset = %s order by md5(content_sha256 || %s::text), id limit %s"
"""An order that depends on the content and the seed alone."""

LIST = f"""
    select {COLUMNS} from task
     where (%(dataset)s::text is null or dataset = %(dataset)s) and (%(before)s::uuid is null or id < %(before)s)
     order by id desc limit %(limit)s
"""

REFERENCES = "select task_id, answers, evidence from task_reference where task_id = any(%s)"

ANSWERS = "select task_id, answers from task_reference where task_id = any(%s)"


@dataclass(frozen=True, slots=True)
class NewTask:
    """A task before it is stored."""

    id: UUID
    """Its own if it is new; a task of the same content keeps the id that it has."""
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
    """A task as everybody may see it."""

    id: UUID
    dataset: str
    split: str
    name: str
    question: str
    scope: dict[str, Any]
    difficulty: float | None
    tags: list[str]
    content_sha256: str
    """Over its reference too; not for others to see."""
    created_at: datetime


async def store(connection: Connection, tenant: UUID, dataset: str, tasks: Sequence[NewTask]) -> list[UUID]:
    """Store what is new; the ids of all, in the order given."""
    given = Jsonb([_json(task) for task in tasks], dumps=orjson.dumps)
    await connection.execute(STORE, {"tenant": tenant, "dataset": dataset, "tasks": given})
    wanted = [task.content_sha256 for task in tasks]
    found = {digest: id for id, digest in await (await connection.execute(STORED, (dataset, wanted))).fetchall()}
    return [found[digest] for digest in wanted]


async def by_ids(connection: Connection, ids: Sequence[UUID]) -> list[TaskRow]:
    """In the order given. Raises NotFound for the first that is not there."""
    async with connection.cursor(row_factory=class_row(TaskRow)) as cursor:
        await cursor.execute(BY_IDS, (list(ids),))
        found = {task.id: task for task in await cursor.fetchall()}
    for id in ids:
        if id not in found:
            raise NotFound("task", str(id))
    return [found[id] for id in ids]


async def of_dataset(connection: Connection, dataset: str, limit: int) -> list[TaskRow]:
    """The first tasks of a dataset, in the order in which they were stored."""
    async with connection.cursor(row_factory=class_row(TaskRow)) as cursor:
        await cursor.execute(OF_DATASET, (dataset, limit))
        return await cursor.fetchall()


async def drawn(connection: Connection, dataset: str, seed: int, limit: int) -> list[UUID]:
    """Tasks of a dataset at random, each at most once; the same for the same seed."""
    return [id for (id,) in await (await connection.execute(DRAWN, (dataset, seed, limit))).fetchall()]


async def latest(connection: Connection, dataset: str | None, before: UUID | None, limit: int) -> list[TaskRow]:
    """Tasks that follow `before`, newest first. `dataset` None: of any."""
    async with connection.cursor(row_factory=class_row(TaskRow)) as cursor:
        await cursor.execute(LIST, {"dataset": dataset, "before": before, "limit": limit})
        return await cursor.fetchall()


async def references(connection: Connection, ids: Sequence[UUID]) -> dict[UUID, Reference]:
    """What is known to be right, by task. A task without a reference is left out."""
    rows = await (await connection.execute(REFERENCES, (list(ids),))).fetchall()
    return {id: reference_of(answers, evidence) for id, answers, evidence in rows}


async def answers(connection: Connection, ids: Sequence[UUID]) -> dict[UUID, tuple[str, ...]]:
    """The accepted answers of each task, without evidence. Empty: it cannot be answered; left out: no reference."""
    rows = await (await connection.execute(ANSWERS, (list(ids),))).fetchall()
    return {id: tuple(accepted) for id, accepted in rows}


def reference_of(answers: Sequence[str], evidence: Sequence[Mapping[str, Any]]) -> Reference:
    """The stored parts as a reference."""
    return Reference(tuple(answers), tuple(Evidence(**piece) for piece in evidence))


def _json(task: NewTask) -> dict[str, Any]:
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
        "reference": None
        if reference is None
        else {"answers": reference.answers, "evidence": [asdict(piece) for piece in reference.evidence]},
    }
