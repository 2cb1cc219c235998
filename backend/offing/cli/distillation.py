"""`offing distill`: make a candidate version of a prompt library from rated runs.

The work is a job of a worker.
"""

import asyncio
import sys
from dataclasses import KW_ONLY, asdict, dataclass
from pathlib import Path
from typing import Annotated
from uuid import UUID

from cyclopts import Parameter

from offing.cli.hooks import build_hooks
from offing.cli.options import Flag, Json, Paths
from offing.cli.show import run_with_database
from offing.cli.stack import load_graphs, with_graph_paths
from offing.cli.terminal import ProgressPrinter, print_json, strip_control
from offing.core.errors import InvalidInput
from offing.core.model import EngineConfig
from offing.core.prompt_library import CASES, EXPERIENCES, PromptLibrary, library_from_files
from offing.local.stack import open_stack
from offing.models.engine_discovery import default_engine_config, parse_engine_config
from offing.services import policies, prompt_distillation, prompt_library, training_jobs
from offing.services.prompt_distillation import DistillationRequest, GateConfig
from offing.settings import Settings, load_settings
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.policy_versions import PolicyVersionRow
from offing.storage.pool import Database
from offing.storage.training_jobs import TrainingJobRow

PROMPT_LIBRARY_FOLDER = "prompts"
"""Folder under OFFING_HOME, with one folder per version."""

POLL_SECONDS = 0.5

FINAL_STATES = ("done", "failed", "cancelled", "paused")


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class DistillOptions:
    """Options of `offing distill`."""

    name: str
    """Name of the prompt library."""
    _: KW_ONLY
    engine: str | None = None
    """Engine that compares, such as litellm:openai/gpt-5-mini. Default: OFFING_DEFAULT_ENGINE.
    `extractive` only copies corrections."""
    graph: str | None = None
    """Use only runs of this graph."""
    tag: str | None = None
    """Use only rollouts of batches with this tag."""
    max_groups: int = 50
    """Maximum number of groups of runs to compare."""
    cases: bool = True
    """Store runs as cases, too. The most similar cases are shown with later questions."""
    max_cost_usd: float | None = None
    """Maximum cost of all comparisons together, in US dollars. The runs of the gate are limited by
    `--gate-max-run-cost-usd`."""
    gate_dataset: str | None = None
    """A dataset of stored tasks on which the candidate is then compared with the active version."""
    gate_engine: str | None = None
    """Engine that answers every role in the gate and uses the library. Default: `--engine`."""
    gate_graph: str = "agentflow"
    """Graph that the gate runs."""
    gate_role: str = "planner"
    """Role that uses the library."""
    gate_max_tasks: int = 50
    """Maximum number of tasks."""
    gate_rollouts_per_task: int = 1
    """Number of runs per task."""
    gate_max_run_cost_usd: float | None = None
    """Maximum cost of each of these runs, in US dollars."""
    folder: Path | None = None
    """Register this edited copy of a version instead of distilling."""
    paths: Annotated[Paths, Parameter(name="--path")] = ()
    """A folder or a .py file with a graph that is not installed. Repeat the option for several. A
    running stack must have it, too."""
    detach: Flag = False
    """Only queue the job. `offing jobs show JOB` shows its progress."""
    as_json: Json = False
    """Print only JSON on standard output."""

    def build_request(self) -> DistillationRequest:
        """Return the job to create. Raises InvalidInput for an engine that cannot be parsed."""
        engine = parse_engine_config(self.engine, "--engine") if self.engine else default_engine_config()
        gate = self._build_gate(engine) if self.gate_dataset else None
        return DistillationRequest(
            self.name, engine, self.graph, self.tag, self.max_groups, self.cases, self.max_cost_usd, gate
        )

    def _build_gate(self, engine: EngineConfig) -> GateConfig:
        return GateConfig(
            self.gate_dataset or "",
            parse_engine_config(self.gate_engine, "--gate-engine") if self.gate_engine else engine,
            self.gate_graph,
            self.gate_role,
            max_tasks=self.gate_max_tasks,
            rollouts_per_task=self.gate_rollouts_per_task,
            max_run_cost_usd=self.gate_max_run_cost_usd,
        )


def distill(options: DistillOptions) -> int:
    """Compare rated runs and register the result as a candidate version of the prompt library NAME.

    A worker runs the job. After Ctrl-C, the running stack continues it. `offing policy evaluate`,
    `promote` and `rollback` work on the candidate as on any policy version. A role uses the library
    with `--engine 'planner=litellm:openai/gpt-5-mini;library=NAME'`.
    """
    settings = with_graph_paths(load_settings(), options.paths)
    if options.folder is not None:
        return _print_version(_register_folder(options.name, options.folder, settings), options.as_json)
    request = options.build_request()
    if options.detach:
        job = run_with_database(lambda database: _create_job(database, request, settings))
        return _print_queued(job, options.as_json)
    progress = ProgressPrinter(sys.stderr)
    with progress, open_stack(settings, build_hooks(), say=progress.show_status) as servers:
        job, version = asyncio.run(_wait_for_candidate(servers.app_url, request, settings, progress))
    return _print_result(job, version, options.as_json)


def _register_folder(name: str, folder: Path, settings: Settings) -> PolicyVersionRow:
    library, target_dir = _read_library(folder), settings.home / PROMPT_LIBRARY_FOLDER
    return run_with_database(lambda database: _register_library(database, name, library, target_dir))


async def _create_job(database: Database, request: DistillationRequest, settings: Settings) -> TrainingJobRow:
    job, _ = await prompt_distillation.create_job(database, LOCAL_TENANT, request, load_graphs(settings))
    return job


async def _wait_for_candidate(
    url: str, request: DistillationRequest, settings: Settings, progress: ProgressPrinter
) -> tuple[TrainingJobRow, PolicyVersionRow | None]:
    """Wait until the job has ended, and return it with its candidate version."""
    async with Database(url, max_connections=2) as database:
        job = await _follow_job(database, await _create_job(database, request, settings), progress)
        version = (
            await policies.get_version(database, LOCAL_TENANT, job.produced_version_id)
            if job.produced_version_id
            else None
        )
    return job, version


async def _follow_job(database: Database, job_id: TrainingJobRow, progress: ProgressPrinter) -> TrainingJobRow:
    shown_status = ""
    while job_id.state not in FINAL_STATES:
        await asyncio.sleep(POLL_SECONDS)
        job_id = (await training_jobs.get_job(database, LOCAL_TENANT, job_id.id)).job
        if (now := f"{job_id.phase or job_id.state}{await _describe_cost(database, job_id.id)}") != shown_status:
            progress.show_status(shown_status := now)
    return job_id


async def _describe_cost(database: Database, job_id: UUID) -> str:
    """Return the cost of the job so far. The text is empty before the first comparison."""
    metrics = await training_jobs.list_metrics(database, LOCAL_TENANT, job_id, 0, COST_METRICS, 5_000)
    last = {metric.name: metric.value for metric in metrics}
    if not last:
        return ""
    tokens = last["prompt_tokens"] + last["completion_tokens"]
    return f" · {tokens:,.0f} tokens · {'' if last['priced'] else 'at least '}{last['cost_usd']:.4f} USD"


COST_METRICS = ("prompt_tokens", "completion_tokens", "cost_usd", "priced")


def _print_queued(job: TrainingJobRow, as_json: bool) -> int:
    if as_json:
        return print_json(asdict(job))
    print(f"job {job.id} is {job.state}")
    return 0


async def _register_library(
    database: Database, name: str, library: PromptLibrary, target_dir: Path
) -> PolicyVersionRow:
    parent = await prompt_distillation.open_start_version(database, LOCAL_TENANT, name, target_dir)
    lineage = {**parent.version.lineage, "from": f"{name}@{parent.version.version}", "engine": "a person"}
    lineage.pop("job", None)
    row, _ = await prompt_library.register_library(
        database, LOCAL_TENANT, name, library, target_dir, parent_id=parent.version.id, lineage=lineage
    )
    return row


def _read_library(folder: Path) -> PromptLibrary:
    if not (folder / EXPERIENCES).is_file():
        raise InvalidInput(
            "--folder", f"{folder} does not contain {EXPERIENCES}", "Use an edited copy of a version's folder."
        )
    try:
        texts = {n: (folder / n).read_text("utf-8") for n in (EXPERIENCES, CASES) if (folder / n).is_file()}
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(
            "--folder", f"{folder} cannot be read: {error}", "Use an edited copy of a version's folder."
        ) from error
    return library_from_files(texts)


def _print_result(job: TrainingJobRow, version: PolicyVersionRow | None, as_json: bool) -> int:
    if as_json:
        print_json({"job": asdict(job), "version": asdict(version) if version else None})
        return 1 if job.state == "failed" else 0
    for reason in version.lineage.get("rejected_edits", ()) if version else ():
        print(f"left out: {strip_control(reason)}", file=sys.stderr)
    if job.error or job.stop_reason:
        print(f"{job.state}: {strip_control(job.error or job.stop_reason)}", file=sys.stderr)
    if version is None:
        print("No candidate was registered.", file=sys.stderr)
        return 1 if job.state == "failed" else 0
    lineage = version.lineage
    if "compared" in lineage:
        print(
            f"{lineage['compared']} groups compared, {lineage['edits']} changes, {lineage['cost_usd']:.4f} USD",
            file=sys.stderr,
        )
    return _print_version(version, False)


def _print_version(row: PolicyVersionRow, as_json: bool) -> int:
    if as_json:
        return print_json(asdict(row))
    print(row.label)
    print(f"{row.state}; its files are in {strip_control(row.uri)}", file=sys.stderr)
    return 0
