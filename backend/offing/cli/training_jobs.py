"""`offing train`, `offing trainer` and `offing jobs`: run and manage training jobs."""

import asyncio
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import orjson
from cyclopts import App, Parameter
from rich.console import Console
from rich.table import Table

from offing import environment
from offing.cli.job_progress import JobProgress
from offing.cli.job_record import print_job_record, read_job_record
from offing.cli.options import Flag, Json
from offing.cli.show import run_with_database
from offing.cli.terminal import strip_control
from offing.core.errors import InvalidInput, Unavailable
from offing.local.engine_process import get_policy_dir
from offing.process_name import get_process_name
from offing.services import policies, training_jobs
from offing.settings import Settings, get_app_database_url, load_settings
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Database
from offing.storage.training_jobs import JobFencingToken, TrainingJobRow
from offing.telemetry.logs import setup_logs

if TYPE_CHECKING:
    from offing_trainer.job.data_report import DataReport
    from offing_trainer.job.job_runner import JobContext

app = App(name="jobs", help="Training jobs: list, show, pause, resume, cancel.")
app.command(
    "offing.cli.step_export:export_steps",
    name="export-steps",
    help="Export a job's training steps for another trainer.",
)

MAX_BAR_CHARS = 40

JOB_LEASE_FACTOR = 2
"""Ratio of a job's lease to a run's lease. Loading weights may block the process for that long."""


def train(
    config: Path | None = None,
    *,
    set: Annotated[tuple[str, ...], Parameter(negative="")] = (),
    dry_run: Flag = False,
    queue: Flag = False,
    resume: str | None = None,
    json: Json = False,
) -> int:
    """Train a policy on stored rollouts and register the result as a candidate version.

    Parameters
    ----------
    config
        A TOML file. `algorithm = "flow-grpo"` in it selects a recipe to start from.
    set
        An entry that overrides the file, such as `learner.learning_rate=1e-5`. The value is TOML, or
        text if it is not valid TOML.
    dry_run
        Only report which data would be used and which rejected.
    queue
        Queue the job for a running `offing trainer`.
    resume
        Resume this job instead of creating one. JOB is an id or the last characters of an id.
    json
        Print only JSON on standard output.
    """
    if resume is not None:
        return _resume_and_run(resume, json)
    tables = load_tables(config, set)
    if queue and not dry_run:
        job = run_with_database(lambda database: training_jobs.create_job(database, LOCAL_TENANT, tables))
        return _print_job(job, json)
    require_torch()
    if dry_run:
        return _print_dry_run(tables, json)
    return _print_ended_job(run_with_database(lambda database: _create_and_run(database, tables, json)), json)


def trainer() -> int:
    """Run queued training jobs one after the other until stopped.

    `offing up` does this where torch is installed.
    """
    require_torch()
    setup_logs("console" if sys.stderr.isatty() else "json")
    from offing_trainer.job.process import run_trainer

    settings = load_settings()
    asyncio.run(
        run_trainer(
            lambda database: build_job_context(database, settings),
            get_app_database_url(settings),
            environment.find_ready_file(),
        )
    )
    return 0


@app.command(name="list")
def list_jobs(*, state: str | None = None, limit: int = 20, json: Json = False) -> int:
    """List training jobs, newest first."""
    jobs, _ = run_with_database(lambda database: training_jobs.list_jobs(database, LOCAL_TENANT, state, None, limit))
    if json:
        return _print_json([asdict(job) for job in jobs])
    table = Table("job", "policy", "state", "step", "of", "rollouts", "why", box=None)
    for job in jobs:
        reason = job.error or job.stop_reason or job.phase
        table.add_row(
            str(job.id)[-8:],
            job.name,
            job.state,
            str(job.step),
            str(job.planned_steps or ""),
            str(job.rollout_count),
            strip_control(reason[:80]),
        )
    Console().print(table)
    return 0


@app.command
def show(job: str, *, json: Json = False) -> int:
    """Show a job: its progress, why it stopped, the reasons in its ledger, its latest metrics and events.

    JOB is an id or the last characters of an id.
    """

    record = run_with_database(lambda database: read_job_record(database, LOCAL_TENANT, job))
    if json:
        return _print_json(record)
    print_job_record(record)
    return 0


@app.command
def pause(job: str) -> int:
    """Pause a training job after its current training step."""
    return _print_job(run_with_database(lambda database: _change_job(database, job, training_jobs.pause_job)), False)


@app.command
def cancel(job: str) -> int:
    """Cancel a training job after its current training step. Committed steps are kept."""
    return _print_job(run_with_database(lambda database: _change_job(database, job, training_jobs.cancel_job)), False)


@app.command
def resume(job: str) -> int:
    """Queue a paused or failed job for `offing trainer`."""
    return _print_job(run_with_database(lambda database: _change_job(database, job, training_jobs.resume_job)), False)


async def _change_job(database: Database, job_text: str, change: Any) -> TrainingJobRow:
    return await change(database, LOCAL_TENANT, await training_jobs.resolve_job_id(database, LOCAL_TENANT, job_text))


def _resume_and_run(job_text: str, as_json: bool) -> int:
    require_torch()

    async def work(database: Database) -> TrainingJobRow:
        id = await training_jobs.resolve_job_id(database, LOCAL_TENANT, job_text)
        token = await training_jobs.resume_claimed_job(database, LOCAL_TENANT, id, _claimant())
        return await _run(database, token, as_json)

    return _print_ended_job(run_with_database(work), as_json)


async def _create_and_run(database: Database, tables: Mapping[str, Any], as_json: bool) -> TrainingJobRow:
    await _inspect_data(database, tables)
    token = await training_jobs.create_claimed_job(database, LOCAL_TENANT, tables, _claimant())
    print(f"job {token.job_id}", file=sys.stderr)
    return await _run(database, token, as_json)


def _claimant() -> training_jobs.JobClaimant:
    return training_jobs.JobClaimant(get_process_name(), JOB_LEASE_FACTOR * load_settings().lease_seconds)


async def _run(database: Database, token: JobFencingToken, as_json: bool) -> TrainingJobRow:
    from offing_trainer.job.job_runner import run_job

    with Console(stderr=True).status("starting") as status:
        context = build_job_context(database, load_settings(), _progress_printer(status, as_json))
        return await run_job(context, token)


def _progress_printer(status: Any, as_json: bool) -> Any:
    progress = JobProgress()

    def print_progress(job: TrainingJobRow, phase: str, metrics: Mapping[str, float]) -> None:
        text = progress.describe(job, phase, metrics)
        status.update(text)
        if metrics and as_json:
            sys.stdout.buffer.write(orjson.dumps({"job": str(job.id), "step": job.step, "metrics": metrics}) + b"\n")
            sys.stdout.flush()
        elif metrics:
            status.console.print(text, highlight=False, soft_wrap=True)

    return print_progress


def build_job_context(database: Database, settings: Settings, report_progress: "Any | None" = None) -> "JobContext":
    from offing_trainer.job.job_runner import JobContext
    from offing_trainer.job.pipeline_trainer import open_trainer

    context = JobContext(
        database,
        settings.home,
        get_policy_dir(settings),
        open_trainer,
        lease_seconds=JOB_LEASE_FACTOR * settings.lease_seconds,
    )
    if report_progress is None:
        return context
    from dataclasses import replace

    return replace(context, on_phase=report_progress)


def _print_dry_run(tables: Mapping[str, Any], as_json: bool) -> int:
    report = run_with_database(lambda database: _inspect_data(database, tables))
    if as_json:
        return _print_json(asdict(report))
    print(
        f"{report.complete_groups} complete groups, {report.stale_groups} of them stale, "
        f"{report.informative_groups} informative"
    )
    print(f"{report.incomplete_groups} incomplete groups, which are not trained on")
    reward = "no rewards" if report.mean_reward is None else f"mean reward {report.mean_reward:.3f}"
    print(f"{report.rollouts} rollouts, {reward}; {_render_counts(report.outcomes)}")
    print(f"turns: {_render_counts(report.turns_by_trainability)}; sampled by {_render_counts(report.turns_by_policy)}")
    print(f"{report.trainable_tokens} trainable tokens, about {report.steps_per_pass} steps")
    max_count = max(report.rollouts_by_tokens.values(), default=1)
    for low, count in report.rollouts_by_tokens.items():
        print(f"{low:>8} tokens or more  {'#' * max(1, count * MAX_BAR_CHARS // max_count)} {count}")
    for warning in report.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    return 0


async def _inspect_data(database: Database, tables: Mapping[str, Any]) -> "DataReport":
    """Report on the data of a job before it is created. Raises InvalidInput if nothing can be trained."""
    from offing_trainer.config import parse_config
    from offing_trainer.job.data_report import build_data_report
    from offing_trainer.pipeline import build_job_pipeline

    config = parse_config(tables)
    chain = build_job_pipeline(config)
    policy = await policies.get_version_by_name(database, LOCAL_TENANT, config.policy)
    return await build_data_report(database, LOCAL_TENANT, config, chain, policy)


def load_tables(config: Path | None, entries: tuple[str, ...]) -> dict[str, Any]:
    """Load the tables of a config file and apply the entries of the command line. Raises InvalidInput."""
    if config is None:
        raise InvalidInput("CONFIG", "is missing", "Use the path of a TOML file. The recipes show every entry.")
    try:
        tables = tomllib.loads(config.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidInput("CONFIG", f"{config} cannot be read as TOML: {error}", "Use a valid TOML file.") from error
    for entry in entries:
        _set_entry(tables, entry)
    return orjson.loads(orjson.dumps(tables))


def _set_entry(tables: dict[str, Any], entry: str) -> None:
    path, equals, text = entry.partition("=")
    if not equals:
        raise InvalidInput("--set", f"{entry!r} has no value", "Use NAME=VALUE.")
    *tops, name = path.split(".")
    for top in tops:
        tables = tables.setdefault(top, {})
    try:
        tables[name] = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        tables[name] = text


def _print_job(job: TrainingJobRow, as_json: bool) -> int:
    if as_json:
        return _print_json(asdict(job))
    print(
        f"job {job.id} is {job.state}"
        + (f", will {job.requested_action} after its current step" if job.requested_action else "")
    )
    return 0


def _print_ended_job(job: TrainingJobRow, as_json: bool) -> int:
    """Print an ended job and return the exit code, which is 1 for a failed job."""
    if as_json:
        _print_json(asdict(job))
    else:
        print(f"{job.state}: {job.error or job.stop_reason}; {job.step} steps on {job.rollout_count} rollouts")
    if job.produced_version_id is not None and not as_json:
        row = run_with_database(
            lambda database: policies.get_version(database, LOCAL_TENANT, job.produced_version_id or UUID(int=0))
        )
        print(row.label)
    return 1 if job.state == "failed" else 0


def _render_counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {name or 'unknown'}" for name, count in counts.items()) or "none"


def require_torch() -> None:
    # torch reads this when it is imported. Threads that spin while waiting make a busy machine twenty
    # times slower.
    environment.set_default("OMP_WAIT_POLICY", "PASSIVE")
    missing = [name for name in ("torch", "transformers") if find_spec(name) is None]
    if missing:
        raise Unavailable(f"{' and '.join(missing)} must be installed. Run: pip install 'offing[train]'")


def _print_json(value: object) -> int:
    sys.stdout.write(orjson.dumps(value, default=str, option=orjson.OPT_NON_STR_KEYS).decode() + "\n")
    return 0
