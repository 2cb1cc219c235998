"""Choose the version of a policy that new runs get: evaluate, promote, start a canary, withdraw and roll back.

Each change is one transaction with an event. Files are never changed, so a rollback only updates two rows.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any
from uuid import UUID

from offing.bus.notifier import RunNotifier
from offing.clock import new_id
from offing.core.errors import Conflict, InvalidInput, NotFound
from offing.core.judge_budget import NO_JUDGE_LIMIT, JudgeBudget
from offing.core.model import EngineConfig
from offing.core.run import Budget
from offing.mcp.server_registry import McpServerRegistry
from offing.models.model_limits import POLICY_MAX_TOKENS
from offing.sdk import Graph
from offing.services import canaries, policies, policy_files, rollouts
from offing.services.experiment_gate import load_gate_results
from offing.services.promotion_gate import (
    EvaluationResult,
    GateResult,
    GateRules,
    check_guards,
    run_gate_rules,
    take_metric_as_reward,
)
from offing.services.prompt_library import add_library
from offing.services.rollouts import EVALUATION_TAG, BatchRequest, CreatedBatch, ScorerSpec
from offing.storage import evaluations, policy_versions, rollout_batches, training_events, training_metrics
from offing.storage.evaluations import EvaluationResultRow, EvaluationRow
from offing.storage.policy_versions import PolicyVersionRow
from offing.storage.pool import Connection, Database


@dataclass(frozen=True, slots=True)
class EvaluationSetup:
    """What candidates and active versions are evaluated on."""

    dataset: str
    task_ids: Sequence[UUID]
    graph: str
    role: str
    rollouts_per_task: int = 1
    greedy: bool = True
    seed: int = 0
    prompt_format: str = ""
    max_tokens: int = POLICY_MAX_TOKENS
    """Maximum tokens of an answer by weights."""
    budget: Budget = field(default_factory=Budget)
    engines: Mapping[str, EngineConfig] | None = None
    """Engines of the other roles. `None` means those of the graph."""
    scorers: Sequence[ScorerSpec] | None = None
    judge_budget: JudgeBudget = NO_JUDGE_LIMIT

    @property
    def mode(self) -> str:
        return "greedy" if self.greedy else "sampled"


async def start_evaluation(
    database: Database,
    notifier: RunNotifier,
    tenant_id: UUID,
    policy: str,
    setup: EvaluationSetup,
    *,
    graphs: Mapping[str, Graph],
    idempotency_key: str | None = None,
    servers: McpServerRegistry | None = None,
) -> CreatedBatch:
    """Collect the rollouts of an evaluation. `store_evaluation` stores the result when they have ended.

    With `idempotency_key`, the same request returns the same batch. Seeds depend on seed, task and member only,
    so that two versions get the same seeds. Raises InvalidInput, and Conflict for a version whose files are
    damaged.
    """
    choice = await _choose_engine(database, tenant_id, policy, setup)
    await policy_files.check_files(database, tenant_id, await policies.get_version_by_name(database, tenant_id, policy))
    request = BatchRequest(
        graph=setup.graph,
        task_ids=setup.task_ids,
        group_size=setup.rollouts_per_task,
        engines={**(setup.engines or {}), setup.role: choice},
        scorers=setup.scorers,
        judge_budget=setup.judge_budget,
        budget=setup.budget,
        seed=setup.seed,
        tags=(EVALUATION_TAG,),
        name=f"{policy} on {setup.dataset}, {setup.mode}",
        idempotency_key=idempotency_key,
    )
    return await rollouts.create_batch(database, notifier, tenant_id, request, graphs=graphs, servers=servers)


async def _choose_engine(database: Database, tenant_id: UUID, policy: str, setup: EvaluationSetup) -> EngineConfig:
    """Return the engine config that answers the evaluated role.

    Weights answer the role themselves. A prompt library is shown to the model that was named for it, which
    keeps its temperature except in greedy evaluations.
    """
    policies.parse_version_name(policy, "policy")
    async with database.transaction(tenant_id) as connection:
        row = await policies.require_version(connection, policy, "policy")
    if row.kind != policies.PROMPT_LIBRARY_KIND:
        heat = 0.0 if setup.greedy else 1.0
        return EngineConfig(
            engine="policy",
            model=policy,
            prompt_format=setup.prompt_format,
            temperature=heat,
            max_tokens=setup.max_tokens,
        )
    choice = add_library((setup.engines or {}).get(setup.role), policy, setup.role)
    return choice.model_copy(update={"temperature": 0.0}) if setup.greedy else choice


async def store_evaluation(
    database: Database, tenant_id: UUID, policy: str, batch_id: UUID, setup: EvaluationSetup
) -> UUID:
    """Store an evaluation whose batch has ended. Raises Conflict if the batch is still running."""
    batch = await rollouts.get_batch(database, tenant_id, batch_id)
    if batch.progress.open or batch.progress.group_count < batch.batch.group_count:
        raise Conflict("Rollouts of the evaluation are still running.", "Wait until they have ended.")
    if batch.batch.stop_reason:
        raise Conflict(
            "The evaluation was stopped, because its judges had spent their budget.",
            "Evaluate again with a larger judge budget.",
        )
    async with database.transaction(tenant_id) as connection:
        row = await policies.require_version(connection, policy, "policy")
        id = new_id()
        new = {
            "id": id,
            "policy": row.id,
            "dataset": setup.dataset,
            "mode": setup.mode,
            "graph": setup.graph,
            "seed": setup.seed,
            "batch": batch_id,
        }
        await evaluations.insert_evaluation(connection, tenant_id, new)
    return id


async def run_gate(
    database: Database,
    tenant_id: UUID,
    policy: str,
    rules: GateRules,
    *,
    dataset: str | None = None,
    mode: str | None = None,
    experiment_id: UUID | None = None,
    metric: str | None = None,
) -> GateResult | None:
    """Compare a candidate with the active version of its name by their latest evaluations on the same tasks.

    `metric` is a scorer of the evaluations, which decides instead of their reward. With `experiment_id`, compare them
    by a metric of this experiment instead; a `metric` of `None` means its weighted one. Returns `None` if there is no
    active version. Each comparison with the same active version is a look, which makes the next one stricter; the same
    results again are the same look. Raises InvalidInput if an evaluation or a metric is missing or the experiment did
    not compare these versions, and Conflict if it is not complete.
    """
    async with database.transaction(tenant_id) as connection:
        candidate = await policies.require_version(connection, policy, "policy")
        await policy_versions.lock_name(connection, candidate.name)
        active = await policy_versions.find_version_in_state(connection, candidate.name, "active")
        if active is None or active.id == candidate.id:
            return None
        if experiment_id is None:
            ours, theirs, compared = await _load_comparable_results(connection, candidate, active, dataset, mode)
            source: dict[str, Any] = {"compared": compared}
            if metric is not None:
                ours, theirs = take_metric_as_reward(ours, metric), take_metric_as_reward(theirs, metric)
                compared = f"{compared} by {metric}"
                source = {"compared": compared, "metric": metric}
        else:
            ours, theirs, used = await load_gate_results(connection, experiment_id, candidate, active, metric)
            compared = f"{candidate.label} in experiment {experiment_id} by {used}"
            source = {"compared": compared, "experiment": str(experiment_id), "metric": used}
        check_guards(rules, [*ours, *theirs])
        kl = await _find_last_kl(connection, candidate)
        looks = await _count_looks(connection, candidate.name, active, compared)
        result = run_gate_rules(ours, theirs, rules, kl=kl, looks=looks)
        detail = {"active_version": active.label, **source, **_serialize_gate_result(result)}
        await training_events.insert_event(
            connection, tenant_id, "gate", detail, policy_version_id=candidate.id, job_id=candidate.job_id
        )
    return result


async def promote(
    database: Database,
    tenant_id: UUID,
    policy: str,
    rules: GateRules | None = None,
    *,
    dataset: str | None = None,
    mode: str | None = None,
    experiment_id: UUID | None = None,
    metric: str | None = None,
    by_canary: bool = False,
) -> tuple[PolicyVersionRow, GateResult | None]:
    """Make a version active if it passes the gate. If `rules` is `None`, the gate is skipped.

    With `by_canary`, a look at it as the canary must have found it better, instead of the gate. The other parameters
    are those of `run_gate`.

    Raises Conflict with the reasons if it does not pass; the failure is recorded. Raises Conflict for damaged
    files, too.
    """
    await policy_files.check_files(database, tenant_id, await policies.get_version_by_name(database, tenant_id, policy))
    result = None
    if rules is not None and not by_canary:
        result = await run_gate(
            database, tenant_id, policy, rules, dataset=dataset, mode=mode, experiment_id=experiment_id, metric=metric
        )
    if result is not None and not result.passed:
        raise Conflict(
            f"{policy} did not pass the gate: {'; '.join(result.reasons)}.", "Train further, or use --force."
        )
    async with database.transaction(tenant_id) as connection:
        row = await _lock_for_transition(connection, policy, "active")
        if row.state == "active":
            return row, result
        if by_canary:
            await canaries.require_better_canary(connection, row)
        before = await policy_versions.find_version_in_state(connection, row.name, "active")
        detail = {
            "policy": policy,
            "before": None if before is None else str(before.id),
            "gate": _describe_gate(rules, result, by_canary),
        }
        promoted = await policy_versions.set_state(connection, row, "active")
        await training_events.insert_event(
            connection, tenant_id, "promoted", detail, policy_version_id=promoted.id, job_id=promoted.job_id
        )
    return promoted, result


def _describe_gate(rules: GateRules | None, result: GateResult | None, by_canary: bool) -> str:
    if by_canary:
        return "passed as a canary"
    return "skipped" if rules is None else "passed" if result else "no active version to compare with"


async def start_canary(database: Database, tenant_id: UUID, policy: str, fraction: float) -> PolicyVersionRow:
    """Start a canary that answers a fraction of the new runs that name the policy without a version.

    Raises InvalidInput.
    """
    if not 0 < fraction <= 1:
        raise InvalidInput("fraction", f"{fraction} is out of range", "Use a number above 0 and at most 1.")
    await policy_files.check_files(database, tenant_id, await policies.get_version_by_name(database, tenant_id, policy))
    async with database.transaction(tenant_id) as connection:
        row = await _lock_for_transition(connection, policy, "canary")
        canary = await policy_versions.set_state(connection, row, "canary", fraction)
        detail = {"policy": policy, "fraction": fraction}
        await training_events.insert_event(
            connection, tenant_id, "canary", detail, policy_version_id=canary.id, job_id=canary.job_id
        )
    return canary


async def roll_back_policy(
    database: Database, tenant_id: UUID, name: str, reason: str = "requested by a person"
) -> str:
    """Roll a policy back by one step and return what was done.

    This ends a canary. Without a canary, it makes the previously active version active again. Raises NotFound
    and Conflict if there is nothing to roll back to.
    """
    async with database.transaction(tenant_id) as connection:
        await policy_versions.lock_name(connection, name)
        if (canary := await policy_versions.find_version_in_state(connection, name, "canary")) is not None:
            await canaries.end_canary(connection, tenant_id, canary, reason)
            return f"{canary.label} is no longer a canary"
        active = await policy_versions.find_version_in_state(connection, name, "active")
        if active is None:
            raise NotFound("active version of policy", name)
        return await _restore_previous(connection, tenant_id, active, reason)


async def withdraw_version(
    database: Database, tenant_id: UUID, version_id: UUID, reason: str = "requested by a person"
) -> str:
    """Withdraw exactly this version as the canary or the active version, and return what was done.

    Raises NotFound, and Conflict for a version that new runs do not get or that has no predecessor.
    """
    async with database.transaction(tenant_id) as connection:
        await policy_versions.lock_name(connection, (await policy_versions.get_version(connection, version_id)).name)
        row = await policy_versions.lock_version(connection, version_id)
        if row.state == "canary":
            await canaries.end_canary(connection, tenant_id, row, reason)
            return f"{row.label} is no longer a canary"
        if row.state != "active":
            raise Conflict(f"{row.label} is {row.state}, so new runs do not use it.", "There is nothing to withdraw.")
        return await _restore_previous(connection, tenant_id, row, reason)


async def _restore_previous(connection: Connection, tenant_id: UUID, active: PolicyVersionRow, reason: str) -> str:
    """Make the previously active version active again. Raises Conflict if there is none."""
    before = await _get_previous_active(connection, active)
    detail = {"policy": active.label, "back_to": before.label, "reason": reason}
    await policy_versions.set_state(connection, await policy_versions.lock_version(connection, before.id), "active")
    await training_events.insert_event(
        connection, tenant_id, "rolled_back", detail, policy_version_id=active.id, job_id=active.job_id
    )
    return f"{before.label} is active again and replaces {active.label}"


async def list_unloadable(database: Database, tenant_id: UUID, name: str, rejected: str = "") -> list[str]:
    """List NAME@VERSION of versions that no server needs, except the one to roll back to.

    See `policy_versions`.
    """
    async with database.transaction(tenant_id) as connection:
        labels = await policy_versions.list_unused_labels(connection, name, rejected)
        active = await policy_versions.find_version_in_state(connection, name, "active")
        try:
            previous_label = (await _get_previous_active(connection, active)).label if active else ""
        except Conflict:
            previous_label = ""
    return [label for label in labels if label != previous_label]


async def _lock_for_transition(connection: Connection, policy: str, state: str) -> PolicyVersionRow:
    """Lock the version and return it if the state may follow its present one.

    Raises InvalidInput and Conflict.
    """
    version = await policies.require_version(connection, policy, "policy")
    await policy_versions.lock_name(connection, version.name)
    row = await policy_versions.lock_version(connection, version.id)
    if state != row.state and state not in policies.ALLOWED_TRANSITIONS[row.state]:
        raise Conflict(f"{policy} is {row.state} and cannot become {state}.", "Choose another version.")
    return row


async def _get_previous_active(connection: Connection, active: PolicyVersionRow) -> PolicyVersionRow:
    """Return the version that was active before the given one. Raises Conflict."""
    events = await training_events.list_events(connection, policy_version_id=active.id, limit=1000)
    promoted = [event for event in events if event.kind == "promoted"]
    before = promoted[-1].detail.get("before") if promoted else None
    row = await policy_versions.get_version(connection, UUID(before)) if before else None
    if row is None or row.state == "blocked":
        raise Conflict(
            f"{active.label} has no previous active version to roll back to.",
            "Promote a version with `offing policy promote NAME@VERSION`.",
        )
    return row


async def _load_comparable_results(
    connection: Connection, candidate: PolicyVersionRow, active: PolicyVersionRow, dataset: str | None, mode: str | None
) -> tuple[list[EvaluationResult], list[EvaluationResult], str]:
    """Return the latest results of both versions on the same tasks, and a text that identifies them.

    Prompt libraries are comparable only if the same models read them.
    """
    theirs = await evaluations.list_evaluations(connection, active.id, dataset, mode)
    for one in await evaluations.list_evaluations(connection, candidate.id, dataset, mode):
        for other in theirs:
            same = (one.dataset, one.mode, one.graph, one.seed) == (other.dataset, other.mode, other.graph, other.seed)
            if same and (
                candidate.kind != policies.PROMPT_LIBRARY_KIND or await _used_same_engines(connection, one, other)
            ):
                ours = _results_from_rows(await evaluations.list_results(connection, one.id))
                return (
                    ours,
                    _results_from_rows(await evaluations.list_results(connection, other.id)),
                    f"evaluations {one.id} and {other.id}",
                )
    raise InvalidInput(
        "policy",
        f"{candidate.label} and {active.label} were not evaluated on the same tasks",
        "Run `offing policy evaluate` for both with the same tasks and seed, or use --force.",
    )


async def _count_looks(connection: Connection, name: str, active: PolicyVersionRow, compared: str) -> int:
    """Return the number of this look among the comparisons of candidates with the active version, from 1 on."""
    earlier = await training_events.list_compared(connection, name, active.label)
    return list(dict.fromkeys([*earlier, compared])).index(compared) + 1


async def _used_same_engines(connection: Connection, first: EvaluationRow, second: EvaluationRow) -> bool:
    """Return whether the same engines answered in the rollouts of both. `False` if this is no longer known."""
    if first.batch_id is None or second.batch_id is None:
        return False
    ours, theirs = [
        (await rollout_batches.get_batch(connection, id)).request["engines"] for id in (first.batch_id, second.batch_id)
    ]
    return _engines_without_library(ours) == _engines_without_library(theirs)


def _engines_without_library(engines: Mapping[str, Any]) -> dict[str, EngineConfig]:
    choices = {role: EngineConfig.model_validate(choice) for role, choice in engines.items()}
    return {role: choice.model_copy(update={"prompt_library": ""}) for role, choice in choices.items()}


async def _find_last_kl(connection: Connection, candidate: PolicyVersionRow) -> float | None:
    """Return the last `kl` that the job of a version measured, or `None` if no job made the version."""
    job = candidate.job_id
    metrics = await training_metrics.list_metrics_since(connection, job, 0, ["kl"], 100_000) if job else []
    return metrics[-1].value if metrics else None


def _results_from_rows(rows: Sequence[EvaluationResultRow]) -> list[EvaluationResult]:
    return [
        EvaluationResult(row.task_id, row.member, row.reward, row.outcome, row.turns, row.tokens, row.metrics)
        for row in rows
    ]


def _serialize_gate_result(result: GateResult) -> dict[str, Any]:
    return {
        "passed": result.passed,
        "reasons": list(result.reasons),
        "comparison": asdict(result.comparison),
        "guards": {name: asdict(one) for name, one in result.guards.items()},
        "looks": result.looks,
        "rules": asdict(result.rules),
    }
