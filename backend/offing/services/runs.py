"""Submitting a run and telling it what to do: submit, cancel, pause, resume, steer.

Each is one transaction followed by hints that may be lost. Only workers advance runs.
"""

import hashlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from typing import Any, Protocol
from uuid import UUID

import orjson

from offing.clock import new_id
from offing.core.errors import Conflict, InvalidInput
from offing.core.model import EngineChoice, answering, parse_engine
from offing.core.policy import Policy, policy_hash
from offing.core.run import Budget, CancelMode, RunStatus, StopReason
from offing.core.step import Step, StepDraft, StepKind, shortened
from offing.mcp.catalogue import Catalogue
from offing.models.engine import ENGINES
from offing.sdk import Graph
from offing.services import graphs as catalogue
from offing.services import policies
from offing.services.engine_choices import check_engines
from offing.services.tool_policies import policy_of_run
from offing.storage import child_runs, runs, steps, threads
from offing.storage.pool import Connection, Database
from offing.storage.runs import NewRun, RunRow


class Hints(Protocol):
    """The best-effort side of the bus."""

    async def wake(self, run: UUID) -> None:
        """Tell workers that the run can be claimed."""
        ...

    async def nudge(self, run: UUID) -> None:
        """Tell the worker that holds the run to look at it."""
        ...

    async def steps(self, tenant: UUID, run: UUID, steps: Sequence[Step], /) -> None:
        """Show new steps to whoever watches."""
        ...


@dataclass(frozen=True, slots=True)
class RunRequest:
    """What a person asks for."""

    question: str
    graph: str = "agentflow"
    thread: UUID | None = None
    """None: a new thread."""
    budget: Budget = field(default_factory=Budget)
    engines: Mapping[str, EngineChoice] = field(default_factory=dict[str, EngineChoice])
    scope: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """`collections` and `sources` that the run may see. None named: all of it; in a thread, what its last run saw.
    `web`: whether it may use the web. `mcp`: names of MCP servers whose tools it may use."""
    deadline: datetime | None = None
    seed: int = 0
    tool_policy: Policy | None = None
    """None: in a thread, what was given with its last question; else the default, with what the scope asks for."""
    idempotency_key: str | None = None
    traceparent: str | None = None
    durability: str = "sync"
    """exit: nothing is written before a slice ends, and a lost slice is done again with the same seed."""


@dataclass(frozen=True, slots=True)
class Submitted:
    run: RunRow
    new: bool
    """False: an earlier request with the same idempotency key made this run."""


async def submit(
    database: Database,
    hints: Hints,
    tenant: UUID,
    request: RunRequest,
    *,
    graphs: Mapping[str, Graph],
    default_engine: EngineChoice | None = None,
    servers: Catalogue | None = None,
) -> Submitted:
    """Accept a run. It is stored, with its first step, before this returns; Redis may be away.

    `servers`: MCP servers that a scope may name. None: there are none.
    """
    graph = catalogue.named(graphs, request.graph)
    engines = engines_for(graph, request.engines, default_engine or EngineChoice())
    digest = _digest(request)
    async with database.transaction(tenant) as connection:
        if request.idempotency_key and (earlier := await runs.submitted_before(connection, request.idempotency_key)):
            return check_same(earlier, digest)
        if request.thread is not None:
            request = await _as_before(connection, request, request.thread)
        new = _new_run(request, graph, engines, digest, servers or Catalogue())
        new = replace(new, engines=await policies.resolved(connection, engines, new.id))
        if request.thread is None:
            await threads.insert(connection, tenant, new.thread, shortened(request.question))
        run = await runs.insert(connection, tenant, new)
        first = await steps.append_unowned(connection, run.id, [_queued(request, new.engines)])
    await hints.wake(run.id)
    await hints.steps(tenant, run.id, first)
    return Submitted(run, True)


async def cancel(database: Database, hints: Hints, tenant: UUID, run: UUID, mode: CancelMode) -> RunRow:
    """End a run: at once if nobody works on it, else at its next boundary. Ended runs stay as they are."""
    ended: list[Step] = []
    async with database.transaction(tenant) as connection:
        row = await runs.locked(connection, run)
        if row.terminal:
            return row
        _refuse_rollout(row)
        await runs.want_cancel(connection, run, mode)
        if row.status is not RunStatus.RUNNING and mode is CancelMode.DISCARD:
            ended = await steps.append_unowned(connection, run, [ended_step(RunStatus.CANCELLED, StopReason.CANCELLED)])
            await runs.set_status(connection, run, RunStatus.CANCELLED, StopReason.CANCELLED)
        elif row.status in (RunStatus.PAUSED, RunStatus.WAITING):
            await runs.set_status(connection, run, RunStatus.QUEUED)
        after = await runs.by_id(connection, run)
        children = await child_runs.open_children(connection, run)
        parent = await child_runs.parent_of(connection, run) if ended and row.kind == "child" else None
    await _tell(hints, tenant, after, ended)
    if parent is not None:
        await hints.wake(parent)
    for child in children:  # in transactions of their own: one that ends locks itself before its parent
        await cancel(database, hints, tenant, child, mode)
    return after


async def pause(database: Database, hints: Hints, tenant: UUID, run: UUID) -> RunRow:
    """Hold a run at its next boundary until it is resumed."""
    paused: list[Step] = []
    async with database.transaction(tenant) as connection:
        row = await _active(connection, run)
        if row.status is RunStatus.RUNNING:
            await runs.want_pause(connection, run, True)
        elif row.status is not RunStatus.PAUSED:
            paused = await steps.append_unowned(connection, run, [StepDraft(StepKind.PAUSED, "Paused by a person")])
            await runs.set_status(connection, run, RunStatus.PAUSED, waiting_for="a person to resume it")
        after = await runs.by_id(connection, run)
        children = await child_runs.open_children(connection, run)
    await _tell(hints, tenant, after, paused)
    for child in children:
        with suppress(Conflict):  # it has ended meanwhile
            await pause(database, hints, tenant, child)
    return after


async def resume(database: Database, hints: Hints, tenant: UUID, run: UUID) -> RunRow:
    """Let a paused run go on."""
    resumed: list[Step] = []
    async with database.transaction(tenant) as connection:
        row = await _active(connection, run)
        await runs.want_pause(connection, run, False)
        if row.status is RunStatus.PAUSED:
            resumed = await steps.append_unowned(connection, run, [StepDraft(StepKind.RESUMED, "Resumed by a person")])
            await runs.set_status(connection, run, RunStatus.QUEUED)
        after = await runs.by_id(connection, run)
        children = await child_runs.open_children(connection, run)
    await _tell(hints, tenant, after, resumed)
    for child in children:
        with suppress(Conflict):  # it has ended meanwhile
            await resume(database, hints, tenant, child)
    return after


async def steer(database: Database, hints: Hints, tenant: UUID, run: UUID, text: str) -> Step:
    """Write to a run; its planner reads it at its next turn."""
    if not text.strip():
        raise InvalidInput("text", "The message is empty", "Write what the run should take into account.")
    async with database.transaction(tenant) as connection:
        await _active(connection, run)
        written = await steps.append_unowned(connection, run, [StepDraft(StepKind.HUMAN, text, {"text": text})])
    await hints.steps(tenant, run, written)
    await hints.nudge(run)
    return written[0]


def ended_step(
    status: RunStatus, reason: StopReason, *, detail: str = "", report_version: int | None = None
) -> StepDraft:
    """A run's last step."""
    payload = {"status": status, "stop_reason": reason, "detail": detail, "report_version": report_version}
    ok = status is not RunStatus.FAILED and status is not RunStatus.DEAD
    return StepDraft(StepKind.ENDED, f"Ended: {reason.replace('_', ' ')}", payload, detail=detail, ok=ok)


async def _active(connection: Connection, run: UUID) -> RunRow:
    row = await runs.locked(connection, run)
    if row.terminal:
        raise Conflict(f"Run {run} has ended ({row.status}).", "Ask a follow-up question in its thread instead.")
    _refuse_rollout(row)
    return row


def _refuse_rollout(row: RunRow) -> None:
    """What a person does to a rollout would change what it shows of its policy."""
    if row.kind == "rollout":
        raise Conflict(
            f"Run {row.id} is a rollout: nobody steers, pauses or cancels it by itself.", "Cancel its batch instead."
        )


async def _tell(hints: Hints, tenant: UUID, run: RunRow, new: list[Step]) -> None:
    if new:
        await hints.steps(tenant, run.id, new)
    if run.status is RunStatus.QUEUED:
        await hints.wake(run.id)
    elif run.status is RunStatus.RUNNING:
        await hints.nudge(run.id)


async def _as_before(connection: Connection, request: RunRequest, thread: UUID) -> RunRequest:
    """A follow-up that names no scope, or gives no tool policy, gets those of the question before it."""
    if not any(request.scope.values()):
        request = replace(request, scope=await threads.scope(connection, thread) or request.scope)
    if request.tool_policy is None and (given := await threads.policy(connection, thread)) is not None:
        request = replace(request, tool_policy=Policy.model_validate(given))
    return request


def _new_run(
    request: RunRequest, graph: Graph, engines: Mapping[str, EngineChoice], digest: str, servers: Catalogue
) -> NewRun:
    policy = policy_of_run(graph, request.scope, request.tool_policy, servers)
    return NewRun(
        id=new_id(),
        thread=request.thread or new_id(),
        graph=graph.name,
        graph_version=graph.version,
        question=request.question,
        engines=engines,
        policy=policy.model_dump(mode="json"),
        policy_sha256=policy_hash(policy),
        budget=request.budget,
        scope=request.scope,
        seed=request.seed,
        deadline=request.deadline,
        idempotency_key=request.idempotency_key,
        request_sha256=digest,
        traceparent=request.traceparent,
        durability=request.durability,
        policy_given=None if request.tool_policy is None else request.tool_policy.model_dump(mode="json"),
    )


def engines_for(graph: Graph, wanted: Mapping[str, EngineChoice], default: EngineChoice) -> dict[str, EngineChoice]:
    """Who answers each role of a graph.

    Raises InvalidInput for a role or an engine that there is not, and for one at an address that is not allowed.
    """
    names = {role.name for role in graph.roles}
    for name, choice in wanted.items():
        if name not in names:
            raise InvalidInput(
                f"engines.{name}", f"{graph.name} has no such role", f"Roles: {', '.join(sorted(names))}."
            )
        if choice.engine not in ENGINES:
            raise InvalidInput(
                f"engines.{name}.engine", f"There is no engine {choice.engine!r}", f"Use one of: {', '.join(ENGINES)}."
            )
    shipped = {name: parse_engine(text) for name, text in graph.engines.items()}
    chosen = {name: wanted.get(name) or shipped.get(name, default) for name in sorted(names)}
    check_engines(chosen)
    return chosen


def _queued(request: RunRequest, engines: Mapping[str, EngineChoice]) -> StepDraft:
    who = {name: answering(choice) for name, choice in engines.items()}
    return StepDraft(
        StepKind.QUEUED, request.question, {"question": request.question, "graph": request.graph, "engines": who}
    )


def _digest(request: RunRequest) -> str:
    body = {
        "question": request.question,
        "graph": request.graph,
        "thread": request.thread,
        "budget": asdict(request.budget),
        "engines": {name: choice.model_dump() for name, choice in sorted(request.engines.items())},
        "scope": dict(request.scope),
        "seed": request.seed,
        **({"tool_policy": request.tool_policy.stored()} if request.tool_policy else {}),
    }
    return hashlib.sha256(orjson.dumps(body, default=str, option=orjson.OPT_SORT_KEYS)).hexdigest()


def check_same(earlier: tuple[RunRow, str], digest: str) -> Submitted:
    """The run that a key made earlier. Raises Conflict if that was for another request."""
    run, its_digest = earlier
    if its_digest != digest:
        raise Conflict(
            "This Idempotency-Key was used for another request.",
            "Send a new key, or repeat the first request as it was.",
        )
    return Submitted(run, False)
