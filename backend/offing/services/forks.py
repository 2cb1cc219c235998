"""Fork runs.

A fork is a new run that continues from a recorded step of another, as if its worker had crashed right after
that step.

A fork has the steps of its origin up to that one, with the records of these steps. A worker reads
recorded calls from there, as it does after a crash, so none of them is repeated.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import orjson

from offing.bus.notifier import RunNotifier
from offing.clock import new_id
from offing.core.errors import Conflict, InvalidInput
from offing.core.model import EngineConfig, engine_to_digest_json
from offing.core.run import Budget, RunUsage
from offing.core.step import StepDraft, StepKind, shorten_line
from offing.core.tool_policy import ToolPolicy, hash_tool_policy, parse_restriction
from offing.mcp.server_registry import McpServerRegistry
from offing.sdk import Graph
from offing.services import graphs as graph_registry
from offing.services import policies, providers
from offing.services.engine_configs import choose_engines
from offing.services.offline_runs import check_offline
from offing.services.run_tool_policy import build_tool_policy
from offing.services.runs import SubmittedRun, check_same_request
from offing.storage import forks, runs, steps, threads
from offing.storage.forks import ForkOrigin, NewFork
from offing.storage.pool import Connection, Database
from offing.storage.runs import RunRow, budget_to_json


@dataclass(frozen=True, slots=True)
class ForkRequest:
    """Where to fork a run, and what the fork has in place of the origin's values."""

    run_id: UUID
    at_seq: int | None = None
    """The last step that is copied from the origin. `None` means the last one before the end of the origin."""
    budget: Budget | None = None
    """The budget, including what the copied steps have used. `None` means the origin's budget."""
    engines: Mapping[str, EngineConfig] = field(default_factory=dict[str, EngineConfig])
    """Engines of roles from the fork on. Other roles keep their engine."""
    message: str = ""
    """A user message for the fork. Empty means none."""
    idempotency_key: str | None = None
    traceparent: str | None = None


async def fork_run(
    database: Database,
    notifier: RunNotifier,
    tenant_id: UUID,
    request: ForkRequest,
    *,
    graphs: Mapping[str, Graph],
    servers: McpServerRegistry | None = None,
) -> SubmittedRun:
    """Create a run in a new thread that continues from a step of another run. The other run is unchanged.

    Raises NotFound, InvalidInput with the field, and Conflict if the run's version of its graph is not installed.
    """
    digest = _hash_request(request)
    async with database.transaction(tenant_id) as connection:
        if request.idempotency_key and (
            earlier := await runs.find_earlier_submission(connection, request.idempotency_key)
        ):
            return check_same_request(earlier, digest)
        fork_point = await _load_fork_point(connection, request, graphs)
        new = await _build_fork(connection, fork_point, request, servers or McpServerRegistry(), digest)
        await threads.insert_thread(connection, tenant_id, new.thread_id, shorten_line(fork_point.run.question))
        await forks.insert_fork(connection, fork_point.run, new)
        await steps.append_external(connection, new.id, _build_first_steps(fork_point.run, new.at_seq, request))
        forked = await runs.get_run(connection, new.id)
    await notifier.dispatch_run(forked.id)
    return SubmittedRun(forked, True)


@dataclass(frozen=True, slots=True)
class _ForkPoint:
    """Where a run is forked."""

    origin: ForkOrigin
    seq: int
    max_seq: int
    """The last step at which the run can be forked."""
    graph: Graph
    """The version of the graph that the run had at that step."""

    @property
    def run(self) -> RunRow:
        return self.origin.run


async def _load_fork_point(connection: Connection, request: ForkRequest, graphs: Mapping[str, Graph]) -> _ForkPoint:
    origin = await forks.lock_origin(connection, request.run_id)
    last = await forks.get_last_copyable_seq(connection, origin.run)
    at = _choose_seq(origin.run, request.at_seq, last)
    if await forks.has_missing_state(connection, origin.run, at):
        problem = f"the thread state from which run {origin.run.id} started has been deleted"
        raise InvalidInput("at_seq", problem, "Choose a later step, or submit the question as a new run.")
    return _ForkPoint(origin, at, last, await _graph_at(connection, origin.run, at, graphs))


def _choose_seq(origin: RunRow, requested: int | None, max_seq: int) -> int:
    """Return the last step to copy. `max_seq` is the last that can be copied."""
    at = max_seq if requested is None else requested
    if not 1 <= at <= max_seq:
        why = "the run ended there" if max_seq < at <= origin.last_seq else f"the run has no step {at}"
        problem = f"run {origin.id} cannot be forked at step {at}: {why}"
        raise InvalidInput("at_seq", problem, f"Use a step from 1 to {max_seq}, the last one before the run ended.")
    return at


async def _build_fork(
    connection: Connection,
    fork_point: _ForkPoint,
    request: ForkRequest,
    servers: McpServerRegistry,
    request_sha256: str,
) -> NewFork:
    policy, sha256 = await _tool_policy_at(connection, fork_point.origin, fork_point.seq, fork_point.graph, servers)
    id = new_id()
    return NewFork(
        id=id,
        thread_id=new_id(),
        at_seq=fork_point.seq,
        graph_version=fork_point.graph.version,
        engines=await _choose_engines(connection, fork_point.run, fork_point.graph, request.engines, id),
        tool_policy=policy,
        tool_policy_sha256=sha256,
        budget=request.budget or fork_point.run.budget,
        copied_usage=await _copied_usage(connection, fork_point),
        idempotency_key=request.idempotency_key,
        request_sha256=request_sha256,
        traceparent=request.traceparent,
    )


async def _graph_at(connection: Connection, run: RunRow, seq: int, graphs: Mapping[str, Graph]) -> Graph:
    """Return the version of its graph that the run had at a step."""
    resumed = await forks.list_steps_of_kind(connection, run.id, seq, StepKind.RESUMED)
    upgrades = [step.payload for step in resumed if step.payload.get("after") == "upgrade"]
    version = str(upgrades[0]["from"]) if upgrades else run.graph_version
    graph = graph_registry.find_graph_version(graphs, run.graph, version)
    if graph is None:
        problem = f"At step {seq} the run used version {version[:12]} of the graph {run.graph}, which is not installed."
        raise Conflict(problem, "Install that version of the graph, or submit the question as a new run.")
    return graph


async def _tool_policy_at(
    connection: Connection, origin: ForkOrigin, seq: int, graph: Graph, servers: McpServerRegistry
) -> tuple[Mapping[str, Any], str]:
    """Return the tool policy that the run had at a step, without later restrictions."""
    run = origin.run
    notes = await forks.list_steps_of_kind(connection, run.id, 0, StepKind.NOTE)
    narrowed = [step for step in notes if step.payload.get("narrow") and not step.payload.get("rejected")]
    if not any(step.seq > seq for step in narrowed):
        return run.tool_policy, run.tool_policy_sha256
    requested = (
        None if origin.requested_tool_policy is None else ToolPolicy.model_validate(origin.requested_tool_policy)
    )
    then = now = build_tool_policy(graph, run.scope, requested, servers)
    for step in narrowed:
        restricted = parse_restriction(now, step.payload["narrow"])
        now = restricted if isinstance(restricted, ToolPolicy) else now
        then = now if step.seq <= seq else then
    if hash_tool_policy(now) != run.tool_policy_sha256:
        problem = (
            f"the run's tool policy was restricted after step {seq}, and the earlier tool policy is no longer known"
        )
        raise InvalidInput("at_seq", problem, f"Use step {narrowed[-1].seq} or a later one.")
    return then.model_dump(mode="json"), hash_tool_policy(then)


async def _choose_engines(
    connection: Connection, run: RunRow, graph: Graph, requested: Mapping[str, EngineConfig], fork_id: UUID
) -> dict[str, EngineConfig]:
    """Return the engine of each role. Versions that were pinned for the origin stay pinned."""
    stored = await providers.list_stored(connection)
    chosen = choose_engines(graph, requested, EngineConfig(), stored)
    new = await policies.resolve_versions(connection, {role: chosen[role] for role in requested}, fork_id)
    check_offline(graph, run.scope, new, stored)
    return {**run.engines, **new}


async def _copied_usage(connection: Connection, fork_point: _ForkPoint) -> RunUsage:
    """Return the usage of the copied steps."""
    if fork_point.seq == fork_point.max_seq:
        return fork_point.run.usage
    return await forks.get_copied_usage(
        connection, fork_point.run, fork_point.seq, count_calls_as_turns=fork_point.graph.langgraph_adapter is not None
    )


def _build_first_steps(origin: RunRow, seq: int, request: ForkRequest) -> list[StepDraft]:
    payload = {"after": "fork", "run": str(origin.id), "at": seq}
    detail = f"Its first {seq} steps were made in run {origin.id} and are read back"
    forked = StepDraft(StepKind.RESUMED, f"Forked from step {seq} of another run", payload, "forked", detail)
    text = request.message
    return [forked, *([StepDraft(StepKind.USER_MESSAGE, text, {"text": text})] if text.strip() else [])]


def _hash_request(request: ForkRequest) -> str:
    body = {
        "fork": request.run_id,
        "at": request.at_seq,
        "budget": None if request.budget is None else budget_to_json(request.budget),
        "engines": {role: engine_to_digest_json(choice) for role, choice in sorted(request.engines.items())},
        "message": request.message,
    }
    return hashlib.sha256(orjson.dumps(body, default=str, option=orjson.OPT_SORT_KEYS)).hexdigest()
