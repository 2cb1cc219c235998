"""Read tasks from files, environments and requests. They are validated strictly, and each content is stored once.

Reference answers are stored in a separate table and read only for scoring.
"""

import asyncio
import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any
from uuid import UUID

import orjson
from pydantic import BaseModel, Field, StringConstraints, ValidationError, model_validator

from offing.clock import new_id
from offing.core.errors import InvalidInput
from offing.core.scoring import Reference, ReferenceEvidence
from offing.storage import tasks
from offing.storage.pool import Database
from offing.storage.tasks import NewTask, TaskRow
from offing.tools.environment import TaskSample, get_environment, qualify_spec

MAX_TASKS_PER_TRANSACTION = 1_000
"""Maximum number of tasks that are stored in one transaction."""

MAX_FILE_BYTES = 256 * 2**20
"""Maximum bytes of a task file."""

Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=8_000)]


class TaskEvidence(BaseModel, frozen=True, extra="forbid"):
    """Where an answer is stated: its words, a range of a source, or both."""

    quote: str = Field(default="", max_length=20_000)
    source: str = Field(default="", max_length=4_096, description="Id or title of a source in the document library.")
    start: int | None = Field(
        default=None, ge=0, description="First code point of the evidence in the text of the source."
    )
    end: int | None = Field(default=None, ge=0)
    document: str = Field(default="", max_length=4_096, description="Informational. It is not compared.")
    relation: str = Field(default="", max_length=200)
    entity: str = Field(default="", max_length=1_000)

    @model_validator(mode="after")
    def _says_where(self) -> "TaskEvidence":
        if not self.quote.strip() and not self.source.strip():
            raise ValueError("give a quote, a source, or both")
        return self


class TaskScope(BaseModel, frozen=True, extra="forbid"):
    """What a run of the task may see."""

    collections: list[str] = Field(
        default=[], max_length=100, description="Collections of the document library. Empty: all."
    )
    sources: list[UUID] = Field(default=[], max_length=1_000, description="Empty: all sources of the collections.")
    environment: str = Field(
        default="",
        max_length=200,
        description="`NAME:SPEC` of an environment to use instead of the library. Without `NAME:`, it is `world`.",
    )


class TaskSpec(BaseModel, frozen=True, extra="forbid"):
    """A task to store. Without `answers` it has no reference; an empty list means that it cannot be answered."""

    question: Annotated[str, StringConstraints(strip_whitespace=True, min_length=3, max_length=8_000)]
    answers: list[Text] | None = Field(default=None, max_length=100)
    answer: Text | None = Field(default=None, description="The same as `answers` with a single answer.")
    evidence: list[TaskEvidence] = Field(default=[], max_length=200)
    scope: TaskScope = TaskScope()
    name: str = Field(default="", max_length=200, description="Id of the task in its dataset.")
    split: str = Field(default="", max_length=100)
    difficulty: float | None = Field(default=None, allow_inf_nan=False)
    tags: list[Annotated[str, StringConstraints(min_length=1, max_length=100)]] = Field(default=[], max_length=50)
    dataset: str = Field(default="", max_length=200, description="Informational. The request names the dataset.")
    kind: str = Field(default="", max_length=100, description="Informational.")
    hops: int | None = Field(default=None, description="Informational.")

    @model_validator(mode="after")
    def _one_kind_of_answer(self) -> "TaskSpec":
        if self.answer is not None and self.answers is not None:
            raise ValueError("give `answer` or `answers`, not both")
        if self.evidence and self.reference is None:
            raise ValueError("evidence requires answers; an empty list means that the task cannot be answered")
        return self

    @property
    def reference(self) -> Reference | None:
        """The reference of the task. `None` if no correct answer is known."""
        answers = [self.answer] if self.answer is not None else self.answers
        return None if answers is None else Reference(tuple(answers), tuple(_build_evidence(e) for e in self.evidence))

    def scope_of_run(self) -> dict[str, Any]:
        """Return the scope as a run stores it, without fields that limit nothing."""
        return {name: value for name, value in self.scope.model_dump(mode="json").items() if value}


@dataclass(frozen=True, slots=True)
class StoredTasks:
    task_ids: list[UUID]
    """Ids of the tasks in the order given, each once."""
    new_count: int


def read_task_file(path: Path, max_tasks: int | None = None) -> list[TaskSpec]:
    """Read the tasks of a file with one JSON object per line. Empty lines are skipped.

    If `max_tasks` is `None`, all tasks are read. Raises InvalidInput with the line.
    """
    if not path.is_file():
        raise InvalidInput("--tasks", f"{path} is not a file", "Use a file with one JSON object per line.")
    if path.stat().st_size > MAX_FILE_BYTES:
        raise InvalidInput("--tasks", f"{path} is larger than {MAX_FILE_BYTES:,} bytes", "Split the file.")
    task_specs: list[TaskSpec] = []
    with path.open(encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if max_tasks is not None and len(task_specs) >= max_tasks:
                break
            if line.strip():
                task_specs.append(parse_task_line(line, f"{path.name} line {number}"))
    return task_specs


def parse_task_line(line: str, location: str) -> TaskSpec:
    """Parse one task. Raises InvalidInput with a message that begins with `location`."""
    try:
        return TaskSpec.model_validate_json(line)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join([location, *map(str, first["loc"])])
        names = "question, answers, evidence, scope, name, split, difficulty and tags"
        raise InvalidInput(where, first["msg"], f"A task is a JSON object with the fields {names}.") from None


def sample_tasks(sample: TaskSample) -> list[TaskSpec]:
    """Generate tasks of an environment. This is CPU-bound. Raises InvalidInput."""
    generated = get_environment(sample.spec).generate_tasks(sample)
    return [parse_task_line(json.dumps(task), str(task["name"])) for task in generated]


async def store_tasks(database: Database, tenant_id: UUID, dataset: str, specs: Iterable[TaskSpec]) -> StoredTasks:
    """Store tasks, each content once. The same content keeps its id, so storing may be repeated.

    Raises InvalidInput for a dataset without a name or without tasks.
    """
    specs_by_hash = {hash_task(spec): spec for spec in specs}
    if not dataset.strip() or not specs_by_hash:
        what = "has no name" if specs_by_hash else "contains no tasks"
        raise InvalidInput("tasks", f"the dataset {what}", "Give a name and at least one task.")
    ids, new, pending = list[UUID](), 0, list(specs_by_hash.items())
    for start in range(0, len(pending), MAX_TASKS_PER_TRANSACTION):
        new_tasks = [_build_task(spec, digest) for digest, spec in pending[start : start + MAX_TASKS_PER_TRANSACTION]]
        async with database.transaction(tenant_id) as connection:
            stored_ids = await tasks.store_tasks(connection, tenant_id, dataset.strip(), new_tasks)
        new += sum(task.id == id for task, id in zip(new_tasks, stored_ids, strict=True))
        ids += stored_ids
    return StoredTasks(ids, new)


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


def hash_task(spec: TaskSpec) -> str:
    """Return a hash of everything that distinguishes a task: question, scope and accepted answers."""
    reference = spec.reference
    content = {
        "question": spec.question,
        "scope": spec.scope_of_run(),
        "reference": None if reference is None else asdict(reference),
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


def _build_evidence(evidence: TaskEvidence) -> ReferenceEvidence:
    """Return reference evidence. Positions are used only with a source; otherwise only the words are compared."""
    if not evidence.source.strip():
        return ReferenceEvidence(evidence.quote)
    return ReferenceEvidence(evidence.quote, evidence.source, evidence.start, evidence.end)
