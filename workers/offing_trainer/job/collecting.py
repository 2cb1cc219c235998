"""Rollouts that a job collects itself: the tasks of a step, its batch under the present weights, the wait for its end.

The only home of that. A step's batch has a key of its own, so that a job that was lost finds the batch that it had
asked for instead of asking again. Engines hear of new weights through `Serve`; runs are made by workers alone.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from uuid import UUID

import numpy as np

from offing.core.errors import Unavailable
from offing.core.model import EngineChoice, parse_engine
from offing.core.run import Budget
from offing.sdk import Graph
from offing.services import rollouts, tasks
from offing.services.graphs import named
from offing.services.rollouts import BatchRequest, Hints, ScorerSpec
from offing.services.tasks import Drawn
from offing.storage import tasks as stored_tasks
from offing.storage import training_groups
from offing.storage.policy_versions import VersionRow
from offing.storage.pool import Database
from offing.storage.training_groups import GroupHead, GroupQuery
from offing.storage.training_jobs import JobRow
from offing_trainer.config import CollectConfig, TrainConfig

POLL_SECONDS = 0.1

MOST_BATCHES = 4
"""Of a step, before it is made do with what they gave."""

MOST_TASKS = 100_000
"""Of a stored dataset, among which a step's are drawn."""

Serve = Callable[[VersionRow], Awaitable[None]]
"""Makes the version answer; returns when it does."""


@dataclass(frozen=True, slots=True)
class Collector:
    """What it takes to have rollouts made."""

    database: Database
    hints: Hints
    graphs: Mapping[str, Graph]
    serve: Serve
    slice_turns: int = 64

    async def collected(
        self, tenant: UUID, job: JobRow, config: TrainConfig, policy: VersionRow, said: Callable[[str], None]
    ) -> list[GroupHead]:
        """The final groups of the job's next step, in the order of their tasks.

        Raises Unavailable when not one of them became complete.
        """
        assert config.collect is not None, "only called for a job that collects"
        await self.serve(policy)
        heads: list[GroupHead] = []
        for nth in range(MOST_BATCHES):
            heads += await self._batch(tenant, job, config, config.collect, policy, nth, said)
            complete = [head for head in heads if head.state == "complete"]
            if complete and sum(h.informative for h in complete) >= config.data.minimum_informative_groups:
                return heads
        if not any(head.state == "complete" for head in heads):
            raise Unavailable(
                f"No group of step {job.step + 1} became complete: rollouts end with faults. "
                "See `offing batch list`, and resume the job when the cause is mended."
            )
        return heads

    async def _batch(
        self,
        tenant: UUID,
        job: JobRow,
        config: TrainConfig,
        collect: CollectConfig,
        policy: VersionRow,
        nth: int,
        said: Callable[[str], None],
    ) -> list[GroupHead]:
        said("collecting")
        seed = job.seed * 1_000_003 + (job.step * MOST_BATCHES + nth)
        wanted = await self._tasks(tenant, config, collect, seed)
        graph = named(self.graphs, collect.graph)
        request = BatchRequest(
            graph=collect.graph,
            tasks=wanted,
            group_size=collect.group_size,
            engines=engines_of(graph, collect, policy),
            scorers=[ScorerSpec(name) for name in collect.scorers] or None,
            budget=Budget(turns=collect.turns),
            attempts=collect.attempts,
            seed=seed % 2**62,
            tags=("loop", f"job:{job.id}"),
            name=f"{job.name} step {job.step + 1}",
            idempotency_key=f"{job.id}/{job.step}/{nth}",
        )
        made = await rollouts.create(
            self.database, self.hints, tenant, request, graphs=self.graphs, slice_turns=self.slice_turns
        )
        await self.ended(tenant, made.batch.id)
        said("collected")
        place = {task: n for n, task in enumerate(wanted)}
        return sorted(await self._heads(tenant, made.batch.id), key=lambda head: place[head.task])

    async def _tasks(self, tenant: UUID, config: TrainConfig, collect: CollectConfig, seed: int) -> list[UUID]:
        count = config.data.groups_per_step
        if collect.worlds:
            world = collect.worlds[seed % len(collect.worlds)]
            drawn = Drawn(world, count, collect.hops, collect.kinds or None, seed)
            specs = await asyncio.to_thread(tasks.of_world, drawn)
            return (await tasks.store(self.database, tenant, f"world:{world}", specs)).ids
        async with self.database.transaction(tenant) as connection:
            known = await stored_tasks.of_dataset(connection, collect.dataset, MOST_TASKS)
        order: list[int] = np.random.default_rng(seed).permutation(len(known))[:count].tolist()
        return [known[n].id for n in order]

    async def ended(self, tenant: UUID, batch: UUID) -> None:
        """Returns when no group of a batch is open any more."""
        while (await rollouts.one_batch(self.database, tenant, batch)).progress.open:  # noqa: ASYNC110
            await asyncio.sleep(POLL_SECONDS)

    async def _heads(self, tenant: UUID, batch: UUID) -> list[GroupHead]:
        async with self.database.transaction(tenant) as connection:
            now, newest = await training_groups.newest(connection)
            return await training_groups.all_heads(connection, GroupQuery(batches=(batch,)), max(now, newest or now))


def engines_of(graph: Graph, collect: CollectConfig, policy: VersionRow) -> dict[str, EngineChoice]:
    """The policy for its role, and what is said for the others."""
    options = {"reasks": collect.reasks}
    name = f"{policy.name}@{policy.version}"
    ours = EngineChoice(engine="policy", model=name, form=collect.form, options=options)
    return {**other_engines(graph, collect), collect.role: ours}


def other_engines(graph: Graph, collect: CollectConfig) -> dict[str, EngineChoice]:
    """Of the roles that are not trained. One that is not there is answered as any run's is."""
    said = {role.name: collect.engines.get(role.name, collect.engines.get("all", "")) for role in graph.roles}
    return {role: parse_engine(text) for role, text in said.items() if text and role != collect.role}
