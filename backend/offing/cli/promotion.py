"""`offing policy evaluate`, `promote`, `canary` and `rollback`: decide which version new runs use."""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from offing import environment
from offing.bus.notifier import BusNotifier
from offing.cli.ask import resolve_engine_configs
from offing.cli.evaluation import find_experiment
from offing.cli.hooks import build_hooks
from offing.cli.options import EvaluateOptions, PromoteOptions
from offing.cli.rollouts import follow_batch
from offing.cli.show import run_with_database
from offing.cli.stack import get_graph, with_graph_paths
from offing.cli.terminal import ProgressPrinter, print_json
from offing.core.errors import Conflict, InvalidInput, Unavailable
from offing.core.run import Budget
from offing.local.servers import ServerUrls
from offing.local.stack import open_stack
from offing.mcp.server_registry import McpServerRegistry
from offing.models.credentials import ENGINE_KEY_VARIABLE, EngineEndpoint
from offing.sdk import Graph
from offing.services import policies, promotion, tasks
from offing.services.promotion import EvaluationSetup
from offing.services.promotion_gate import GateResult, GateRules, merge_guards, parse_guard
from offing.settings import Settings, load_settings
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.policy_versions import PolicyVersionRow
from offing.storage.pool import Database


def promote_version(options: PromoteOptions) -> int:
    guards = merge_guards(parse_guard(text, "--not-worse") for text in options.not_worse)
    if options.canary and options.force:
        raise InvalidInput("--canary", "--force skips every comparison", "Use one of the two.")
    rules = None if options.force else GateRules(options.margin, not options.by_mean, guards, options.max_kl)
    mode = "greedy" if options.greedy else None

    results: list[tuple[PolicyVersionRow, GateResult | None]] = []

    async def work(database: Database) -> None:
        experiment = await find_experiment(database, options.experiment) if options.experiment else None

        async def flip() -> None:
            selection: dict[str, Any] = {"dataset": options.dataset, "mode": mode, "metric": options.metric}
            selection["experiment_id"] = None if experiment is None else experiment.row.id
            selection["by_canary"] = options.canary
            results.append(await promotion.promote(database, LOCAL_TENANT, options.policy, rules, **selection))

        await serve_on_replicas(database, options.policy, options.replica_urls, flip)

    run_with_database(work)
    row, result = results[0]
    if options.as_json:
        return print_json({"policy": asdict(row), "result": None if result is None else asdict(result)})
    print(f"{row.label} is {row.state}")
    if result is not None:
        _print_gate_result(result, options.metric or ("mean value" if options.experiment else "mean reward"))
    return 0


def _print_gate_result(result: GateResult, name: str) -> None:
    p = result.comparison
    print(f"{name} {p.candidate:.3f} compared with {p.active:.3f} on {p.pairs} pairs of {p.tasks} tasks")
    print(f"difference {p.difference:+.3f}, {p.level:.4g} from {p.low:+.3f} to {p.high:+.3f}, look {result.looks}")
    if p.detectable_difference is not None:
        print(f"as many tasks show a difference of {p.detectable_difference:.3f} in 80 of 100 cases")
    for metric, one in result.guards.items():
        print(f"{metric} {one.candidate:.4g} compared with {one.active:.4g}, difference {one.difference:+.4g}")


async def serve_on_replicas(
    database: Database, policy: str, replica_urls: tuple[str, ...], activate: Callable[[], Awaitable[None]]
) -> None:
    """Load a version into every replica before `activate`, and unload unneeded versions after it.

    Raises the errors of `activate`. A rejected version is unloaded, too.
    """
    if not replica_urls:
        await activate()
        return
    from offing_trainer.job.vllm_deployment import deploy_adapter

    row = await policies.get_version_by_name(database, LOCAL_TENANT, policy)
    key = environment.VARIABLES.get(ENGINE_KEY_VARIABLE, "")
    servers = [EngineEndpoint(url, key) for url in replica_urls]
    try:
        await deploy_adapter(servers, policy, Path(row.uri), activate)
    except Conflict:
        await _unload_unneeded(database, servers, row.name, rejected=policy)
        raise
    await _unload_unneeded(database, servers, row.name)


async def _unload_unneeded(database: Database, servers: list[EngineEndpoint], name: str, rejected: str = "") -> None:
    """Unload versions that are no longer needed.

    The change of states is already committed, so a replica that cannot unload causes a warning and no
    error.
    """
    from offing_trainer.job.vllm_deployment import undeploy

    try:
        await undeploy(servers, await promotion.list_unloadable(database, LOCAL_TENANT, name, rejected))
    except Unavailable as error:
        print(f"warning: {error}", file=sys.stderr)


def evaluate_version(options: EvaluateOptions) -> int:
    settings, progress = with_graph_paths(load_settings(), options.paths), ProgressPrinter(sys.stderr)
    graph = get_graph(settings, options.graph)
    with progress, open_stack(settings, build_hooks(), say=progress.show_status) as servers:
        id = asyncio.run(_evaluate(options, graph, servers, settings, progress))
    if options.as_json:
        return print_json({"evaluation": str(id), "policy": options.policy})
    print(f"evaluation {id}")
    return 0


async def _evaluate(
    options: EvaluateOptions, graph: Graph, servers: ServerUrls, settings: Settings, progress: ProgressPrinter
) -> object:
    async with Database(servers.app_url, max_connections=4) as database, BusNotifier(servers.redis_url) as notifier:
        stored = await tasks.list_dataset_task_ids(database, LOCAL_TENANT, options.dataset, options.max_tasks)
        if not stored:
            raise InvalidInput(
                "--dataset", f"there are no tasks of {options.dataset}", "Store tasks with `offing rollouts collect`."
            )
        frozen = EvaluationSetup(
            dataset=options.dataset,
            task_ids=stored,
            graph=graph.name,
            role=options.role,
            rollouts_per_task=options.rollouts_per_task,
            greedy=not options.sampled,
            seed=options.seed,
            prompt_format=options.prompt_format,
            budget=Budget(options.max_turns),
            engines=resolve_engine_configs(options.engines, graph),
        )
        created = await promotion.start_evaluation(
            database,
            notifier,
            LOCAL_TENANT,
            options.policy,
            frozen,
            graphs={graph.name: graph},
            servers=McpServerRegistry(settings.mcp_config),
        )
        await follow_batch(database, created.batch.id, True, progress)
        return await promotion.store_evaluation(database, LOCAL_TENANT, options.policy, created.batch.id, frozen)


def start_canary(policy: str, share: float) -> int:
    row = run_with_database(lambda database: promotion.start_canary(database, LOCAL_TENANT, policy, share))
    print(f"{row.label} answers {share:.0%} of the new runs that name {row.name} without a version")
    return 0


def roll_back(name: str) -> int:
    print(run_with_database(lambda database: promotion.roll_back_policy(database, LOCAL_TENANT, name)))
    return 0
