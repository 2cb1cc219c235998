"""`offing ask`: ingest documents, submit a run, show its progress and print its report."""

import asyncio
import sys
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import orjson
from pydantic import ValidationError

from offing.bus.live_events import DraftEvent, StepsEvent
from offing.bus.notifier import BusNotifier
from offing.cli.draft_view import DraftView
from offing.cli.hooks import build_hooks
from offing.cli.input_responses import respond_to_pending
from offing.cli.options import AskOptions
from offing.cli.show import get_run_id, print_run, render_run
from offing.cli.stack import get_graph, with_graph_paths
from offing.cli.terminal import ProgressPrinter
from offing.core.errors import InvalidInput
from offing.core.follow_up import FollowUpKind
from offing.core.interaction import Interaction
from offing.core.model import EngineConfig
from offing.core.report_style import MAX_TEMPLATE_CHARS, ReportLength, ReportStyle
from offing.core.run import TURNS_BY_DEPTH, Budget, Depth, RunStatus
from offing.core.step import Step
from offing.core.url import InvalidUrl
from offing.core.web_domains import MAX_DOMAINS, normalize_domains
from offing.local.servers import ServerUrls
from offing.local.stack import open_stack
from offing.mcp.server_registry import McpServerRegistry
from offing.models.embedding_models import open_embedder
from offing.models.engine_discovery import default_engine_config, parse_engine_config, role_engine_configs
from offing.models.preset_table import Preset
from offing.sdk import Graph
from offing.services.engine_configs import choose_engines, choose_preset_engines, select_engines
from offing.services.follow_ups import FollowUpRequest, keep_engines
from offing.services.offline_runs import find_remote_library_model
from offing.services.presets import find_default_preset, get_preset
from offing.services.providers import list_stored
from offing.services.runs import RunRequest, submit_run
from offing.settings import Settings, load_settings
from offing.storage import runs, steps
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Database
from offing.storage.runs import RunRow

DEFAULT_GRAPH = "agentflow"


def run_ask(options: AskOptions) -> int:
    """Run the command and return its exit code.

    The code is 0 if a complete or partial report was written, and 1 if the run failed or found nothing
    to cite.
    """
    settings, progress = with_graph_paths(load_settings(), options.paths), ProgressPrinter(sys.stderr)
    _check_options(options)
    style = build_report_style(options)
    if not options.follow_up:  # before the servers start
        graph = get_graph(settings, options.graph or DEFAULT_GRAPH)
        engines = resolve_engine_configs(options.engines, graph)
        if options.engines and not options.preset:  # otherwise the default preset may name engines
            check_roles_answered(graph, engines)
    with progress, open_stack(settings, build_hooks(), say=progress.show_status) as servers:
        return asyncio.run(_ask(options, servers, settings, progress, style))


def resolve_engine_configs(texts: tuple[str, ...], graph: Graph) -> dict[str, EngineConfig]:
    """Return the engine config of each role from the settings and `role=engine` texts.

    `all=…` stands for every role of the graph that is not optional. Texts override the settings.
    """
    return _find_settings_engines(graph) | _choose_named_engines(texts, graph, None)


def _find_settings_engines(graph: Graph) -> dict[str, EngineConfig]:
    from_settings = role_engine_configs()
    known = {role.name for role in graph.list_askable_roles(from_settings)}
    return {name: engine_config for name, engine_config in from_settings.items() if name in known}


def _choose_named_engines(texts: tuple[str, ...], graph: Graph, preset: Preset | None) -> dict[str, EngineConfig]:
    roles = [role.name for role in graph.roles]
    return (choose_preset_engines(preset, graph) if preset else {}) | parse_engine_configs(texts, roles)


def resolve_budget(options: AskOptions, preset: Preset | None) -> Budget:
    """Return the limits of the run. An option overrides the limit of the preset."""
    limits: Mapping[str, Any] = preset.budget if preset else {}
    names_turns = options.max_turns is not None or options.depth is not None
    depth = Depth(options.depth or limits.get("depth", Depth.STANDARD))
    cost_usd = limits.get("max_cost_usd") if options.max_cost_usd is None else options.max_cost_usd
    return Budget(
        options.turn_limit if names_turns else limits.get("max_turns", TURNS_BY_DEPTH[depth]),
        limits.get("max_tokens"),
        None if cost_usd is None else Decimal(str(cost_usd)),
        limits.get("max_seconds") if options.max_seconds is None else options.max_seconds,
        depth,
    )


def parse_engine_configs(texts: Sequence[str], roles: Sequence[str]) -> dict[str, EngineConfig]:
    """Parse `role=engine` texts into engine configs by role.

    `all=…` stands for every role in `roles`.
    """
    configs: dict[str, EngineConfig] = {}
    for text in texts:
        role, equals, engine = text.partition("=")
        if not equals or not engine:
            raise InvalidInput(
                "--engine", f"{text!r} does not have the form role=engine", "For example, use planner=extractive."
            )
        configs |= dict.fromkeys(roles if role == "all" else [role], parse_engine_config(engine, "--engine"))
    return configs


def check_roles_answered(graph: Graph, engines: Mapping[str, EngineConfig]) -> None:
    """Raise InvalidInput if a role needs a model and no engine config names one."""
    chosen = select_engines(graph, engines, default_engine_config())
    for role in graph.list_askable_roles(engines):
        if role.extractive is None and chosen[role.name].engine == "extractive":
            problem = f"The role {role.name!r} of {graph.name} needs a model, but none is configured"
            remedy = f"Use --engine {role.name}=litellm:PROVIDER/MODEL, or set OFFING_DEFAULT_ENGINE."
            raise InvalidInput("--engine", problem, remedy)


def build_report_style(options: AskOptions) -> ReportStyle | None:
    """Return the report style that the options ask for. `None` means that they ask for none.

    Raises InvalidInput, which names the option.
    """
    template = "" if options.template is None else _read_template(options.template)
    try:
        style = ReportStyle(
            length=None if options.length is None else ReportLength(options.length),
            language=options.language,
            template=template,
        )
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        option, problem = f"--{first['loc'][0]}", first["msg"].removeprefix("Value error, ")
        remedy = (
            f"Use at most {MAX_TEMPLATE_CHARS:,} characters." if option == "--template" else "Use a tag such as zh."
        )
        raise InvalidInput(option, problem, remedy) from None
    return None if style.is_empty else style


def _read_template(path: Path) -> str:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput("--template", f"{path} cannot be read: {error}", "Use a text file in UTF-8.") from error
    if not text.strip():
        raise InvalidInput("--template", f"{path} is empty", "Write the headings of the report into it.")
    return text


def _check_options(options: AskOptions) -> None:
    _build_scope(options, [])  # raises InvalidInput for an invalid domain
    if len(options.question.strip()) < 3:
        raise InvalidInput("question", "must have at least 3 characters", "Enter a question.")
    if not 0 <= options.turn_limit <= 2048:
        raise InvalidInput("--max-turns", f"{options.turn_limit} is out of range", "Use 0 to 2048.")
    if options.kind and not options.follow_up:
        raise InvalidInput("--kind", "there is no earlier run", "Name the run with --follow-up RUN.")
    for folder in options.docs:
        if not folder.is_dir():
            raise InvalidInput("--docs", f"{folder} is not a folder", "Use a folder that contains documents.")


async def _ask(
    options: AskOptions,
    servers: ServerUrls,
    settings: Settings,
    progress: ProgressPrinter,
    style: ReportStyle | None,
) -> int:
    async with Database(servers.app_url, max_connections=4) as database, BusNotifier(servers.redis_url) as notifier:
        followed = await _find_followed_run(database, options)
        graph = get_graph(settings, options.graph or (followed.graph if followed else DEFAULT_GRAPH))
        preset = await _choose_preset(database, options)
        named = _choose_named_engines(options.engines, graph, preset)
        engines = _find_settings_engines(graph) | (keep_engines(graph, followed.engines) if followed else {}) | named
        check_roles_answered(graph, engines)
        async with database.transaction(LOCAL_TENANT) as connection:  # before documents are read, which takes long
            choose_engines(graph, engines, default_engine_config(), await list_stored(connection))
        embedder = open_embedder(settings)
        collections = await _ingest_folders(database, options.docs, settings, progress)
        if collections and embedder is not None:
            from offing.services.vector_filling import wait_until_filled

            progress.vectors_computed(
                await wait_until_filled(database, LOCAL_TENANT, embedder, collections, progress.vectors_counted)
            )
        request = RunRequest(
            options.question,
            graph.name,
            budget=resolve_budget(options, preset),
            engines=named,
            default_engines=_find_settings_engines(graph),
            scope=_build_scope(options, collections),
            report_style=style,
            named_scope=frozenset(name for name in ("web", "code", "offline") if getattr(options, name) is False),
            interactions=_list_interactions(options),
            remote_library_model=find_remote_library_model(settings),
            follow_up=followed and FollowUpRequest(FollowUpKind(options.kind or FollowUpKind.AUTO), followed.id),
        )
        graphs = {graph.name: graph}
        submitted = await submit_run(
            database,
            notifier,
            LOCAL_TENANT,
            request,
            graphs=graphs,
            default_engine=default_engine_config(),
            servers=McpServerRegistry(settings.mcp_config),
        )
        run = await follow_run(database, notifier, submitted.run, progress)
        result = await render_run(database, run.id)
    print_result(result, options.as_json)
    return 0 if run.status is RunStatus.DONE else 1


async def _choose_preset(database: Database, options: AskOptions) -> Preset | None:
    """Return the preset that the options name, or the default one of a new question without engines."""
    if options.preset:
        return await get_preset(database, LOCAL_TENANT, options.preset)
    if options.engines or options.follow_up:
        return None
    return await find_default_preset(database, LOCAL_TENANT)


async def _find_followed_run(database: Database, options: AskOptions) -> RunRow | None:
    """Return the run whose report the question is about. `None` means that it is a new question."""
    if not options.follow_up:
        return None
    run_id = await get_run_id(database, options.follow_up)
    async with database.transaction(LOCAL_TENANT) as connection:
        return await runs.get_run(connection, run_id)


def _build_scope(options: AskOptions, collections: list[str]) -> dict[str, Any]:
    entries = {
        "collections": collections,
        "web": options.web,
        "code": options.code,
        "mcp": list(options.mcp),
        "only_domains": _parse_domains("--only-domain", options.only_domain),
        "excluded_domains": _parse_domains("--not-domain", options.not_domain),
        "offline": options.offline,
    }
    return {name: value for name, value in entries.items() if value or name == "collections"}


def _parse_domains(option: str, texts: Sequence[str]) -> list[str]:
    domains = normalize_domains(texts)
    if isinstance(domains, InvalidUrl):
        problem, _, remedy = domains.problem.partition("; ")
        raise InvalidInput(option, problem, f"{remedy[:1].upper()}{remedy[1:]}.")
    if len(domains) > MAX_DOMAINS:
        raise InvalidInput(option, f"is given {len(domains)} times", f"Use at most {MAX_DOMAINS} domains.")
    return domains


def _list_interactions(options: AskOptions) -> frozenset[Interaction]:
    chosen = {Interaction.CLARIFY: options.clarify, Interaction.PLAN_REVIEW: options.review_plan}
    return frozenset(interaction for interaction, is_chosen in chosen.items() if is_chosen)


async def _ingest_folders(
    database: Database, folders: Sequence[Path], settings: Settings, progress: ProgressPrinter
) -> list[str]:
    """Ingest folders and return the names of their collections."""
    if not folders:
        return []
    from offing.library.readers import DocumentReaderPool
    from offing.services.ingestion import ingest_folder

    collections: list[str] = []
    async with DocumentReaderPool(settings.reader_processes) as readers:
        for folder in folders:
            ingested = await ingest_folder(database, LOCAL_TENANT, folder, progress.document_read, readers=readers)
            progress.folder_ingested(ingested)
            collections.append(ingested.collection)
    return collections


async def follow_run(
    database: Database, notifier: BusNotifier, run: RunRow, progress: ProgressPrinter, after_seq: int = 0
) -> RunRow:
    """Print the steps of a run as they are written, until the run has ended.

    `after_seq` is the sequence number of the last step to skip.
    """
    shown_wait = ""
    drafts = DraftView(notifier.live, LOCAL_TENANT, run.id, progress)
    async with notifier.live.subscribe(LOCAL_TENANT, {run.id}) as notices:
        while True:
            new_steps, row = await _load_new_steps(database, run.id, after_seq)
            for step in new_steps:
                progress.print_step(step)
                after_seq = step.seq
            if row.is_terminal and after_seq >= row.last_seq:
                return row
            if row.waiting_for and row.waiting_for != shown_wait:
                shown_wait = row.waiting_for
                progress.show_wait(shown_wait)
            if row.status is RunStatus.WAITING and await _answer_at_terminal(database, notifier, row.id, progress):
                shown_wait = ""
                continue
            while isinstance(notice := await anext(notices), DraftEvent):
                await drafts.apply(notice.change)
            if isinstance(notice, StepsEvent) and notice.steps[0].seq == after_seq + 1:
                for step in notice.steps[:-1]:
                    progress.print_step(step)
                    after_seq = step.seq


async def _answer_at_terminal(
    database: Database, notifier: BusNotifier, run_id: UUID, progress: ProgressPrinter
) -> bool:
    """Ask the person at this terminal and return whether an input request was answered.

    Without a terminal, return False: the run waits for an answer from elsewhere.
    """
    if not sys.stdin.isatty():
        return False
    try:
        return await respond_to_pending(database, notifier, run_id, progress) > 0
    except EOFError:
        return False


async def _load_new_steps(database: Database, run_id: UUID, after_seq: int) -> tuple[list[Step], RunRow]:
    async with database.transaction(LOCAL_TENANT) as connection:
        row = await runs.get_run(connection, run_id)
        return await steps.list_steps_after(connection, run_id, after_seq, 1000), row


def print_result(result: dict[str, Any], as_json: bool) -> None:
    """Print the result of an ended run, as JSON or for a reader at a terminal."""
    if as_json:
        sys.stdout.write(orjson.dumps(result, option=orjson.OPT_INDENT_2).decode() + "\n")
    else:
        print_run(result)
