"""Experiments: several configurations answer the same tasks, and their results are compared.

An experiment is pinned when it is created. It can be interrupted at any moment: each configuration has one rollout
batch with its own idempotency key, results are stored once, and a stored verdict of a judge is never requested again.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any
from uuid import UUID

import orjson

from offing.bus.notifier import RunNotifier
from offing.clock import new_id
from offing.core.errors import Conflict, InvalidInput
from offing.core.judge_budget import NO_JUDGE_LIMIT, JudgeBudget
from offing.core.model import EngineConfig, engine_to_json
from offing.core.run import Budget
from offing.core.scoring import Reference, exact_match, strip_markup
from offing.core.trajectory import Outcome
from offing.mcp.server_registry import McpServerRegistry
from offing.scorers import SCORERS
from offing.scorers.judge import check_judge_engine
from offing.sdk import Graph
from offing.services import graphs as graph_registry
from offing.services import policies, policy_files, providers, rollouts
from offing.services.engine_configs import choose_engines
from offing.services.experiment_summary import ExperimentSummary, summarize
from offing.services.rollouts import EVALUATION_TAG, BatchRequest, BatchStatus, ScorerSpec
from offing.storage import experiments, rewards, tasks
from offing.storage.experiments import (
    ConfigurationRow,
    EndedRollout,
    ExperimentRow,
    ExperimentTaskRow,
    JudgmentRow,
    NewConfiguration,
    ResultRow,
)
from offing.storage.pool import Connection, Database
from offing.storage.runs import budget_to_json, parse_budget

ANSWER_METRICS = ("exact_match", "token_f1")
"""Default scorers that read only the short answer."""

DEFAULT_METRICS = (
    *(*ANSWER_METRICS, "citation_recall", "citation_precision", "retrieval_recall", "retrieval_ndcg"),
    "number_agreement",
)
"""Scorers that are used if none is named, in order: those that at least one task permits."""

RUBRIC_METRIC = "report_rubric"
"""Scorer that is used in addition if tasks have a rubric and there is a judge."""

MAX_CONFIGURATIONS = 10


@dataclass(frozen=True, slots=True)
class Configuration:
    """How the questions are answered."""

    name: str
    graph: str = "agentflow"
    engines: Mapping[str, EngineConfig] = field(default_factory=dict[str, EngineConfig])
    """Engine configs by role. A policy is `policy:NAME@VERSION`."""
    budget: Budget = field(default_factory=Budget)
    scope: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Fields that are added to the scope of each task, such as `web`."""


@dataclass(frozen=True, slots=True)
class ExperimentRequest:
    """A request to compare configurations."""

    dataset: str
    task_ids: Sequence[UUID]
    configurations: Sequence[Configuration]
    """The others are compared with the first one."""
    scorers: Sequence[ScorerSpec] | None = None
    """`None` means all of `DEFAULT_METRICS` that the tasks permit. The first one has the weight 1, the others 0."""
    judge: EngineConfig | None = None
    """Engine that compares reports. `None` means that they are not compared."""
    judge_budget: JudgeBudget = NO_JUDGE_LIMIT
    """What judges may use for each configuration: those among the scorers, and the comparisons of its reports with
    those of the first one. It is stored with the batch of the configuration, when its rollouts are requested.
    """
    seed: int = 0
    name: str = ""


@dataclass(frozen=True, slots=True)
class Experiment:
    """An experiment with its configurations."""

    row: ExperimentRow
    configurations: list[ConfigurationRow]

    @property
    def names(self) -> list[str]:
        return [one.name for one in self.configurations]

    @property
    def weights(self) -> dict[str, float]:
        """Weights of the scorers, by name."""
        return {scorer["name"]: scorer["weight"] for scorer in self.row.scorers}


@dataclass(frozen=True, slots=True)
class ExperimentResults:
    """A complete experiment with everything that was measured."""

    experiment: Experiment
    tasks: list[ExperimentTaskRow]
    results: list[ResultRow]
    judgments: list[JudgmentRow]

    def summarize(self) -> ExperimentSummary:
        """Return means, differences and verdicts. This is CPU-bound."""
        unanswerable = {task.id: task.is_unanswerable for task in self.tasks}
        judgments = self.judgments if self.experiment.row.judge is not None else None
        return summarize(self.experiment.names, unanswerable, self.experiment.weights, self.results, judgments)


async def create_experiment(
    database: Database,
    tenant_id: UUID,
    request: ExperimentRequest,
    *,
    graphs: Mapping[str, Graph],
    default_engine: EngineConfig | None = None,
    again: bool = False,
) -> Experiment:
    """Create an experiment, or return the one that the same request created before.

    The same request has the same tasks, scorers and pinned versions. With `again`, a complete experiment is not
    returned; a new one is created. Raises InvalidInput.
    """
    task_ids = list(dict.fromkeys(request.task_ids))
    _check_request(request, task_ids)
    async with database.transaction(tenant_id) as connection:
        references = await tasks.get_references(connection, task_ids)
        has_library = any("environment" not in task.scope for task in await tasks.get_tasks(connection, task_ids))
        scorers = _choose_scorers(request, [references.get(task) for task in task_ids], has_library)
        pinned = [
            await _pin_configuration(connection, one, graphs, default_engine or EngineConfig())
            for one in request.configurations
        ]
        digest = _hash_pinned(request, task_ids, scorers, pinned)
        await experiments.lock_request(connection, digest)
        earlier = await experiments.find_latest(connection, digest)
        if earlier is None or (again and earlier.completed_at is not None):
            id = new_id()
            new = {
                "id": id,
                "name": request.name,
                "dataset": request.dataset,
                "seed": request.seed,
                "scorers": scorers,
                "judge": None if request.judge is None else engine_to_json(request.judge),
                "sha256": digest,
            }
            await experiments.insert_experiment(connection, tenant_id, new, task_ids, pinned)
            return await _read_experiment(connection, id)
        return await _read_experiment(connection, earlier.id)


async def start_batches(
    database: Database,
    notifier: RunNotifier,
    tenant_id: UUID,
    experiment: Experiment,
    *,
    graphs: Mapping[str, Graph],
    judge_budget: JudgeBudget | None = None,
    slice_max_turns: int = 64,
    servers: McpServerRegistry | None = None,
) -> list[UUID]:
    """Request the rollouts of all configurations, and return the ids of their batches. It may be repeated.

    A batch that exists keeps its judge budget. `judge_budget` is that of the request; `None` means that of a batch
    which exists. Raises Conflict if there is none and judges are needed, if a graph has changed since the experiment
    was created, and for a policy version whose files are damaged.
    """
    async with database.transaction(tenant_id) as connection:
        task_ids = [task.id for task in await experiments.list_tasks(connection, experiment.row.id)]
    if judge_budget is None:
        judge_budget = await _find_judge_budget(database, tenant_id, experiment)
    batch_ids = list[UUID]()
    for one in experiment.configurations:
        _check_graph(one, graphs)
        await _check_files(database, tenant_id, one)
        request = _build_batch_request(experiment.row, one, task_ids, judge_budget)
        created = await rollouts.create_batch(
            database, notifier, tenant_id, request, graphs=graphs, slice_max_turns=slice_max_turns, servers=servers
        )
        async with database.transaction(tenant_id) as connection:
            await experiments.set_batch(connection, experiment.row.id, one.number, created.batch.id)
        batch_ids.append(created.batch.id)
    return batch_ids


async def _find_judge_budget(database: Database, tenant_id: UUID, experiment: Experiment) -> JudgeBudget:
    """Return the judge budget of an experiment from its batches, which all have the same one."""
    statuses = await list_batch_statuses(database, tenant_id, experiment)
    if statuses:
        return statuses[0].batch.judge_budget
    if experiment.row.judge is None and not any("engine" in one["options"] for one in experiment.row.scorers):
        return NO_JUDGE_LIMIT
    problem = f"No rollout of the experiment {experiment.row.id} was requested, so its judge budget is not stored."
    raise Conflict(problem, "Run the same `offing evaluate` command again, which continues the experiment.")


async def list_batch_statuses(database: Database, tenant_id: UUID, experiment: Experiment) -> list[BatchStatus]:
    """Return the batches of the configurations whose rollouts were requested, in order."""
    async with database.transaction(tenant_id) as connection:
        rows = await experiments.list_configurations(connection, [experiment.row.id])
    return [await rollouts.get_batch(database, tenant_id, one.batch_id) for one in rows if one.batch_id is not None]


async def store_results(database: Database, tenant_id: UUID, experiment_id: UUID) -> None:
    """Store the result of each task. It may be repeated.

    Raises Conflict if rollouts are still running, or were stopped because their judges had spent their budget.
    """
    async with database.transaction(tenant_id) as connection:
        rows = await experiments.list_configurations(connection, [experiment_id])
    for one in rows:
        if one.batch_id is None:
            raise Conflict(f"The rollouts of {one.name} were not requested.", "Run the same command again.")
        batch = await rollouts.get_batch(database, tenant_id, one.batch_id)
        if batch.progress.open or batch.progress.group_count < batch.batch.group_count:
            raise Conflict(f"Rollouts of {one.name} are still running.", "Wait until they have ended.")
        if batch.batch.stop_reason:
            raise build_budget_conflict(one.name)
        async with database.transaction(tenant_id) as connection:
            await _store_configuration_results(connection, tenant_id, one, one.batch_id)


def build_budget_conflict(configuration_name: str) -> Conflict:
    """Return the error of an experiment that cannot be completed, because judges had spent their budget."""
    problem = f"The judges of {configuration_name} have spent their budget."
    return Conflict(problem, "Evaluate again with a larger judge budget, which creates a new experiment.")


async def complete_experiment(database: Database, tenant_id: UUID, experiment_id: UUID) -> None:
    """Mark an experiment as complete, when its results and judgments are stored."""
    async with database.transaction(tenant_id) as connection:
        await experiments.complete(connection, experiment_id)


async def get_experiment(database: Database, tenant_id: UUID, experiment_id: UUID) -> Experiment:
    """Return an experiment. Raises NotFound."""
    async with database.transaction(tenant_id) as connection:
        return await _read_experiment(connection, experiment_id)


async def list_experiments(
    database: Database, tenant_id: UUID, before_id: UUID | None, limit: int
) -> tuple[list[Experiment], UUID | None]:
    """List experiments, newest first, with the start of the next page. `None` means that this is the last page."""
    async with database.transaction(tenant_id) as connection:
        rows = await experiments.list_experiments(connection, before_id, limit + 1)
        configurations = await experiments.list_configurations(connection, [row.id for row in rows[:limit]])
    page = [Experiment(row, [one for one in configurations if one.experiment_id == row.id]) for row in rows[:limit]]
    return page, rows[limit - 1].id if len(rows) > limit else None


async def load_results(database: Database, tenant_id: UUID, experiment_id: UUID) -> ExperimentResults:
    """Return everything that was measured. Raises NotFound, and Conflict for an experiment that is not complete."""
    async with database.transaction(tenant_id) as connection:
        return await read_results(connection, await read_complete_experiment(connection, experiment_id))


async def read_complete_experiment(connection: Connection, experiment_id: UUID) -> Experiment:
    """Return an experiment. Raises NotFound, and Conflict for an experiment that is not complete."""
    experiment = await _read_experiment(connection, experiment_id)
    if experiment.row.completed_at is None:
        raise Conflict(
            f"The experiment {experiment_id} is not complete.", f"Use `offing evaluate resume {experiment_id}`."
        )
    return experiment


async def _read_experiment(connection: Connection, experiment_id: UUID) -> Experiment:
    row = await experiments.get_experiment(connection, experiment_id)
    return Experiment(row, await experiments.list_configurations(connection, [experiment_id]))


async def read_results(connection: Connection, experiment: Experiment) -> ExperimentResults:
    """Return what has been measured so far."""
    id = experiment.row.id
    return ExperimentResults(
        experiment,
        await experiments.list_tasks(connection, id),
        await experiments.list_results(connection, id),
        await experiments.list_judgments(connection, id),
    )


def _check_request(request: ExperimentRequest, task_ids: Sequence[UUID]) -> None:
    names = [one.name for one in request.configurations]
    if not task_ids:
        raise InvalidInput("dataset", "there are no questions", "Use a dataset with at least one question.")
    if not 1 <= len(names) <= MAX_CONFIGURATIONS:
        raise InvalidInput("configurations", f"there are {len(names)}", f"Use 1 to {MAX_CONFIGURATIONS}.")
    for name in names:
        if not name.strip() or names.count(name) > 1:
            problem = f"the name {name!r} is used twice" if name.strip() else "a configuration has no name"
            raise InvalidInput("configurations", problem, "Give each configuration its own name.")
    if request.judge is not None:
        check_judge_engine(request.judge, "judge")
        if len(names) < 2:
            raise InvalidInput("judge", "there is nothing to compare", "Add a second configuration, or omit the judge.")


async def _check_files(database: Database, tenant_id: UUID, one: ConfigurationRow) -> None:
    """Check the files of the pinned policy versions, as before every evaluation."""
    for id in sorted(set(one.policy_version_ids.values())):
        await policy_files.check_files(database, tenant_id, await policies.get_version(database, tenant_id, UUID(id)))


def _choose_scorers(
    request: ExperimentRequest, references: Sequence[Reference | None], has_library: bool
) -> list[dict[str, Any]]:
    """Return the scorers to pin. Raises InvalidInput for a scorer that can score none of the tasks."""
    specs = (
        _list_default_scorers(request, references, has_library) if request.scorers is None else list(request.scorers)
    )
    names = [spec.name for spec in specs]
    if len(set(names)) < len(names):
        raise InvalidInput("scorers", "one is named twice", "Name each scorer once.")
    for spec in specs:
        scorer = SCORERS.get_named(spec.name, "scorers")
        scorer.check_options(spec.options)
        if spec.weight < 0:
            raise InvalidInput("scorers", f"the weight of {spec.name} is negative", "Use 0 or a positive weight.")
        if all(scorer.find_missing(reference) for reference in references):
            missing = scorer.find_missing(references[0])
            raise InvalidInput("scorers", f"{spec.name} can score no question: {missing}", "Choose other scorers.")
    return [{"name": spec.name, "weight": spec.weight, "options": dict(spec.options)} for spec in specs]


def _list_default_scorers(
    request: ExperimentRequest, references: Sequence[Reference | None], has_library: bool
) -> list[ScorerSpec]:
    """Return the scorers that at least one task permits. Runs in an environment cite nothing of the library."""
    names = DEFAULT_METRICS if has_library else ANSWER_METRICS
    usable = [name for name in names if name in SCORERS and _can_score(name, references)]
    specs = [ScorerSpec(name, float(n == 0)) for n, name in enumerate(usable)]
    if request.judge is not None and RUBRIC_METRIC in SCORERS and _can_score(RUBRIC_METRIC, references):
        specs.append(ScorerSpec(RUBRIC_METRIC, float(not specs), {"engine": engine_to_json(request.judge)}))
    if not specs and request.judge is None:
        remedy = "Add answers to the dataset, or compare the reports with a judge."
        raise InvalidInput("dataset", "no question has an answer, evidence or a rubric to score with", remedy)
    return specs


def _can_score(name: str, references: Iterable[Reference | None]) -> bool:
    return any(not SCORERS[name].find_missing(reference) for reference in references)


async def _pin_configuration(
    connection: Connection, one: Configuration, graphs: Mapping[str, Graph], default_engine: EngineConfig
) -> NewConfiguration:
    graph = graph_registry.get_graph(graphs, one.graph)
    chosen = choose_engines(graph, one.engines, default_engine, await providers.list_stored(connection))
    key = UUID(hashlib.sha256(one.name.encode()).hexdigest()[:32])
    engines = await policies.resolve_versions(connection, chosen, key)
    versions = await policies.pin_versions(connection, engines)
    return NewConfiguration(
        name=one.name,
        graph=graph.name,
        graph_version=graph.version,
        engines={role: engine_to_json(choice) for role, choice in engines.items()},
        policy_version_ids={role: str(id) for role, id in versions.items()},
        budget=budget_to_json(one.budget),
        scope=dict(one.scope),
    )


def _hash_pinned(
    request: ExperimentRequest,
    task_ids: Sequence[UUID],
    scorers: Sequence[Mapping[str, Any]],
    pinned: Sequence[NewConfiguration],
) -> str:
    body: dict[str, Any] = {
        "name": request.name,
        "tasks": [str(id) for id in task_ids],
        "configurations": [asdict(one) for one in pinned],
        "scorers": [{**one, "version": SCORERS[one["name"]].version} for one in scorers],
        "judge": None if request.judge is None else engine_to_json(request.judge),
        "seed": request.seed,
    }
    if request.judge_budget.is_limited:
        body["judge_budget"] = [request.judge_budget.max_calls, str(request.judge_budget.max_cost_usd)]
    return hashlib.sha256(orjson.dumps(body, option=orjson.OPT_SORT_KEYS)).hexdigest()


def _check_graph(one: ConfigurationRow, graphs: Mapping[str, Graph]) -> None:
    graph = graph_registry.get_graph(graphs, one.graph)
    if graph.version != one.graph_version:
        problem = f"The graph {one.graph} of the configuration {one.name} has changed since the experiment was created."
        raise Conflict(problem, "Run the same command again to create a new experiment.")


def _build_batch_request(
    row: ExperimentRow, one: ConfigurationRow, task_ids: Sequence[UUID], judge_budget: JudgeBudget
) -> BatchRequest:
    return BatchRequest(
        graph=one.graph,
        task_ids=task_ids,
        group_size=1,
        engines={role: EngineConfig.model_validate(choice) for role, choice in one.engines.items()},
        scorers=[ScorerSpec(scorer["name"], scorer["weight"], scorer["options"]) for scorer in row.scorers],
        judge_budget=judge_budget,
        budget=parse_budget(one.budget),
        seed=row.seed,
        tags=(EVALUATION_TAG,),
        name=f"{one.name} on {row.dataset}",
        idempotency_key=f"experiment {row.id} {one.number}",
        scope=one.scope,
        omit_inapplicable_scorers=True,
    )


async def _store_configuration_results(
    connection: Connection, tenant_id: UUID, one: ConfigurationRow, batch_id: UUID
) -> None:
    ended = await experiments.list_ended_rollouts(connection, batch_id)
    scores: dict[UUID, dict[str, float | None]] = {}
    for score in await rewards.list_scores(connection, [row.run_id for row in ended]):
        scores.setdefault(score.run_id, {})[score.scorer] = score.value
    results = [_build_result(row, scores.get(row.run_id, {})) for row in ended]
    await experiments.insert_results(connection, tenant_id, one.experiment_id, one.number, results)


def _build_result(row: EndedRollout, scores: Mapping[str, float | None]) -> dict[str, Any]:
    answer = strip_markup(row.answer or "")
    abstained = row.outcome == Outcome.NO_ANSWER or not answer or exact_match(answer, ()) == 1.0
    return {
        "task_id": row.task_id,
        "run_id": row.run_id,
        "outcome": row.outcome,
        "has_abstained": abstained,
        "scores": scores,
        "turns": row.turns,
        "tokens": row.tokens,
        "cost_usd": str(row.cost_usd),
        "seconds": row.seconds,
    }
