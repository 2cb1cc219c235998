"""`offing rollout` and `offing batch`: collect rollouts, and see how far they are."""

import asyncio
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import orjson
from rich.console import Console
from rich.table import Table

from offing.bus.hints import BusHints
from offing.cli.ask import check_answered, engines_of
from offing.cli.hooks import hooks
from offing.cli.show import with_database
from offing.cli.stack import graph_named, with_paths
from offing.cli.terminal import Progress, safe
from offing.core.errors import InvalidInput, NotFound
from offing.core.model import EngineChoice
from offing.core.run import Budget
from offing.local.background import status
from offing.local.engine_share import answers
from offing.local.servers import Servers
from offing.local.stack import worker_processes, working_stack
from offing.models.credentials import Destination
from offing.models.discover import default_choice
from offing.models.policy_http import UNIX
from offing.sdk import Graph
from offing.services import policies, rollouts, tasks
from offing.services.rollouts import BatchRequest, ScorerSpec, SeenBatch
from offing.services.tasks import Drawn, TaskSpec
from offing.settings import Settings, load_settings
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Database

WORLD = "world:"

DRAWN = 100
"""Tasks of a world when no count is given."""

LOOK_AGAIN = 0.5
"""Seconds between looks at a batch that is waited for."""

FINDABLE = 200
"""Latest batches among which one is found by the end of its id."""

SCORER = re.compile(r"(?P<name>[a-z0-9_]+)(?:=(?P<weight>-?\d+(?:\.\d+)?))?(?::(?P<options>\{.*\}))?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What was asked on the command line."""

    tasks: str
    graph: str
    count: int | None
    hops: str
    kinds: tuple[str, ...]
    group_size: int
    policies: tuple[str, ...]
    engines: tuple[str, ...]
    turns: int
    tokens: int | None
    usd: float | None
    scorers: tuple[str, ...]
    durability: str | None
    attempts: int
    seed: int
    dataset: str
    name: str
    tags: tuple[str, ...]
    key: str | None
    wait: bool
    paths: tuple[Path, ...] = ()


def run(wanted: Wanted, as_json: bool) -> int:
    """0: the batch was made, and, if it was waited for, has a complete group. 1: it has none."""
    settings, progress = with_paths(load_settings(), wanted.paths), Progress(sys.stderr)
    if not 0 <= wanted.turns <= 2048:
        raise InvalidInput("--turns", f"{wanted.turns} is out of range", "Use 0 to 2048.")
    graph = graph_named(settings, wanted.graph)
    engines = chosen(wanted.engines, wanted.policies, graph)
    check_answered(graph, engines)
    scorers = [scorer_of(text) for text in wanted.scorers] or None
    specs, ours = _tasks(wanted), status(settings).pid is None
    workers = worker_processes(settings) if wanted.wait else 1
    with progress, working_stack(settings, hooks(), say=progress.say, workers=workers) as servers:
        seen = asyncio.run(_collect(wanted, graph, engines, scorers, specs, servers, settings, progress))
    _print(seen, as_json)
    if ours and not wanted.wait:
        print("Nothing runs for this home: the rollouts go on with `offing up`.", file=sys.stderr)
    return 0 if not wanted.wait or seen.progress.complete else 1


def list_batches(limit: int, as_json: bool) -> int:
    found, _ = with_database(lambda database: rollouts.batches(database, LOCAL_TENANT, None, limit))
    if as_json:
        return _dump([as_dict(seen) for seen in found])
    table = Table("batch", "name", "graph", "groups", "rollouts", "mean reward", box=None)
    for seen in found:
        p, mean = seen.progress, seen.progress.mean_reward
        done = f"{p.complete + p.short} of {seen.batch.groups}" + (f" ({p.short} short)" if p.short else "")
        shown = "" if mean is None else f"{mean:.3f}"
        graph, name = seen.batch.request["graph"], safe(seen.batch.name)
        table.add_row(str(seen.batch.id)[-8:], name, graph, done, f"{p.settled} of {p.rollouts}", shown)
    Console().print(table)
    return 0


def show_batch(text: str, as_json: bool) -> int:
    async def work(database: Database) -> SeenBatch:
        return await rollouts.one_batch(database, LOCAL_TENANT, await _find(database, text))

    _print(with_database(work), as_json)
    return 0


def cancel_batch(text: str) -> int:
    settings = load_settings()

    async def work(servers: Servers) -> SeenBatch:
        async with Database(servers.app_url, most=2) as database, BusHints(servers.redis_url) as hints:
            return await rollouts.cancel(database, hints, LOCAL_TENANT, await _find(database, text))

    with working_stack(settings, hooks(), say=lambda _: None) as servers:
        _print(asyncio.run(work(servers)), False)
    return 0


def policies_of(texts: Sequence[str]) -> dict[str, EngineChoice]:
    """`role=NAME@VERSION` texts as choices; `role+FORM=…` asks the role in one of its other forms."""
    found: dict[str, EngineChoice] = {}
    for text in texts:
        role, equals, version = text.partition("=")
        if not equals or not version or not role:
            raise InvalidInput("--policy", f"{text!r} is not role=NAME@VERSION", "Write for instance planner=small@3.")
        role, _, form = role.partition("+")
        found[role] = EngineChoice(engine="policy", model=version, form=form)
    return found


def chosen(engines: Sequence[str], policies: Sequence[str], graph: Graph) -> dict[str, EngineChoice]:
    """`--engine` and `--policy` together; `--engine all=…` stands for the roles without a policy."""
    versions = policies_of(policies)
    for text in engines:
        if (role := text.partition("=")[0]) in versions:
            remedy = f"Leave one of them out, or write --engine all=… for the roles beside {role}."
            raise InvalidInput("--policy", f"{role!r} has an --engine, too", remedy)
    return engines_of(tuple(engines), graph) | versions


def scorer_of(text: str) -> ScorerSpec:
    """`NAME`, `NAME=WEIGHT` or `NAME=WEIGHT:{JSON}` as a scorer."""
    match = SCORER.fullmatch(text.strip())
    remedy = 'Write for instance exact_match, token_f1=0.5, or rubric_judge=1:{"engine": "litellm:provider/model"}.'
    if match is None:
        raise InvalidInput("--scorer", f"{text!r} is not NAME, NAME=WEIGHT or NAME=WEIGHT:{{options}}", remedy)
    try:
        options: dict[str, Any] = orjson.loads(match["options"] or "{}")
    except orjson.JSONDecodeError as error:
        raise InvalidInput("--scorer", f"the options of {match['name']} are no JSON: {error}", remedy) from None
    return ScorerSpec(match["name"], float(match["weight"] or 1), options)


def as_dict(seen: SeenBatch) -> dict[str, Any]:
    """A batch as `--json` prints it."""
    batch = seen.batch
    known = {"batch_id": batch.id, "name": batch.name, "groups": batch.groups, "created_at": batch.created_at}
    request = {name: batch.request[name] for name in ("graph", "group_size", "seed", "tags")}
    progress = {name: value for name, value in asdict(seen.progress).items() if name != "id"}
    return known | request | {"cancelled_at": batch.cancelled_at, "progress": progress}


def _tasks(wanted: Wanted) -> list[TaskSpec]:
    if not wanted.tasks.startswith(WORLD):
        return tasks.read_file(Path(wanted.tasks), wanted.count)
    spec, kinds = wanted.tasks.removeprefix(WORLD), wanted.kinds or None
    return tasks.of_world(Drawn(spec, wanted.count or DRAWN, _hops(wanted.hops), kinds, wanted.seed))


def _hops(text: str) -> tuple[int, int]:
    match = re.fullmatch(r"(\d)(?:-(\d))?", text)
    if match is None:
        raise InvalidInput("--hops", f"{text!r} is no range", "Write for instance 2, or 1-4.")
    return int(match[1]), int(match[2] or match[1])


async def _collect(
    wanted: Wanted,
    graph: Graph,
    engines: dict[str, EngineChoice],
    scorers: list[ScorerSpec] | None,
    specs: list[TaskSpec],
    servers: Servers,
    settings: Settings,
    progress: Progress,
) -> SeenBatch:
    dataset = wanted.dataset or (wanted.tasks if wanted.tasks.startswith(WORLD) else Path(wanted.tasks).stem)
    async with Database(servers.app_url, most=4) as database, BusHints(servers.redis_url) as hints:
        stored = await tasks.store(database, LOCAL_TENANT, dataset, specs)
        usd = None if wanted.usd is None else Decimal(str(wanted.usd))
        request = BatchRequest(
            graph=wanted.graph,
            tasks=stored.ids,
            group_size=wanted.group_size,
            engines=engines,
            scorers=scorers,
            budget=Budget(wanted.turns, wanted.tokens, usd),
            durability=wanted.durability,
            attempts=wanted.attempts,
            seed=wanted.seed,
            tags=wanted.tags,
            name=wanted.name,
            idempotency_key=wanted.key,
        )
        await _loaded(database, engines, servers, settings)
        made = await rollouts.create(
            database,
            hints,
            LOCAL_TENANT,
            request,
            graphs={graph.name: graph},
            default_engine=default_choice(),
            slice_turns=settings.slice_turns,
        )
        return await followed(database, made.batch.id, wanted.wait, progress)


async def _loaded(
    database: Database, engines: Mapping[str, EngineChoice], servers: Servers, settings: Settings
) -> None:
    """Has the home's engine load the versions that are named: another command that uses it may have unloaded them.

    Raises Unavailable and Conflict for an engine that cannot serve one.
    """
    from offing_trainer.job.own_engine import OurEngine

    named = {one.model for one in engines.values() if one.engine == "policy" and not one.api_base}
    if not named or not servers.engine_url.startswith(UNIX) or not answers(Path(servers.engine_url.removeprefix(UNIX))):
        return
    key = settings.engine_key
    to = Destination(servers.engine_url, key.get_secret_value() if key else "")
    for label in sorted(named):
        try:
            version = await policies.named(database, LOCAL_TENANT, label)
        except InvalidInput:
            return  # what makes the batch says it of the role that names it
        await OurEngine(to)(version)


async def followed(database: Database, batch: UUID, to_the_end: bool, progress: Progress) -> SeenBatch:
    """The batch as it is, or, waited for, when all of its groups have ended."""
    told = ""
    while True:
        seen = await rollouts.one_batch(database, LOCAL_TENANT, batch)
        p = seen.progress
        if (line := f"{p.settled} of {p.rollouts} rollouts · {p.complete + p.short} of {p.made} groups") != told:
            told = line
            progress.say(line)
        if not to_the_end or not p.open:
            return seen
        await asyncio.sleep(LOOK_AGAIN)


async def _find(database: Database, text: str) -> UUID:
    """A batch by its id or by the last characters of it."""
    found, _ = await rollouts.batches(database, LOCAL_TENANT, None, FINDABLE)
    fitting = [seen.batch.id for seen in found if str(seen.batch.id).endswith(text)]
    if not fitting:
        raise NotFound("batch", text)
    if len(fitting) > 1:
        raise InvalidInput("BATCH", f"{text!r} fits {len(fitting)} batches", "Write more of its last characters.")
    return fitting[0]


def _print(seen: SeenBatch, as_json: bool) -> None:
    if as_json:
        _dump(as_dict(seen))
        return
    batch, p = seen.batch, seen.progress
    mean = "none yet" if p.mean_reward is None else f"{p.mean_reward:.3f}"
    print(
        f"batch {batch.id}"
        + (f" · {batch.name}" if batch.name else "")
        + (" · cancelled" if batch.cancelled_at else "")
    )
    print(f"groups   {p.made} of {batch.groups} made · {p.open} open · {p.complete} complete · {p.short} short")
    print(f"rollouts {p.rollouts} · {p.waiting} waiting · {p.running} running · {p.unsettled} unsettled · "
          f"{p.settled} settled, {p.failed} of them faults")  # fmt: skip
    print(f"mean reward {mean}")


def _dump(value: object) -> int:
    sys.stdout.write(orjson.dumps(value, default=str, option=orjson.OPT_INDENT_2).decode() + "\n")
    return 0
