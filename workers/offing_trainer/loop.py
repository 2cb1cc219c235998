"""The closed loop: a start where there is none, training on its own rollouts, evaluation, and promotion by measurement.

The only home of that order. Each part is a batch with a key or a training job with the same configuration, so that a
loop that was cut short goes on where it was. Knows no algorithm, no table and no torch.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal
from uuid import UUID

from offing.core.errors import Conflict, Unavailable
from offing.core.model import EngineChoice, parse_engine
from offing.core.run import Budget
from offing.services import policies, promotion, tasks, training
from offing.services.graphs import named
from offing.services.promotion import Frozen
from offing.services.rollouts import BatchRequest
from offing.services.tasks import Drawn
from offing.services.training_gate import Rules
from offing.storage import evaluations, policy_versions
from offing.storage.evaluations import ResultRow
from offing.storage.policy_versions import VersionRow
from offing.storage.training_jobs import JobRow
from offing_trainer.config import CollectConfig, config_of
from offing_trainer.job.collecting import Collector, other_engines
from offing_trainer.loop_config import EvaluateConfig, LoopConfig, StartConfig

Run = Callable[[UUID], Awaitable[JobRow]]
"""Advances a training job to its end."""


Mode = Literal["sampled", "greedy"]

MODES: tuple[Mode, ...] = ("sampled", "greedy")

TRIES = 6
"""Of a loop whose servers go away, as often as each of them is started again in a row."""

PAUSE_SECONDS = 1.0
"""Before it is begun again."""


@dataclass(frozen=True, slots=True)
class Scored:
    """A version on the frozen tasks."""

    version: VersionRow
    mode: Mode
    rewards: Mapping[UUID, float]
    """By task; those that the platform failed are left out."""

    @property
    def share(self) -> float:
        """Mean reward."""
        return sum(self.rewards.values()) / len(self.rewards) if self.rewards else 0.0


@dataclass(frozen=True, slots=True)
class Closed:
    """What a loop came to. Each tuple: sampled, then greedy."""

    before: tuple[Scored, ...]
    after: tuple[Scored, ...]
    compared: tuple[Scored, ...]
    """What `compare` made of the same rollouts. Empty: nothing was to be compared."""
    promoted: bool
    why_not: str
    """Empty: it was."""


@dataclass(frozen=True, slots=True)
class LoopRoom:
    """What a loop works with."""

    tenant: UUID
    collector: Collector
    run: Run
    policies: Path
    """Where versions' folders lie."""
    make: Callable[[Path, StartConfig, int], None]
    """Makes a folder a policy with random weights drawn from a seed."""
    hashes: Callable[[Path], tuple[str, str, str]]
    """Of a folder: weights, tokenizer, template."""
    said: Callable[[str], None]


async def persistent_loop(room: LoopRoom, config: LoopConfig) -> Closed:
    """`closed_loop`; where a server goes away in the middle it is begun again, and goes on with what it has made."""
    for left in reversed(range(TRIES)):
        try:
            return await closed_loop(room, config)
        except Unavailable as error:
            if not left:
                raise
            room.said(f"{error}; going on")
            await asyncio.sleep(PAUSE_SECONDS)
    raise AssertionError("the last try returns or raises")


async def closed_loop(room: LoopRoom, config: LoopConfig) -> Closed:
    """Raises what a part of it raises, and Conflict for a job that failed; the same call then goes on."""
    start = await _started(room, config)
    room.said(f"{start.label} is where it begins")
    before = await _scored(room, config, start)
    await _first_champion(room, start)
    trained, job = await _trained(room, config, start)
    after = await _scored(room, config, trained)
    why_not = await _promoted(room, config, trained)
    room.said(why_not or f"{trained.label} is active now")
    compared = await _compared(room, config, start, job) if config.compare else ()
    return Closed(before, after, compared, not why_not, why_not)


async def _first_champion(room: LoopRoom, start: VersionRow) -> None:
    """Where no version of the name is active, the start is."""
    database = room.collector.database
    async with database.transaction(room.tenant) as connection:
        champion = await policy_versions.in_state(connection, start.name, "active")
    if champion is None:
        await promotion.promote(database, room.tenant, start.label)


async def _promoted(room: LoopRoom, config: LoopConfig, trained: VersionRow) -> str:
    """Why it does not take over. Empty: it did, for it passed the gate."""
    try:
        await promotion.promote(
            room.collector.database, room.tenant, trained.label, Rules(margin=config.evaluate.margin),
            dataset=_dataset(config.evaluate), mode="sampled",
        )  # fmt: skip
    except Conflict as refused:
        return str(refused)
    return ""


async def _compared(room: LoopRoom, config: LoopConfig, start: VersionRow, job: UUID) -> tuple[Scored, ...]:
    """Another way to learn from the very rollouts that a job collected, from the same start."""
    data = {"roles": [config.collect.role], "tags": [f"job:{job}"], **config.compare.get("data", {})}
    name = f"{config.name}-compared"
    tables = {**config.compare, "policy": start.label, "name": name, "data": data}
    version, _ = await _produced(room, tables, config.seed)
    return await _scored(room, config, version)


async def _started(room: LoopRoom, config: LoopConfig) -> VersionRow:
    """The version to begin with; where none is named, one that imitates demonstrations."""
    if config.policy:
        return await policies.named(room.collector.database, room.tenant, config.policy)
    blank = await _blank(room, config)
    batch = await _demonstrations(room, config)
    room.said("imitating")
    tables = {
        "algorithm": "sft",
        **config.start.learning,
        "policy": blank.label,
        "name": config.name,
        "data": {
            "batches": [str(batch)],
            "roles": [config.collect.role],
            "max_version_lag": 0,
            **config.start.learning.get("data", {}),
        },
    }
    return (await _produced(room, tables, config.seed))[0]


async def _blank(room: LoopRoom, config: LoopConfig) -> VersionRow:
    """A version with random weights. The same seed gives the same, and so it is registered once."""
    shape = _digest(f"{config.start.words}/{config.start.size}")
    folder = room.policies / f".start-{config.name}-{config.seed}-{shape}"
    if not folder.exists():
        await asyncio.to_thread(room.make, folder, config.start, config.seed)
    weights, tokenizer, template = await asyncio.to_thread(room.hashes, folder)
    version, _ = await policies.register(
        room.collector.database, room.tenant, name=config.name, kind="full", uri=str(folder.resolve()),
        sha256=weights, tokenizer_sha256=tokenizer, template_sha256=template,
    )  # fmt: skip
    return version


async def _demonstrations(room: LoopRoom, config: LoopConfig) -> UUID:
    start, collect = config.start, config.collect
    wanted: list[UUID] = []
    for nth, world in enumerate(start.worlds):
        count = _share(start.demonstrations, len(start.worlds), nth)
        wanted += await _drawn(room, world, count, start.hops, collect, config.seed)
    room.said(f"{len(wanted)} demonstrations")
    demonstrator = parse_engine(start.engine).model_copy(update={"form": collect.form})
    return await _batch(room, config, wanted, demonstrator, "demonstrations", ("loop",))


async def _scored(room: LoopRoom, config: LoopConfig, version: VersionRow) -> tuple[Scored, ...]:
    """A version on the frozen tasks, a rollout each in either mode, with the same seeds for every version."""
    await room.collector.served(room.tenant, version)
    evaluate, wanted = config.evaluate, list[UUID]()
    for nth, world in enumerate(evaluate.worlds):
        count = _share(evaluate.count, len(evaluate.worlds), nth)
        wanted += await _drawn(room, world, count, evaluate.hops, config.collect, evaluate.seed)
    return tuple([await _in_mode(room, config, version, mode, wanted) for mode in MODES])


async def _in_mode(
    room: LoopRoom, config: LoopConfig, version: VersionRow, mode: Mode, wanted: Sequence[UUID]
) -> Scored:
    collector, collect = room.collector, config.collect
    frozen = Frozen(
        dataset=_dataset(config.evaluate), tasks=wanted, graph=collect.graph, role=collect.role,
        greedy=mode == "greedy", seed=config.evaluate.seed, form=collect.form, max_tokens=collect.max_tokens,
        budget=Budget(turns=collect.turns),
        engines=other_engines(named(collector.graphs, collect.graph), collect),
    )  # fmt: skip
    results = await _results(room, version, frozen)
    if not results:
        label, database = version.label, collector.database
        room.said(f"evaluating {label}, {mode}")
        made = await promotion.evaluate(
            database, collector.hints, room.tenant, label, frozen, graphs=collector.graphs, key=_key(version, frozen)
        )
        await collector.ended(room.tenant, made.batch.id, version)
        await promotion.settle_evaluation(database, room.tenant, label, made.batch.id, frozen)
        results = await _results(room, version, frozen)
    found = Scored(version, mode, {row.task: row.reward for row in results if row.reward is not None})
    room.said(f"{version.label} {mode}: {found.share:.3f} of {len(found.rewards)}")
    return found


def _key(version: VersionRow, frozen: Frozen) -> str:
    """Of the batch, so that an evaluation that was cut short goes on with the rollouts that it has."""
    return f"{version.id}/{sha256(repr(frozen).encode()).hexdigest()}"


async def _results(room: LoopRoom, version: VersionRow, frozen: Frozen) -> Sequence[ResultRow]:
    """Of an evaluation on these tasks. Empty: there is none yet."""
    async with room.collector.database.transaction(room.tenant) as connection:
        for one in await evaluations.latest(connection, version.id, frozen.dataset, frozen.mode):
            found = await evaluations.results(connection, one.id)
            if one.seed == frozen.seed and {row.task for row in found} == set(frozen.tasks):
                return found
    return ()


def _dataset(evaluate: EvaluateConfig) -> str:
    return "world:" + "+".join(evaluate.worlds)


async def _trained(room: LoopRoom, config: LoopConfig, start: VersionRow) -> tuple[VersionRow, UUID]:
    """What came of it, and the job."""
    collect = config.collect.model_dump(mode="json", exclude_defaults=True)
    data = {"roles": [config.collect.role], **config.train.get("data", {})}
    tables = {**config.train, "policy": start.label, "name": config.name, "collect": collect, "data": data}
    return await _produced(room, tables, config.seed)


async def _produced(room: LoopRoom, tables: Mapping[str, Any], seed: int) -> tuple[VersionRow, UUID]:
    """What a training job of this configuration makes, and the job; one that was begun before is gone on with."""
    learner: dict[str, Any] = tables.get("learner", {})
    tables = {**tables, "learner": {**learner, "seed": seed}}
    config_of(tables)
    database = room.collector.database
    job = await training.earlier(database, room.tenant, tables)
    if job is None:
        job = await training.create(database, room.tenant, tables, kind="loop" if "collect" in tables else "train")
    if job.state in ("paused", "failed"):
        await training.resume(database, room.tenant, job.id)
    if job.state != "done":
        job = await room.run(job.id)
    if job.state != "done" or job.produced is None:
        remedy = "When the cause is mended, the same command goes on."
        why = (job.error or job.stop_reason).removesuffix(".")
        raise Conflict(f"Training job {job.id} is {job.state}: {why}.", remedy)
    return await policies.one(database, room.tenant, job.produced), job.id


async def _drawn(
    room: LoopRoom, world: str, count: int, hops: tuple[int, int], collect: CollectConfig, seed: int
) -> list[UUID]:
    if not count:
        return []
    drawn = Drawn(world, count, hops, collect.kinds or None, seed)
    return await tasks.of_world_stored(room.collector.database, room.tenant, drawn)


async def _batch(
    room: LoopRoom,
    config: LoopConfig,
    wanted: Sequence[UUID],
    ours: EngineChoice,
    what: str,
    tags: Sequence[str],
) -> UUID:
    """One rollout of each task, by `ours` in the trained role. Returns when all of them are final."""
    collect, collector = config.collect, room.collector
    request = BatchRequest(
        graph=collect.graph,
        tasks=wanted,
        group_size=1,
        engines={**other_engines(named(collector.graphs, collect.graph), collect), collect.role: ours},
        budget=Budget(turns=collect.turns),
        attempts=collect.attempts,
        seed=config.seed,
        tags=tags,
        name=what,
    )
    request = replace(request, idempotency_key=_batch_key(config, what, request))
    return (await collector.made(room.tenant, request)).batch.id


def _batch_key(config: LoopConfig, what: str, request: BatchRequest) -> str:
    """Of all that shapes the batch: the same loop goes on with it, and one with another setting makes its own."""
    return f"{config.name}/{config.seed}/{what}/{_digest(repr(request))}"


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:16]


def _share(total: int, parts: int, nth: int) -> int:
    """Of the nth part, when `total` is divided as evenly as it goes."""
    return total // parts + (nth < total % parts)
