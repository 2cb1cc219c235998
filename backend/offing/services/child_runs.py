"""Runs that a run starts: what they may do, making them once, and ending those that their parent left behind.

The only home of the rule that a child is never allowed more than its parent: tools, documents and budget are shares of
what the parent has left. Waiting for children and taking up what they bring is the worker's.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_DOWN, Decimal
from typing import Any
from uuid import UUID

from offing.clock import new_id
from offing.core.errors import OffingError
from offing.core.model import EngineChoice, parse_engine
from offing.core.policy import Policy, is_narrower, policy_hash, policy_of
from offing.core.run import Budget, CancelMode, Fence, RunStatus, Spent, StopReason
from offing.core.step import CallKey, StepDraft, StepKind, shortened
from offing.kernel.store import ChildRunsUnavailable, ParentUsage
from offing.sdk import Graph
from offing.sdk.children import ChildRequest
from offing.services.runs import ended_step
from offing.storage import child_runs, runs, steps
from offing.storage.child_runs import ChildRow
from offing.storage.pool import Connection, Database
from offing.storage.runs import NewRun, RunRow

DEEPEST = 2
"""Runs above a run that may still be started."""
MOST = 16
"""Children of one run."""
FOR_CHILDREN = Decimal("0.8")
"""Share of the tokens, the money and the seconds that are left which children may have; the rest writes the report."""
SMALLEST = Decimal("0.000001")
"""Money that can be stored."""
GRANTS = frozenset({"allow", "ask"})
"""Effects of rules that let a call through."""


class ChildDiverged(OffingError):
    """A node that runs again asks for another child than the one that it made under the same key."""

    code = "child_diverged"


@dataclass(frozen=True, slots=True)
class Family:
    """Who started a run, and whom it started."""

    parent: UUID | None
    children: tuple[ChildRow, ...]


async def make(
    connection: Connection,
    fence: Fence,
    row: RunRow,
    wanted: Sequence[tuple[CallKey, ChildRequest]],
    graphs: Mapping[str, Graph],
    had: ParentUsage,
) -> list[RunRow] | ChildRunsUnavailable:
    """The children of one call, those that a lost claim had made included. Holds the parent's row. Raises Fenced."""
    await child_runs.hold(connection, fence)
    made = await child_runs.of_call(connection, row.id, [key for key, _ in wanted])
    for key, request in wanted:
        if key in made and (made[key].question, made[key].graph) != (request.question, request.graph):
            raise ChildDiverged(str(row.id), str(key))
    new = [(key, request) for key, request in wanted if key not in made]
    if new:
        planned = await _planned(connection, row, [request for _, request in new], graphs, had)
        if isinstance(planned, ChildRunsUnavailable):
            return planned
        depth = await child_runs.depth(connection, row.id) + 1
        for (key, _), child in zip(new, planned, strict=True):
            made[key] = await _stored(connection, fence, row, key, depth, child)
    return [made[key] for key, _ in wanted]


async def _planned(
    connection: Connection, row: RunRow, wanted: Sequence[ChildRequest], graphs: Mapping[str, Graph], had: ParentUsage
) -> list[NewRun] | ChildRunsUnavailable:
    if await child_runs.depth(connection, row.id) >= DEEPEST:
        return ChildRunsUnavailable(
            f"A run may stand {DEEPEST} levels under the one that a person asked for, and not deeper."
        )
    if await child_runs.count(connection, row.id) + len(wanted) > MOST:
        return ChildRunsUnavailable(f"A run may start {MOST} others.")
    if unknown := [r.graph for r in wanted if r.graph not in graphs]:
        return ChildRunsUnavailable(f"There is no graph {unknown[0]!r}.")
    abroad = await child_runs.uncollected(connection, row.id)
    left = left_of(row.budget, had.spent, abroad)
    if left.turns < len(wanted):
        return ChildRunsUnavailable(
            f"{left.turns} turns are left, which is less than one for each of {len(wanted)} runs."
        )
    share, mine = shared(left, len(wanted)), policy_of((await runs.by_id(connection, row.id)).policy) or Policy()
    out = [policy_of(child.policy) or Policy() for child in abroad]
    policies = [narrowed(mine, request.tools, len(wanted), had, out) for request in wanted]
    if unproven := next((found for policy in policies if (found := is_narrower(policy, mine))), None):
        return ChildRunsUnavailable(
            f"Rule {unproven.rule!r} of this run's tool policy cannot be shared: {unproven.problem}"
        )
    return [
        _child(row, request, graphs[request.graph], n, share, policy)
        for n, (request, policy) in enumerate(zip(wanted, policies, strict=True))
    ]


def left_of(budget: Budget, spent: Spent, abroad: Iterable[RunRow]) -> Budget:
    """What a parent may still give away: what children that it has not taken up may use is gone."""
    given = [child.budget for child in abroad]
    tokens = None if budget.tokens is None else budget.tokens - spent.tokens - sum(g.tokens or 0 for g in given)
    usd = None if budget.usd is None else budget.usd - spent.usd - sum((g.usd or Decimal(0) for g in given), Decimal(0))
    seconds = None if budget.seconds is None else budget.seconds - spent.seconds - sum(g.seconds or 0 for g in given)
    turns = max(0, budget.turns - spent.turns - sum(g.turns for g in given))
    return Budget(turns, tokens, usd, seconds)


def shared(left: Budget, among: int) -> Budget:
    """One of so many equal shares."""
    part = FOR_CHILDREN / among
    tokens = None if left.tokens is None else max(0, int(left.tokens * part))
    usd = None if left.usd is None else max(Decimal(0), (left.usd * part).quantize(SMALLEST, ROUND_DOWN))
    seconds = None if left.seconds is None else max(0.0, left.seconds * float(part))
    return Budget(left.turns // among, tokens, usd, seconds)


def within(share: Budget, wanted: Budget | None) -> Budget:
    """What was asked for, as far as the share goes."""
    if wanted is None:
        return share
    return Budget(
        min(share.turns, wanted.turns),
        _least(share.tokens, wanted.tokens),
        _least(share.usd, wanted.usd),
        _least(share.seconds, wanted.seconds),
    )


def _least(one: Any, other: Any) -> Any:
    return other if one is None else one if other is None else min(one, other)


def narrowed(
    policy: Policy, tools: Sequence[str] | None, among: int, had: ParentUsage, abroad: Sequence[Policy]
) -> Policy:
    """The parent's policy for one of so many children: rules that grant say less, all others stand as they are.

    `tools`: those that may still be granted. None: all of them. `abroad`: policies of children whose calls are not yet
    counted.
    """
    rules: list[dict[str, Any]] = policy.model_dump(mode="json")["rules"]
    granted = [r for r in rules if r["effect"] not in GRANTS or tools is None or r["tool"] in tools]
    return Policy.model_validate({"rules": [r | _limits(r, among, had, abroad) for r in granted]})


def _limits(rule: dict[str, Any], among: int, had: ParentUsage, abroad: Sequence[Policy]) -> dict[str, Any]:
    """A rule's limits on a run's calls, as shares of what is left of them."""
    tool, left = rule["tool"], dict[str, Any]()
    for limit, done in (("most", had.used), ("most_bytes", had.received)):
        if rule.get(limit) is not None:
            out = sum(max((getattr(r, limit) or 0 for r in p.rules if r.tool == tool), default=0) for p in abroad)
            left[limit] = max(0, rule[limit] - done.get(tool, 0) - out) // among
    return left


def scope_for(scope: Mapping[str, Any], request: ChildRequest) -> dict[str, Any]:
    """What of the parent's scope a child may see. What the parent may not see is left out of what was asked for."""
    given = dict(scope)
    for name, wanted in (("collections", request.collections), ("sources", tuple(map(str, request.sources)))):
        mine = [str(one) for one in scope.get(name) or ()]
        if wanted:
            given[name] = [one for one in wanted if not mine or one in mine] or [NOTHING_THERE[name]]
    if not request.web and "web" in given:
        given["web"] = False
    return given


NOTHING_THERE = {"collections": "\uffff", "sources": str(UUID(int=0))}
"""What no document is in: an empty list would mean everything."""


def engines_of(row: RunRow, graph: Graph, request: ChildRequest) -> dict[str, EngineChoice]:
    """Who answers each role of a child's graph."""
    shipped = {name: parse_engine(text) for name, text in graph.engines.items()}
    shared = next(iter(row.engines.values()), EngineChoice())
    common = shared if all(choice == shared for choice in row.engines.values()) else EngineChoice()
    found: dict[str, EngineChoice] = {}
    for role in sorted(role.name for role in graph.roles):
        mine = row.engines.get(request.engines.get(role, role))
        found[role] = mine or shipped.get(role, common)
    return found


def _child(row: RunRow, request: ChildRequest, graph: Graph, n: int, share: Budget, policy: Policy) -> NewRun:
    return NewRun(
        id=new_id(),
        thread=new_id(),
        graph=graph.name,
        graph_version=graph.version,
        question=request.question,
        engines=engines_of(row, graph, request),
        policy=policy.model_dump(mode="json"),
        policy_sha256=policy_hash(policy),
        budget=within(share, request.budget),
        scope=scope_for(row.scope, request),
        seed=row.seed + n,
        deadline=row.deadline,
        traceparent=row.traceparent,
        kind="child",
    )


async def _stored(connection: Connection, fence: Fence, row: RunRow, key: CallKey, depth: int, child: NewRun) -> RunRow:
    await child_runs.insert_thread(connection, fence.tenant, child.thread, shortened(child.question))
    run = await runs.insert(connection, fence.tenant, child)
    await child_runs.insert(connection, fence.tenant, row.id, key, depth, run.id)
    said = {"question": child.question, "graph": child.graph, "parent": str(row.id)}
    await steps.append_unowned(connection, run.id, [StepDraft(StepKind.QUEUED, child.question, said)])
    return run


async def family(database: Database, tenant: UUID, run: UUID) -> Family:
    """Raises NotFound."""
    async with database.transaction(tenant) as connection:
        row = await runs.by_id(connection, run)
        parent = await child_runs.parent_of(connection, row.id)
        return Family(parent, tuple(await child_runs.family(connection, row.id)))


async def drop_forsaken(database: Database, most: int = 100) -> None:
    """End children whose parent has ended without them. What runs hears of it with its next heartbeat."""
    for child, tenant in await child_runs.forsaken(database, most):
        async with database.transaction(tenant) as connection:
            row = await runs.locked(connection, child)
            if row.terminal:
                continue
            await runs.want_cancel(connection, child, CancelMode.DISCARD)
            if row.status is not RunStatus.RUNNING:
                ended = ended_step(RunStatus.CANCELLED, StopReason.CANCELLED)
                await steps.append_unowned(connection, child, [ended])
                await runs.set_status(connection, child, RunStatus.CANCELLED, StopReason.CANCELLED)
