"""Evaluation of a candidate against the active version of its name, on held-out tasks.

Both versions are evaluated, followed by the promotion gate. Rollouts are created once per job and
version. Workers execute them like any others.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from decimal import Decimal
from uuid import UUID

from offing.bus.notifier import RunNotifier
from offing.core.run import Budget
from offing.sdk import Graph
from offing.services import graphs as graph_registry
from offing.services import promotion, rollouts
from offing.services.promotion import EvaluationSetup
from offing.services.promotion_gate import GateRules
from offing.services.prompt_distillation import GateConfig
from offing.services.rollouts import BatchStatus
from offing.storage import evaluations, policy_versions
from offing.storage.policy_versions import PolicyVersionRow
from offing.storage.pool import Database
from offing.storage.training_jobs import JobFencingToken

POLL_SECONDS = 1.0
"""Seconds between polls of the rollouts."""

PhaseReporter = Callable[[str], Awaitable[str | None]]
"""Stores the current phase of the job, and returns the requested action."""


async def evaluate_candidate(
    database: Database, token: JobFencingToken, notifier: RunNotifier, graphs: Mapping[str, Graph], gate:
    GateConfig, candidate: PolicyVersionRow,
    report_phase: PhaseReporter,
) -> str | None:  # fmt: skip
    """Evaluate both versions, and store the gate result. Return the requested action that ended it early.

    `None` means that the evaluation is complete.
    """
    tenant = token.tenant_id
    async with database.transaction(tenant) as connection:
        active = await policy_versions.find_version_in_state(connection, candidate.name, "active")
    sides = [side for side in (active, candidate) if side is not None]
    frozen = build_evaluation_setup(gate, graph_registry.get_graph(graphs, gate.graph))
    batches: dict[UUID, UUID] = {}
    for side in sides:
        key = f"learn {token.job_id} {side.label}"
        evaluation = await promotion.start_evaluation(
            database, notifier, tenant, side.label, frozen, graphs=graphs, idempotency_key=key
        )
        batches[side.id] = evaluation.batch.id
    if action := await _wait_for_rollouts(database, tenant, list(batches.values()), report_phase):
        if action == "cancel":
            for batch in batches.values():
                await rollouts.cancel_batch(database, notifier, tenant, batch)
        return action
    for side in sides:
        await _store_evaluation(database, tenant, side, batches[side.id], frozen)
    if active is not None and active.id != candidate.id:
        await promotion.run_gate(
            database, tenant, candidate.label, GateRules(), dataset=frozen.dataset, mode=frozen.mode
        )
    return None


def build_evaluation_setup(gate: GateConfig, graph: Graph) -> EvaluationSetup:
    """Build the setup for both versions: the same tasks, seeds, budgets and engines."""
    usd = None if gate.max_run_cost_usd is None else Decimal(str(gate.max_run_cost_usd))
    engines = {role.name: gate.engine for role in graph.roles}
    return EvaluationSetup(
        gate.dataset, gate.tasks, gate.graph, gate.role, rollouts_per_task=gate.rollouts_per_task, greedy=False,
        budget=Budget(gate.max_turns, None, usd, None), engines=engines,
    )  # fmt: skip


async def _wait_for_rollouts(
    database: Database, tenant_id: UUID, batches: list[UUID], report_phase: PhaseReporter
) -> str | None:
    """Wait until all rollouts are finalized. Return `None`, or the action that was requested before."""
    while True:
        batch_details = [await rollouts.get_batch(database, tenant_id, batch) for batch in batches]
        over = sum(one.progress.finalized + one.progress.failed for one in batch_details)
        action = await report_phase(f"measuring, {over} of {sum(one.progress.rollouts for one in batch_details)} runs")
        if action or all(map(_is_complete, batch_details)):
            return action
        await asyncio.sleep(POLL_SECONDS)


def _is_complete(status: BatchStatus) -> bool:
    return not status.progress.open and status.progress.group_count >= status.batch.group_count


async def _store_evaluation(
    database: Database, tenant_id: UUID, version: PolicyVersionRow, batch_id: UUID, setup: EvaluationSetup
) -> None:
    """Store the evaluation of a version once."""
    async with database.transaction(tenant_id) as connection:
        there = await evaluations.list_evaluations(connection, version.id, setup.dataset, setup.mode)
    if all(one.batch_id != batch_id for one in there):
        await promotion.store_evaluation(database, tenant_id, version.label, batch_id, setup)
