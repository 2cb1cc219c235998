"""Preview, create and read distillations of prompt libraries from rated runs.

Workers run the jobs. The input of a job is fixed when it is created: runs with the ratings that they have by then.
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
from offing.core.model import EngineConfig
from offing.core.prompt_library import Case, Experience, PromptLibrary
from offing.models.engine import ENGINES
from offing.sdk import Graph
from offing.services import graphs as graph_registry
from offing.services import policies, promotion, prompt_library, tasks
from offing.services.engine_configs import check_engine
from offing.services.prompt_library import StoredPromptLibrary
from offing.services.rated_run_groups import RatedRunGroup, group_rated_runs
from offing.storage import policy_versions, rated_runs, tenants, training_events, training_jobs
from offing.storage.policy_versions import PolicyVersionRow
from offing.storage.pool import Database
from offing.storage.rated_runs import RatedRun
from offing.storage.training_jobs import TrainingJobRow

JOB_KIND = "prompt_library"
"""Kind of a distillation job."""

MAX_RUNS = 5_000
"""Maximum number of rated runs that are considered, newest first."""

MAX_GROUPS = 10_000

MAX_CONFIG_BYTES = 64_000
"""Maximum bytes of the configuration as JSON."""


MAX_TASKS, MAX_ROLLOUTS_PER_TASK = 200, 8
"""Limits of the promotion gate of a distillation."""


@dataclass(frozen=True, slots=True)
class GateConfig:
    """How a candidate is measured against the active version once it is registered."""

    dataset: str
    engine: EngineConfig
    """The engine that reads the library and answers every role of the graph."""
    graph: str = "agentflow"
    role: str = "planner"
    """The role whose prompt shows the library."""
    tasks: tuple[UUID, ...] = ()
    """Tasks of the dataset. `create_job` fills them in."""
    max_tasks: int = 50
    """Maximum number of tasks."""
    rollouts_per_task: int = 1
    """Rollouts per task."""
    max_turns: int = 12
    max_run_cost_usd: float | None = None
    """Maximum cost of one run in USD. `None` means that only the tenant's daily spending limit applies."""


@dataclass(frozen=True, slots=True)
class DistillationRequest:
    """What to distill from, and how."""

    name: str
    """Name of the prompt library."""
    engine: EngineConfig
    """The engine that compares runs."""
    graph: str | None = None
    tag: str | None = None
    """Only rollouts of batches with this tag. `None` means any."""
    max_groups: int = 50
    """Maximum number of groups to compare."""
    include_cases: bool = True
    """Whether runs are also stored as cases."""
    max_cost_usd: float | None = None
    """Maximum cost of all comparisons together in USD. `None` means that only the tenant's daily spending limit
    applies.
    """
    gate: GateConfig | None = None
    """How to evaluate the candidate. `None` means that it is only registered."""


@dataclass(frozen=True, slots=True)
class RatedRuns:
    """Rated runs that may be used, and the number that may not because the tenant has not opted in."""

    runs: Sequence[RatedRun]
    rated_count: int
    """Number of interactive runs among `runs`. The others are rollouts with scores."""
    withheld_count: int


@dataclass(frozen=True, slots=True)
class DistillationPreview:
    """What a distillation job that is created now would use."""

    start: PolicyVersionRow | None
    """The version to distill from. `None` means that the name is new."""
    job: TrainingJobRow | None
    """The job that is already distilling this library."""
    new_groups: Sequence[RatedRunGroup]
    """Groups that `start` was not distilled from."""
    run_count: int
    """Number of rated runs and scored rollouts together."""
    rated_count: int
    """Number of interactive runs among them."""
    withheld_count: int
    waiting_candidate: PolicyVersionRow | None
    """The newest candidate that was distilled from `start`. `None` means that there is none."""


@dataclass(frozen=True, slots=True)
class ExperienceChange:
    """How an experience differs from the previous version."""

    kind: str
    """`added`, `changed` or `removed`."""
    before: Experience | None
    after: Experience | None


@dataclass(frozen=True, slots=True)
class PromptLibraryContents:
    """A version of a prompt library with its changes."""

    stored: StoredPromptLibrary
    previous_version: PolicyVersionRow | None
    """The version that it was derived from. `None` means that it is the first of its name."""
    changes: tuple[ExperienceChange, ...]
    new_cases: tuple[Case, ...]
    removed_case_count: int
    """Number of cases of the previous version that this one no longer has."""


async def create_job(
    database: Database, tenant_id: UUID, request: DistillationRequest, graphs: Mapping[str, Graph] | None = None
) -> tuple[TrainingJobRow, bool]:
    """Queue a distillation job. Returns the job and whether it is new.

    Until the job has ended, the same request returns the same job. Raises InvalidInput if there is nothing to
    distill from, and Conflict if the name is that of weights or another job is distilling this library.
    """
    _check_request(request)
    if request.gate is not None:
        request = replace(request, gate=await _check_gate(database, tenant_id, request.gate, graphs or {}))
    config = serialize_request(request)
    body = orjson.dumps(config, option=orjson.OPT_SORT_KEYS)
    if len(body) > MAX_CONFIG_BYTES:
        raise InvalidInput(
            "engine", f"the request has more than {MAX_CONFIG_BYTES} bytes", "Shorten the options of the engine."
        )
    await prompt_library.find_latest_library(database, tenant_id, request.name)
    rated = await list_distillable_runs(database, tenant_id, request.graph, request.tag)
    digest = hashlib.sha256(body).hexdigest()
    async with database.transaction(tenant_id) as connection:
        earlier = await training_jobs.find_distillation_job(connection, request.name)
        if earlier is not None and earlier.config_sha256 == digest:
            return earlier, False
        job = await training_jobs.insert_job(
            connection,
            tenant_id,
            new_id(),
            kind=JOB_KIND,
            name=request.name,
            config=config,
            config_sha256=digest,
            seed=0,
        )
        counts = {"runs": len(rated.runs), "rated_runs": rated.rated_count}
        await training_events.insert_event(connection, tenant_id, "created", counts, job_id=job.id)
    return job, True


def serialize_request(request: DistillationRequest) -> dict[str, Any]:
    """Return the form of the request that the job stores."""
    fields: dict[str, Any] = {
        "graph": request.graph,
        "tag": request.tag,
        "max_groups": request.max_groups,
        "include_cases": request.include_cases,
    }
    gate = request.gate
    if gate is not None:
        tasks = [str(task) for task in gate.tasks]
        fields["gate"] = asdict(gate) | {"tasks": tasks, "engine": gate.engine.model_dump(mode="json")}
    return fields | {"max_cost_usd": request.max_cost_usd, "engine": request.engine.model_dump(mode="json")}


def parse_request(job: TrainingJobRow) -> DistillationRequest:
    """Return the request that a job was created for."""
    config = job.config
    choice = EngineConfig.model_validate(config["engine"])
    gate = _parse_gate(config["gate"]) if config.get("gate") else None
    return DistillationRequest(
        job.name,
        choice,
        config["graph"],
        config["tag"],
        config["max_groups"],
        config["include_cases"],
        config["max_cost_usd"],
        gate,
    )


def _parse_gate(stored: Mapping[str, Any]) -> GateConfig:
    values = dict(stored)
    values["engine"] = EngineConfig.model_validate(stored["engine"])
    values["tasks"] = tuple(map(UUID, stored["tasks"]))
    return GateConfig(**values)


async def _check_gate(database: Database, tenant_id: UUID, gate: GateConfig, graphs: Mapping[str, Graph]) -> GateConfig:
    """Return the gate configuration with its tasks.

    Raises InvalidInput for one that could not be measured later.
    """
    graph = graph_registry.get_graph(graphs, gate.graph)
    if gate.role not in (names := [role.name for role in graph.roles]):
        raise InvalidInput("gate.role", f"{graph.name} has no role {gate.role!r}", f"Use one of: {', '.join(names)}.")
    _check_engine("gate.engine", gate.engine)
    if gate.engine.engine in policies.PROMPTLESS_ENGINES:
        remedy = "Use one, such as litellm:openai/gpt-5-mini."
        raise InvalidInput("gate.engine", "a prompt library needs a language model to read it", remedy)
    try:
        task_ids = await tasks.list_dataset_task_ids(database, tenant_id, gate.dataset, min(gate.max_tasks, MAX_TASKS))
    except InvalidInput as error:
        raise InvalidInput("gate.dataset", error.problem, error.remedy) from error
    return replace(gate, tasks=tuple(task_ids))


async def list_distillable_runs(
    database: Database, tenant_id: UUID, graph: str | None, tag: str | None, until: datetime | None = None
) -> RatedRuns:
    """Return rated runs as `list_rated_runs` does. Raises InvalidInput if none of them may be used."""
    runs = await list_rated_runs(database, tenant_id, graph, tag, until)
    if runs.withheld_count and not runs.runs:
        problem = f"{runs.withheld_count} rated runs are interactive runs, and `training_opt_in` is off"
        raise InvalidInput("training_opt_in", problem, "Turn it on in the settings, or collect rollouts.")
    if not runs.runs:
        raise InvalidInput(
            "runs", "no run is rated", "Rate reports, or collect scored rollouts with `offing rollouts collect`."
        )
    return runs


async def list_rated_runs(
    database: Database, tenant_id: UUID, graph: str | None, tag: str | None, until: datetime | None = None
) -> RatedRuns:
    """Return scored rollouts, and rated interactive runs if the tenant has opted in."""
    async with database.transaction(tenant_id) as connection:
        opted_in = (await tenants.get_tenant(connection, tenant_id)).training_opt_in
        rollouts = await rated_runs.list_rated_rollouts(connection, graph, tag, MAX_RUNS, until)
        interactive_runs = (
            [] if tag else await rated_runs.list_rated_interactive_runs(connection, graph, MAX_RUNS, until)
        )
    if opted_in:
        return RatedRuns([*rollouts, *interactive_runs], rated_count=len(interactive_runs), withheld_count=0)
    return RatedRuns(rollouts, rated_count=0, withheld_count=len(interactive_runs))


def filter_new_groups(runs: Sequence[RatedRun], start: PolicyVersionRow | None) -> list[RatedRunGroup]:
    """Return the groups, with their current ratings, that a version was not distilled from."""
    used_digests = frozenset(start.lineage.get("used_groups", ())) if start else frozenset[str]()
    return [group for group in group_rated_runs(runs) if group.digest not in used_digests]


async def open_start_version(database: Database, tenant_id: UUID, name: str, folder: Path) -> StoredPromptLibrary:
    """Return the version to distill from. A new name gets an empty version, which becomes active."""
    latest = await prompt_library.find_latest_library(database, tenant_id, name)
    if latest is None:
        row, _ = await prompt_library.register_library(database, tenant_id, name, PromptLibrary(), folder)
        latest = StoredPromptLibrary(row, PromptLibrary())
    if latest.version.version == 1 and latest.version.state == "candidate" and latest.library == PromptLibrary():
        row, _ = await promotion.promote(database, tenant_id, latest.version.label)
        return StoredPromptLibrary(row, latest.library)
    return latest


async def preview_distillation(database: Database, tenant_id: UUID, name: str) -> DistillationPreview:
    """Return what a distillation of this library would use.

    Raises InvalidInput for an invalid name, and Conflict if the name is that of weights.
    """
    prompt_library.check_name(name)
    start = await prompt_library.find_latest_library(database, tenant_id, name)
    runs = await list_rated_runs(database, tenant_id, None, None)
    async with database.transaction(tenant_id) as connection:
        job = await training_jobs.find_distillation_job(connection, name)
        versions = await policy_versions.list_versions(connection, name, None, 200)
    row = start.version if start else None
    waiting = next((v for v in versions if v.state == "candidate" and row and v.parent_id == row.id), None)
    return DistillationPreview(
        row, job, filter_new_groups(runs.runs, row), len(runs.runs), runs.rated_count, runs.withheld_count, waiting
    )


async def get_contents(database: Database, tenant_id: UUID, version_id: UUID) -> PromptLibraryContents:
    """Return the text of a version and how it differs from the version it was derived from.

    Raises NotFound, and InvalidInput for weights.
    """
    row = await policies.get_version(database, tenant_id, version_id)
    if row.kind != policies.PROMPT_LIBRARY_KIND:
        raise InvalidInput("policy_id", f"{row.label} contains weights, not text", "Use a version of a prompt library.")
    async with database.transaction(tenant_id) as connection:
        library = await prompt_library.read_library(connection, row.label)
        before = await policy_versions.get_version(connection, row.parent_id) if row.parent_id else None
        old = await prompt_library.read_library(connection, before.label) if before else PromptLibrary()
    new_cases = tuple(case for case in library.cases if case not in old.cases)
    removed_case_count = sum(case not in library.cases for case in old.cases)
    return PromptLibraryContents(
        StoredPromptLibrary(row, library), before, diff_experiences(old, library), new_cases, removed_case_count
    )


def diff_experiences(previous: PromptLibrary, current: PromptLibrary) -> tuple[ExperienceChange, ...]:
    """Return the experiences that differ, in order of their number."""
    old, new = _index_experiences(previous), _index_experiences(current)
    changes: list[ExperienceChange] = []
    for id in sorted(old.keys() | new.keys(), key=lambda id: int(id[1:])):
        was, now = old.get(id), new.get(id)
        if was is None or now is None:
            changes.append(ExperienceChange("removed" if now is None else "added", was, now))
        elif was.text != now.text:
            changes.append(ExperienceChange("changed", was, now))
    return tuple(changes)


def _index_experiences(library: PromptLibrary) -> Mapping[str, Experience]:
    return {one.id: one for one in library.experiences}


def _check_request(request: DistillationRequest) -> None:
    prompt_library.check_name(request.name)
    _check_engine("engine", request.engine)
    if not 1 <= request.max_groups <= MAX_GROUPS:
        raise InvalidInput("max_groups", f"{request.max_groups} is out of range", f"Use 1 to {MAX_GROUPS}.")
    if request.max_cost_usd is not None and not 0 <= request.max_cost_usd <= 100_000:
        raise InvalidInput("max_cost_usd", f"{request.max_cost_usd} is out of range", "Use 0 to 100000.")


def _check_engine(field: str, engine_config: EngineConfig) -> None:
    if engine_config.engine not in ENGINES:
        raise InvalidInput(field, f"there is no engine {engine_config.engine!r}", f"Use one of: {', '.join(ENGINES)}.")
    check_engine(field, engine_config)
    if engine_config.prompt_library:
        raise InvalidInput(
            f"{field}.prompt_library",
            "is not allowed, because this engine works for the prompt library itself",
            "Leave it out.",
        )
