"""The closed loop: a start where there is none, training on its own rollouts, evaluation, and promotion by measurement.

The only home of that order. Each part is a batch with a key or a training job with the same configuration, so that a
loop that was cut short goes on where it was. Knows no algorithm, no table and no torch.
"""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from uuid import UUID

import orjson
from pydantic import BaseModel, ConfigDict, Field

from offing.core.errors import InvalidInput, Unavailable
from offing.core.model import EngineChoice, parse_engine
from offing.core.run import Budget
from offing.services import policies, rollouts, tasks, training
from offing.services.graphs import named
from offing.services.rollouts import BatchRequest
from offing.services.tasks import Drawn
from offing.storage.policy_versions import VersionRow
from offing.storage.training_jobs import JobRow
from offing_trainer.config import CollectConfig, config_of
from offing_trainer.job.collecting import Collector

JOBS_LOOKED_AT = 500
"""Latest training jobs, among which an earlier attempt at a part of a loop is looked for."""

POLL_SECONDS = 0.2


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class StartConfig(_Table):
    """A policy to begin with, where there is none: random weights that imitate demonstrations."""

    size: Literal["tiny", "small"] = "tiny"
    words: Literal["compact", "bytes"] = "compact"
    """compact: a token for each word of small planners; bytes: any text."""
    demonstrations: int = Field(default=4000, ge=1)
    """Rollouts."""
    worlds: tuple[str, ...] = ("train-1@500", "train-2@500", "train-3@500", "train-4@500")
    engine: str = "rules:random"
    """Who demonstrates the role that is to be trained."""
    learning: dict[str, Any] = Field(default_factory=dict)
    """Tables over the recipe `sft`."""


class EvaluateConfig(_Table):
    """Frozen tasks, on which versions are compared."""

    worlds: tuple[str, ...] = ("heldout-1@500",)
    count: int = Field(default=200, ge=1)
    """Tasks in all."""
    seed: int = 0


class LoopConfig(_Table):
    """A whole loop."""

    name: str
    """Of the policy."""
    seed: int = 0
    policy: str = ""
    """NAME@VERSION to begin with. Empty: one is made, see `start`."""
    start: StartConfig = StartConfig()
    collect: CollectConfig
    train: dict[str, Any]
    """Tables of a training job, its recipe included; policy, collection and seed come from here."""
    evaluate: EvaluateConfig = EvaluateConfig()


Run = Callable[[UUID], Awaitable[JobRow]]
"""Advances a training job to its end."""


@dataclass(frozen=True, slots=True)
class Scored:
    """A version on the frozen tasks."""

    version: VersionRow
    mode: Literal["sampled", "greedy"]
    rewards: Mapping[UUID, float]
    """By task; those that the platform failed are left out."""

    @property
    def share(self) -> float:
        """Mean reward."""
        return sum(self.rewards.values()) / len(self.rewards) if self.rewards else 0.0


@dataclass(frozen=True, slots=True)
class Closed:
    """What a loop came to."""

    before: Sequence[Scored]
    after: Sequence[Scored]


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


async def closed_loop(room: LoopRoom, config: LoopConfig) -> Closed:
    """Raises what a part of it raises, and Unavailable for a job that failed; the same call then goes on."""
    start = await _started(room, config)
    room.said(f"{_label(start)} is where it begins")
    before = [await scored(room, config, start, mode) for mode in ("sampled", "greedy")]
    trained = await _trained(room, config, start)
    after = [await scored(room, config, trained, mode) for mode in ("sampled", "greedy")]
    return Closed(before, after)


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
        "policy": _label(blank),
        "name": config.name,
        "data": {
            "batches": [str(batch)],
            "roles": [config.collect.role],
            "max_version_lag": 0,
            **config.start.learning.get("data", {}),
        },
    }
    return await _produced(room, tables, config.seed)


async def _blank(room: LoopRoom, config: LoopConfig) -> VersionRow:
    """A version with random weights. The same seed gives the same, and so it is registered once."""
    folder = room.policies / f".start-{config.name}-{config.seed}"
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
        wanted += await _drawn(room, world, count, collect, config.seed)
    room.said(f"{len(wanted)} demonstrations")
    demonstrator = parse_engine(start.engine).model_copy(update={"form": collect.form})
    return await _batch(room, config, wanted, demonstrator, "demonstrations", ("loop",))


async def scored(room: LoopRoom, config: LoopConfig, version: VersionRow, mode: Literal["sampled", "greedy"]) -> Scored:
    """A version on the frozen tasks, a rollout each, with the same seeds for every version."""
    await room.collector.serve(version)
    evaluate, collect = config.evaluate, config.collect
    wanted: list[UUID] = []
    for nth, world in enumerate(evaluate.worlds):
        wanted += await _drawn(room, world, _share(evaluate.count, len(evaluate.worlds), nth), collect, evaluate.seed)
    choice = EngineChoice(
        engine="policy", model=_label(version), form=collect.form, options={"reasks": collect.reasks},
        temperature=0.0 if mode == "greedy" else None,
    )  # fmt: skip
    batch = await _batch(room, config, wanted, choice, f"{_label(version)} {mode}", ("evaluation",))
    groups, _ = await rollouts.list_rollouts(
        room.collector.database, room.tenant, rollouts.RolloutFilter(batch=batch), None, len(wanted)
    )
    rewards = {row.task: row.reward for row in groups if row.reward is not None}
    found = Scored(version, mode, rewards)
    room.said(f"{_label(version)} {mode}: {found.share:.3f} of {len(rewards)}")
    return found


async def _trained(room: LoopRoom, config: LoopConfig, start: VersionRow) -> VersionRow:
    collect = config.collect.model_dump(mode="json", exclude_defaults=True)
    data = {"roles": [config.collect.role], **config.train.get("data", {})}
    tables = {**config.train, "policy": _label(start), "name": config.name, "collect": collect, "data": data}
    return await _produced(room, tables, config.seed)


async def _produced(room: LoopRoom, tables: Mapping[str, Any], seed: int) -> VersionRow:
    """What a training job of this configuration makes; one that was begun before is gone on with."""
    learner: dict[str, Any] = tables.get("learner", {})
    tables = {**tables, "learner": {**learner, "seed": seed}}
    config_of(tables)
    database = room.collector.database
    digest = hashlib.sha256(orjson.dumps(tables, option=orjson.OPT_SORT_KEYS)).hexdigest()
    found, _ = await training.page(database, room.tenant, None, None, JOBS_LOOKED_AT)
    job = next((j for j in found if j.config_sha256 == digest and j.state != "cancelled"), None)
    if job is None:
        job = await training.create(database, room.tenant, tables, kind="loop" if "collect" in tables else "train")
    if job.state in ("paused", "failed"):
        await training.resume(database, room.tenant, job.id)
    if job.state != "done":
        job = await room.run(job.id)
    if job.state != "done" or job.produced is None:
        raise Unavailable(f"Training job {job.id} is {job.state}: {job.error or job.stop_reason}")
    return await policies.one(database, room.tenant, job.produced)


async def _drawn(room: LoopRoom, world: str, count: int, collect: CollectConfig, seed: int) -> list[UUID]:
    if not count:
        return []
    specs = await asyncio.to_thread(tasks.of_world, Drawn(world, count, collect.hops, collect.kinds or None, seed))
    return (await tasks.store(room.collector.database, room.tenant, f"world:{world}", specs)).ids


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
    graph = named(collector.graphs, collect.graph)
    rest = {role.name: collect.engines.get(role.name, collect.engines.get("all", "")) for role in graph.roles}
    engines = {role: parse_engine(text) for role, text in rest.items() if text} | {collect.role: ours}
    request = BatchRequest(
        graph=collect.graph,
        tasks=wanted,
        group_size=1,
        engines=engines,
        budget=Budget(turns=collect.turns),
        attempts=collect.attempts,
        seed=config.seed,
        tags=tags,
        name=what,
        idempotency_key=f"{config.name}/{config.seed}/{what}",
    )
    made = await rollouts.create(
        collector.database,
        collector.hints,
        room.tenant,
        request,
        graphs=collector.graphs,
        slice_turns=collector.slice_turns,
    )
    while (await rollouts.one_batch(collector.database, room.tenant, made.batch.id)).progress.open:  # noqa: ASYNC110
        await asyncio.sleep(POLL_SECONDS)
    return made.batch.id


def _share(total: int, parts: int, nth: int) -> int:
    """Of the nth part, when `total` is divided as evenly as it goes."""
    return total // parts + (nth < total % parts)


def _label(version: VersionRow) -> str:
    return f"{version.name}@{version.version}"


def loop_config(tables: Mapping[str, Any]) -> LoopConfig:
    """Raises InvalidInput that names the entry."""
    from pydantic import ValidationError

    try:
        return LoopConfig.model_validate(tables)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise InvalidInput(where, first["msg"].lower(), "Mend the entry; deploy/loop.toml shows every one.") from error
