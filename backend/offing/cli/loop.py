"""`offing loop`: the training loop with the servers, workers and policy engine that it needs."""

import asyncio
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import orjson
from cyclopts import Parameter

from offing.bus.notifier import BusNotifier
from offing.cli.hooks import build_hooks
from offing.cli.job_progress import JobProgress
from offing.cli.options import Json, Paths
from offing.cli.rollouts import ingest_dataset
from offing.cli.stack import load_graphs, with_graph_paths
from offing.cli.terminal import ProgressPrinter
from offing.cli.training_jobs import build_job_context, load_tables, require_torch
from offing.datasets.dataset import open_dataset
from offing.local.engine_process import get_policy_dir
from offing.local.servers import ServerUrls
from offing.local.stack import count_worker_processes, open_stack
from offing.mcp.server_registry import McpServerRegistry
from offing.models.credentials import EngineEndpoint
from offing.services import training_jobs
from offing.settings import Settings, load_settings
from offing.storage import policy_versions
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Database
from offing.storage.training_jobs import TrainingJobRow

if TYPE_CHECKING:
    from offing_trainer.job.job_runner import JobContext
    from offing_trainer.loop import LoopContext, LoopResult, VersionScore
    from offing_trainer.loop_config import LoopConfig, StartConfig

JOB_LABELS = {"train": "training on stored rollouts", "loop": "training"}

JobProgressCallback = Callable[[TrainingJobRow, str, Mapping[str, float]], None]

POLL_SECONDS = 0.5
"""Interval between checks whether another process has lost a job."""


def run_loop(
    config: Path,
    *,
    set: Annotated[tuple[str, ...], Parameter(negative="")] = (),
    path: Paths = (),
    json: Json = False,
) -> int:
    """Collect rollouts, train on them, evaluate and print the result.

    An interrupted loop continues when the command is repeated.

    Parameters
    ----------
    config
        A TOML file, such as deploy/loop.toml.
    set
        An entry that overrides the file, such as `train.steps=20`. The value is TOML, or text if it is
        not valid TOML.
    path
        A folder or a .py file with a graph that is not installed. Repeat the option for several.
    json
        Print only JSON on standard output.
    """
    require_torch()
    from offing_trainer.loop_config import parse_loop_config

    options, settings = (
        parse_loop_config(load_tables(config, set)),
        _with_policy_dir(with_graph_paths(load_settings(), path)),
    )
    progress = ProgressPrinter(sys.stderr)
    workers = count_worker_processes(settings)
    with progress, open_stack(settings, build_hooks(), say=progress.show_status, worker_count=workers) as servers:
        settings = settings.model_copy(update={"engine_url": servers.engine_url})
        result = asyncio.run(_run_loop(options, config.parent, servers, settings, progress))
    return print_result(result, json)


def _with_policy_dir(settings: Settings) -> Settings:
    """Return settings with an existing policy folder, so that the policy engine is started."""
    folder = get_policy_dir(settings)
    folder.mkdir(parents=True, exist_ok=True)
    return settings.model_copy(update={"policy_dir": folder})


async def _run_loop(
    config: "LoopConfig", folder: Path, servers: ServerUrls, settings: Settings, progress: ProgressPrinter
) -> "LoopResult":
    from offing_trainer.loop import run_training_loop_with_retry

    async with Database(servers.app_url, max_connections=4) as database, BusNotifier(servers.redis_url) as notifier:
        for path in config.datasets:
            dataset = await asyncio.to_thread(open_dataset, folder / path)
            await ingest_dataset(database, dataset, "", settings, progress)
        context = build_loop_context(
            database,
            notifier,
            settings,
            say=progress.show_status,
            report_progress=_progress_printer(progress),
            show_progress=progress.show_progress,
        )
        return await run_training_loop_with_retry(context, config)


def build_loop_context(
    database: Database,
    notifier: BusNotifier,
    settings: Settings,
    *,
    say: Callable[[str], None],
    report_progress: JobProgressCallback,
    show_progress: Callable[[str], None] = lambda text: None,
) -> "LoopContext":
    """Build the context of a training loop in this process.

    `settings` name the policy engine. `report_progress` is called with the progress of each job, and `show_progress`
    with text about rollouts that the loop waits for.
    """
    from offing_trainer.job.engine_deployment import ManagedEngine
    from offing_trainer.job.rollout_collector import RolloutCollector
    from offing_trainer.loop import LoopContext

    key = settings.engine_key

    async def needed(version: str) -> bool:
        async with database.transaction(LOCAL_TENANT) as connection:
            return await policy_versions.is_needed(connection, version)

    engine = ManagedEngine(EngineEndpoint(settings.engine_url or "", key.get_secret_value() if key else ""), needed)
    collector = RolloutCollector(
        database,
        notifier,
        load_graphs(settings),
        engine,
        settings.slice_max_turns,
        McpServerRegistry(settings.mcp_config),
    )
    job_context = replace(build_job_context(database, settings, report_progress), collect_groups=collector.collect_step)

    async def run(job_id: UUID) -> TrainingJobRow:
        return await _run_job(job_context, job_id, say)

    return LoopContext(LOCAL_TENANT, collector, run, job_context.policy_dir, _create_start_policy, say, show_progress)


async def _run_job(context: "JobContext", job_id: UUID, say: Callable[[str], None]) -> TrainingJobRow:
    """Run a job to its end. If another process runs it, wait until it has ended or its lease has expired."""
    from offing_trainer.job.process import run_one_job

    reported = False
    while (outcome := await run_one_job(context, job_id)) is None:
        current = (await training_jobs.get_job(context.database, LOCAL_TENANT, job_id)).job
        if current.state not in ("queued", "running"):
            return current
        if not reported:
            say(f"job {job_id} is run by {current.worker}; waiting until it ends or its lease expires")
        reported = True
        await asyncio.sleep(POLL_SECONDS)
    return outcome


def _progress_printer(progress: ProgressPrinter) -> JobProgressCallback:
    job_progress = JobProgress()

    def print_progress(job: TrainingJobRow, phase: str, metrics: Mapping[str, float]) -> None:
        show = progress.show_status if metrics else progress.show_progress
        show(f"{JOB_LABELS[job.kind]}, {job_progress.describe(job, phase, metrics)}")

    return print_progress


def _create_start_policy(folder: Path, start: "StartConfig", seed: int) -> None:
    from offing.tools.environment import get_environment
    from offing_engine.random_policy import create_random_policy

    draft = folder.with_name(f"{folder.name}.{os.getpid()}")
    vocabulary = get_environment(start.worlds[0]).vocabulary if start.tokenizer == "compact" else None
    create_random_policy(draft, vocabulary, size=start.model_size, seed=seed)
    draft.replace(folder)


def print_result(result: "LoopResult", as_json: bool) -> int:
    """Print the result of a training loop. With `as_json`, one JSON object with the reward of each task."""
    if as_json:
        document = {
            "promoted": result.promoted,
            "rejection_reason": result.rejection_reason,
            "before": [_describe_score(score) for score in result.before],
            "after": [_describe_score(score) for score in result.after],
            "compared": [_describe_score(score) for score in result.comparison],
            "costs": [asdict(cost) for cost in result.costs],
        }
        sys.stdout.write(orjson.dumps(document, default=float, option=orjson.OPT_INDENT_2).decode() + "\n")
        return 0
    for before, after in zip(result.before, result.after, strict=True):
        print(
            f"{after.mode:>8}  {before.mean_reward:.3f} → {after.mean_reward:.3f} on {len(after.rewards)} "
            f"held-out tasks; violations {_render_share(before)} → {_render_share(after)}"
        )
    for one in result.comparison:
        print(
            f"{one.mode:>8}  {one.mean_reward:.3f} by the comparison job on the same rollouts; "
            f"violations {_render_share(one)}"
        )
    for cost in result.costs:
        print(cost.describe())
    print(result.rejection_reason or "The candidate passed the gate and is now active.")
    return 0


def _render_share(score: "VersionScore") -> str:
    """Return the share of rollouts that violated a rule, as text."""
    return "not measured" if score.violation_fraction is None else f"{score.violation_fraction:.1%}"


def _describe_score(score: "VersionScore") -> dict[str, Any]:
    """Return a score with the reward of each task in the order of tasks, for paired comparisons."""
    return {
        "policy": score.version.label,
        "mode": score.mode,
        "success": score.mean_reward,
        "violation_fraction": score.violation_fraction,
        "rewards": [reward for _, reward in sorted(score.rewards.items())],
    }
