"""Learning from judged runs as people handle it: what there is to learn from, a job that learns, and what it made.

Workers do the jobs. What a job may read is fixed when it is made: runs as they were judged by then.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import orjson

from offing.clock import new_id
from offing.core.errors import InvalidInput
from offing.core.model import EngineChoice
from offing.core.prompt_library import Case, Experience, Library
from offing.models.engine import ENGINES
from offing.sdk import Graph
from offing.services import graphs as catalogue
from offing.services import policies, promotion, prompt_library, tasks
from offing.services.comparing import Group, groups_of
from offing.services.engine_choices import check_engine
from offing.services.prompt_library import Stored
from offing.storage import policy_versions, rated_runs, training_events, training_jobs, views
from offing.storage.policy_versions import VersionRow
from offing.storage.pool import Database
from offing.storage.rated_runs import RatedRun
from offing.storage.training_jobs import JobRow

KIND = "prompts"
"""Of a job that learns."""

MOST_RUNS = 5_000
"""Judged runs that are looked at: the newest."""

MOST_GROUPS = 10_000

LARGEST_CONFIG = 64_000
"""Bytes of JSON."""


MOST_TASKS, MOST_MEMBERS = 200, 8
"""Of a gate."""


@dataclass(frozen=True, slots=True)
class Gate:
    """On what a candidate is measured against the active version once it is registered."""

    dataset: str
    engine: EngineChoice
    """Who reads the library, and answers every role of the graph."""
    graph: str = "agentflow"
    role: str = "planner"
    """Which role is shown the library."""
    tasks: tuple[UUID, ...] = ()
    """Of the dataset; `create` fills them in."""
    count: int = 50
    """Tasks at most."""
    members: int = 1
    """Runs of each task."""
    turns: int = 12
    usd: float | None = None
    """Money of one run. None: the tenant's cap alone."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to learn from, and how."""

    name: str
    """Of the library."""
    engine: EngineChoice
    """Who compares."""
    graph: str | None = None
    tag: str | None = None
    """Of batches. None: any."""
    groups: int = 50
    """At most."""
    cases: bool = True
    """Whether runs are remembered as cases, too."""
    usd: float | None = None
    """Money of all comparisons together. None: the tenant's cap alone."""
    gate: Gate | None = None
    """None: its candidate is only registered."""


@dataclass(frozen=True, slots=True)
class Judged:
    """Runs that may be learned from, and those that may not because their people did not agree."""

    runs: Sequence[RatedRun]
    rated: int
    """Of `runs`, those of people; the others are rollouts that scorers scored."""
    withheld: int


@dataclass(frozen=True, slots=True)
class Outlook:
    """What a job that is made now would learn from."""

    start: VersionRow | None
    """The version that it would learn on from. None: the name is new."""
    job: JobRow | None
    """The one that learns for this library already."""
    new: Sequence[Group]
    """Groups that `start` has not learned from."""
    runs: int
    """Rated runs and scored rollouts together."""
    rated: int
    """Of them, those of people."""
    withheld: int
    waiting: VersionRow | None
    """The newest candidate that was learned from `start`. None: there is none."""


@dataclass(frozen=True, slots=True)
class Change:
    """How an experience differs from the version before."""

    kind: str
    """added, changed or removed."""
    before: Experience | None
    after: Experience | None


@dataclass(frozen=True, slots=True)
class Contents:
    """A version with what it changed."""

    stored: Stored
    before: VersionRow | None
    """The version that it comes from. None: it is a name's first."""
    changes: tuple[Change, ...]
    new_cases: tuple[Case, ...]
    lost_cases: int
    """Of the version before that are not here any more."""


async def create(
    database: Database, tenant: UUID, wanted: Wanted, graphs: Mapping[str, Graph] | None = None
) -> tuple[JobRow, bool]:
    """Queue a job that learns, and whether it is new: the same request gives the same job until that has ended.

    Raises InvalidInput where there is nothing to learn from, and Conflict where the name is that of weights or another
    job learns for it.
    """
    _check(wanted)
    if wanted.gate is not None:
        wanted = replace(wanted, gate=await _checked(database, tenant, wanted.gate, graphs or {}))
    config = config_of(wanted)
    body = orjson.dumps(config, option=orjson.OPT_SORT_KEYS)
    if len(body) > LARGEST_CONFIG:
        raise InvalidInput("engine", f"more than {LARGEST_CONFIG} bytes", "Say less in its options.")
    await prompt_library.latest(database, tenant, wanted.name)
    judged = await usable(database, tenant, wanted.graph, wanted.tag)
    digest = hashlib.sha256(body).hexdigest()
    async with database.transaction(tenant) as connection:
        earlier = await training_jobs.learning(connection, wanted.name)
        if earlier is not None and earlier.config_sha256 == digest:
            return earlier, False
        job = await training_jobs.insert(
            connection, tenant, new_id(), kind=KIND, name=wanted.name, config=config, config_sha256=digest, seed=0
        )
        counts = {"runs": len(judged.runs), "rated_runs": judged.rated}
        await training_events.add(connection, tenant, "created", counts, job=job.id)
    return job, True


def config_of(wanted: Wanted) -> dict[str, Any]:
    """As a job stores it."""
    told: dict[str, Any] = {"graph": wanted.graph, "tag": wanted.tag, "groups": wanted.groups, "cases": wanted.cases}
    gate = wanted.gate
    if gate is not None:
        tasks = [str(task) for task in gate.tasks]
        told["gate"] = asdict(gate) | {"tasks": tasks, "engine": gate.engine.model_dump(mode="json")}
    return told | {"usd": wanted.usd, "engine": wanted.engine.model_dump(mode="json")}


def wanted_of(job: JobRow) -> Wanted:
    """What a job was made for."""
    config = job.config
    choice = EngineChoice.model_validate(config["engine"])
    gate = _gate_of(config["gate"]) if config.get("gate") else None
    return Wanted(
        job.name, choice, config["graph"], config["tag"], config["groups"], config["cases"], config["usd"], gate
    )


def _gate_of(told: Mapping[str, Any]) -> Gate:
    values = dict(told)
    values["engine"] = EngineChoice.model_validate(told["engine"])
    values["tasks"] = tuple(map(UUID, told["tasks"]))
    return Gate(**values)


async def _checked(database: Database, tenant: UUID, gate: Gate, graphs: Mapping[str, Graph]) -> Gate:
    """With its tasks. Raises InvalidInput for what could not be measured later."""
    graph = catalogue.named(graphs, gate.graph)
    if gate.role not in (names := [role.name for role in graph.roles]):
        raise InvalidInput("gate.role", f"{graph.name} has no role {gate.role!r}", f"Use one of: {', '.join(names)}.")
    _check_engine("gate.engine", gate.engine)
    if gate.engine.engine in policies.UNREAD:
        remedy = "Name one, such as litellm:openai/gpt-5-mini."
        raise InvalidInput("gate.engine", "a prompt library needs a language model to read it", remedy)
    try:
        found = await tasks.of_dataset(database, tenant, gate.dataset, min(gate.count, MOST_TASKS))
    except InvalidInput as error:
        raise InvalidInput("gate.dataset", error.problem, error.remedy) from error
    return replace(gate, tasks=tuple(found))


async def usable(
    database: Database, tenant: UUID, graph: str | None, tag: str | None, until: datetime | None = None
) -> Judged:
    """Judged runs, as `judged` finds them. Raises InvalidInput where there is none that may be learned from."""
    found = await judged(database, tenant, graph, tag, until)
    if found.withheld and not found.runs:
        problem = f"{found.withheld} rated runs are people's own, and `training_opt_in` is off"
        raise InvalidInput("training_opt_in", problem, "Switch it on in the settings, or collect rollouts.")
    if not found.runs:
        raise InvalidInput("runs", "none was judged", "Rate reports, or collect scored rollouts with `offing rollout`.")
    return found


async def judged(
    database: Database, tenant: UUID, graph: str | None, tag: str | None, until: datetime | None = None
) -> Judged:
    """Scored rollouts, and people's rated runs where the tenant lets them be learned from."""
    async with database.transaction(tenant) as connection:
        opted_in = (await views.tenant(connection, tenant)).training_opt_in
        found = await rated_runs.collected(connection, graph, tag, MOST_RUNS, until)
        asked = [] if tag else await rated_runs.asked(connection, graph, MOST_RUNS, until)
    if opted_in:
        return Judged([*found, *asked], rated=len(asked), withheld=0)
    return Judged(found, rated=0, withheld=len(asked))


def unlearned(runs: Sequence[RatedRun], start: VersionRow | None) -> list[Group]:
    """Groups that a version has not learned from, as they are judged now."""
    seen = frozenset(start.lineage.get("seen", ())) if start else frozenset[str]()
    return [group for group in groups_of(runs) if group.digest not in seen]


async def begun(database: Database, tenant: UUID, name: str, folder: Path) -> Stored:
    """The version to learn on from; a new name gets an empty one, which is active."""
    found = await prompt_library.latest(database, tenant, name)
    if found is None:
        row, _ = await prompt_library.register(database, tenant, name, Library(), folder)
        found = Stored(row, Library())
    if found.version.version == 1 and found.version.state == "candidate" and found.library == Library():
        row, _ = await promotion.promote(database, tenant, found.version.label)
        return Stored(row, found.library)
    return found


async def outlook(database: Database, tenant: UUID, name: str) -> Outlook:
    """What there is to learn from for a library. Raises InvalidInput for what cannot be its name, and Conflict where it
    is that of weights."""
    prompt_library.check_name(name)
    start = await prompt_library.latest(database, tenant, name)
    found = await judged(database, tenant, None, None)
    async with database.transaction(tenant) as connection:
        job = await training_jobs.learning(connection, name)
        versions = await policy_versions.latest(connection, name, None, 200)
    row = start.version if start else None
    waiting = next((v for v in versions if v.state == "candidate" and row and v.parent == row.id), None)
    return Outlook(row, job, unlearned(found.runs, row), len(found.runs), found.rated, found.withheld, waiting)


async def contents(database: Database, tenant: UUID, version: UUID) -> Contents:
    """A version's text and how it differs from the one that it comes from. Raises NotFound, and InvalidInput for
    weights."""
    row = await policies.one(database, tenant, version)
    if row.kind != policies.PROMPTS:
        raise InvalidInput("policy_id", f"{row.label} has weights and no text", "Name a prompt library's version.")
    async with database.transaction(tenant) as connection:
        library = await prompt_library.read(connection, row.label)
        before = await policy_versions.by_id(connection, row.parent) if row.parent else None
        old = await prompt_library.read(connection, before.label) if before else Library()
    new_cases = tuple(case for case in library.cases if case not in old.cases)
    lost = sum(case not in library.cases for case in old.cases)
    return Contents(Stored(row, library), before, changes(old, library), new_cases, lost)


def changes(before: Library, after: Library) -> tuple[Change, ...]:
    """Experiences that differ, in order of their number."""
    old, new = _by_id(before), _by_id(after)
    found: list[Change] = []
    for id in sorted(old.keys() | new.keys(), key=lambda id: int(id[1:])):
        was, now = old.get(id), new.get(id)
        if was is None or now is None:
            found.append(Change("removed" if now is None else "added", was, now))
        elif was.text != now.text:
            found.append(Change("changed", was, now))
    return tuple(found)


def _by_id(library: Library) -> Mapping[str, Experience]:
    return {one.id: one for one in library.experiences}


def _check(wanted: Wanted) -> None:
    prompt_library.check_name(wanted.name)
    _check_engine("engine", wanted.engine)
    if not 1 <= wanted.groups <= MOST_GROUPS:
        raise InvalidInput("groups", f"{wanted.groups} is out of range", f"Use 1 to {MOST_GROUPS}.")
    if wanted.usd is not None and not 0 <= wanted.usd <= 100_000:
        raise InvalidInput("usd", f"{wanted.usd} is out of range", "Use 0 to 100000.")


def _check_engine(field: str, choice: EngineChoice) -> None:
    if choice.engine not in ENGINES:
        raise InvalidInput(field, f"there is no engine {choice.engine!r}", f"Use one of: {', '.join(ENGINES)}.")
    check_engine(field, choice)
    if choice.library:
        raise InvalidInput(f"{field}.library", "the library is the one that is learned for", "Leave it out.")
