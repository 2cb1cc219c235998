"""`offing fork`: go on from a recorded step of a run, show progress, print the report."""

import asyncio
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path

from offing.bus.hints import BusHints
from offing.cli.ask import engines_named, follow, print_result
from offing.cli.hooks import hooks
from offing.cli.show import find_run, run_as_json
from offing.cli.stack import loaded, with_paths
from offing.cli.terminal import Progress
from offing.core.model import EngineChoice
from offing.core.run import Budget, RunStatus
from offing.local.servers import Servers
from offing.local.stack import working_stack
from offing.mcp.catalogue import Catalogue
from offing.sdk import Graph
from offing.services.forks import ForkRequest, fork
from offing.settings import Settings, load_settings
from offing.storage import runs
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Database
from offing.storage.runs import RunRow


@dataclass(frozen=True, slots=True)
class WantedFork:
    """What was asked on the command line. None: as in the run that is forked."""

    run: str
    at: int | None
    engines: tuple[str, ...]
    turns: int | None
    usd: float | None
    seconds: float | None
    say: str
    paths: tuple[Path, ...]


def run(wanted: WantedFork, as_json: bool) -> int:
    """0: a report was written, complete or partial. 1: the fork failed or found nothing to cite."""
    settings, progress = with_paths(load_settings(), wanted.paths), Progress(sys.stderr)
    graphs = loaded(settings)
    with progress, working_stack(settings, hooks(), say=progress.say) as servers:
        return asyncio.run(_fork(wanted, graphs, servers, settings, progress, as_json))


async def _fork(
    wanted: WantedFork,
    graphs: Mapping[str, Graph],
    servers: Servers,
    settings: Settings,
    progress: Progress,
    as_json: bool,
) -> int:
    async with Database(servers.app_url, most=4) as database, BusHints(servers.redis_url) as hints:
        request = await _request(database, wanted)
        made = await fork(database, hints, LOCAL_TENANT, request, graphs=graphs, servers=Catalogue(settings.mcp))
        row = await follow(database, hints, made.run, progress, shown=made.run.forked_at or 0)
        result = await run_as_json(database, row.id)
    print_result(result, as_json)
    return 0 if row.status is RunStatus.DONE else 1


async def _request(database: Database, wanted: WantedFork) -> ForkRequest:
    id = await find_run(database, wanted.run)
    async with database.transaction(LOCAL_TENANT) as connection:
        origin = await runs.by_id(connection, id)
    return ForkRequest(id, wanted.at, _budget(wanted, origin), _engines(wanted, origin), wanted.say)


def _budget(wanted: WantedFork, origin: RunRow) -> Budget:
    limits = {"turns": wanted.turns, "usd": None if wanted.usd is None else Decimal(str(wanted.usd))}
    given = {name: limit for name, limit in {**limits, "seconds": wanted.seconds}.items() if limit is not None}
    return replace(origin.budget, **given)


def _engines(wanted: WantedFork, origin: RunRow) -> dict[str, EngineChoice]:
    return engines_named(wanted.engines, list(origin.engines))
