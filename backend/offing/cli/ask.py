"""`offing ask`: take in the documents, submit, show progress, print the report."""

import asyncio
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import orjson

from offing.bus.hints import BusHints
from offing.bus.live import NewSteps
from offing.cli.asking import answer_open
from offing.cli.hooks import hooks
from offing.cli.show import printed, run_as_json
from offing.cli.stack import graph_named, with_paths
from offing.cli.terminal import Progress
from offing.core.errors import InvalidInput
from offing.core.model import EngineChoice
from offing.core.run import Budget, RunStatus
from offing.core.step import Step
from offing.library.readers import Readers
from offing.local.servers import Servers
from offing.local.stack import working_stack
from offing.mcp.catalogue import Catalogue
from offing.models.discover import default_choice, engine_named, role_choices
from offing.sdk import Graph
from offing.services.library import ingest_folder
from offing.services.runs import RunRequest, engines_for, submit
from offing.settings import Settings, load_settings
from offing.storage import runs, steps
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Database
from offing.storage.runs import RunRow


@dataclass(frozen=True, slots=True)
class Wanted:
    """What was asked on the command line."""

    question: str
    docs: tuple[Path, ...]
    graph: str
    engines: tuple[str, ...]
    turns: int
    usd: float | None
    seconds: float | None
    web: bool = False
    mcp: tuple[str, ...] = ()
    paths: tuple[Path, ...] = ()
    code: bool = False


def run(wanted: Wanted, as_json: bool) -> int:
    """0: a report was written, complete or partial. 1: the run failed or found nothing to cite."""
    settings, progress = with_paths(load_settings(), wanted.paths), Progress(sys.stderr)
    _check(wanted)
    graph = graph_named(settings, wanted.graph)
    engines = engines_of(wanted.engines, graph)
    check_answered(graph, engines)
    with progress, working_stack(settings, hooks(), say=progress.say) as servers:
        return asyncio.run(_ask(wanted, graph, engines, servers, settings, progress, as_json))


def engines_of(texts: tuple[str, ...], graph: Graph) -> dict[str, EngineChoice]:
    """`role=engine` texts as choices; `all=…` stands for every role of the graph."""
    roles = [role.name for role in graph.roles]
    return {name: choice for name, choice in role_choices().items() if name in roles} | engines_named(texts, roles)


def engines_named(texts: Sequence[str], roles: Sequence[str]) -> dict[str, EngineChoice]:
    """Those of `role=engine` texts alone; `all=…` stands for every one of these roles."""
    choices: dict[str, EngineChoice] = {}
    for text in texts:
        role, found, engine = text.partition("=")
        if not found or not engine:
            raise InvalidInput("--engine", f"{text!r} is not role=engine", "Write for instance planner=extractive.")
        choices |= dict.fromkeys(roles if role == "all" else [role], engine_named(engine, "--engine"))
    return choices


def check_answered(graph: Graph, engines: Mapping[str, EngineChoice]) -> None:
    """Raises InvalidInput where a role needs a model and none is chosen: its runs could not answer anything."""
    chosen = engines_for(graph, engines, default_choice())
    for role in graph.roles:
        if role.extractive is None and chosen[role.name].engine == "extractive":
            problem = f"The role {role.name!r} of {graph.name} needs a model, and none is chosen"
            remedy = f"Write --engine {role.name}=litellm:PROVIDER/MODEL, or set OFFING_ENGINE."
            raise InvalidInput("--engine", problem, remedy)


def _check(wanted: Wanted) -> None:
    if len(wanted.question.strip()) < 3:
        raise InvalidInput("question", "It is empty", "Write what you want to know.")
    if not 0 <= wanted.turns <= 2048:
        raise InvalidInput("--turns", f"{wanted.turns} is out of range", "Use 0 to 2048.")
    for folder in wanted.docs:
        if not folder.is_dir():
            raise InvalidInput("--docs", f"{folder} is not a folder", "Name a folder with documents in it.")


async def _ask(
    wanted: Wanted,
    graph: Graph,
    engines: dict[str, EngineChoice],
    servers: Servers,
    settings: Settings,
    progress: Progress,
    as_json: bool,
) -> int:
    async with Database(servers.app_url, most=4) as database, BusHints(servers.redis_url) as hints:
        collections = await _take_in(database, wanted.docs, settings, progress)
        request = RunRequest(
            wanted.question,
            wanted.graph,
            budget=Budget(wanted.turns, None, None if wanted.usd is None else Decimal(str(wanted.usd)), wanted.seconds),
            engines=engines,
            scope=_scope(wanted, collections),
        )
        graphs = {graph.name: graph}
        submitted = await submit(
            database,
            hints,
            LOCAL_TENANT,
            request,
            graphs=graphs,
            default_engine=default_choice(),
            servers=Catalogue(settings.mcp),
        )
        run = await follow(database, hints, submitted.run, progress)
        result = await run_as_json(database, run.id)
    print_result(result, as_json)
    return 0 if run.status is RunStatus.DONE else 1


def _scope(wanted: Wanted, collections: list[str]) -> dict[str, Any]:
    asked = {"collections": collections, "web": wanted.web, "code": wanted.code, "mcp": list(wanted.mcp)}
    return {name: value for name, value in asked.items() if value or name == "collections"}


async def _take_in(database: Database, folders: Sequence[Path], settings: Settings, progress: Progress) -> list[str]:
    """Take folders in; the names of their collections."""
    collections: list[str] = []
    async with Readers(settings.readers) as readers:
        for folder in folders:
            taken = await ingest_folder(database, LOCAL_TENANT, folder, progress.document, readers=readers)
            progress.taken_in(taken)
            collections.append(taken.collection)
    return collections


async def follow(database: Database, hints: BusHints, run: RunRow, progress: Progress, shown: int = 0) -> RunRow:
    """Show steps as they come, until the run has ended. `shown`: the last step that is left out."""
    waited = ""
    async with hints.live.follow(LOCAL_TENANT, {run.id}) as notices:
        while True:
            new, row = await _look(database, run.id, shown)
            for step in new:
                progress.step(step)
                shown = step.seq
            if row.terminal and shown >= row.last_seq:
                return row
            if row.waiting_for and row.waiting_for != waited:
                waited = row.waiting_for
                progress.waits(waited)
            if row.status is RunStatus.WAITING and await _answered(database, hints, row.id, progress):
                waited = ""
                continue
            notice = await anext(notices)
            if isinstance(notice, NewSteps) and notice.steps[0].seq == shown + 1:
                for step in notice.steps[:-1]:
                    progress.step(step)
                    shown = step.seq


async def _answered(database: Database, hints: BusHints, run: UUID, progress: Progress) -> bool:
    """Whether a person at this terminal answered what the run asks. Without a terminal it is answered elsewhere."""
    if not sys.stdin.isatty():
        return False
    try:
        return await answer_open(database, hints, run, progress) > 0
    except EOFError:
        return False


async def _look(database: Database, run: UUID, shown: int) -> tuple[list[Step], RunRow]:
    async with database.transaction(LOCAL_TENANT) as connection:
        row = await runs.by_id(connection, run)
        return await steps.after(connection, run, shown, 1000), row


def print_result(result: dict[str, Any], as_json: bool) -> None:
    """A run that has ended, for a person or a script."""
    if as_json:
        sys.stdout.write(orjson.dumps(result, option=orjson.OPT_INDENT_2).decode() + "\n")
    else:
        printed(result)
