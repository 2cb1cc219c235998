"""`offing fork`: continue from a recorded step of a run, show progress and print the report."""

import asyncio
import sys
from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal

from offing.bus.notifier import BusNotifier
from offing.cli.ask import follow_run, parse_engine_configs, print_result
from offing.cli.hooks import build_hooks
from offing.cli.options import ForkOptions
from offing.cli.show import get_run_id, render_run
from offing.cli.stack import load_graphs, with_graph_paths
from offing.cli.terminal import ProgressPrinter
from offing.core.model import EngineConfig
from offing.core.run import Budget, RunStatus
from offing.local.servers import ServerUrls
from offing.local.stack import open_stack
from offing.mcp.server_registry import McpServerRegistry
from offing.sdk import Graph
from offing.services.forks import ForkRequest, fork_run
from offing.settings import Settings, load_settings
from offing.storage import runs
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Database
from offing.storage.runs import RunRow


def run_fork(options: ForkOptions) -> int:
    """Run the command and return its exit code.

    The code is 0 if a complete or partial report was written, and 1 if the fork failed or found nothing
    to cite.
    """
    settings, progress = with_graph_paths(load_settings(), options.paths), ProgressPrinter(sys.stderr)
    graphs = load_graphs(settings)
    with progress, open_stack(settings, build_hooks(), say=progress.show_status) as servers:
        return asyncio.run(_fork(options, graphs, servers, settings, progress))


async def _fork(
    options: ForkOptions,
    graphs: Mapping[str, Graph],
    servers: ServerUrls,
    settings: Settings,
    progress: ProgressPrinter,
) -> int:
    async with Database(servers.app_url, max_connections=4) as database, BusNotifier(servers.redis_url) as notifier:
        request = await _build_request(database, options)
        fork_created = await fork_run(
            database, notifier, LOCAL_TENANT, request, graphs=graphs, servers=McpServerRegistry(settings.mcp_config)
        )
        row = await follow_run(
            database, notifier, fork_created.run, progress, after_seq=fork_created.run.forked_at or 0
        )
        result = await render_run(database, row.id)
    print_result(result, options.as_json)
    return 0 if row.status is RunStatus.DONE else 1


async def _build_request(database: Database, options: ForkOptions) -> ForkRequest:
    id = await get_run_id(database, options.run)
    async with database.transaction(LOCAL_TENANT) as connection:
        origin = await runs.get_run(connection, id)
    return ForkRequest(
        id, options.at, _build_budget(options, origin), _build_engine_configs(options, origin), options.message
    )


def _build_budget(options: ForkOptions, origin: RunRow) -> Budget:
    limits = {
        "max_turns": options.max_turns,
        "max_cost_usd": None if options.max_cost_usd is None else Decimal(str(options.max_cost_usd)),
    }
    limits_given = {
        name: limit for name, limit in {**limits, "max_seconds": options.max_seconds}.items() if limit is not None
    }
    return replace(origin.budget, **limits_given)


def _build_engine_configs(options: ForkOptions, origin: RunRow) -> dict[str, EngineConfig]:
    return parse_engine_configs(options.engines, list(origin.engines))
