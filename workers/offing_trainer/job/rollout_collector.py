"""Collection of rollouts for a job: draw the tasks of a step, run its batch, wait for its end.

The batches of a step have idempotency keys, so a restarted job finds the batch that it requested
before. Workers run the rollouts. New weights are deployed to the engine through `PolicyDeployer`.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from itertools import count
from uuid import UUID

from offing.bus.notifier import RunNotifier
from offing.core.errors import Conflict
from offing.core.judge_budget import NO_JUDGE_LIMIT, JudgeBudget
from offing.core.model import EngineConfig, parse_engine
from offing.core.run import Budget
from offing.mcp.server_registry import McpServerRegistry
from offing.sdk import Graph
from offing.services import policy_files, rollouts, tasks
from offing.services.graphs import get_graph
from offing.services.rollouts import BatchRequest, CreatedBatch
from offing.services.scorer_pins import build_scorers
from offing.storage import judge_budgets, training_groups, training_jobs
from offing.storage.policy_versions import PolicyVersionRow
from offing.storage.pool import Database
from offing.storage.training_groups import GroupQuery, GroupSummary
from offing.storage.training_jobs import TrainingJobRow
from offing.tools.environment import TaskSample
from offing_trainer.config import CollectConfig, TrainConfig
from offing_trainer.job.curriculum import select_tasks

POLL_SECONDS = 0.1

JUDGE_BUDGET_REMEDY = "Start a job with a larger `judge_budget`, or train on the groups that are complete."

MAX_BATCHES_PER_STEP = 4
"""Maximum number of batches of a step. After that, the step uses the groups that it has."""

POLLS_PER_ENGINE_CHECK = 20
"""Number of polls of a batch between two checks of the engine."""

PolicyDeployer = Callable[[PolicyVersionRow], Awaitable[None]]
"""Deploys a version to the engine and returns when the engine serves it."""


ProgressCallback = Callable[[int, int], None]
"""Called with the number of finalized rollouts of a batch and the number of all."""


@dataclass(frozen=True, slots=True)
class RolloutCollector:
    """Collects rollouts for training jobs."""

    database: Database
    notifier: RunNotifier
    graphs: Mapping[str, Graph]
    deploy: PolicyDeployer
    slice_max_turns: int = 64
    servers: McpServerRegistry | None = None
    """The MCP servers that the scope of a task may name. `None` means that there are none."""

    async def collect_step(
        self,
        tenant_id: UUID,
        job: TrainingJobRow,
        config: TrainConfig,
        policy: PolicyVersionRow,
        on_phase: Callable[[str], None],
    ) -> list[GroupSummary]:
        """Collect the groups of the job's next step, in the order of their tasks.

        Raises Conflict if no group became complete. The next attempt then collects new ones.
        """
        assert config.collect is not None, "only called for a job that collects"
        on_phase("loading")
        await self.deploy_version(tenant_id, policy)
        heads, tried = list[GroupSummary](), 0
        for nth in count():
            new, collected = await self._collect_batch(tenant_id, job, config, config.collect, policy, nth, on_phase)
            heads += collected
            tried += new or any(head.state == "complete" for head in collected)
            complete = [head for head in heads if head.state == "complete"]
            if complete and sum(h.is_informative for h in complete) >= config.data.min_informative_groups:
                return heads
            if tried == MAX_BATCHES_PER_STEP:
                break
        if not any(head.state == "complete" for head in heads):
            raise Conflict(
                f"No group of step {job.step + 1} became complete, because rollouts failed.",
                "See `offing rollouts list`. Fix the cause, then resume the job.",
            )
        return heads

    async def deploy_version(self, tenant_id: UUID, policy: PolicyVersionRow) -> None:
        """Deploy a version and return when it is served. Raises Conflict if its files are damaged."""
        await policy_files.check_files(self.database, tenant_id, policy)
        await self.deploy(policy)

    async def _collect_batch(
        self,
        tenant_id: UUID,
        job: TrainingJobRow,
        config: TrainConfig,
        collect: CollectConfig,
        policy: PolicyVersionRow,
        nth: int,
        on_phase: Callable[[str], None],
    ) -> tuple[bool, list[GroupSummary]]:
        """Return whether the batch was created just now, and its groups.

        A batch that has no complete group because of infrastructure failures is not tried again: the caller
        continues with the next one.
        """
        on_phase("collecting")
        seed = _batch_seed(job, nth)
        task_ids = await self._select_tasks(tenant_id, job, config, collect, seed)
        graph = get_graph(self.graphs, collect.graph)
        request = BatchRequest(
            graph=collect.graph,
            task_ids=task_ids,
            group_size=collect.group_size,
            engines=build_engine_configs(graph, collect, policy),
            scorers=build_scorers(collect.scorers),
            judge_budget=await self._find_judge_budget(tenant_id, job, collect, f"{job.id}/{job.step}/{nth}"),
            budget=Budget(max_turns=collect.max_turns),
            attempts=collect.max_attempts,
            seed=seed % 2**62,
            tags=("loop", f"job:{job.id}"),
            name=f"{job.name} step {job.step + 1}",
            idempotency_key=f"{job.id}/{job.step}/{nth}",
        )
        created = await self.run_batch(tenant_id, request, on_phase, policy)
        await self._check_not_stopped(tenant_id, created.batch.id)
        on_phase("collected")
        task_order = {task: n for n, task in enumerate(task_ids)}
        return created.is_new, sorted(
            await self._load_groups(tenant_id, created.batch.id), key=lambda head: task_order[head.task_id]
        )

    async def _find_judge_budget(
        self, tenant_id: UUID, job: TrainingJobRow, collect: CollectConfig, key: str
    ) -> JudgeBudget:
        """Return what the judges of a batch may use: its own limit, and what the job's other batches have left.

        Raises Conflict if nothing is left.
        """
        own = collect.judge_budget_per_batch.to_budget() if collect.judge_budget_per_batch else NO_JUDGE_LIMIT
        if collect.judge_budget is None:
            return own
        async with self.database.transaction(tenant_id) as connection:
            used = await judge_budgets.sum_usage(connection, f"{job.id}/", key)
        left = collect.judge_budget.to_budget().subtract(*used)
        if left.is_spent:
            raise Conflict("The judges have spent the budget of the job.", JUDGE_BUDGET_REMEDY)
        return own.narrow(left)

    async def _check_not_stopped(self, tenant_id: UUID, batch_id: UUID) -> None:
        """Raise Conflict if a batch was stopped, because its judges had spent their budget."""
        batch = (await rollouts.get_batch(self.database, tenant_id, batch_id)).batch
        if batch.stop_reason:
            used = f"{batch.judge_calls} calls and {batch.judge_cost_usd:f} USD"
            raise Conflict(f"Batch {batch_id} was stopped: its judges have spent {used}.", JUDGE_BUDGET_REMEDY)

    async def run_batch(
        self,
        tenant_id: UUID,
        request: BatchRequest,
        on_phase: Callable[[str], None] = lambda phase: None,
        policy: PolicyVersionRow | None = None,
        on_progress: ProgressCallback = lambda done, total: None,
    ) -> CreatedBatch:
        """Create a batch and return when none of its groups is open. `policy`: see `wait_for_batch`."""
        created = await rollouts.create_batch(
            self.database,
            self.notifier,
            tenant_id,
            request,
            graphs=self.graphs,
            slice_max_turns=self.slice_max_turns,
            servers=self.servers,
        )
        on_phase("waiting")
        await self.wait_for_batch(tenant_id, created.batch.id, policy, on_progress)
        return created

    async def _select_tasks(
        self, tenant_id: UUID, job: TrainingJobRow, config: TrainConfig, collect: CollectConfig, seed: int
    ) -> list[UUID]:
        count, curriculum_config = config.data.groups_per_step, collect.curriculum
        if curriculum_config is None:
            return await draw_tasks(self.database, tenant_id, collect, count, seed)
        candidates = await draw_tasks(
            self.database, tenant_id, collect, count * curriculum_config.candidates_per_task, seed
        )
        async with self.database.transaction(tenant_id) as connection:
            state = await training_jobs.get_plugin_state(connection, job.id)
        return select_tasks(curriculum_config, state, candidates, count, seed % 2**62)

    async def wait_for_batch(
        self,
        tenant_id: UUID,
        batch_id: UUID,
        policy: PolicyVersionRow | None = None,
        on_progress: ProgressCallback = lambda done, total: None,
    ) -> None:
        """Return when no group of a batch is open.

        `policy` is deployed again if the engine was restarted in the meantime, since no rollout could end
        without it. Raises Unavailable if that fails.
        """
        for poll in count(1):
            progress = (await rollouts.get_batch(self.database, tenant_id, batch_id)).progress
            if not progress.open:
                return
            on_progress(progress.finalized, progress.rollouts)
            await asyncio.sleep(POLL_SECONDS)
            if policy is not None and poll % POLLS_PER_ENGINE_CHECK == 0:
                await self.deploy(policy)

    async def _load_groups(self, tenant_id: UUID, batch_id: UUID) -> list[GroupSummary]:
        async with self.database.transaction(tenant_id) as connection:
            now, newest = await training_groups.get_high_water_mark(connection)
            return await training_groups.list_all_groups(
                connection, GroupQuery(batch_ids=(batch_id,)), max(now, newest or now)
            )


async def draw_tasks(database: Database, tenant_id: UUID, collect: CollectConfig, count: int, seed: int) -> list[UUID]:
    """Draw random tasks, each at most once. The same seed gives the same tasks.

    The tasks of a world are stored first. A dataset may return fewer tasks. Raises InvalidInput for a
    dataset without tasks, and for a world with too few of them.
    """
    if not collect.worlds:
        return await tasks.list_dataset_task_ids(database, tenant_id, collect.dataset, count, seed=seed)
    world = collect.worlds[seed % len(collect.worlds)]
    return await tasks.store_sampled_tasks(
        database,
        tenant_id,
        TaskSample(world, count, collect.hops, collect.question_kinds or None, seed, collect.compositions),
    )


def _batch_seed(job: TrainingJobRow, nth: int) -> int:
    """Return a reproducible seed for the nth batch of a step. It differs between batches and steps."""
    again, slot = divmod(nth, MAX_BATCHES_PER_STEP)
    return job.seed * 1_000_003 + job.step * MAX_BATCHES_PER_STEP + slot + again * 250_007


def build_engine_configs(graph: Graph, collect: CollectConfig, policy: PolicyVersionRow) -> dict[str, EngineConfig]:
    """Return the engine configs: the policy for its role, and the configured engines for the others."""
    policy_engine = EngineConfig(
        engine="policy", model=policy.label, prompt_format=collect.prompt_format, max_tokens=collect.max_tokens,
        options={"max_corrections": collect.max_corrections},
    )  # fmt: skip
    return {**build_other_engine_configs(graph, collect), collect.role: policy_engine}


def build_other_engine_configs(graph: Graph, collect: CollectConfig) -> dict[str, EngineConfig]:
    """Return the engine configs of the roles that are not trained.

    A role that is not listed uses the default engine of runs.
    """
    engine_texts = {role.name: collect.engines.get(role.name, collect.engines.get("all", "")) for role in graph.roles}
    return {role: parse_engine(text) for role, text in engine_texts.items() if text and role != collect.role}
