"""Store tasks of datasets, environments and requests, each content once.

Reference answers are stored in a separate table and read only for scoring.
"""

import asyncio
import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from uuid import UUID

import orjson

from offing.clock import new_id
from offing.core.errors import InvalidInput
from offing.core.scoring import reference_to_json
from offing.datasets.task import TaskSpec, parse_task_line
from offing.mcp.server_registry import McpServerRegistry
from offing.services import task_scopes
from offing.services.task_scopes import NamedScope
from offing.storage import tasks
from offing.storage.pool import Connection, Database
from offing.storage.tasks import NewTask, TaskRow
from offing.tools.environment import TaskSample, get_environment, qualify_spec

MAX_TASKS_PER_TRANSACTION = 1_000
"""Maximum number of tasks that are stored in one transaction."""


@dataclass(frozen=True, slots=True)
class StoredTasks:
    task_ids: list[UUID]
    """Ids of the tasks in the order given, each once."""
    new_count: int


def sample_tasks(sample: TaskSample) -> list[TaskSpec]:
    """Generate tasks of an environment. This is CPU-bound. Raises InvalidInput."""
    generated = get_environment(sample.spec).generate_tasks(sample)
    return [parse_task_line(json.dumps(task), str(task["name"])) for task in generated]


async def store_tasks(
    database: Database,
    tenant_id: UUID,
    dataset: str,
    specs: Iterable[TaskSpec],
    servers: McpServerRegistry | None = None,
) -> StoredTasks:
    """Store tasks, each content once. The same content keeps its id, so storing may be repeated.

    `servers` are the MCP servers that a scope may name; `None` means that there are none. Raises InvalidInput for a
    dataset without a name or without tasks, and for a scope that names what the tenant cannot use.
    """
    specs_by_hash = {hash_task(spec): spec for spec in specs}
    if not dataset.strip() or not specs_by_hash:
        what = "has no name" if specs_by_hash else "contains no tasks"
        raise InvalidInput("tasks", f"the dataset {what}", "Give a name and at least one task.")
    async with database.transaction(tenant_id) as connection:
        await task_scopes.pin_scopes(connection, tenant_id, _name_scopes(specs_by_hash.values()), servers)
    ids, new, pending = list[UUID](), 0, list(specs_by_hash.values())
    for start in range(0, len(pending), MAX_TASKS_PER_TRANSACTION):
        part = pending[start : start + MAX_TASKS_PER_TRANSACTION]
        async with database.transaction(tenant_id) as connection:
            stored = await store_tasks_in(connection, tenant_id, dataset.strip(), part)
        new += stored.new_count
        ids += stored.task_ids
    return StoredTasks(ids, new)


async def store_tasks_in(
    connection: Connection, tenant_id: UUID, dataset: str, specs: Sequence[TaskSpec]
) -> StoredTasks:
    """Store tasks of different content in a transaction of the caller, as `store_tasks`."""
    new_tasks = [_build_task(spec, hash_task(spec)) for spec in specs]
    ids = await tasks.store_tasks(connection, tenant_id, dataset, new_tasks)
    return StoredTasks(ids, sum(task.id == id for task, id in zip(new_tasks, ids, strict=True)))


async def list_tasks(
    database: Database, tenant_id: UUID, dataset: str | None, before_id: UUID | None, limit: int
) -> tuple[list[TaskRow], UUID | None]:
    """List tasks, newest first, with the start of the next page. `None` means that this is the last page."""
    async with database.transaction(tenant_id) as connection:
        rows = await tasks.list_tasks(connection, dataset, before_id, limit + 1)
    return rows[:limit], rows[limit - 1].id if len(rows) > limit else None


async def get_task(database: Database, tenant_id: UUID, task_id: UUID) -> TaskRow:
    """Return a task. Raises NotFound."""
    async with database.transaction(tenant_id) as connection:
        return (await tasks.get_tasks(connection, [task_id]))[0]


async def list_dataset_task_ids(
    database: Database, tenant_id: UUID, dataset: str, count: int, *, seed: int | None = None
) -> list[UUID]:
    """Return the ids of the first tasks of a dataset, or of a random sample if a seed is given.

    Raises InvalidInput if the dataset has no tasks.
    """
    async with database.transaction(tenant_id) as connection:
        if seed is None:
            task_ids = [task.id for task in await tasks.list_tasks_of_dataset(connection, dataset, count)]
        else:
            task_ids = await tasks.sample_task_ids(connection, dataset, seed, count)
    if not task_ids:
        raise InvalidInput("tasks.dataset", f"there is no dataset {dataset!r}", "Store tasks under this name first.")
    return task_ids


async def store_sampled_tasks(database: Database, tenant_id: UUID, sample: TaskSample) -> list[UUID]:
    """Generate tasks of an environment and store them under its name. Raises InvalidInput."""
    specs = await asyncio.to_thread(sample_tasks, sample)
    return (await store_tasks(database, tenant_id, qualify_spec(sample.spec), specs)).task_ids


def _name_scopes(specs: Iterable[TaskSpec]) -> list[NamedScope]:
    return [NamedScope(spec.name or str(number), spec.scope_of_run()) for number, spec in enumerate(specs, 1)]


def hash_task(spec: TaskSpec) -> str:
    """Return a hash of everything that distinguishes a task: question, scope and reference."""
    reference = spec.reference
    content = {
        "question": spec.question,
        "scope": spec.scope_of_run(),
        "reference": None if reference is None else reference_to_json(reference),
    }
    return hashlib.sha256(orjson.dumps(content, option=orjson.OPT_SORT_KEYS)).hexdigest()


def _build_task(spec: TaskSpec, content_sha256: str) -> NewTask:
    return NewTask(
        id=new_id(),
        question=spec.question,
        scope=spec.scope_of_run(),
        content_sha256=content_sha256,
        reference=spec.reference,
        split=spec.split,
        name=spec.name,
        difficulty=spec.difficulty,
        tags=tuple(spec.tags),
    )
