"""`offing rollouts`: collect rollouts and show their progress."""

import asyncio
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import orjson
from rich.console import Console
from rich.table import Table

from offing.bus.notifier import BusNotifier
from offing.cli.ask import check_roles_answered, resolve_engine_configs
from offing.cli.hooks import build_hooks
from offing.cli.id_suffix import select_match
from offing.cli.options import CollectOptions
from offing.cli.show import run_with_database
from offing.cli.stack import get_graph, with_graph_paths
from offing.cli.terminal import ProgressPrinter, print_json, strip_control
from offing.core.errors import InvalidInput
from offing.core.judge_budget import JudgeBudget
from offing.core.model import EngineConfig
from offing.core.run import Budget
from offing.datasets.dataset import Dataset, open_dataset
from offing.library.readers import DocumentReaderPool
from offing.local.background import get_status
from offing.local.servers import ServerUrls
from offing.local.shared_engine import is_serving
from offing.local.stack import count_worker_processes, open_stack
from offing.mcp.server_registry import McpServerRegistry
from offing.models.credentials import EngineEndpoint
from offing.models.engine_discovery import default_engine_config
from offing.models.policy_http import UNIX_SCHEME
from offing.sdk import Graph
from offing.services import policies, rollouts, tasks
from offing.services.datasets import store_dataset
from offing.services.rollouts import BatchRequest, BatchStatus, ScorerSpec
from offing.settings import Settings, load_settings
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Database
from offing.storage.rollout_batches import RolloutBatchRow
from offing.tools.environment import TaskSample, find_spec

DEFAULT_ENVIRONMENT_TASKS = 100
"""Number of tasks of an environment if `--max-tasks` is not given."""

POLL_SECONDS = 0.5
"""Interval in seconds between queries of a batch."""

MAX_SEARCHED_BATCHES = 200
"""Number of latest batches that are searched for the end of an id."""

SCORER_PATTERN = re.compile(
    r"(?P<name>[a-z0-9_]+)(?:=(?P<weight>-?\d+(?:\.\d+)?))?(?::(?P<options>\{.*\}))?", re.DOTALL
)


def run_collect(options: CollectOptions) -> int:
    """Run the command and return its exit code.

    The code is 1 if the command waited and the batch has no complete group, and otherwise 0.
    """
    settings, progress = with_graph_paths(load_settings(), options.paths), ProgressPrinter(sys.stderr)
    if not 0 <= options.max_turns <= 2048:
        raise InvalidInput("--max-turns", f"{options.max_turns} is out of range", "Use 0 to 2048.")
    graph = get_graph(settings, options.graph)
    engines = merge_engine_configs(options.engines, options.policies, graph)
    check_roles_answered(graph, engines)
    scorers = [parse_scorer(text) for text in options.scorers] or None
    dataset, is_temporary = _load_dataset(options), get_status(settings).pid is None
    workers = count_worker_processes(settings) if options.wait else 1
    with progress, open_stack(settings, build_hooks(), say=progress.show_status, worker_count=workers) as servers:
        batch_status = asyncio.run(_collect(options, graph, engines, scorers, dataset, servers, settings, progress))
    _print_batch(batch_status, options.as_json)
    if is_temporary and not options.wait:
        print("No stack is running for this data directory. Run `offing up` to continue the rollouts.", file=sys.stderr)
    return 0 if not options.wait or batch_status.progress.complete else 1


def list_batches(limit: int, as_json: bool) -> int:
    batches, _ = run_with_database(lambda database: rollouts.list_batches(database, LOCAL_TENANT, None, limit))
    if as_json:
        return print_json([render_batch(batch_status) for batch_status in batches])
    table = Table("batch", "name", "graph", "groups", "rollouts", "mean reward", box=None)
    for seen in batches:
        p, mean = seen.progress, seen.progress.mean_reward
        done = f"{p.complete + p.incomplete} of {seen.batch.group_count}" + (
            f" ({p.incomplete} incomplete)" if p.incomplete else ""
        )
        mean_text = "" if mean is None else f"{mean:.3f}"
        graph, name = seen.batch.request["graph"], strip_control(seen.batch.name)
        table.add_row(str(seen.batch.id)[-8:], name, graph, done, f"{p.finalized} of {p.rollouts}", mean_text)
    Console().print(table)
    return 0


def show_batch(batch_text: str, as_json: bool) -> int:
    async def work(database: Database) -> BatchStatus:
        return await rollouts.get_batch(database, LOCAL_TENANT, await _get_batch_id(database, batch_text))

    _print_batch(run_with_database(work), as_json)
    return 0


def cancel_batch(batch_text: str) -> int:
    settings = load_settings()

    async def work(servers: ServerUrls) -> BatchStatus:
        async with Database(servers.app_url, max_connections=2) as database, BusNotifier(servers.redis_url) as notifier:
            return await rollouts.cancel_batch(
                database, notifier, LOCAL_TENANT, await _get_batch_id(database, batch_text)
            )

    with open_stack(settings, build_hooks(), say=lambda _: None) as servers:
        _print_batch(asyncio.run(work(servers)), False)
    return 0


def parse_policy_configs(texts: Sequence[str]) -> dict[str, EngineConfig]:
    """Parse `role=NAME@VERSION` texts into engine configs by role.

    `role+FORMAT=…` selects another prompt format of the role.
    """
    configs: dict[str, EngineConfig] = {}
    for text in texts:
        role, equals, version = text.partition("=")
        if not equals or not version or not role:
            raise InvalidInput(
                "--policy", f"{text!r} does not have the form role=NAME@VERSION", "For example, use planner=small@3."
            )
        role, _, prompt_format = role.partition("+")
        configs[role] = EngineConfig(engine="policy", model=version, prompt_format=prompt_format)
    return configs


def merge_engine_configs(engines: Sequence[str], policies: Sequence[str], graph: Graph) -> dict[str, EngineConfig]:
    """Merge `--engine` and `--policy` into engine configs by role.

    `--engine all=…` stands for the roles without a policy.
    """
    versions = parse_policy_configs(policies)
    for text in engines:
        if (role := text.partition("=")[0]) in versions:
            remedy = f"Omit one of them, or use --engine all=… for the roles other than {role}."
            raise InvalidInput("--policy", f"{role!r} also has an --engine", remedy)
    return resolve_engine_configs(tuple(engines), graph) | versions


def parse_scorer(text: str) -> ScorerSpec:
    """Parse `NAME`, `NAME=WEIGHT` or `NAME=WEIGHT:{JSON}` as a scorer."""
    match = SCORER_PATTERN.fullmatch(text.strip())
    remedy = 'For example, use exact_match, token_f1=0.5, or rubric_judge=1:{"engine": "litellm:provider/model"}.'
    if match is None:
        raise InvalidInput(
            "--scorer", f"{text!r} does not have the form NAME, NAME=WEIGHT or NAME=WEIGHT:{{options}}", remedy
        )
    try:
        options: dict[str, Any] = orjson.loads(match["options"] or "{}")
    except orjson.JSONDecodeError as error:
        raise InvalidInput("--scorer", f"the options of {match['name']} are not valid JSON: {error}", remedy) from None
    return ScorerSpec(match["name"], float(match["weight"] or 1), options)


def render_batch(batch_status: BatchStatus) -> dict[str, Any]:
    """Return a batch as `--json` prints it."""
    batch = batch_status.batch
    identity = {"batch_id": batch.id, "name": batch.name, "groups": batch.group_count, "created_at": batch.created_at}
    request = {name: batch.request[name] for name in ("graph", "group_size", "seed", "tags")}
    progress = {name: value for name, value in asdict(batch_status.progress).items() if name != "id"}
    request["pins"] = batch.request.get("pins", {})
    judges = {"calls": batch.judge_calls, "cost_usd": batch.judge_cost_usd, **asdict(batch.judge_budget)}
    ending = {"cancelled_at": batch.cancelled_at, "stop_reason": batch.stop_reason, "judges": judges}
    return identity | request | ending | {"progress": progress}


def _load_dataset(options: CollectOptions) -> Dataset:
    if (spec := find_spec(options.tasks)) is None:
        return open_dataset(Path(options.tasks), options.max_tasks)
    count = options.max_tasks or DEFAULT_ENVIRONMENT_TASKS
    sample = TaskSample(
        spec, count, _parse_hops(options.hops), options.kinds or None, options.seed, options.compositions
    )
    return Dataset(options.tasks, tuple(tasks.sample_tasks(sample)))


def _parse_hops(text: str) -> tuple[int, int]:
    match = re.fullmatch(r"(\d)(?:-(\d))?", text)
    if match is None:
        raise InvalidInput("--hops", f"{text!r} is not a range", "For example, use 2 or 1-4.")
    return int(match[1]), int(match[2] or match[1])


async def _collect(
    options: CollectOptions,
    graph: Graph,
    engines: dict[str, EngineConfig],
    scorers: list[ScorerSpec] | None,
    dataset: Dataset,
    servers: ServerUrls,
    settings: Settings,
    progress: ProgressPrinter,
) -> BatchStatus:
    async with Database(servers.app_url, max_connections=4) as database, BusNotifier(servers.redis_url) as notifier:
        task_ids = await ingest_dataset(database, dataset, options.dataset, settings, progress)
        max_cost_usd = _parse_usd(options.max_cost_usd)
        request = BatchRequest(
            graph=options.graph,
            task_ids=task_ids,
            group_size=options.group_size,
            engines=engines,
            scorers=scorers,
            budget=Budget(options.max_turns, options.max_tokens, max_cost_usd),
            durability=options.durability,
            attempts=options.max_attempts,
            seed=options.seed,
            tags=options.tags,
            name=options.name,
            judge_budget=JudgeBudget(options.judge_max_calls, _parse_usd(options.judge_max_usd)),
            idempotency_key=options.idempotency_key,
        )
        await load_versions(database, engines, servers, settings)
        created = await rollouts.create_batch(
            database,
            notifier,
            LOCAL_TENANT,
            request,
            graphs={graph.name: graph},
            default_engine=default_engine_config(),
            slice_max_turns=settings.slice_max_turns,
            servers=McpServerRegistry(settings.mcp_config),
        )
        return await follow_batch(database, created.batch.id, options.wait, progress)


def _parse_usd(amount: float | None) -> Decimal | None:
    return None if amount is None else Decimal(str(amount))


async def ingest_dataset(
    database: Database, dataset: Dataset, name: str, settings: Settings, progress: ProgressPrinter
) -> list[UUID]:
    async with DocumentReaderPool(settings.reader_processes) as readers:
        stored = await store_dataset(
            database,
            LOCAL_TENANT,
            dataset,
            name=name,
            readers=readers,
            on_progress=progress.document_read,
            servers=McpServerRegistry(settings.mcp_config),
        )
    if stored.documents is not None:
        progress.folder_ingested(stored.documents)
    return stored.tasks.task_ids


async def load_versions(
    database: Database, engines: Mapping[str, EngineConfig], servers: ServerUrls, settings: Settings
) -> None:
    """Load the named policy versions into the shared engine. Another command may have unloaded them.

    Raises Unavailable and Conflict if the engine cannot serve a version.
    """
    from offing_trainer.job.engine_deployment import ManagedEngine

    labels = {one.model for one in engines.values() if one.engine == "policy" and not one.api_base}
    if (
        not labels
        or not servers.engine_url.startswith(UNIX_SCHEME)
        or not is_serving(Path(servers.engine_url.removeprefix(UNIX_SCHEME)))
    ):
        return
    key = settings.engine_key
    endpoint = EngineEndpoint(servers.engine_url, key.get_secret_value() if key else "")
    for label in sorted(labels):
        try:
            version = await policies.get_version_by_name(database, LOCAL_TENANT, label)
        except InvalidInput:
            return  # creating the batch raises an error that names the role
        await ManagedEngine(endpoint)(version)


async def follow_batch(
    database: Database, batch_id: UUID, until_complete: bool, progress: ProgressPrinter
) -> BatchStatus:
    """Return the batch. With `until_complete`, wait until all of its groups have ended."""
    printed_line = ""
    while True:
        batch_status = await rollouts.get_batch(database, LOCAL_TENANT, batch_id)
        p = batch_status.progress
        if (
            line := f"{p.finalized} of {p.rollouts} rollouts · {p.complete + p.incomplete} of {p.group_count} groups"
        ) != printed_line:
            printed_line = line
            progress.show_status(line)
        if not until_complete or not p.open:
            return batch_status
        await asyncio.sleep(POLL_SECONDS)


async def _get_batch_id(database: Database, batch_text: str) -> UUID:
    """Return the id of the batch with this id or with these last characters."""
    batches, _ = await rollouts.list_batches(database, LOCAL_TENANT, None, MAX_SEARCHED_BATCHES)
    matches = [seen.batch.id for seen in batches if str(seen.batch.id).endswith(batch_text)]
    return select_match("batch", "batches", batch_text, matches)


def _print_batch(batch_status: BatchStatus, as_json: bool) -> None:
    if as_json:
        print_json(render_batch(batch_status))
        return
    batch, p = batch_status.batch, batch_status.progress
    mean = "none yet" if p.mean_reward is None else f"{p.mean_reward:.3f}"
    print(
        f"batch {batch.id}"
        + (f" · {batch.name}" if batch.name else "")
        + (" · cancelled" if batch.cancelled_at else "")
    )
    print(
        f"groups   {p.group_count} of {batch.group_count} created · {p.open} open · {p.complete} complete · "
        f"{p.incomplete} incomplete"
    )
    print(f"rollouts {p.rollouts} · {p.waiting} waiting · {p.running} running · {p.unfinalized} not scored yet · "
          f"{p.finalized} finalized, {p.failed} of them with infrastructure errors")  # fmt: skip
    print(f"mean reward {mean}")
    if batch.judge_calls or batch.judge_budget.is_limited:
        print(_describe_judges(batch))
    for line in _describe_pins(batch.request.get("pins", {})):
        print(line)


def _describe_judges(batch: RolloutBatchRow) -> str:
    """Return what the judges of a batch have used, of what, and whether this stopped the batch."""
    calls = f"{batch.judge_calls} calls" + (f" of {batch.judge_max_calls}" if batch.judge_max_calls is not None else "")
    usd = f"{batch.judge_cost_usd:f} USD" + (
        f" of {batch.judge_max_cost_usd:f}" if batch.judge_max_cost_usd is not None else ""
    )
    stopped = " · stopped, because this budget is spent; rollouts without a score count as nothing"
    return f"judges   {calls} · {usd}{stopped if batch.stop_reason else ''}"


def _describe_pins(pins: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return a line for each kind of thing that the scopes of the tasks name."""
    lines = [f"MCP server  {name}, tools {pin[:12]}" for name, pin in sorted(pins.get("mcp", {}).items())]
    lines += [f"tool policy {name}" for name in sorted(pins.get("tool_policies", {}))]
    count = len(pins.get("pages", {}))
    return lines + ([f"recorded    {count} pages"] if count else [])
