"""`offing up`, `down`, `status`, `login`, `doctor` and `migrate`: manage the local stack."""

import asyncio
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import orjson
from pydantic import SecretStr

from offing.cli.hooks import build_hooks, create_login_link
from offing.cli.hooks import migrate as apply_migrations
from offing.cli.langgraph_dev import DevAddress, apply_address, open_in_browser, prepare_langgraph_projects
from offing.cli.log_line import render_log_line
from offing.cli.options import DevOptions
from offing.core.errors import Conflict
from offing.local import background, stack
from offing.local.servers import ServerUrls, open_servers
from offing.packaged_files import get_migrations_dir
from offing.settings import Settings, load_settings

if TYPE_CHECKING:
    from offing.core.check import Check
    from offing.sdk import Graph
    from offing.services.graphs import GraphRegistry
    from offing.services.health import Health


def up(*, detach: bool, paths: Sequence[Path] = ()) -> int:
    settings = with_graph_paths(load_settings(), paths)
    if settings.graph_paths:
        _require_usable_folder(load_graphs(settings))  # print here at a terminal; each child process logs it, too
    if detach:
        named = [word for path in paths for word in ("--path", str(path.resolve()))]
        argv = [sys.executable, "-m", "offing.cli", "up", *named]
        return background.start_detached(settings, argv, build_hooks(), say=print_message)
    return stack.run_stack(settings, build_hooks(), say=print_message, echo=print_process_line)


def dev(options: DevOptions) -> int:
    """Start the stack as `up` does, and reload the given folders of graphs when they change."""
    from offing.cli.graph_reload import report_changes
    from offing.services.graphs import open_registry_from_settings

    paths = options.path or (Path(),)
    settings = with_graph_paths(load_settings(), paths).model_copy(update={"graph_reload": not options.no_reload})
    settings = prepare_langgraph_projects(settings, paths, print_message)
    settings = apply_address(settings, DevAddress(options.host, options.port, options.web_port))
    if (running := background.get_status(settings)).pid is not None:
        raise Conflict(
            f"Offing is already running for this data directory (pid {running.pid}).",
            "Stop it with `offing down` first.",
        )
    hooks = build_hooks() if options.no_browser else replace(build_hooks(), show_login_link=open_in_browser)
    graphs = open_registry_from_settings(settings, on_problem=_ignore_problem)
    with report_changes(graphs, print_message) if settings.graph_reload else nullcontext():
        return stack.run_stack(settings, hooks, say=print_message, echo=print_process_line)


def load_graphs(settings: Settings) -> "GraphRegistry":
    """Load the graphs of the settings. Folders that cannot be used are reported on standard error."""
    from offing.services.graphs import open_registry_from_settings

    return open_registry_from_settings(settings, on_problem=_print_problem)


def get_graph(settings: Settings, name: str) -> "Graph":
    """Return a graph of the settings. Problems in other folders are reported on standard error.

    Raises InvalidInput if there is no such graph.
    """
    from offing.services.graphs import get_graph as get_registered_graph
    from offing.services.graphs import open_registry_from_settings

    graphs = open_registry_from_settings(settings, on_problem=_ignore_problem)
    graph = get_registered_graph(graphs, name)
    for problem in graphs.broken:
        _print_problem(str(problem.error))
    return graph


def _print_problem(problem: str) -> None:
    print_message(f"offing: {problem}")


def _ignore_problem(problem: str) -> None:
    """Ignore a problem that is reported elsewhere."""


def _require_usable_folder(graphs: "GraphRegistry") -> None:
    """Raise InvalidInput if no folder can be used, because none of the named graphs would exist."""
    if graphs.broken and not graphs.folder_graph_names:
        raise graphs.broken[0].error


def with_graph_paths(settings: Settings, paths: Sequence[Path]) -> Settings:
    """Return the settings with additional folders of graphs."""
    named = [str(path.expanduser().resolve()) for path in paths]
    return settings.model_copy(update={"graph_paths": os.pathsep.join(filter(None, [settings.graph_paths, *named]))})


def down() -> int:
    stopped = background.stop_stack(load_settings(), say=print_message)
    print_message("stopped" if stopped else "nothing was running")
    return 0


def status() -> int:
    stack_status = background.get_status(load_settings())
    if stack_status.pid is None:
        print("not running")
        return 1
    print(
        f"running (pid {stack_status.pid}): {', '.join(stack_status.programs)}"
        + (f" · {stack_status.web_url}" if stack_status.web_url else "")
    )
    return 0


def login(web_url: str | None, *, is_operator: bool = False) -> int:
    """Print a login link and return the exit code. The URL of the web UI must be known."""
    settings = load_settings()
    web_url = web_url or background.get_status(settings).web_url
    if web_url is None:
        print_message(
            "offing: no stack is running for this data directory. Run `offing up`, or specify the web UI with --url."
        )
        return 1
    with open_servers(settings) as servers:
        print(create_login_link(servers, web_url, is_operator=is_operator))
    return 0


def migrate(*, check: bool) -> int:
    from offing.storage.migrate import is_current

    with open_servers(load_settings()) as servers:
        if check:
            current = is_current(servers.owner_url, get_migrations_dir())
            print("up to date" if current else "migrations are missing; run `offing migrate`")
            return 0 if current else 1
        applied = apply_migrations(servers)
    print(f"applied {', '.join(applied)}" if applied else "up to date")
    return 0


def run_doctor(as_json: bool) -> int:
    checks = _run_checks(load_settings(), as_json)
    if as_json:
        sys.stdout.write(orjson.dumps(checks, option=orjson.OPT_INDENT_2).decode() + "\n")
    return 0 if all(c.ok for c in checks) else 1


def _run_checks(settings: Settings, quiet: bool) -> "list[Check]":
    from rich.console import Console

    from offing.bus.server_version import get_redis_version
    from offing.local.doctor import Probes, run_checks
    from offing.models.engine_discovery import describe_policy_engine
    from offing.storage.server_version import get_postgres_version

    console, checks = Console(highlight=False, soft_wrap=True), list["Check"]()
    probes = Probes(get_postgres_version, get_redis_version, describe_policy_engine)
    for check in chain(run_checks(settings, probes), _check_running_stack(settings)):
        checks.append(check)
        if not quiet:
            mark = "[green]ok  [/green]" if check.ok else "[red]no  [/red]"
            console.print(f"{mark} [bold]{check.name}[/bold]  {check.detail}")
            if check.remedy:
                console.print(f"     {check.remedy}")
    return checks


def _check_running_stack(settings: Settings) -> "Iterator[Check]":
    """Yield the checks of the running stack, as the web UI shows them. None if no stack runs here."""
    if background.get_status(settings).pid is None:
        return
    with open_servers(settings) as servers:
        health = asyncio.run(_get_health(settings, servers))
    repeated = {"Disk", "Web search", "MCP servers"}
    yield from (check for check in health.checks if check.name not in repeated)


async def _get_health(settings: Settings, servers: ServerUrls) -> "Health":
    from offing.bus.live import LiveBus
    from offing.services.health import get_health
    from offing.storage.migrate import LOCAL_TENANT
    from offing.storage.pool import Database

    urls = {"app_database_url": SecretStr(servers.app_url), "redis_url": SecretStr(servers.redis_url)}
    bus = LiveBus(servers.redis_url)
    try:
        async with Database(servers.app_url, max_connections=4) as database:
            return await get_health(database, settings.model_copy(update=urls), LOCAL_TENANT, bus.is_reachable)
    finally:
        await bus.close()


def print_message(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def print_process_line(name: str, line: str) -> None:
    """Print a line of a child process: unchanged for a pipe, readable for a terminal."""
    text = render_log_line(line) if sys.stderr.isatty() else line
    print(f"{name:>8} | {text}", file=sys.stderr, flush=True)
