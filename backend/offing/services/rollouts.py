"""Collect rollouts: create, list, read and cancel batches of groups, each of one task under pinned versions.

Only workers advance and finalize rollouts. Pinned versions are checked in the transaction that creates the groups.
"""

import asyncio
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any
from uuid import UUID

import orjson

from offing.bus.notifier import RunNotifier
from offing.clock import new_id
from offing.core.errors import Conflict, InvalidInput
from offing.core.judge_budget import NO_JUDGE_LIMIT, JudgeBudget
from offing.core.model import EngineConfig, engine_to_digest_json, engine_to_json
from offing.core.run import Budget
from offing.core.tool_policy import hash_tool_policy
from offing.mcp.server_registry import McpServerRegistry
from offing.sdk import Graph
from offing.services import graphs as graph_registry
from offing.services import policies, providers
from offing.services.engine_configs import choose_engines
from offing.services.run_tool_policy import build_default_tool_policy, build_tool_policy
from offing.services.scorer_pins import ScorerSpec, pin_scorers, split_by_scorers
from offing.services.task_scopes import (
    TOOL_FIELDS,
    NamedScope,
    ScopePins,
    check_pinned_servers,
    naming_task,
    pin_scopes,
)
from offing.storage import rewards, rollout_batches, rollouts, runs, tasks
from offing.storage.pool import Connection, Database
from offing.storage.rewards import ScoreRow
from offing.storage.rollout_batches import (
    BatchProgress,
    GroupFilter,
    GroupRow,
    NewGroup,
    NewGroupMember,
    PinnedConfig,
    RolloutBatchRow,
)
from offing.storage.rollouts import RolloutFilter, RolloutRow
from offing.storage.tasks import TaskRow

MAX_RUNS_PER_TRANSACTION = 512
"""Maximum number of runs that are created in one transaction, in whole groups."""

MAX_RUNS_PER_BATCH = 100_000
"""Maximum number of runs of one batch."""

EVALUATION_TAG = "evaluation"
"""Tag of groups that are not used for training unless the tag is requested."""

MAX_GROUP_SIZE = 256

MAX_ATTEMPTS = 10

MAX_CANCELLED_PER_TRANSACTION = 500


@dataclass(frozen=True, slots=True)
class BatchRequest:
    """A request for rollouts."""

    graph: str
    task_ids: Sequence[UUID]
    """Ids of stored tasks, one group each. Duplicates count once."""
    group_size: int
    engines: Mapping[str, EngineConfig] = field(default_factory=dict[str, EngineConfig])
    """Engine configs by role. A policy is `policy:NAME@VERSION`."""
    scorers: Sequence[ScorerSpec] | None = None
    """The scorers. `None` means exact_match if every task has a reference answer."""
    budget: Budget = field(default_factory=Budget)
    durability: str | None = None
    """The durability. `None` means `exit` if the turns fit one slice, else `sync`."""
    attempts: int = 3
    """Maximum number of attempts per member. Infrastructure errors are retried."""
    seed: int = 0
    tags: Sequence[str] = ()
    name: str = ""
    idempotency_key: str | None = None
    traceparent: str | None = None
    scope: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Fields that replace those of the tasks' scopes, such as `web`."""
    judge_budget: JudgeBudget = NO_JUDGE_LIMIT
    """What the judges among the scorers may use. A batch that has spent it stops."""
    omit_inapplicable_scorers: bool = False
    """Whether a scorer is left out of the groups of tasks that it cannot score. If not, such tasks are rejected."""


@dataclass(frozen=True, slots=True)
class CreatedBatch:
    batch: RolloutBatchRow
    is_new: bool
    """`False` if an earlier request with the same idempotency key created the batch. Its missing groups have been
    created.
    """
    new_run_count: int
    """Number of runs that were created just now."""


@dataclass(frozen=True, slots=True)
class BatchStatus:
    batch: RolloutBatchRow
    progress: BatchProgress


@dataclass(frozen=True, slots=True)
class GroupWithScores:
    group: GroupRow
    rollouts: list[RolloutRow]
    scores: list[ScoreRow]
    """Scores of all rollouts."""


@dataclass(frozen=True, slots=True)
class RolloutWithScores:
    rollout: RolloutRow
    scores: list[ScoreRow]


async def create_batch(
    database: Database,
    notifier: RunNotifier,
    tenant_id: UUID,
    request: BatchRequest,
    *,
    graphs: Mapping[str, Graph],
    default_engine: EngineConfig | None = None,
    slice_max_turns: int = 64,
    servers: McpServerRegistry | None = None,
) -> CreatedBatch:
    """Create a batch with all its groups and runs, in transactions of whole groups.

    After an interruption, the same request with the same key creates what is missing. `servers` are the MCP servers
    that a task's scope may name; `None` means that there are none. Raises InvalidInput before anything is stored, or
    later if a policy becomes unusable in the meantime, and Conflict if the tools of a pinned MCP server have changed.
    """
    task_ids = list(dict.fromkeys(request.task_ids))
    _check_request(request, task_ids)
    graph = graph_registry.get_graph(graphs, request.graph)
    digest = _hash_request(request, task_ids)
    async with database.transaction(tenant_id) as connection:
        stored = await providers.list_stored(connection)
        engines = choose_engines(graph, request.engines, default_engine or EngineConfig(), stored)
        earlier = None
        if request.idempotency_key:
            await connection.execute(runs.LOCK_IDEMPOTENCY_KEY, (f"batch {request.idempotency_key}",))
            earlier = await rollout_batches.find_earlier_batch(connection, request.idempotency_key)
        id = new_id()
        engines = (
            _engines_from_batch(earlier[0]) if earlier else await policies.resolve_versions(connection, engines, id)
        )
        versions = await policies.pin_versions(connection, engines)
        found_tasks = await tasks.get_tasks(connection, task_ids)
        references = await tasks.get_references(connection, task_ids)
        scorers = pin_scorers(
            request.scorers, found_tasks, references, omit_inapplicable=request.omit_inapplicable_scorers
        )
        pins = await _pin_scopes(connection, tenant_id, request, found_tasks, servers, earlier and earlier[0])
        batch = _check_same_request(earlier, digest) if earlier else await rollout_batches.insert_batch(
            connection, tenant_id, id, name=request.name,
            request=_describe_request(request, graph, engines, scorers, pins),
            group_count=len(task_ids), idempotency_key=request.idempotency_key, request_sha256=digest,
            judge_budget=request.judge_budget,
        )  # fmt: skip
        grouped_task_ids = await rollout_batches.list_grouped_task_ids(connection, batch.id) if earlier else set[UUID]()
    check_pinned_servers(pins, servers)
    pinned = _build_pinned_config(request, graph, engines, versions, scorers, slice_max_turns)
    missing = [task for task in found_tasks if task.id not in grouped_task_ids]
    created_count = 0
    parts = [
        (_pin_scope(replace(pinned, scorers=applicable), graph, request, same_scope, pins, servers), same_scope)
        for applicable, part in split_by_scorers(scorers, missing, references)
        for same_scope in _split_by_scope(part)
    ]
    for config, part in parts:
        created_count += await _create_groups(database, notifier, tenant_id, batch, config, part, request.seed)
    return CreatedBatch(batch, earlier is None, created_count)


async def cancel_batch(database: Database, notifier: RunNotifier, tenant_id: UUID, batch_id: UUID) -> BatchStatus:
    """Cancel every run of a batch and create or retry none. Finalized rollouts are kept. Raises NotFound."""
    async with database.transaction(tenant_id) as connection:
        await rollout_batches.cancel_batch(connection, batch_id)
    for run in await cancel_runs_of_batch(database, tenant_id, batch_id):
        await notifier.notify_control(run)
    return await get_batch(database, tenant_id, batch_id)


async def cancel_runs_of_batch(database: Database, tenant_id: UUID, batch_id: UUID) -> Sequence[UUID]:
    """Cancel the waiting runs of a batch that was stopped, and request it of the others. Returns the others."""
    while True:
        async with database.transaction(tenant_id) as connection:
            if not await rollout_batches.cancel_unclaimed_runs(
                connection, tenant_id, batch_id, MAX_CANCELLED_PER_TRANSACTION
            ):
                break
    async with database.transaction(tenant_id) as connection:
        return await rollout_batches.request_cancel_of_running(connection, batch_id)


async def get_batch(database: Database, tenant_id: UUID, batch_id: UUID) -> BatchStatus:
    """Return a batch with its progress. Raises NotFound."""
    async with database.transaction(tenant_id) as connection:
        row = await rollout_batches.get_batch(connection, batch_id)
        return BatchStatus(row, (await rollout_batches.get_progress(connection, [batch_id]))[batch_id])


async def list_batches(
    database: Database, tenant_id: UUID, before_id: UUID | None, limit: int
) -> tuple[list[BatchStatus], UUID | None]:
    """List batches, newest first, with the start of the next page. `None` means that this is the last page."""
    async with database.transaction(tenant_id) as connection:
        batches = await rollout_batches.list_batches(connection, before_id, limit + 1)
        progress = await rollout_batches.get_progress(connection, [b.id for b in batches[:limit]])
    page = [BatchStatus(b, progress[b.id]) for b in batches[:limit]]
    return page, batches[limit - 1].id if len(batches) > limit else None


async def list_groups(
    database: Database, tenant_id: UUID, group_filter: GroupFilter, before_id: UUID | None, limit: int
) -> tuple[list[GroupRow], UUID | None]:
    """List groups, newest first. Raises NotFound for an unknown batch."""
    async with database.transaction(tenant_id) as connection:
        if group_filter.batch_id is not None:
            await rollout_batches.get_batch(connection, group_filter.batch_id)
        groups = await rollout_batches.list_groups(connection, group_filter, before_id, limit + 1)
    return groups[:limit], groups[limit - 1].id if len(groups) > limit else None


async def get_group(database: Database, tenant_id: UUID, group_id: UUID) -> GroupWithScores:
    """Return a group with all its rollouts and their scores. Raises NotFound."""
    async with database.transaction(tenant_id) as connection:
        row = await rollout_batches.get_group(connection, group_id)
        members = await rollouts.list_rollouts_of_group(connection, group_id)
        return GroupWithScores(row, members, await rewards.list_scores(connection, [m.run_id for m in members]))


async def list_rollouts(
    database: Database, tenant_id: UUID, rollout_filter: RolloutFilter, before_id: UUID | None, limit: int
) -> tuple[list[RolloutRow], UUID | None]:
    """List rollouts, newest first. Raises NotFound for an unknown batch."""
    async with database.transaction(tenant_id) as connection:
        if rollout_filter.batch_id is not None:
            await rollout_batches.get_batch(connection, rollout_filter.batch_id)
        rows = await rollouts.list_rollouts(connection, rollout_filter, before_id, limit + 1)
    return rows[:limit], rows[limit - 1].run_id if len(rows) > limit else None


async def get_rollout(database: Database, tenant_id: UUID, run_id: UUID) -> RolloutWithScores:
    """Return a rollout with its scores. Raises NotFound."""
    async with database.transaction(tenant_id) as connection:
        return RolloutWithScores(
            await rollouts.get_rollout(connection, run_id), await rewards.list_scores(connection, [run_id])
        )


def derive_member_seed(batch_seed: int, content: str, member: int) -> int:
    """Return the seed of a rollout, from 0 to 2**48 - 1.

    It differs for each member of each task and is always the same for one.
    """
    digest = hashlib.blake2b(f"{batch_seed}:{content}:{member}".encode(), digest_size=6).digest()
    return int.from_bytes(digest, "big")


async def _create_groups(
    database: Database,
    notifier: RunNotifier,
    tenant_id: UUID,
    batch: RolloutBatchRow,
    pinned: PinnedConfig,
    missing: Sequence[TaskRow],
    seed: int,
) -> int:
    """Create the groups of these tasks and return the number of runs.

    Notifications are sent while the next groups are created.
    """
    created_count, dispatching, chunk = 0, None, max(1, MAX_RUNS_PER_TRANSACTION // pinned.size)
    try:
        for start in range(0, len(missing), chunk):
            new = [_new_group(task, pinned.size, seed) for task in missing[start : start + chunk]]
            async with database.transaction(tenant_id) as connection:
                await policies.pin_versions(connection, pinned.engines)
                created = await rollout_batches.create_groups(connection, tenant_id, batch.id, pinned, new)
            created_count += len(created)
            if dispatching is not None:
                await dispatching
            dispatching = asyncio.create_task(notifier.dispatch_runs(created))
    finally:
        if dispatching is not None:
            await dispatching
    return created_count


def _new_group(task: TaskRow, size: int, seed: int) -> NewGroup:
    group = new_id()
    members = tuple(
        NewGroupMember(group, n, new_id(), new_id(), derive_member_seed(seed, task.content_sha256, n))
        for n in range(size)
    )
    return NewGroup(group, task.id, seed, members)


def _check_request(request: BatchRequest, task_ids: Sequence[UUID]) -> None:
    if not task_ids:
        raise InvalidInput("tasks", "there are no tasks", "Give at least one task.")
    if not 1 <= request.group_size <= MAX_GROUP_SIZE:
        raise InvalidInput("group_size", f"{request.group_size} is out of range", f"Use 1 to {MAX_GROUP_SIZE}.")
    if len(task_ids) * request.group_size > MAX_RUNS_PER_BATCH:
        raise InvalidInput(
            "tasks", f"the batch would have more than {MAX_RUNS_PER_BATCH:,} runs", "Use fewer tasks or smaller groups."
        )
    if not 1 <= request.attempts <= MAX_ATTEMPTS:
        raise InvalidInput("max_attempts", f"{request.attempts} is out of range", f"Use 1 to {MAX_ATTEMPTS}.")
    if request.durability not in (None, "exit", "sync"):
        raise InvalidInput("durability", f"there is no durability {request.durability!r}", "Use exit or sync.")


async def _pin_scopes(
    connection: Connection,
    tenant_id: UUID,
    request: BatchRequest,
    task_rows: Sequence[TaskRow],
    servers: McpServerRegistry | None,
    earlier: RolloutBatchRow | None,
) -> ScopePins:
    """Check the scopes of the tasks again and pin what they name. An earlier batch keeps its pins."""
    if earlier is not None:
        return ScopePins.from_json(earlier.request.get("pins", {}))
    named = [NamedScope(task.name or str(task.id), {**task.scope, **request.scope}) for task in task_rows]
    return await pin_scopes(connection, tenant_id, named, servers)


def _split_by_scope(task_rows: Sequence[TaskRow]) -> list[list[TaskRow]]:
    """Return the tasks in parts whose scopes give their runs the same tools and the same tool policy."""
    parts: dict[bytes, list[TaskRow]] = {}
    for task in task_rows:
        tools = {name: task.scope[name] for name in TOOL_FIELDS if task.scope.get(name)}
        parts.setdefault(orjson.dumps(tools, option=orjson.OPT_SORT_KEYS), []).append(task)
    return list(parts.values())


def _pin_scope(
    pinned: PinnedConfig,
    graph: Graph,
    request: BatchRequest,
    task_rows: Sequence[TaskRow],
    pins: ScopePins,
    servers: McpServerRegistry | None,
) -> PinnedConfig:
    """Return the configuration of tasks with the same tools: their tool policy, and the pins in their scope."""
    first = task_rows[0]
    scope = {**first.scope, **request.scope}
    with naming_task(first.name or str(first.id), "tool_policy"):
        policy = build_tool_policy(graph, scope, pins.find_policy(scope), servers or McpServerRegistry())
    return replace(
        pinned,
        tool_policy=policy.model_dump(mode="json"),
        tool_policy_sha256=hash_tool_policy(policy),
        scope={**request.scope, **pins.apply(scope)},
    )


def _build_pinned_config(
    request: BatchRequest,
    graph: Graph,
    engines: Mapping[str, EngineConfig],
    versions: Mapping[str, UUID],
    scorers: list[dict[str, Any]],
    slice_turns: int,
) -> PinnedConfig:
    policy = build_default_tool_policy(graph)
    fits = request.budget.max_turns <= slice_turns
    return PinnedConfig(
        graph=graph.name,
        graph_version=graph.version,
        engines=engines,
        policy_version_ids=versions,
        scorers=scorers,
        size=request.group_size,
        max_attempts=request.attempts,
        tags=request.tags,
        tool_policy=policy.model_dump(mode="json"),
        tool_policy_sha256=hash_tool_policy(policy),
        budget=runs.budget_to_json(request.budget),
        durability=request.durability or ("exit" if fits else "sync"),
        traceparent=request.traceparent,
        scope=request.scope,
    )


def _describe_request(
    request: BatchRequest,
    graph: Graph,
    engines: Mapping[str, EngineConfig],
    scorers: list[dict[str, Any]],
    pins: ScopePins,
) -> dict[str, Any]:
    """Return the request without its tasks, as stored in the batch."""
    return {
        "graph": graph.name,
        "group_size": request.group_size,
        "engines": {role: engine_to_json(choice) for role, choice in engines.items()},
        "scorers": scorers,
        "budget": runs.budget_to_json(request.budget),
        "attempts": request.attempts,
        "seed": request.seed,
        "tags": list(request.tags),
        **({"pins": stored} if (stored := pins.to_json()) else {}),
    }


def _engines_from_batch(batch: RolloutBatchRow) -> dict[str, EngineConfig]:
    """Return the engine configs that the batch has pinned."""
    return {role: EngineConfig.model_validate(choice) for role, choice in batch.request["engines"].items()}


def _hash_request(request: BatchRequest, task_ids: Sequence[UUID]) -> str:
    body = {
        "tasks": sorted(str(id) for id in task_ids),
        "graph": request.graph,
        "group_size": request.group_size,
        "engines": {role: engine_to_digest_json(choice) for role, choice in request.engines.items()},
        "scorers": None if request.scorers is None else [asdict(spec) for spec in request.scorers],
        "budget": runs.budget_to_json(request.budget),
        "durability": request.durability,
        "attempts": request.attempts,
        "seed": request.seed,
        "tags": list(request.tags),
    }
    body |= {"scope": dict(request.scope)} if request.scope else {}
    return hashlib.sha256(orjson.dumps(body, option=orjson.OPT_SORT_KEYS)).hexdigest()


def _check_same_request(earlier: tuple[RolloutBatchRow, str], request_sha256: str) -> RolloutBatchRow:
    batch, its_digest = earlier
    if its_digest != request_sha256:
        remedy = "Use a new key, or repeat the first request unchanged."
        raise Conflict("This Idempotency-Key was used for another request.", remedy)
    return batch
