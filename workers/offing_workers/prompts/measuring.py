"""How a candidate measures against the active version of its name, on held-out tasks: both evaluated, then the gate.

Rollouts are made once for a job and version, whatever process asks; workers do them as any others.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from decimal import Decimal
from uuid import UUID

from offing.core.run import Budget
from offing.sdk import Graph
from offing.services import graphs as catalogue
from offing.services import promotion, rollouts
from offing.services.learning import Gate
from offing.services.promotion import Frozen
from offing.services.rollouts import Hints, SeenBatch
from offing.services.training_gate import Rules
from offing.storage import evaluations, policy_versions
from offing.storage.policy_versions import VersionRow
from offing.storage.pool import Database
from offing.storage.training_jobs import Hold

LOOK_SECONDS = 1.0
"""Between looks at rollouts that are under way."""

Tell = Callable[[str], Awaitable[str | None]]
"""Says what is done now; what people wish of the job."""


async def measured(
    database: Database, held: Hold, hints: Hints, graphs: Mapping[str, Graph], gate: Gate, candidate: VersionRow,
    tell: Tell,
) -> str | None:  # fmt: skip
    """Evaluate both sides, and put the gate's verdict on record. A wish that came meanwhile ends it."""
    tenant = held.tenant
    async with database.transaction(tenant) as connection:
        champion = await policy_versions.in_state(connection, candidate.name, "active")
    sides = [side for side in (champion, candidate) if side is not None]
    frozen = frozen_of(gate, catalogue.named(graphs, gate.graph))
    batches: dict[UUID, UUID] = {}
    for side in sides:
        key = f"learn {held.job} {side.label}"
        made = await promotion.evaluate(database, hints, tenant, side.label, frozen, graphs=graphs, key=key)
        batches[side.id] = made.batch.id
    if wish := await _ended(database, tenant, list(batches.values()), tell):
        if wish == "cancel":
            for batch in batches.values():
                await rollouts.cancel(database, hints, tenant, batch)
        return wish
    for side in sides:
        await _stored(database, tenant, side, batches[side.id], frozen)
    if champion is not None and champion.id != candidate.id:
        await promotion.gate(database, tenant, candidate.label, Rules(), dataset=frozen.dataset, mode=frozen.mode)
    return None


def frozen_of(gate: Gate, graph: Graph) -> Frozen:
    """Both sides' terms: the same tasks, seeds, budgets and engines."""
    usd = None if gate.usd is None else Decimal(str(gate.usd))
    engines = {role.name: gate.engine for role in graph.roles}
    return Frozen(
        gate.dataset, gate.tasks, gate.graph, gate.role, members=gate.members, greedy=False,
        budget=Budget(gate.turns, None, usd, None), engines=engines,
    )  # fmt: skip


async def _ended(database: Database, tenant: UUID, batches: list[UUID], tell: Tell) -> str | None:
    """When all rollouts are settled: None. Before that: what people wish."""
    while True:
        seen = [await rollouts.one_batch(database, tenant, batch) for batch in batches]
        over = sum(one.progress.settled + one.progress.failed for one in seen)
        wish = await tell(f"measuring, {over} of {sum(one.progress.rollouts for one in seen)} runs")
        if wish or all(map(_whole, seen)):
            return wish
        await asyncio.sleep(LOOK_SECONDS)


def _whole(seen: SeenBatch) -> bool:
    return not seen.progress.open and seen.progress.made >= seen.batch.groups


async def _stored(database: Database, tenant: UUID, side: VersionRow, batch: UUID, frozen: Frozen) -> None:
    """The evaluation, once."""
    async with database.transaction(tenant) as connection:
        there = await evaluations.latest(connection, side.id, frozen.dataset, frozen.mode)
    if all(one.batch != batch for one in there):
        await promotion.settle_evaluation(database, tenant, side.label, batch, frozen)
