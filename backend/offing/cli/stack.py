"""`offing up`, `down`, `status`, `login`, `doctor` and `migrate`: this home's processes, for a person at a terminal."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import orjson
from rich.console import Console

from offing.cli.hooks import hooks, login_link
from offing.cli.hooks import migrate as apply_migrations
from offing.cli.logline import log_line
from offing.cli.watching import watching
from offing.core.errors import Conflict
from offing.local import background, stack
from offing.local.doctor import Check, Probes, examine
from offing.local.servers import local_servers
from offing.resources import migrations_dir
from offing.sdk import Graph
from offing.services.graphs import Catalogue, available, named
from offing.settings import Settings, load_settings


def up(*, detach: bool, paths: Sequence[Path] = ()) -> int:
    settings = with_paths(load_settings(), paths)
    if settings.graph_paths:
        _check_folders(loaded(settings))  # told here at a terminal; each of the children has it in its log
    if detach:
        named = [word for path in paths for word in ("--path", str(path.resolve()))]
        argv = [sys.executable, "-m", "offing.cli", "up", *named]
        return background.up_detached(settings, argv, hooks(), say=say)
    return stack.up(settings, hooks(), say=say, echo=echo)


def dev(paths: Sequence[Path]) -> int:
    """As `up`, over folders of graphs that are loaded anew when they change."""
    settings = with_paths(load_settings(), paths or [Path()]).model_copy(update={"graph_reload": True})
    if (running := background.status(settings)).pid is not None:
        raise Conflict(f"Offing runs for this home already (pid {running.pid}).", "Stop it with `offing down` first.")
    with watching(available(settings, tell=_nothing), say):
        return stack.up(settings, hooks(), say=say, echo=echo)


def loaded(settings: Settings) -> Catalogue:
    """The graphs of these settings. A folder that cannot be used is told on standard error."""
    return available(settings, tell=_complain)


def graph_named(settings: Settings, name: str) -> Graph:
    """A graph of these settings. Raises InvalidInput; what is wrong with other folders is told on standard error."""
    graphs = available(settings, tell=_nothing)
    graph = named(graphs, name)
    for one in graphs.broken:
        _complain(str(one.error))
    return graph


def _complain(problem: str) -> None:
    say(f"offing: {problem}")


def _nothing(problem: str) -> None:
    """It is told elsewhere."""


def _check_folders(graphs: Catalogue) -> None:
    """Raise InvalidInput where every folder is broken: nothing of what was named would be there."""
    if graphs.broken and not graphs.in_folders:
        raise graphs.broken[0].error


def with_paths(settings: Settings, paths: Sequence[Path]) -> Settings:
    """The settings with further folders of graphs."""
    named = [str(path.expanduser().resolve()) for path in paths]
    return settings.model_copy(update={"graph_paths": os.pathsep.join(filter(None, [settings.graph_paths, *named]))})


def down() -> int:
    stopped = background.down(load_settings(), say=say)
    say("stopped" if stopped else "nothing was running")
    return 0


def status() -> int:
    found = background.status(load_settings())
    if found.pid is None:
        print("not running")
        return 1
    print(
        f"running (pid {found.pid}): {', '.join(found.programs)}" + (f" · {found.page_url}" if found.page_url else "")
    )
    return 0


def login(page: str | None) -> int:
    """Needs to know a page, since a link into nothing helps nobody."""
    settings = load_settings()
    page = page or background.status(settings).page_url
    if page is None:
        say("offing: nothing runs for this home; start it with `offing up`, or name the page with --page.")
        return 1
    with local_servers(settings) as servers:
        print(login_link(servers, page))
    return 0


def migrate(*, check: bool) -> int:
    from offing.storage.migrate import is_current

    with local_servers(load_settings()) as servers:
        if check:
            current = is_current(servers.owner_url, migrations_dir())
            print("up to date" if current else "migrations are missing; run `offing migrate`")
            return 0 if current else 1
        applied = apply_migrations(servers)
    print(f"applied {', '.join(applied)}" if applied else "up to date")
    return 0


def doctor(as_json: bool) -> int:
    checks = _examined(load_settings(), as_json)
    if as_json:
        sys.stdout.write(orjson.dumps(checks, option=orjson.OPT_INDENT_2).decode() + "\n")
    return 0 if all(c.ok for c in checks) else 1


def _examined(settings: Settings, quietly: bool) -> list[Check]:
    from offing.bus.probe import redis_answers
    from offing.models.discover import policy_answers
    from offing.storage.probe import database_answers

    console, checks = Console(highlight=False, soft_wrap=True), list[Check]()
    for check in examine(settings, Probes(database_answers, redis_answers, policy_answers)):
        checks.append(check)
        if not quietly:
            mark = "[green]ok  [/green]" if check.ok else "[red]no  [/red]"
            console.print(f"{mark} [bold]{check.name}[/bold]  {check.detail}")
            if check.remedy:
                console.print(f"     {check.remedy}")
    return checks


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def echo(name: str, line: str) -> None:
    """A line that one of our processes wrote: as it is for a machine, readable for a person."""
    shown = log_line(line) if sys.stderr.isatty() else line
    print(f"{name:>8} | {shown}", file=sys.stderr, flush=True)
