"""Collecting rollouts: a batch of groups, each of one task under pinned versions; progress, lists, and cancelling.

Only workers advance and settle rollouts. What is pinned is checked in the transaction that makes the groups.
"""

import asyncio
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol
from uuid import UUID

import orjson

from offing.clock import new_id
from offing.core.errors import Conflict, InvalidInput
from offing.core.model import EngineChoice
from offing.core.policy import policy_hash
from offing.core.run import Budget
from offing.scorers import named as scorer_named
from offing.sdk import Graph
from offing.services import graphs as catalogue
from offing.services import policies
from offing.services.runs import engines_for
from offing.services.tool_rules import starting_policy
from offing.storage import groups, rewards, rollouts, runs, tasks
from offing.storage.groups import BatchRow, GroupFilter, GroupRow, NewGroup, NewMember, Pinned, Progress
from offing.storage.pool import Database
from offing.storage.rewards import ScoreRow
from offing.storage.rollouts import RolloutFilter, RolloutRow
from offing.storage.tasks import TaskRow

RUNS_AT_ONCE = 512
"""Runs of one transaction, as far as groups allow."""

MOST_RUNS = 100_000
"""Of one batch."""

MOST_MEMBERS = 256

MOST_ATTEMPTS = 10

CANCELLED_AT_ONCE = 500


class Hints(Protocol):
    """The best-effort side of the bus."""

    async def wake_all(self, runs: Sequence[UUID]) -> None:
        """Tell workers that these can be claimed."""
        ...

    async def nudge(self, run: UUID) -> None:
        """Tell the worker that holds the run to look at it."""
        ...


@dataclass(frozen=True, slots=True)
class ScorerSpec:
    """A scorer and how much of the reward it makes."""

    name: str
    weight: float = 1.0
    """0: recorded, and no part of the reward."""
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class BatchRequest:
    """What to collect."""

    graph: str
    tasks: Sequence[UUID]
    """Stored ones, a group each; one that occurs twice counts once."""
    group_size: int
    engines: Mapping[str, EngineChoice] = field(default_factory=dict[str, EngineChoice])
    """By role; a policy as `policy:NAME@VERSION`."""
    scorers: Sequence[ScorerSpec] | None = None
    """None: exact_match, if every task has a reference."""
    budget: Budget = field(default_factory=Budget)
    durability: str | None = None
    """None: exit where the turns fit one slice, else sync."""
    attempts: int = 3
    """Runs of a member at most; further ones follow an infrastructure error."""
    seed: int = 0
    tags: Sequence[str] = ()
    name: str = ""
    idempotency_key: str | None = None
    traceparent: str | None = None


@dataclass(frozen=True, slots=True)
class Created:
    batch: BatchRow
    new: bool
    """False: an earlier request with the same idempotency key made it; what was missing of it has been made."""
    runs: int
    """Made just now."""


@dataclass(frozen=True, slots=True)
class SeenBatch:
    batch: BatchRow
    progress: Progress


@dataclass(frozen=True, slots=True)
class SeenGroup:
    group: GroupRow
    rollouts: list[RolloutRow]
    scores: list[ScoreRow]
    """Of all of them."""


@dataclass(frozen=True, slots=True)
class SeenRollout:
    rollout: RolloutRow
    scores: list[ScoreRow]


async def create(
    database: Database,
    hints: Hints,
    tenant: UUID,
    request: BatchRequest,
    *,
    graphs: Mapping[str, Graph],
    default_engine: EngineChoice | None = None,
    slice_turns: int = 64,
) -> Created:
    """Make a batch with all of its groups and runs, in transactions of whole groups.

    Cut short, the same request with the same key makes what is missing. Raises InvalidInput for what cannot be
    collected, before anything is stored, and when a policy becomes unusable in the middle.
    """
    wanted = list(dict.fromkeys(request.tasks))
    _check(request, wanted)
    graph = catalogue.named(graphs, request.graph)
    engines = engines_for(graph, request.engines, default_engine or EngineChoice())
    digest = _digest(request, wanted)
    async with database.transaction(tenant) as connection:
        earlier = None
        if request.idempotency_key:
            await connection.execute(runs.ONE_AT_A_TIME, (f"batch {request.idempotency_key}",))
            earlier = await groups.batch_before(connection, request.idempotency_key)
        id = new_id()
        engines = _engines_of(earlier[0]) if earlier else await policies.resolved(connection, engines, id)
        versions = await policies.pinned(connection, engines)
        found = await tasks.by_ids(connection, wanted)
        scorers = _scorers(request, found, await tasks.references(connection, wanted))
        batch = _same(earlier, digest) if earlier else await groups.insert_batch(
            connection, tenant, id, name=request.name, request=_described(request, graph, engines, scorers),
            groups=len(wanted), key=request.idempotency_key, digest=digest,
        )  # fmt: skip
        done = await groups.tasks_made(connection, batch.id) if earlier else set[UUID]()
    pinned = _pinned(request, graph, engines, versions, scorers, slice_turns)
    missing = [task for task in found if task.id not in done]
    made = await _make(database, hints, tenant, batch, pinned, missing, request.seed)
    return Created(batch, earlier is None, made)


async def cancel(database: Database, hints: Hints, tenant: UUID, batch: UUID) -> SeenBatch:
    """End every run of a batch, and make and repeat none. What was settled stays. Raises NotFound."""
    async with database.transaction(tenant) as connection:
        await groups.cancel(connection, batch)
    while True:
        async with database.transaction(tenant) as connection:
            if not await groups.cancel_idle(connection, tenant, batch, CANCELLED_AT_ONCE):
                break
    async with database.transaction(tenant) as connection:
        running = await groups.cancel_running(connection, batch)
    for run in running:
        await hints.nudge(run)
    return await one_batch(database, tenant, batch)


async def one_batch(database: Database, tenant: UUID, batch: UUID) -> SeenBatch:
    """A batch and how far it is. Raises NotFound."""
    async with database.transaction(tenant) as connection:
        row = await groups.batch(connection, batch)
        return SeenBatch(row, (await groups.progress(connection, [batch]))[batch])


async def batches(
    database: Database, tenant: UUID, before: UUID | None, limit: int
) -> tuple[list[SeenBatch], UUID | None]:
    """Batches, newest first, and where the next page begins. None: this was the last."""
    async with database.transaction(tenant) as connection:
        found = await groups.batches(connection, before, limit + 1)
        progress = await groups.progress(connection, [b.id for b in found[:limit]])
    page = [SeenBatch(b, progress[b.id]) for b in found[:limit]]
    return page, found[limit - 1].id if len(found) > limit else None


async def list_groups(
    database: Database, tenant: UUID, wanted: GroupFilter, before: UUID | None, limit: int
) -> tuple[list[GroupRow], UUID | None]:
    """Groups, newest first. Raises NotFound for a batch that is not there."""
    async with database.transaction(tenant) as connection:
        if wanted.batch is not None:
            await groups.batch(connection, wanted.batch)
        found = await groups.groups(connection, wanted, before, limit + 1)
    return found[:limit], found[limit - 1].id if len(found) > limit else None


async def one_group(database: Database, tenant: UUID, group: UUID) -> SeenGroup:
    """A group with all of its rollouts and their scores. Raises NotFound."""
    async with database.transaction(tenant) as connection:
        row = await groups.group(connection, group)
        members = await rollouts.of_group(connection, group)
        return SeenGroup(row, members, await rewards.scores(connection, [m.run for m in members]))


async def list_rollouts(
    database: Database, tenant: UUID, wanted: RolloutFilter, before: UUID | None, limit: int
) -> tuple[list[RolloutRow], UUID | None]:
    """Rollouts, newest first. Raises NotFound for a batch that is not there."""
    async with database.transaction(tenant) as connection:
        if wanted.batch is not None:
            await groups.batch(connection, wanted.batch)
        found = await rollouts.latest(connection, wanted, before, limit + 1)
    return found[:limit], found[limit - 1].run if len(found) > limit else None


async def one_rollout(database: Database, tenant: UUID, run: UUID) -> SeenRollout:
    """Raises NotFound."""
    async with database.transaction(tenant) as connection:
        return SeenRollout(await rollouts.rollout(connection, run), await rewards.scores(connection, [run]))


def member_seed(batch_seed: int, content: str, member: int) -> int:
    """A rollout's seed, 0 to 2**48 - 1: another for each member of each task, the same whenever it is asked for."""
    digest = hashlib.blake2b(f"{batch_seed}:{content}:{member}".encode(), digest_size=6).digest()
    return int.from_bytes(digest, "big")


async def _make(
    database: Database,
    hints: Hints,
    tenant: UUID,
    batch: BatchRow,
    pinned: Pinned,
    missing: Sequence[TaskRow],
    seed: int,
) -> int:
    """Make the groups of these tasks; the number of runs. Hints go out while the next groups are made."""
    made, told, chunk = 0, None, max(1, RUNS_AT_ONCE // pinned.size)
    try:
        for start in range(0, len(missing), chunk):
            new = [_new_group(task, pinned.size, seed) for task in missing[start : start + chunk]]
            async with database.transaction(tenant) as connection:
                await policies.pinned(connection, pinned.engines)
                created = await groups.create(connection, tenant, batch.id, pinned, new)
            made += len(created)
            if told is not None:
                await told
            told = asyncio.create_task(hints.wake_all(created))
    finally:
        if told is not None:
            await told
    return made


def _new_group(task: TaskRow, size: int, seed: int) -> NewGroup:
    group = new_id()
    members = tuple(
        NewMember(group, n, new_id(), new_id(), member_seed(seed, task.content_sha256, n)) for n in range(size)
    )
    return NewGroup(group, task.id, seed, members)


def _check(request: BatchRequest, wanted: Sequence[UUID]) -> None:
    if not wanted:
        raise InvalidInput("tasks", "there is none", "Name at least one task.")
    if not 1 <= request.group_size <= MOST_MEMBERS:
        raise InvalidInput("group_size", f"{request.group_size} is out of range", f"Use 1 to {MOST_MEMBERS}.")
    if len(wanted) * request.group_size > MOST_RUNS:
        raise InvalidInput("tasks", f"more than {MOST_RUNS:,} runs", "Ask for fewer tasks, or for smaller groups.")
    if not 1 <= request.attempts <= MOST_ATTEMPTS:
        raise InvalidInput("attempts", f"{request.attempts} is out of range", f"Use 1 to {MOST_ATTEMPTS}.")
    if request.durability not in (None, "exit", "sync"):
        raise InvalidInput("durability", f"there is no durability {request.durability!r}", "Use exit or sync.")


def _scorers(request: BatchRequest, found: Sequence[TaskRow], references: Mapping[UUID, Any]) -> list[dict[str, Any]]:
    """Scorers as a group pins them. Raises InvalidInput for what they cannot work with."""
    wanted = request.scorers
    if wanted is None:
        wanted = [ScorerSpec("exact_match")] if all(task.id in references for task in found) else []
    names = [spec.name for spec in wanted]
    if len(set(names)) < len(names):
        raise InvalidInput("scorers", "one is named twice", "Name each scorer once.")
    return [_scorer(spec, found, references) for spec in wanted]


def _scorer(spec: ScorerSpec, found: Sequence[TaskRow], references: Mapping[UUID, Any]) -> dict[str, Any]:
    scorer = scorer_named(spec.name)
    scorer.check(spec.options)
    for task in found:
        if lacks := scorer.lacks(references.get(task.id)):
            raise InvalidInput(
                "scorers", f"{spec.name} cannot score task {task.name or task.id}: {lacks}", "Choose other scorers."
            )
    return {"name": spec.name, "version": scorer.version, "weight": spec.weight, "options": dict(spec.options)}


def _pinned(
    request: BatchRequest,
    graph: Graph,
    engines: Mapping[str, EngineChoice],
    versions: Mapping[str, UUID],
    scorers: list[dict[str, Any]],
    slice_turns: int,
) -> Pinned:
    policy = starting_policy(graph)
    fits = request.budget.turns <= slice_turns
    return Pinned(
        graph=graph.name,
        graph_version=graph.version,
        engines=engines,
        policies=versions,
        scorers=scorers,
        size=request.group_size,
        attempts=request.attempts,
        tags=request.tags,
        policy=policy.model_dump(mode="json"),
        policy_sha256=policy_hash(policy),
        budget=_budget(request.budget),
        durability=request.durability or ("exit" if fits else "sync"),
        traceparent=request.traceparent,
    )


def _described(
    request: BatchRequest, graph: Graph, engines: Mapping[str, EngineChoice], scorers: list[dict[str, Any]]
) -> dict[str, Any]:
    """The request as its batch keeps it, without its tasks."""
    return {
        "graph": graph.name,
        "group_size": request.group_size,
        "engines": {role: choice.model_dump() for role, choice in engines.items()},
        "scorers": scorers,
        "budget": _budget(request.budget),
        "attempts": request.attempts,
        "seed": request.seed,
        "tags": list(request.tags),
    }


def _engines_of(batch: BatchRow) -> dict[str, EngineChoice]:
    """As the batch pinned them when it was made."""
    return {role: EngineChoice.model_validate(choice) for role, choice in batch.request["engines"].items()}


def _digest(request: BatchRequest, wanted: Sequence[UUID]) -> str:
    body = {
        "tasks": sorted(str(id) for id in wanted),
        "graph": request.graph,
        "group_size": request.group_size,
        "engines": {role: choice.model_dump() for role, choice in request.engines.items()},
        "scorers": None if request.scorers is None else [asdict(spec) for spec in request.scorers],
        "budget": _budget(request.budget),
        "durability": request.durability,
        "attempts": request.attempts,
        "seed": request.seed,
        "tags": list(request.tags),
    }
    return hashlib.sha256(orjson.dumps(body, option=orjson.OPT_SORT_KEYS)).hexdigest()


def _same(earlier: tuple[BatchRow, str], digest: str) -> BatchRow:
    batch, its_digest = earlier
    if its_digest != digest:
        remedy = "Send a new key, or repeat the first request as it was."
        raise Conflict("This Idempotency-Key was used for another request.", remedy)
    return batch


def _budget(budget: Budget) -> dict[str, Any]:
    usd = None if budget.usd is None else str(budget.usd)
    return {"turns": budget.turns, "tokens": budget.tokens, "usd": usd, "seconds": budget.seconds}
