"""`offing evaluate`: compare configurations on the questions of a dataset, and show stored experiments."""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, replace
from hashlib import sha256
from pathlib import Path
from typing import Any
from uuid import UUID

import orjson
from rich.console import Console
from rich.table import Table

from offing.bus.notifier import BusNotifier
from offing.cli.evaluation_plan import EvaluationPlan, build_configurations, build_scorers, read_plan
from offing.cli.hooks import build_hooks
from offing.cli.id_suffix import select_match
from offing.cli.options import ComparisonOptions
from offing.cli.rollouts import ingest_dataset, load_versions
from offing.cli.show import run_with_database
from offing.cli.stack import load_graphs, with_graph_paths
from offing.cli.terminal import ProgressPrinter, print_json, strip_control
from offing.core.judge_budget import JudgeBudget
from offing.core.model import EngineConfig, describe_engine
from offing.datasets.dataset import Dataset, open_dataset
from offing.local.servers import ServerUrls
from offing.local.stack import count_worker_processes, open_stack
from offing.mcp.server_registry import McpServerRegistry
from offing.models.engine_discovery import default_engine_config, parse_engine_config
from offing.sdk import Graph
from offing.services import experiment_judging, experiments, tasks
from offing.services.experiment_formats import (
    build_blocks,
    describe_experiment,
    render_csv,
    render_markdown,
    render_text,
)
from offing.services.experiments import Configuration, Experiment, ExperimentRequest, ExperimentResults
from offing.settings import Settings, load_settings
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Database
from offing.tools.environment import TaskSample, find_spec

DEFAULT_ENVIRONMENT_QUESTIONS = 100
"""Number of questions of an environment if `--max-questions` is not given."""

POLL_SECONDS = 0.5

MAX_SEARCHED_EXPERIMENTS = 200
"""Number of latest experiments that are searched for the end of an id."""

BeginExperiment = Callable[[Database], Awaitable[Experiment]]
"""Creates or finds the experiment to carry out."""


def evaluate(options: ComparisonOptions) -> int:
    """Run the command and return its exit code."""
    settings, progress = with_graph_paths(load_settings(), options.paths), ProgressPrinter(sys.stderr)
    plan, graphs = read_plan(options), load_graphs(settings)
    configurations, judge = build_configurations(plan, graphs), _parse_judge(plan)
    dataset = _load_dataset(plan)

    async def begin(database: Database) -> Experiment:
        task_ids = await ingest_dataset(database, dataset, "", settings, progress)
        request = _build_request(plan, dataset, task_ids, configurations, judge)
        return await experiments.create_experiment(
            database,
            LOCAL_TENANT,
            request,
            graphs=graphs,
            default_engine=default_engine_config(),
            again=options.again,
        )

    return _measure(begin, plan.judge_budget.to_budget(), settings, graphs, progress, options.as_json)


def resume(experiment_text: str, paths: Sequence[Path], as_json: bool) -> int:
    settings, progress = with_graph_paths(load_settings(), paths), ProgressPrinter(sys.stderr)

    async def begin(database: Database) -> Experiment:
        return await find_experiment(database, experiment_text)

    return _measure(begin, None, settings, load_graphs(settings), progress, as_json)


def list_experiments(limit: int, as_json: bool) -> int:
    page, _ = run_with_database(lambda database: experiments.list_experiments(database, LOCAL_TENANT, None, limit))
    if as_json:
        return print_json([_render_experiment(one) for one in page])
    table = Table("experiment", "created", "name", "dataset", "configurations", "state", box=None)
    for one in page:
        row = one.row
        created, state = f"{row.created_at:%Y-%m-%d %H:%M}", "complete" if row.completed_at else "not complete"
        names = strip_control(", ".join(one.names))
        table.add_row(str(row.id)[-8:], created, strip_control(row.name), strip_control(row.dataset), names, state)
    Console().print(table)
    return 0


def export(experiment_text: str, format: str, output: Path | None) -> int:
    async def work(database: Database) -> ExperimentResults:
        experiment = await find_experiment(database, experiment_text)
        return await experiments.load_results(database, LOCAL_TENANT, experiment.row.id)

    return _write_results(run_with_database(work), format, output)


def _measure(
    begin: BeginExperiment,
    judge_budget: JudgeBudget | None,
    settings: Settings,
    graphs: Mapping[str, Graph],
    progress: ProgressPrinter,
    as_json: bool,
) -> int:
    """Carry out an experiment on a stack, print its results, and return the exit code.

    `judge_budget` of `None` means that which is stored.
    """
    workers = count_worker_processes(settings)
    with progress, open_stack(settings, build_hooks(), say=progress.show_status, worker_count=workers) as servers:
        results = asyncio.run(_work(begin, judge_budget, servers, settings, graphs, progress))
    return _write_results(results, "json" if as_json else "text", None)


async def _work(
    begin: BeginExperiment,
    judge_budget: JudgeBudget | None,
    servers: ServerUrls,
    settings: Settings,
    graphs: Mapping[str, Graph],
    progress: ProgressPrinter,
) -> ExperimentResults:
    """Create or find the experiment, carry out what is missing, and return everything that was measured."""
    async with Database(servers.app_url, max_connections=8) as database, BusNotifier(servers.redis_url) as notifier:
        experiment = await begin(database)
        id = experiment.row.id
        progress.print_line(f"experiment {id}; after an interruption, repeat the command to continue")
        if experiment.row.completed_at is None:
            for one in experiment.configurations:
                engines = {role: EngineConfig.model_validate(choice) for role, choice in one.engines.items()}
                await load_versions(database, engines, servers, settings)
            await experiments.start_batches(
                database,
                notifier,
                LOCAL_TENANT,
                experiment,
                graphs=graphs,
                judge_budget=judge_budget,
                slice_max_turns=settings.slice_max_turns,
                servers=McpServerRegistry(settings.mcp_config),
            )
            await _follow_batches(database, experiment, progress)
            await experiments.store_results(database, LOCAL_TENANT, id)
            await experiment_judging.judge_reports(
                database,
                LOCAL_TENANT,
                experiment,
                lambda done, total: progress.show_status(f"judged {done} of {total} comparisons"),
            )
            await experiments.complete_experiment(database, LOCAL_TENANT, id)
        else:
            progress.print_line("this experiment is complete; use --again to measure again")
        return await experiments.load_results(database, LOCAL_TENANT, id)


async def _follow_batches(database: Database, experiment: Experiment, progress: ProgressPrinter) -> None:
    """Show the progress until all rollouts have ended."""
    shown_line = ""
    while True:
        statuses = await experiments.list_batch_statuses(database, LOCAL_TENANT, experiment)
        ended = [(s.progress.complete + s.progress.incomplete, s.batch.group_count) for s in statuses]
        parts = [f"{name} {done} of {total}" for name, (done, total) in zip(experiment.names, ended, strict=True)]
        if (line := f"questions answered: {' · '.join(parts)}") != shown_line:
            progress.show_status(shown_line := line)
        if all(done == total for done, total in ended):
            return
        await asyncio.sleep(POLL_SECONDS)


def _load_dataset(plan: EvaluationPlan) -> Dataset:
    if (spec := find_spec(plan.dataset)) is not None:
        count = plan.max_questions or DEFAULT_ENVIRONMENT_QUESTIONS
        return Dataset(plan.dataset, tuple(tasks.sample_tasks(TaskSample(spec, count, seed=plan.seed))))
    dataset = open_dataset(Path(plan.dataset))
    if plan.max_questions is None or plan.max_questions >= len(dataset.tasks):
        return dataset
    ranked = sorted(range(len(dataset.tasks)), key=lambda n: _rank(tasks.hash_task(dataset.tasks[n]), plan.seed))
    chosen = sorted(ranked[: plan.max_questions])
    return replace(dataset, tasks=tuple(dataset.tasks[n] for n in chosen))


def _rank(content: str, seed: int) -> str:
    """Return a key that orders tasks at random, always in the same way for a seed."""
    return sha256(f"{seed} {content}".encode()).hexdigest()


def _parse_judge(plan: EvaluationPlan) -> EngineConfig | None:
    return None if plan.judge is None else parse_engine_config(plan.judge, "--judge")


def _build_request(
    plan: EvaluationPlan,
    dataset: Dataset,
    task_ids: Sequence[UUID],
    configurations: Sequence[Configuration],
    judge: EngineConfig | None,
) -> ExperimentRequest:
    return ExperimentRequest(
        dataset=dataset.name,
        task_ids=task_ids,
        configurations=configurations,
        scorers=build_scorers(plan),
        judge=judge,
        judge_budget=plan.judge_budget.to_budget(),
        seed=plan.seed,
        name=plan.name,
    )


async def find_experiment(database: Database, text: str) -> Experiment:
    """Return the experiment with this id or with these last characters."""
    page, _ = await experiments.list_experiments(database, LOCAL_TENANT, None, MAX_SEARCHED_EXPERIMENTS)
    matches = [one for one in page if str(one.row.id).endswith(text)]
    return select_match("experiment", "experiments", text, matches)


def _write_results(results: ExperimentResults, format: str, output: Path | None) -> int:
    text = _render_results(results, format)
    if output is None:
        sys.stdout.write(text)
    else:
        output.write_text(text, "utf-8")
    return 0


def _render_results(results: ExperimentResults, format: str) -> str:
    experiment = results.experiment
    if format == "csv":
        return render_csv(experiment.names, list(experiment.weights), results.tasks, results.results)
    summary = results.summarize()
    if format == "json":
        plain = {**_render_experiment(experiment), "summary": asdict(summary), "questions": _render_questions(results)}
        return orjson.dumps(plain, default=str, option=orjson.OPT_INDENT_2).decode() + "\n"
    judge = experiment.row.judge
    judge_name = "" if judge is None else describe_engine(EngineConfig.model_validate(judge))
    blocks = build_blocks(experiment.names, summary, judge_name)
    heading = describe_experiment(experiment.row, experiment.configurations, len(results.tasks))
    return render_markdown(heading, blocks) if format == "md" else render_text(heading, blocks)


def _render_experiment(experiment: Experiment) -> dict[str, Any]:
    configurations = [
        {name: value for name, value in asdict(one).items() if name != "experiment_id"}
        for one in experiment.configurations
    ]
    return {**asdict(experiment.row), "configurations": configurations}


def _render_questions(results: ExperimentResults) -> list[dict[str, Any]]:
    """Return each question with its results and judgments."""
    rows = sorted(results.results, key=lambda row: row.number)
    return [
        asdict(task)
        | {
            "results": [asdict(row) for row in rows if row.task_id == task.id],
            "judgments": [asdict(row) for row in results.judgments if row.task_id == task.id],
        }
        for task in results.tasks
    ]
