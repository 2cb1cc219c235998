"""Tasks from files, worlds and requests: read strictly, told apart by content, stored once.

The only home of what a line of a task file may hold. A task's reference answers go into their own table and come out of
it for scoring alone.
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
from offing.core.scoring import Evidence, Reference
from offing.storage import tasks
from offing.storage.pool import Database
from offing.storage.tasks import NewTask, TaskRow

AT_ONCE = 1_000
"""Tasks of one transaction."""

LARGEST_FILE = 256 * 2**20
"""Bytes of a task file."""

Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=8_000)]


class TaskEvidence(BaseModel, frozen=True, extra="forbid"):
    """Where an answer stands. Either its words, or a stretch of a source, or both."""

    quote: str = Field(default="", max_length=20_000)
    source: str = Field(default="", max_length=4_096, description="Id or title of a source of the library.")
    start: int | None = Field(default=None, ge=0, description="Code points of the source's text.")
    end: int | None = Field(default=None, ge=0)
    document: str = Field(default="", max_length=4_096, description="For people; it is not compared.")
    relation: str = Field(default="", max_length=200)
    entity: str = Field(default="", max_length=1_000)

    @model_validator(mode="after")
    def _says_where(self) -> "TaskEvidence":
        if not self.quote.strip() and not self.source.strip():
            raise ValueError("give a quote, a source, or both")
        return self


class TaskScope(BaseModel, frozen=True, extra="forbid"):
    """What a run of the task may see."""

    collections: list[str] = Field(default=[], max_length=100, description="Of the library. Empty: all.")
    sources: list[UUID] = Field(default=[], max_length=1_000, description="Empty: all of the collections.")
    world: str = Field(default="", max_length=200, description="A made-up world instead of the library.")


class TaskSpec(BaseModel, frozen=True, extra="forbid"):
    """A task as it comes in. `answers` left out: it has no reference; an empty list: it cannot be answered."""

    question: Annotated[str, StringConstraints(strip_whitespace=True, min_length=3, max_length=8_000)]
    answers: list[Text] | None = Field(default=None, max_length=100)
    answer: Text | None = Field(default=None, description="The same as `answers` with one.")
    evidence: list[TaskEvidence] = Field(default=[], max_length=200)
    scope: TaskScope = TaskScope()
    name: str = Field(default="", max_length=200, description="The task's own id in its dataset.")
    split: str = Field(default="", max_length=100)
    difficulty: float | None = Field(default=None, allow_inf_nan=False)
    tags: list[Annotated[str, StringConstraints(min_length=1, max_length=100)]] = Field(default=[], max_length=50)
    dataset: str = Field(default="", max_length=200, description="For people; the request names the dataset.")
    kind: str = Field(default="", max_length=100, description="For people.")
    hops: int | None = Field(default=None, description="For people.")

    @model_validator(mode="after")
    def _one_kind_of_answer(self) -> "TaskSpec":
        if self.answer is not None and self.answers is not None:
            raise ValueError("give answer or answers, not both")
        if self.evidence and self.reference is None:
            raise ValueError("evidence needs answers; an empty list says that the task cannot be answered")
        return self

    @property
    def reference(self) -> Reference | None:
        """None: nothing is known to be right."""
        answers = [self.answer] if self.answer is not None else self.answers
        return None if answers is None else Reference(tuple(answers), tuple(_evidence(e) for e in self.evidence))

    def scope_of_run(self) -> dict[str, Any]:
        """As a run keeps it: what is not limited is left out."""
        return {name: value for name, value in self.scope.model_dump(mode="json").items() if value}


@dataclass(frozen=True, slots=True)
class Stored:
    ids: list[UUID]
    """Of the tasks, in the order given, each once."""
    new: int


@dataclass(frozen=True, slots=True)
class Drawn:
    """Which tasks of a world."""

    spec: str
    count: int
    hops: tuple[int, int] = (1, 4)
    kinds: tuple[str, ...] | None = None
    seed: int = 0


def read_file(path: Path, count: int | None = None) -> list[TaskSpec]:
    """The tasks of a file, one JSON object a line; empty lines are skipped. `count` None: all.

    Raises InvalidInput that names the line.
    """
    if not path.is_file():
        raise InvalidInput("--tasks", f"{path} is not a file", "Name a file with one JSON object a line.")
    if path.stat().st_size > LARGEST_FILE:
        raise InvalidInput("--tasks", f"{path} is larger than {LARGEST_FILE:,} bytes", "Split it.")
    found: list[TaskSpec] = []
    with path.open(encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if count is not None and len(found) >= count:
                break
            if line.strip():
                found.append(parse_line(line, f"{path.name} line {number}"))
    return found


def parse_line(line: str, place: str) -> TaskSpec:
    """One task. Raises InvalidInput that begins with `place`."""
    try:
        return TaskSpec.model_validate_json(line)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join([place, *map(str, first["loc"])])
        known = "question, answers, evidence, scope, name, split, difficulty and tags"
        raise InvalidInput(where, first["msg"], f"A task is a JSON object with {known}.") from None


def of_world(drawn: Drawn) -> list[TaskSpec]:
    """Tasks of a world. Takes processor time. Raises InvalidInput."""
    from offing.world.tasks import tasks as draw

    found = draw(drawn.spec, count=drawn.count, hops=drawn.hops, kinds=drawn.kinds, seed=drawn.seed)
    return [parse_line(json.dumps(task.as_json()), task.name) for task in found]


async def store(database: Database, tenant: UUID, dataset: str, specs: Iterable[TaskSpec]) -> Stored:
    """Store tasks, each content once; the same content keeps its id, so that this may be repeated.

    Raises InvalidInput for a dataset without a name, or without tasks.
    """
    given = {content_sha256(spec): spec for spec in specs}
    if not dataset.strip() or not given:
        what = "has no name" if given else "holds no task"
        raise InvalidInput("tasks", f"the dataset {what}", "Give a name and at least one task.")
    ids, new, pending = list[UUID](), 0, list(given.items())
    for start in range(0, len(pending), AT_ONCE):
        made = [_new(spec, digest) for digest, spec in pending[start : start + AT_ONCE]]
        async with database.transaction(tenant) as connection:
            kept = await tasks.store(connection, tenant, dataset.strip(), made)
        new += sum(task.id == id for task, id in zip(made, kept, strict=True))
        ids += kept
    return Stored(ids, new)


async def page(
    database: Database, tenant: UUID, dataset: str | None, before: UUID | None, limit: int
) -> tuple[list[TaskRow], UUID | None]:
    """Tasks, newest first, and where the next page begins. None: this was the last."""
    async with database.transaction(tenant) as connection:
        found = await tasks.latest(connection, dataset, before, limit + 1)
    return found[:limit], found[limit - 1].id if len(found) > limit else None


async def one(database: Database, tenant: UUID, id: UUID) -> TaskRow:
    """Raises NotFound."""
    async with database.transaction(tenant) as connection:
        return (await tasks.by_ids(connection, [id]))[0]


async def of_dataset(
    database: Database, tenant: UUID, dataset: str, count: int, *, seed: int | None = None
) -> list[UUID]:
    """The first tasks of a dataset; with a seed, some at random. Raises InvalidInput when it has none."""
    async with database.transaction(tenant) as connection:
        if seed is None:
            found = [task.id for task in await tasks.of_dataset(connection, dataset, count)]
        else:
            found = await tasks.drawn(connection, dataset, seed, count)
    if not found:
        raise InvalidInput("tasks.dataset", f"there is no dataset {dataset!r}", "Store its tasks first.")
    return found


async def of_world_stored(database: Database, tenant: UUID, drawn: Drawn) -> list[UUID]:
    """Tasks of a world, stored under its name. Raises InvalidInput."""
    specs = await asyncio.to_thread(of_world, drawn)
    return (await store(database, tenant, f"world:{drawn.spec}", specs)).ids


def content_sha256(spec: TaskSpec) -> str:
    """Over everything that makes it another task: question, scope, and what counts as right."""
    reference = spec.reference
    content = {
        "question": spec.question,
        "scope": spec.scope_of_run(),
        "reference": None if reference is None else asdict(reference),
    }
    return hashlib.sha256(orjson.dumps(content, option=orjson.OPT_SORT_KEYS)).hexdigest()


def _new(spec: TaskSpec, digest: str) -> NewTask:
    return NewTask(
        id=new_id(),
        question=spec.question,
        scope=spec.scope_of_run(),
        content_sha256=digest,
        reference=spec.reference,
        split=spec.split,
        name=spec.name,
        difficulty=spec.difficulty,
        tags=tuple(spec.tags),
    )


def _evidence(given: TaskEvidence) -> Evidence:
    """Places count within a source only: without one, the words decide."""
    if not given.source.strip():
        return Evidence(given.quote)
    return Evidence(given.quote, given.source, given.start, given.end)
