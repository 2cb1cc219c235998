"""Forks: a new run that goes on from a recorded step of another, as if its worker had been lost right after it.

A fork has the steps of its origin up to that one, with what was stored beside them. A worker reads its calls back from
there, as it does after a loss, so none of them is made again. What the fork does then is its own.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any
from uuid import UUID

import orjson

from offing.clock import new_id
from offing.core.errors import Conflict, InvalidInput
from offing.core.model import EngineChoice
from offing.core.policy import Policy, policy_hash, proposed
from offing.core.run import Budget, Spent
from offing.core.step import StepDraft, StepKind, shortened
from offing.mcp.catalogue import Catalogue
from offing.sdk import Graph
from offing.services import graphs as catalogue
from offing.services import policies
from offing.services.runs import Hints, Submitted, check_same, engines_for
from offing.services.tool_policies import policy_of_run
from offing.storage import forks, runs, steps, threads
from offing.storage.forks import NewFork, Origin
from offing.storage.pool import Connection, Database
from offing.storage.runs import RunRow


@dataclass(frozen=True, slots=True)
class ForkRequest:
    """Where a run is forked, and what the fork has in place of what its origin has."""

    run: UUID
    at: int | None = None
    """Its last step that is the origin's. None: the last one before the origin's end."""
    budget: Budget | None = None
    """With what the copied steps have used. None: the origin's."""
    engines: Mapping[str, EngineChoice] = field(default_factory=dict[str, EngineChoice])
    """Who answers these roles from then on. Roles left out have the engine that they had."""
    message: str = ""
    """What the fork is told as a person's message. Empty: nothing."""
    idempotency_key: str | None = None
    traceparent: str | None = None


async def fork(
    database: Database,
    hints: Hints,
    tenant: UUID,
    request: ForkRequest,
    *,
    graphs: Mapping[str, Graph],
    servers: Catalogue | None = None,
) -> Submitted:
    """Make a run that goes on from a step of another, in a thread of its own. The other one stays as it is.

    Raises NotFound, InvalidInput that names the field, and Conflict when the run's version of its graph is not here.
    """
    digest = _digest(request)
    async with database.transaction(tenant) as connection:
        if request.idempotency_key and (earlier := await runs.submitted_before(connection, request.idempotency_key)):
            return check_same(earlier, digest)
        place = await _place(connection, request, graphs)
        new = await _planned(connection, place, request, servers or Catalogue(), digest)
        await threads.insert(connection, tenant, new.thread, shortened(place.run.question))
        await forks.insert(connection, place.run, new)
        said = await steps.append_unowned(connection, new.id, _said(place.run, new.at, request))
        made = await runs.by_id(connection, new.id)
    await hints.wake(made.id)
    await hints.steps(tenant, made.id, said)
    return Submitted(made, True)


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a run is forked."""

    origin: Origin
    at: int
    last: int
    """The last step at which it could be."""
    graph: Graph
    """As the run had it at that step."""

    @property
    def run(self) -> RunRow:
        return self.origin.run


async def _place(connection: Connection, request: ForkRequest, graphs: Mapping[str, Graph]) -> _Place:
    origin = await forks.held(connection, request.run)
    last = await forks.last_before_end(connection, origin.run)
    at = _step(origin.run, request.at, last)
    if await forks.lacks_state(connection, origin.run, at):
        problem = f"the state of its thread that run {origin.run.id} began from is not kept any more"
        raise InvalidInput("at", problem, "Name a later step, or ask the question anew.")
    return _Place(origin, at, last, await _graph(connection, origin.run, at, graphs))


def _step(origin: RunRow, wanted: int | None, last: int) -> int:
    """The last step to copy. `last`: the last that can be copied."""
    at = last if wanted is None else wanted
    if not 1 <= at <= last:
        why = "where it ended" if last < at <= origin.last_seq else f"there is no step {at}"
        problem = f"run {origin.id} cannot be forked at step {at}: {why}"
        raise InvalidInput("at", problem, f"Name a step from 1 to {last}, the last one before its end.")
    return at


async def _planned(
    connection: Connection, place: _Place, request: ForkRequest, servers: Catalogue, digest: str
) -> NewFork:
    policy, sha256 = await _policy(connection, place.origin, place.at, place.graph, servers)
    id = new_id()
    return NewFork(
        id=id,
        thread=new_id(),
        at=place.at,
        graph_version=place.graph.version,
        engines=await _engines(connection, place.run, place.graph, request.engines, id),
        policy=policy,
        policy_sha256=sha256,
        budget=request.budget or place.run.budget,
        spent=await _spent(connection, place),
        idempotency_key=request.idempotency_key,
        request_sha256=digest,
        traceparent=request.traceparent,
    )


async def _graph(connection: Connection, run: RunRow, at: int, graphs: Mapping[str, Graph]) -> Graph:
    """The version of its graph that the run had at a step."""
    resumed = await forks.of_kind_after(connection, run.id, at, StepKind.RESUMED)
    upgrades = [step.payload for step in resumed if step.payload.get("after") == "upgrade"]
    version = str(upgrades[0]["from"]) if upgrades else run.graph_version
    graph = catalogue.at_version(graphs, run.graph, version)
    if graph is None:
        problem = f"At step {at} the run was in {run.graph} {version[:12]}, which is not installed here."
        raise Conflict(problem, "Install that version of the graph, or ask the question anew.")
    return graph


async def _policy(
    connection: Connection, origin: Origin, at: int, graph: Graph, servers: Catalogue
) -> tuple[Mapping[str, Any], str]:
    """The tool policy that the run had at a step: what was narrowed later is as it was before."""
    run = origin.run
    notes = await forks.of_kind_after(connection, run.id, 0, StepKind.NOTE)
    narrowed = [step for step in notes if step.payload.get("narrow") and not step.payload.get("refused")]
    if not any(step.seq > at for step in narrowed):
        return run.policy, run.policy_sha256
    given = None if origin.policy_given is None else Policy.model_validate(origin.policy_given)
    then = now = policy_of_run(graph, run.scope, given, servers)
    for step in narrowed:
        found = proposed(now, step.payload["narrow"])
        now = found if isinstance(found, Policy) else now
        then = now if step.seq <= at else then
    if policy_hash(now) != run.policy_sha256:
        problem = f"the run's tool policy was narrowed after step {at}, and what it was before is not known any more"
        raise InvalidInput("at", problem, f"Name step {narrowed[-1].seq} or a later one.")
    return then.model_dump(mode="json"), policy_hash(then)


async def _engines(
    connection: Connection, run: RunRow, graph: Graph, wanted: Mapping[str, EngineChoice], id: UUID
) -> dict[str, EngineChoice]:
    """Who answers each role: what was pinned for the origin stays so."""
    chosen = engines_for(graph, wanted, EngineChoice())
    new = await policies.resolved(connection, {role: chosen[role] for role in wanted}, id)
    return {**run.engines, **new}


async def _spent(connection: Connection, place: _Place) -> Spent:
    """What the copied steps have used."""
    if place.at == place.last:
        return place.run.spent
    return await forks.used(connection, place.run, place.at, each_call_is_a_turn=place.graph.plain is not None)


def _said(origin: RunRow, at: int, request: ForkRequest) -> list[StepDraft]:
    payload = {"after": "fork", "run": str(origin.id), "at": at}
    detail = f"Its first {at} steps were made in run {origin.id} and are read back"
    forked = StepDraft(StepKind.RESUMED, f"Forked from step {at} of another run", payload, "forked", detail)
    text = request.message
    return [forked, *([StepDraft(StepKind.HUMAN, text, {"text": text})] if text.strip() else [])]


def _digest(request: ForkRequest) -> str:
    body = {
        "fork": request.run,
        "at": request.at,
        "budget": None if request.budget is None else asdict(request.budget),
        "engines": {role: choice.model_dump() for role, choice in sorted(request.engines.items())},
        "message": request.message,
    }
    return hashlib.sha256(orjson.dumps(body, default=str, option=orjson.OPT_SORT_KEYS)).hexdigest()
