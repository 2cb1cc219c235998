"""`offing loop`: the closed loop with everything that it needs running: servers, workers, the policy engine."""

import asyncio
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import orjson
from cyclopts import Parameter

from offing.bus.hints import BusHints
from offing.cli.hooks import hooks
from offing.cli.stack import loaded, with_paths
from offing.cli.terminal import Progress
from offing.cli.training import need_torch, room_of, tables_of
from offing.local.policy import policies_folder
from offing.local.servers import Servers
from offing.local.stack import worker_processes, working_stack
from offing.models.credentials import Destination
from offing.services import training
from offing.settings import Settings, load_settings
from offing.storage import policy_versions
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Database
from offing.storage.training_jobs import JobRow

if TYPE_CHECKING:
    from offing_trainer.job.running import Room
    from offing_trainer.loop import Closed, LoopRoom, Scored
    from offing_trainer.loop_config import LoopConfig, StartConfig

Told = Callable[[JobRow, str, Mapping[str, float]], None]

LOST_SECONDS = 0.5
"""Between looks whether another process lost a job."""

SHOWN = ("reward", "success", "entropy", "grad_norm", "seconds_update")


def loop(
    config: Path,
    *,
    set: Annotated[tuple[str, ...], Parameter(negative="")] = (),
    path: Annotated[tuple[Path, ...], Parameter(negative="")] = (),
    json: Annotated[bool, Parameter(name="--json", negative="")] = False,
) -> int:
    """Collect rollouts, train on them, evaluate, and say what it came to; cut short, the same command goes on.

    Parameters
    ----------
    config
        A TOML file; deploy/loop.toml is one.
    set
        An entry of it, such as `train.steps=20`; the value is TOML, or else text.
    path
        A folder or a .py file with a graph that is not installed, or several.
    json
        Print only JSON on standard output.
    """
    need_torch()
    from offing_trainer.loop_config import loop_config

    wanted, settings = loop_config(tables_of(config, set)), _with_policies(with_paths(load_settings(), path))
    progress = Progress(sys.stderr)
    workers = worker_processes(settings)
    with progress, working_stack(settings, hooks(), say=progress.say, workers=workers) as servers:
        settings = settings.model_copy(update={"engine_url": servers.engine_url})
        closed = asyncio.run(_closed(wanted, servers, settings, progress))
    return _print(closed, json)


def _with_policies(settings: Settings) -> Settings:
    """With a folder for versions, so that there is an engine."""
    folder = policies_folder(settings)
    folder.mkdir(parents=True, exist_ok=True)
    return settings.model_copy(update={"policies": folder})


async def _closed(wanted: "LoopConfig", servers: Servers, settings: Settings, progress: Progress) -> "Closed":
    from offing_trainer.loop import persistent_loop

    async with Database(servers.app_url, most=4) as database, BusHints(servers.redis_url) as hints:
        room = loop_room(database, hints, settings, say=progress.say, told=_teller(progress))
        return await persistent_loop(room, wanted)


def loop_room(
    database: Database, hints: BusHints, settings: Settings, *, say: Callable[[str], None], told: Told
) -> "LoopRoom":
    """What a loop in this process works with; `settings` name the engine. `told` hears of each job, see `Room.said`."""
    from offing_trainer.job.collecting import Collector
    from offing_trainer.job.own_engine import OurEngine
    from offing_trainer.loop import LoopRoom

    key = settings.engine_key

    async def needed(version: str) -> bool:
        async with database.transaction(LOCAL_TENANT) as connection:
            return await policy_versions.is_needed(connection, version)

    engine = OurEngine(Destination(settings.engine_url or "", key.get_secret_value() if key else ""), needed)
    collector = Collector(database, hints, loaded(settings), engine, settings.slice_turns)
    room = replace(room_of(database, settings, told), collect=collector.collected)

    async def run(job: UUID) -> JobRow:
        return await _run(room, job, say)

    return LoopRoom(LOCAL_TENANT, collector, run, room.policies, _make, _hashes, say)


async def _run(room: "Room", job: UUID, say: Callable[[str], None]) -> JobRow:
    """A job to its end. Where another process has it, this one waits until it is done, or lost."""
    from offing_trainer.job.process import run_one

    told = False
    while (done := await run_one(room, job)) is None:
        found = (await training.one(room.database, LOCAL_TENANT, job)).job
        if found.state not in ("queued", "running"):
            return found
        if not told:
            say(f"job {job} belongs to {found.worker}; waiting until it is done, or lost")
        told = True
        await asyncio.sleep(LOST_SECONDS)
    return done


def _teller(progress: Progress) -> Told:
    def say(job: JobRow, phase: str, figures: Mapping[str, float]) -> None:
        if figures or job.step == 0:
            told = "  ".join(f"{name} {figures[name]:.4g}" for name in SHOWN if name in figures)
            progress.say(f"{job.kind} step {job.step}: {told or phase}")

    return say


def _make(folder: Path, start: "StartConfig", seed: int) -> None:
    from offing.world.compact import VOCABULARY
    from offing_engine.small import new_policy

    draft = folder.with_name(f"{folder.name}.{os.getpid()}")
    new_policy(draft, VOCABULARY if start.words == "compact" else None, size=start.size, seed=seed)
    draft.replace(folder)


def _hashes(folder: Path) -> tuple[str, str, str]:
    from offing_trainer.job.publishing import hashes_of

    found = hashes_of(folder, None)
    return found.weights, found.tokenizer, found.template


def _print(closed: "Closed", as_json: bool) -> int:
    if as_json:
        told = {
            "promoted": closed.promoted,
            "why_not": closed.why_not,
            **{name: [_told(one) for one in getattr(closed, name)] for name in ("before", "after", "compared")},
        }
        sys.stdout.write(orjson.dumps(told, option=orjson.OPT_INDENT_2).decode() + "\n")
        return 0
    for before, after in zip(closed.before, closed.after, strict=True):
        print(f"{after.mode:>8}  {before.share:.3f} → {after.share:.3f} on {len(after.rewards)} held-out tasks")
    for one in closed.compared:
        print(f"{one.mode:>8}  {one.share:.3f} by what it is compared with, on the same rollouts")
    print(closed.why_not or "It passed the gate and is active now.")
    return 0


def _told(one: "Scored") -> dict[str, Any]:
    """With each task's reward, in the tasks' order, so that runs can be compared in pairs."""
    name = one.version.label
    rewards = [reward for _, reward in sorted(one.rewards.items())]
    return {"policy": name, "mode": one.mode, "success": one.share, "rewards": rewards}
