"""`offing train`, `offing trainer` and `offing training`: run training jobs here, and handle those that there are."""

import asyncio
import os
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

from offing.cli.show import with_database
from offing.cli.terminal import safe
from offing.core.errors import Conflict, InvalidInput, Unavailable
from offing.local.policy import policies_folder
from offing.services import policies, training
from offing.settings import Settings, app_address, load_settings
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Database
from offing.storage.training_jobs import JobRow
from offing.telemetry.logs import setup_logs

if TYPE_CHECKING:
    from offing_trainer.job.inspecting import Found
    from offing_trainer.job.running import Room

app = App(name="training", help="Training jobs: list, look at, pause, go on, cancel.")
app.command("offing.cli.hand_over:hand_over", name="hand-over", help="Write a job's steps for another trainer.")

Flag = Annotated[bool, Parameter(negative="")]

Json = Annotated[bool, Parameter(name="--json", negative="")]

HEADS = ("value", "value_high", "value_low", "value_term")
"""Of critics."""

SHOWN = (
    *("reward", "success", "entropy", "kl", "grad_norm", "loss", "tokens"),
    *(f"{head}/explained_variance" for head in HEADS),
)
"""Figures of a step that a terminal shows, as far as there are any."""

BARS = 40

LEASES = 2
"""How many times longer than a run's a job's claim lasts: opening weights may hold a process up."""


def train(
    config: Path | None = None,
    *,
    set: Annotated[tuple[str, ...], Parameter(negative="")] = (),
    dry_run: Flag = False,
    queue: Flag = False,
    resume: str | None = None,
    json: Json = False,
) -> int:
    """Train a policy on stored rollouts, step by step, and register what comes of it as a candidate.

    Parameters
    ----------
    config
        A TOML file; `algorithm = "flow-grpo"` in it names a recipe to start from.
    set
        An entry of it, such as `learner.learning_rate=1e-5`; the value is TOML, or else text.
    dry_run
        Only say what would be trained on, and what would be refused.
    queue
        Leave the job to a running `offing trainer`.
    resume
        Go on with this job instead of making one. JOB may be shortened to its last characters.
    json
        Print only JSON on standard output.
    """
    if resume is not None:
        return _resumed(resume, json)
    tables = tables_of(config, set)
    if queue and not dry_run:
        job = with_database(lambda database: training.create(database, LOCAL_TENANT, tables))
        return _said_job(job, json)
    need_torch()
    if dry_run:
        return _dry(tables, json)
    return _ended(with_database(lambda database: _made_and_run(database, tables, json)), json)


def trainer() -> int:
    """Run queued training jobs, one after the other, until told to stop. `offing up` does so where torch is."""
    need_torch()
    setup_logs("console" if sys.stderr.isatty() else "json")
    from offing_trainer.job.process import serve

    settings = load_settings()
    ready = os.environ.get("OFFING_READY_FILE")
    asyncio.run(
        serve(lambda database: room_of(database, settings), app_address(settings), Path(ready) if ready else None)
    )
    return 0


@app.command(name="list")
def list_(*, state: str | None = None, limit: int = 20, json: Json = False) -> int:
    """List training jobs, newest first."""
    found, _ = with_database(lambda database: training.page(database, LOCAL_TENANT, state, None, limit))
    if json:
        return _dump([asdict(job) for job in found])
    table = Table("job", "policy", "state", "step", "rollouts", "why", box=None)
    for job in found:
        why = job.error or job.stop_reason or job.phase
        table.add_row(str(job.id)[-8:], job.name, job.state, str(job.step), str(job.rollouts), safe(why[:80]))
    Console().print(table)
    return 0


@app.command
def show(job: str, *, json: Json = False) -> int:
    """Show a job, what it decided about rollouts, and its latest figures. JOB may be its last characters."""

    async def work(database: Database) -> dict[str, Any]:
        id = await training.find(database, LOCAL_TENANT, job)
        seen = await training.one(database, LOCAL_TENANT, id)
        last = max(seen.job.step - 1, 0)
        figures = await training.metrics(database, LOCAL_TENANT, id, last, None, 500)
        events = await training.events(database, LOCAL_TENANT, id, None, 200)
        return {
            **asdict(seen.job),
            "ledger": dict(seen.ledger),
            "figures": {m.name: m.value for m in figures},
            "events": [asdict(event) for event in events],
        }

    found = with_database(work)
    if json:
        return _dump(found)
    for name in ("id", "name", "state", "step", "groups", "rollouts", "stop_reason", "error", "ledger", "figures"):
        print(f"{name:>12}  {safe(str(found[name]))}")
    return 0


@app.command
def pause(job: str) -> int:
    """Let a job rest after the step that it is in."""
    return _said_job(with_database(lambda database: _on(database, job, training.pause)), False)


@app.command
def cancel(job: str) -> int:
    """End a job after the step that it is in; what it committed stays."""
    return _said_job(with_database(lambda database: _on(database, job, training.cancel)), False)


@app.command
def resume(job: str) -> int:
    """Queue a job that rests or failed, for `offing trainer`."""
    return _said_job(with_database(lambda database: _on(database, job, training.resume)), False)


async def _on(database: Database, text: str, change: Any) -> JobRow:
    return await change(database, LOCAL_TENANT, await training.find(database, LOCAL_TENANT, text))


def _resumed(text: str, as_json: bool) -> int:
    need_torch()

    async def work(database: Database) -> JobRow:
        id = await training.find(database, LOCAL_TENANT, text)
        seen = await training.one(database, LOCAL_TENANT, id)
        if seen.job.state != "running":
            await training.resume(database, LOCAL_TENANT, id)
        return await _run(database, id, as_json)

    return _ended(with_database(work), as_json)


async def _made_and_run(database: Database, tables: Mapping[str, Any], as_json: bool) -> JobRow:
    await _inspected(database, tables)
    job = await training.create(database, LOCAL_TENANT, tables)
    print(f"job {job.id}", file=sys.stderr)
    return await _run(database, job.id, as_json)


async def _run(database: Database, job: UUID, as_json: bool) -> JobRow:
    from offing_trainer.job.process import run_one

    with Console(stderr=True).status("starting") as status:
        done = await run_one(room_of(database, load_settings(), _teller(status, as_json)), job)
    if done is None:
        raise Conflict(f"Job {job} is another process's.", "If that process is lost, try again in a minute.")
    return done


def _teller(status: Any, as_json: bool) -> Any:
    def say(job: JobRow, phase: str, figures: Mapping[str, float]) -> None:
        status.update(f"step {job.step + 1}: {phase}")
        if figures and as_json:
            sys.stdout.buffer.write(orjson.dumps({"job": str(job.id), "step": job.step, "figures": figures}) + b"\n")
            sys.stdout.flush()
        elif figures:
            told = "  ".join(f"{name} {figures[name]:.4g}" for name in SHOWN if name in figures)
            status.console.print(f"step {job.step:>4}  {told}", highlight=False, soft_wrap=True)

    return say


def room_of(database: Database, settings: Settings, said: "Any | None" = None) -> "Room":
    from offing_trainer.job.running import Room
    from offing_trainer.job.trainee import begin

    room = Room(database, settings.home, policies_folder(settings), begin, term=LEASES * settings.lease_seconds)
    if said is None:
        return room
    from dataclasses import replace

    return replace(room, said=said)


def _dry(tables: Mapping[str, Any], as_json: bool) -> int:
    found = with_database(lambda database: _inspected(database, tables))
    if as_json:
        return _dump(asdict(found))
    print(f"{found.complete} complete groups, {found.stale} of them stale, {found.informative} informative")
    print(f"{found.short} groups are short, and not trained on")
    reward = "none is scored" if found.reward is None else f"mean reward {found.reward:.3f}"
    print(f"{found.rollouts} rollouts, {reward}; {_listed(found.outcomes)}")
    print(f"turns: {_listed(found.turns)}; sampled by {_listed(found.policies)}")
    print(f"{found.tokens} tokens to train, about {found.steps} steps")
    most = max(found.lengths.values(), default=1)
    for low, count in found.lengths.items():
        print(f"{low:>8} tokens or more  {'#' * max(1, count * BARS // most)} {count}")
    for warning in found.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    return 0


async def _inspected(database: Database, tables: Mapping[str, Any]) -> "Found":
    """Raises InvalidInput for what could not be trained, before there is a job."""
    from offing_trainer.chain import chain_for
    from offing_trainer.config import config_of
    from offing_trainer.job.inspecting import inspected

    config = config_of(tables)
    chain = chain_for(config)
    policy = await policies.named(database, LOCAL_TENANT, config.policy)
    return await inspected(database, LOCAL_TENANT, config, chain, policy)


def tables_of(config: Path | None, entries: tuple[str, ...]) -> dict[str, Any]:
    """The file's tables with what the command line says over them. Raises InvalidInput."""
    if config is None:
        raise InvalidInput("CONFIG", "is missing", "Name a TOML file; the recipes show every entry.")
    try:
        tables = tomllib.loads(config.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidInput("CONFIG", f"{config} cannot be read as TOML: {error}", "Name a TOML file.") from error
    for entry in entries:
        _put(tables, entry)
    return orjson.loads(orjson.dumps(tables))


def _put(tables: dict[str, Any], entry: str) -> None:
    path, equals, text = entry.partition("=")
    if not equals:
        raise InvalidInput("--set", f"{entry!r} has no value", "Write it as NAME=VALUE.")
    *tops, name = path.split(".")
    for top in tops:
        tables = tables.setdefault(top, {})
    try:
        tables[name] = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        tables[name] = text


def _said_job(job: JobRow, as_json: bool) -> int:
    if as_json:
        return _dump(asdict(job))
    print(f"job {job.id} is {job.state}" + (f", to {job.wish} after its step" if job.wish else ""))
    return 0


def _ended(job: JobRow, as_json: bool) -> int:
    """The exit code: 1 for a job that failed."""
    if as_json:
        _dump(asdict(job))
    else:
        print(f"{job.state}: {job.error or job.stop_reason}; {job.step} steps on {job.rollouts} rollouts")
    if job.produced is not None and not as_json:
        row = with_database(lambda database: policies.one(database, LOCAL_TENANT, job.produced or UUID(int=0)))
        print(row.label)
    return 1 if job.state == "failed" else 0


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {name or 'unknown'}" for name, count in counts.items()) or "none"


def need_torch() -> None:
    # Read when torch is loaded. Waiting threads that spin make a busy machine twenty times slower.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    missing = [name for name in ("torch", "transformers") if find_spec(name) is None]
    if missing:
        raise Unavailable(f"{' and '.join(missing)} cannot be found. Install them with: pip install 'offing[train]'")


def _dump(value: object) -> int:
    sys.stdout.write(orjson.dumps(value, default=str, option=orjson.OPT_NON_STR_KEYS).decode() + "\n")
    return 0
