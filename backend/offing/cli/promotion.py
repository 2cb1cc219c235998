"""`offing policy evaluate`, `promote`, `canary` and `rollback`: which version new runs get."""

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import orjson

from offing.bus.hints import BusHints
from offing.cli.ask import engines_of
from offing.cli.hooks import hooks
from offing.cli.rollout import followed
from offing.cli.show import with_database
from offing.cli.stack import graph_named, with_paths
from offing.cli.terminal import Progress
from offing.core.errors import Conflict, InvalidInput, Unavailable
from offing.core.run import Budget
from offing.local.servers import Servers
from offing.local.stack import working_stack
from offing.models.credentials import ENGINE_KEY, Destination
from offing.sdk import Graph
from offing.services import policies, promotion, tasks
from offing.services.promotion import Frozen
from offing.services.training_gate import Rules, Verdict
from offing.settings import load_settings
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.policy_versions import VersionRow
from offing.storage.pool import Database


@dataclass(frozen=True, slots=True)
class Gate:
    """What `offing policy promote` was told."""

    dataset: str | None
    greedy: bool
    margin: float
    confident: bool
    kl_ceiling: float | None
    force: bool


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What `offing policy evaluate` was told."""

    policy: str
    dataset: str
    graph: str
    role: str
    form: str
    members: int
    greedy: bool
    seed: int
    count: int
    turns: int
    engines: tuple[str, ...]
    paths: tuple[Path, ...] = ()


def promote(policy: str, gate: Gate, replicas: tuple[str, ...], as_json: bool) -> int:
    rules = None if gate.force else Rules(gate.margin, gate.confident, kl_ceiling=gate.kl_ceiling)
    mode = "greedy" if gate.greedy else None

    made: list[tuple[VersionRow, Verdict | None]] = []

    async def work(database: Database) -> None:
        async def flip() -> None:
            how = {"dataset": gate.dataset, "mode": mode}
            made.append(await promotion.promote(database, LOCAL_TENANT, policy, rules, **how))

        await served(database, policy, replicas, flip)

    with_database(work)
    row, verdict = made[0]
    if as_json:
        return _dump({"policy": asdict(row), "verdict": None if verdict is None else asdict(verdict)})
    print(f"{row.label} is {row.state}")
    if verdict is not None:
        p = verdict.paired
        told = f"difference {p.difference:+.3f}, 95 % from {p.low:+.3f} to {p.high:+.3f}"
        print(f"mean reward {p.candidate:.3f} against {p.champion:.3f} on {p.pairs} pairs; {told}")
    return 0


async def served(
    database: Database, policy: str, replicas: tuple[str, ...], flip: Callable[[], Awaitable[None]]
) -> None:
    """Make every replica serve a version before `flip`, and unload what none of them needs any more after it.

    Raises what `flip` raises; a version that was refused is unloaded too.
    """
    if not replicas:
        await flip()
        return
    from offing_trainer.job.serving import published

    row = await policies.named(database, LOCAL_TENANT, policy)
    key = os.environ.get(ENGINE_KEY, "")
    servers = [Destination(url, key) for url in replicas]
    try:
        await published(servers, policy, Path(row.uri), flip)
    except Conflict:
        await _tidied(database, servers, row.name, refused=policy)
        raise
    await _tidied(database, servers, row.name)


async def _tidied(database: Database, servers: list[Destination], name: str, refused: str = "") -> None:
    """The version is where it belongs by now, so that a server that does not unload is told of, and no error."""
    from offing_trainer.job.serving import withdrawn

    try:
        await withdrawn(servers, await promotion.spare(database, LOCAL_TENANT, name, refused))
    except Unavailable as error:
        print(f"warning: {error}", file=sys.stderr)


def evaluate(wanted: Evaluation, as_json: bool) -> int:
    settings, progress = with_paths(load_settings(), wanted.paths), Progress(sys.stderr)
    graph = graph_named(settings, wanted.graph)
    with progress, working_stack(settings, hooks(), say=progress.say) as servers:
        id = asyncio.run(_evaluate(wanted, graph, servers, progress))
    if as_json:
        return _dump({"evaluation": str(id), "policy": wanted.policy})
    print(f"evaluation {id}")
    return 0


async def _evaluate(wanted: Evaluation, graph: Graph, servers: Servers, progress: Progress) -> object:
    async with Database(servers.app_url, most=4) as database, BusHints(servers.redis_url) as hints:
        stored = await tasks.of_dataset(database, LOCAL_TENANT, wanted.dataset, wanted.count)
        if not stored:
            raise InvalidInput(
                "--dataset", f"there is no task of {wanted.dataset}", "Store some, see `offing rollout`."
            )
        frozen = Frozen(
            dataset=wanted.dataset,
            tasks=stored,
            graph=graph.name,
            role=wanted.role,
            members=wanted.members,
            greedy=wanted.greedy,
            seed=wanted.seed,
            form=wanted.form,
            budget=Budget(wanted.turns),
            engines=engines_of(wanted.engines, graph),
        )
        made = await promotion.evaluate(
            database, hints, LOCAL_TENANT, wanted.policy, frozen, graphs={graph.name: graph}
        )
        await followed(database, made.batch.id, True, progress)
        return await promotion.settle_evaluation(database, LOCAL_TENANT, wanted.policy, made.batch.id, frozen)


def canary(policy: str, share: float) -> int:
    row = with_database(lambda database: promotion.try_canary(database, LOCAL_TENANT, policy, share))
    print(f"{row.label} answers {share:.0%} of the new runs that name {row.name} without a version")
    return 0


def rollback(name: str) -> int:
    print(with_database(lambda database: promotion.roll_back(database, LOCAL_TENANT, name)))
    return 0


def _dump(value: object) -> int:
    sys.stdout.write(orjson.dumps(value, default=str, option=orjson.OPT_INDENT_2).decode() + "\n")
    return 0
