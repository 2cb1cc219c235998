"""Create child runs and cancel those whose parent has ended.

A child is never allowed more than its parent: its tools, documents and budget are shares of what the parent
has left. Waiting for children and consuming their results is the worker's task.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_DOWN, Decimal
from typing import Any
from uuid import UUID

from offing.clock import new_id
from offing.core.errors import OffingError
from offing.core.model import EngineConfig, parse_engine
from offing.core.run import Budget, CancelMode, FencingToken, RunStatus, RunUsage, StopReason
from offing.core.step import CallKey, StepDraft, StepKind, shorten_line
from offing.core.tool_policy import ToolPolicy, find_unproven_restriction, hash_tool_policy, parse_stored_policy
from offing.kernel.run_store import ParentUsage
from offing.models.model_limits import clear_resolved_limits
from offing.sdk import Graph
from offing.sdk.child_runs import ChildRequest, ChildRunsUnavailable
from offing.services.engine_configs import NO_PROVIDERS, StoredProviders, resolve_limits
from offing.services.offline_runs import find_offline_problem
from offing.services.providers import list_stored
from offing.services.runs import draft_end_step
from offing.storage import child_runs, runs, steps
from offing.storage.child_runs import ChildRunRow
from offing.storage.pool import Connection, Database
from offing.storage.runs import NewRun, RunRow

MAX_DEPTH = 2
"""Maximum number of ancestors of a run."""
MAX_CHILDREN = 16
"""Maximum number of children of one run."""
CHILD_BUDGET_FRACTION = Decimal("0.8")
"""Fraction of the remaining tokens, money and seconds that children may have. The parent's report gets the rest."""
MIN_COST_STEP_USD = Decimal("0.000001")
"""Smallest amount of money that can be stored."""
GRANTING_EFFECTS = frozenset({"allow", "ask"})
"""Effects of rules that let a call through."""


class ChildRequestMismatchError(OffingError):
    """A node that runs again requests a different child run than the one it created under the same call key."""

    code = "child_diverged"


@dataclass(frozen=True, slots=True)
class RunTree:
    """The parent and the children of a run."""

    parent_id: UUID | None
    children: tuple[ChildRunRow, ...]


async def create_children(
    connection: Connection,
    fencing_token: FencingToken,
    row: RunRow,
    requests: Sequence[tuple[CallKey, ChildRequest]],
    graphs: Mapping[str, Graph],
    parent_usage: ParentUsage,
) -> list[RunRow] | ChildRunsUnavailable:
    """Create the children of one call, or return those that an earlier claim has created.

    Locks the row of the parent. Raises LeaseLostError.
    """
    await child_runs.lock_parent(connection, fencing_token)
    existing = await child_runs.list_children_of_call(connection, row.id, [key for key, _ in requests])
    for key, request in requests:
        if key in existing and (existing[key].question, existing[key].graph) != (request.question, request.graph):
            raise ChildRequestMismatchError(str(row.id), str(key))
    new = [(key, request) for key, request in requests if key not in existing]
    if new:
        planned = await _plan_children(connection, row, [request for _, request in new], graphs, parent_usage)
        if isinstance(planned, ChildRunsUnavailable):
            return planned
        depth = await child_runs.get_depth(connection, row.id) + 1
        for (key, _), child in zip(new, planned, strict=True):
            existing[key] = await _insert_child(connection, fencing_token, row, key, depth, child)
    return [existing[key] for key, _ in requests]


async def _plan_children(
    connection: Connection,
    row: RunRow,
    requests: Sequence[ChildRequest],
    graphs: Mapping[str, Graph],
    parent_usage: ParentUsage,
) -> list[NewRun] | ChildRunsUnavailable:
    if await child_runs.get_depth(connection, row.id) >= MAX_DEPTH:
        return ChildRunsUnavailable(f"Child runs can be nested at most {MAX_DEPTH} levels deep.")
    if await child_runs.count_children(connection, row.id) + len(requests) > MAX_CHILDREN:
        return ChildRunsUnavailable(f"A run can start at most {MAX_CHILDREN} child runs.")
    if unknown := [r.graph for r in requests if r.graph not in graphs]:
        return ChildRunsUnavailable(f"There is no graph {unknown[0]!r}.")
    abroad = await child_runs.list_unconsumed(connection, row.id)
    remaining = remaining_budget(row.budget, parent_usage.usage, abroad)
    if remaining.max_turns < len(requests):
        return ChildRunsUnavailable(
            f"{remaining.max_turns} turns are left, which is fewer than one for each of {len(requests)} child runs."
        )
    share, mine = (
        split_budget(remaining, len(requests)),
        parse_stored_policy((await runs.get_run(connection, row.id)).tool_policy) or ToolPolicy(),
    )
    out = [parse_stored_policy(child.tool_policy) or ToolPolicy() for child in abroad]
    policies = [restrict_for_child(mine, request.tools, len(requests), parent_usage, out) for request in requests]
    if unproven := next((problem for policy in policies if (problem := find_unproven_restriction(policy, mine))), None):
        return ChildRunsUnavailable(
            f"Rule {unproven.rule!r} of this run's tool policy cannot be passed on to child runs: {unproven.problem}"
        )
    stored = await list_stored(connection)
    children = [
        _build_child(row, request, graphs[request.graph], n, share, policy, stored)
        for n, (request, policy) in enumerate(zip(requests, policies, strict=True))
    ]
    checks = (find_offline_problem(graphs[one.graph], one.scope, one.engines, stored) for one in children)
    if problem := next((text for text in checks if text), ""):
        return ChildRunsUnavailable(f"An offline run cannot start this child run: {problem}.")
    return children


def remaining_budget(budget: Budget, usage: RunUsage, active_children: Iterable[RunRow]) -> Budget:
    """Return the budget that a parent may still give to children.

    The budgets of children that it has not consumed yet are subtracted.
    """
    child_budgets = [child.budget for child in active_children]
    tokens = (
        None
        if budget.max_tokens is None
        else budget.max_tokens - usage.tokens - sum(g.max_tokens or 0 for g in child_budgets)
    )
    usd = (
        None
        if budget.max_cost_usd is None
        else budget.max_cost_usd
        - usage.cost_usd
        - sum((g.max_cost_usd or Decimal(0) for g in child_budgets), Decimal(0))
    )
    seconds = (
        None
        if budget.max_seconds is None
        else budget.max_seconds - usage.seconds - sum(g.max_seconds or 0 for g in child_budgets)
    )
    turns = max(0, budget.max_turns - usage.turns - sum(g.max_turns for g in child_budgets))
    return Budget(turns, tokens, usd, seconds)


def split_budget(remaining: Budget, count: int) -> Budget:
    """Return one of `count` equal shares of a budget."""
    part = CHILD_BUDGET_FRACTION / count
    tokens = None if remaining.max_tokens is None else max(0, int(remaining.max_tokens * part))
    usd = (
        None
        if remaining.max_cost_usd is None
        else max(Decimal(0), (remaining.max_cost_usd * part).quantize(MIN_COST_STEP_USD, ROUND_DOWN))
    )
    seconds = None if remaining.max_seconds is None else max(0.0, remaining.max_seconds * float(part))
    return Budget(remaining.max_turns // count, tokens, usd, seconds)


def limit_budget(share: Budget, requested: Budget | None) -> Budget:
    """Return the requested budget, limited by the share."""
    if requested is None:
        return share
    return Budget(
        min(share.max_turns, requested.max_turns),
        _min_or_none(share.max_tokens, requested.max_tokens),
        _min_or_none(share.max_cost_usd, requested.max_cost_usd),
        _min_or_none(share.max_seconds, requested.max_seconds),
        requested.depth,
    )


def _min_or_none(first: Any, second: Any) -> Any:
    return second if first is None else first if second is None else min(first, second)


def restrict_for_child(
    policy: ToolPolicy,
    tools: Sequence[str] | None,
    count: int,
    parent_usage: ParentUsage,
    active_policies: Sequence[ToolPolicy],
) -> ToolPolicy:
    """Return the parent's tool policy for one of `count` children.

    Granting rules allow less; other rules are unchanged.

    `tools` are those that may still be granted; `None` means all of them. `active_policies` are those of
    children whose calls are not counted yet.
    """
    rules: list[dict[str, Any]] = policy.model_dump(mode="json")["rules"]
    granted = [r for r in rules if r["effect"] not in GRANTING_EFFECTS or tools is None or r["tool"] in tools]
    return ToolPolicy.model_validate(
        {"rules": [r | _share_limits(r, count, parent_usage, active_policies) for r in granted]}
    )


def _share_limits(
    rule: dict[str, Any], count: int, parent_usage: ParentUsage, active_policies: Sequence[ToolPolicy]
) -> dict[str, Any]:
    """Return the limits of a rule on the calls of a run, as shares of what is left of them."""
    tool, remaining = rule["tool"], dict[str, Any]()
    for limit, used in (("max_calls", parent_usage.call_counts), ("max_bytes", parent_usage.received_bytes)):
        if rule.get(limit) is not None:
            out = sum(
                max((getattr(r, limit) or 0 for r in p.rules if r.tool == tool), default=0) for p in active_policies
            )
            remaining[limit] = max(0, rule[limit] - used.get(tool, 0) - out) // count
    return remaining


def build_child_scope(scope: Mapping[str, Any], request: ChildRequest) -> dict[str, Any]:
    """Return the part of the parent's scope that a child may see.

    Requested documents that the parent may not see are left out.
    """
    child_scope = dict(scope)
    for name, requested in (("collections", request.collections), ("sources", tuple(map(str, request.sources)))):
        mine = [str(one) for one in scope.get(name) or ()]
        if requested:
            child_scope[name] = [one for one in requested if not mine or one in mine] or [EMPTY_SCOPE[name]]
    if not request.allow_web and "web" in child_scope:
        child_scope["web"] = False
    return child_scope


EMPTY_SCOPE = {"collections": "\uffff", "sources": str(UUID(int=0))}
"""Values that match no document. An empty list would mean all documents."""


def choose_child_engines(
    row: RunRow, graph: Graph, request: ChildRequest, stored: StoredProviders = NO_PROVIDERS
) -> dict[str, EngineConfig]:
    """Return the engine of each role of a child's graph, with its token limits for that role.

    Optional roles are left out: the run that combines the findings checks its own report. `stored` are the
    providers that the tenant has stored.
    """
    optional = {role.name for role in graph.optional_roles}
    shipped = {name: parse_engine(text) for name, text in graph.engines.items()}
    inherited = {role: clear_resolved_limits(choice) for role, choice in row.engines.items() if role not in optional}
    shared = next(iter(inherited.values()), EngineConfig())
    common = shared if all(choice == shared for choice in inherited.values()) else EngineConfig()
    engines: dict[str, EngineConfig] = {}
    for role in sorted(graph.roles, key=lambda role: role.name):
        mine = inherited.get(request.engines.get(role.name, role.name))
        engines[role.name] = resolve_limits(role, mine or shipped.get(role.name, common), stored)
    return engines


def _build_child(
    row: RunRow,
    request: ChildRequest,
    graph: Graph,
    n: int,
    share: Budget,
    policy: ToolPolicy,
    stored: StoredProviders,
) -> NewRun:
    return NewRun(
        id=new_id(),
        thread_id=new_id(),
        graph=graph.name,
        graph_version=graph.version,
        question=request.question,
        engines=choose_child_engines(row, graph, request, stored),
        tool_policy=policy.model_dump(mode="json"),
        tool_policy_sha256=hash_tool_policy(policy),
        budget=limit_budget(share, request.budget),
        scope=build_child_scope(row.scope, request),
        seed=row.seed + n,
        deadline_at=row.deadline_at,
        traceparent=row.traceparent,
        kind="child",
    )


async def _insert_child(
    connection: Connection, fencing_token: FencingToken, row: RunRow, key: CallKey, depth: int, child: NewRun
) -> RunRow:
    await child_runs.insert_child_thread(
        connection, fencing_token.tenant_id, child.thread_id, shorten_line(child.question)
    )
    run = await runs.insert_run(connection, fencing_token.tenant_id, child)
    await child_runs.insert_child(connection, fencing_token.tenant_id, row.id, key, depth, run.id)
    payload = {"question": child.question, "graph": child.graph, "parent": str(row.id)}
    await steps.append_external(connection, run.id, [StepDraft(StepKind.QUEUED, child.question, payload)])
    return run


async def get_run_tree(database: Database, tenant_id: UUID, run_id: UUID) -> RunTree:
    """Return the parent and the children of a run. Raises NotFound."""
    async with database.transaction(tenant_id) as connection:
        row = await runs.get_run(connection, run_id)
        parent = await child_runs.find_parent_id(connection, row.id)
        return RunTree(parent, tuple(await child_runs.list_children(connection, row.id)))


async def cancel_orphaned_children(database: Database, limit: int = 100) -> None:
    """Cancel children whose parent has ended without them.

    The worker of a running child notices it at its next heartbeat.
    """
    for child, tenant in await child_runs.list_orphaned(database, limit):
        async with database.transaction(tenant) as connection:
            row = await runs.lock_run(connection, child)
            if row.is_terminal:
                continue
            await runs.request_cancel(connection, child, CancelMode.DISCARD)
            if row.status is not RunStatus.RUNNING:
                ended = draft_end_step(RunStatus.CANCELLED, StopReason.CANCELLED)
                await steps.append_external(connection, child, [ended])
                await runs.set_run_status(connection, child, RunStatus.CANCELLED, StopReason.CANCELLED)
