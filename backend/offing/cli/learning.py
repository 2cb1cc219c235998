"""`offing learn`: judged runs become the next version of a prompt library, a candidate; a worker does the work."""

import asyncio
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any
from uuid import UUID

import orjson
from cyclopts import Parameter

from offing.cli.hooks import hooks
from offing.cli.show import with_database
from offing.cli.stack import loaded, with_paths
from offing.cli.terminal import Progress, safe
from offing.core.errors import InvalidInput
from offing.core.prompt_library import CASES, EXPERIENCES, Library, library_of
from offing.local.stack import working_stack
from offing.models.discover import default_choice, engine_named
from offing.services import learning, policies, prompt_library, training
from offing.services.learning import Gate, Wanted
from offing.settings import Settings, load_settings
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.policy_versions import VersionRow
from offing.storage.pool import Database
from offing.storage.training_jobs import JobRow

FOLDER = "prompts"
"""Under OFFING_HOME; one folder a version."""

LOOK_SECONDS = 0.5

OVER = ("done", "failed", "cancelled", "paused")

Json = Annotated[bool, Parameter(name="--json", negative="")]


def learn(
    name: str,
    *,
    engine: str | None = None,
    graph: str | None = None,
    tag: str | None = None,
    groups: int = 50,
    cases: bool = True,
    usd: float | None = None,
    gate: str | None = None,
    gate_engine: str | None = None,
    gate_graph: str = "agentflow",
    gate_role: str = "planner",
    gate_tasks: int = 50,
    gate_members: int = 1,
    gate_usd: float | None = None,
    folder: Path | None = None,
    path: Annotated[tuple[Path, ...], Parameter(negative="")] = (),
    detach: Annotated[bool, Parameter(negative="")] = False,
    json: Json = False,
) -> int:
    """Compare judged runs and register what they teach as a candidate of the prompt library NAME.

    A worker does it, as a job; Ctrl-C leaves it to the running stack. `offing policy evaluate`, `promote` and
    `rollback` treat the candidate as any policy; a run shows it to a role with
    `--engine 'planner=litellm:openai/gpt-5-mini;library=NAME'`.

    Parameters
    ----------
    engine
        Who compares, such as litellm:openai/gpt-5-mini. None: OFFING_ENGINE; extractive takes over corrections only.
    graph
        Only runs of this graph.
    tag
        Only rollouts of batches with this tag.
    groups
        Groups of runs to compare at most.
    cases
        Remember runs as cases, too; the nearest are shown to later questions.
    usd
        Money of all comparisons together; what the gate's runs may cost, `--gate-usd` says.
    gate
        A dataset of stored tasks on which the candidate is then measured against the active version.
    gate_engine
        Who reads the library there and answers every role. None: `--engine`.
    gate_graph
        The graph that works on the tasks.
    gate_role
        Its role that is shown the library.
    gate_tasks
        Tasks at most.
    gate_members
        Runs of each task.
    gate_usd
        Money of one of these runs.
    folder
        Register this folder, a version's copy that you changed, instead of learning.
    path
        A folder or a .py file with a graph that is not installed, or several. A running stack must have it as well.
    detach
        Only queue the job; `offing training show JOB` tells how it goes.
    json
        Print only JSON on standard output.
    """
    settings = with_paths(load_settings(), path)
    if folder is not None:
        place = settings.home / FOLDER
        return _said(with_database(lambda database: _registered(database, name, _read(folder), place)), json)
    choice = engine_named(engine, "--engine") if engine else default_choice()
    reader = engine_named(gate_engine, "--gate-engine") if gate_engine else choice
    measure = None
    if gate:
        measure = Gate(gate, reader, gate_graph, gate_role, count=gate_tasks, members=gate_members, usd=gate_usd)
    wanted = Wanted(name, choice, graph, tag, groups, cases, usd, measure)
    if detach:
        return _queued(with_database(lambda database: _created(database, wanted, settings)), json)
    progress = Progress(sys.stderr)
    with progress, working_stack(settings, hooks(), say=progress.say) as servers:
        job, version = asyncio.run(_learned(servers.app_url, wanted, settings, progress))
    return _told(job, version, json)


async def _created(database: Database, wanted: Wanted, settings: Settings) -> JobRow:
    job, _ = await learning.create(database, LOCAL_TENANT, wanted, loaded(settings))
    return job


async def _learned(
    url: str, wanted: Wanted, settings: Settings, progress: Progress
) -> tuple[JobRow, VersionRow | None]:
    """The job when it is over, and its candidate."""
    async with Database(url, most=2) as database:
        job = await _followed(database, await _created(database, wanted, settings), progress)
        version = await policies.one(database, LOCAL_TENANT, job.produced) if job.produced else None
    return job, version


async def _followed(database: Database, job: JobRow, progress: Progress) -> JobRow:
    said = ""
    while job.state not in OVER:
        await asyncio.sleep(LOOK_SECONDS)
        job = (await training.one(database, LOCAL_TENANT, job.id)).job
        if (now := f"{job.phase or job.state}{await _cost(database, job.id)}") != said:
            progress.say(said := now)
    return job


async def _cost(database: Database, job: UUID) -> str:
    """What it came to so far. Empty: nothing was compared yet."""
    found = await training.metrics(database, LOCAL_TENANT, job, 0, COSTS, 5_000)
    last = {metric.name: metric.value for metric in found}
    if not last:
        return ""
    tokens = last["prompt_tokens"] + last["completion_tokens"]
    return f" · {tokens:,.0f} tokens · {'' if last['priced'] else 'at least '}{last['usd']:.4f} USD"


COSTS = ("prompt_tokens", "completion_tokens", "usd", "priced")


def _queued(job: JobRow, as_json: bool) -> int:
    if as_json:
        return _dump(asdict(job))
    print(f"job {job.id} is {job.state}")
    return 0


async def _registered(database: Database, name: str, library: Library, place: Path) -> VersionRow:
    parent = await learning.begun(database, LOCAL_TENANT, name, place)
    lineage = {**parent.version.lineage, "from": f"{name}@{parent.version.version}", "engine": "a person"}
    lineage.pop("job", None)
    row, _ = await prompt_library.register(
        database, LOCAL_TENANT, name, library, place, parent=parent.version.id, lineage=lineage
    )
    return row


def _read(folder: Path) -> Library:
    if not (folder / EXPERIENCES).is_file():
        raise InvalidInput("--folder", f"{folder} holds no {EXPERIENCES}", "Copy a version's folder and change it.")
    try:
        texts = {n: (folder / n).read_text("utf-8") for n in (EXPERIENCES, CASES) if (folder / n).is_file()}
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput("--folder", f"{folder} cannot be read: {error}", "Copy a version's folder.") from error
    return library_of(texts)


def _told(job: JobRow, version: VersionRow | None, as_json: bool) -> int:
    if as_json:
        _dump({"job": asdict(job), "version": asdict(version) if version else None})
        return 1 if job.state == "failed" else 0
    for why in version.lineage.get("refused", ()) if version else ():
        print(f"left out: {safe(why)}", file=sys.stderr)
    if job.error or job.stop_reason:
        print(f"{job.state}: {safe(job.error or job.stop_reason)}", file=sys.stderr)
    if version is None:
        print("There is no candidate.", file=sys.stderr)
        return 1 if job.state == "failed" else 0
    told = version.lineage
    if "compared" in told:
        print(f"{told['compared']} groups compared, {told['edits']} changes, {told['usd']:.4f} USD", file=sys.stderr)
    return _said(version, False)


def _said(row: VersionRow, as_json: bool) -> int:
    if as_json:
        return _dump(asdict(row))
    print(row.label)
    print(f"{row.state}; its files are in {safe(row.uri)}", file=sys.stderr)
    return 0


def _dump(value: Any) -> int:
    sys.stdout.write(orjson.dumps(value, default=str, option=orjson.OPT_INDENT_2).decode() + "\n")
    return 0
