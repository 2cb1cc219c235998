"""Rollouts that a job collects itself: the tasks of a step, its batch under the present weights, the wait for its end.

The only home of that. A step's batch has a key of its own, so that a job that was lost finds the batch that it had
asked for instead of asking again. Engines hear of new weights through `Serve`; runs are made by workers alone.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from itertools import count
from uuid import UUID

from offing.core.errors import Conflict
from offing.core.model import EngineChoice, parse_engine
from offing.core.run import Budget
from offing.sdk import Graph
from offing.services import policy_files, rollouts, tasks
from offing.services.graphs import named
from offing.services.rollouts import BatchRequest, Created, Hints, ScorerSpec
from offing.services.tasks import Drawn
from offing.storage import training_groups, training_jobs
from offing.storage.policy_versions import VersionRow
from offing.storage.pool import Database
from offing.storage.training_groups import GroupHead, GroupQuery
from offing.storage.training_jobs import JobRow
from offing_trainer.config import CollectConfig, TrainConfig
from offing_trainer.job.curriculum import chosen

POLL_SECONDS = 0.1

MOST_BATCHES = 4
"""Of a step, before it is made do with what they gave."""

LOOKS = 20
"""At a batch that is waited for, between looks at the engine."""

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

        Raises Conflict when not one of them became complete; the next attempt then makes others.
        """
        assert config.collect is not None, "only called for a job that collects"
        said("loading")
        await self.served(tenant, policy)
        heads, tried = list[GroupHead](), 0
        for nth in count():
            new, found = await self._batch(tenant, job, config, config.collect, policy, nth, said)
            heads += found
            tried += new or any(head.state == "complete" for head in found)
            complete = [head for head in heads if head.state == "complete"]
            if complete and sum(h.informative for h in complete) >= config.data.minimum_informative_groups:
                return heads
            if tried == MOST_BATCHES:
                break
        if not any(head.state == "complete" for head in heads):
            raise Conflict(
                f"No group of step {job.step + 1} became complete: rollouts end with faults.",
                "See `offing batch list`, and go on with the job when the cause is mended.",
            )
        return heads

    async def served(self, tenant: UUID, policy: VersionRow) -> None:
        """Returns when the version answers. Raises Conflict for one whose files are damaged."""
        await policy_files.refuse_damaged(self.database, tenant, policy)
        await self.serve(policy)

    async def _batch(
        self,
        tenant: UUID,
        job: JobRow,
        config: TrainConfig,
        collect: CollectConfig,
        policy: VersionRow,
        nth: int,
        said: Callable[[str], None],
    ) -> tuple[bool, list[GroupHead]]:
        """Whether it was made just now, and its groups. One that faults left without a whole group is not tried again:
        the one after it is made."""
        said("collecting")
        seed = _seed(job, nth)
        wanted = await self._tasks(tenant, job, config, collect, seed)
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
        made = await self.made(tenant, request, said, policy)
        said("collected")
        place = {task: n for n, task in enumerate(wanted)}
        return made.new, sorted(await self._heads(tenant, made.batch.id), key=lambda head: place[head.task])

    async def made(
        self,
        tenant: UUID,
        request: BatchRequest,
        said: Callable[[str], None] = lambda phase: None,
        policy: VersionRow | None = None,
    ) -> Created:
        """The batch, when none of its groups is open any more. `policy`: see `ended`."""
        created = await rollouts.create(
            self.database, self.hints, tenant, request, graphs=self.graphs, slice_turns=self.slice_turns
        )
        said("waiting")
        await self.ended(tenant, created.batch.id, policy)
        return created

    async def _tasks(
        self, tenant: UUID, job: JobRow, config: TrainConfig, collect: CollectConfig, seed: int
    ) -> list[UUID]:
        count, how = config.data.groups_per_step, collect.curriculum
        if how is None:
            return await drawn(self.database, tenant, collect, count, seed)
        candidates = await drawn(self.database, tenant, collect, count * how.candidates, seed)
        async with self.database.transaction(tenant) as connection:
            state = await training_jobs.state_of(connection, job.id)
        return chosen(how, state, candidates, count, seed % 2**62)

    async def ended(self, tenant: UUID, batch: UUID, policy: VersionRow | None = None) -> None:
        """Returns when no group of a batch is open any more.

        `policy` is made to answer again by an engine that was started anew meanwhile; without one that answers nothing
        would come to an end. Raises Unavailable then.
        """
        for look in count(1):
            if not (await rollouts.one_batch(self.database, tenant, batch)).progress.open:
                return
            await asyncio.sleep(POLL_SECONDS)
            if policy is not None and look % LOOKS == 0:
                await self.serve(policy)

    async def _heads(self, tenant: UUID, batch: UUID) -> list[GroupHead]:
        async with self.database.transaction(tenant) as connection:
            now, newest = await training_groups.newest(connection)
            return await training_groups.all_heads(connection, GroupQuery(batches=(batch,)), max(now, newest or now))


async def drawn(database: Database, tenant: UUID, collect: CollectConfig, count: int, seed: int) -> list[UUID]:
    """Tasks at random, each at most once, the same for the same seed; of a world, they are stored first.

    A dataset may have fewer. Raises InvalidInput for one that has none, and for a world that has not so many.
    """
    if not collect.worlds:
        return await tasks.of_dataset(database, tenant, collect.dataset, count, seed=seed)
    world = collect.worlds[seed % len(collect.worlds)]
    return await tasks.of_world_stored(database, tenant, Drawn(world, count, collect.hops, collect.kinds or None, seed))


def _seed(job: JobRow, nth: int) -> int:
    """Of a step's nth batch: another one for each batch and step, the same whenever it is asked for."""
    again, place = divmod(nth, MOST_BATCHES)
    return job.seed * 1_000_003 + job.step * MOST_BATCHES + place + again * 250_007


def engines_of(graph: Graph, collect: CollectConfig, policy: VersionRow) -> dict[str, EngineChoice]:
    """The policy for its role, and what is said for the others."""
    ours = EngineChoice(
        engine="policy", model=policy.label, form=collect.form, max_tokens=collect.max_tokens,
        options={"reasks": collect.reasks},
    )  # fmt: skip
    return {**other_engines(graph, collect), collect.role: ours}


def other_engines(graph: Graph, collect: CollectConfig) -> dict[str, EngineChoice]:
    """Of the roles that are not trained. One that is not there is answered as any run's is."""
    said = {role.name: collect.engines.get(role.name, collect.engines.get("all", "")) for role in graph.roles}
    return {role: parse_engine(text) for role, text in said.items() if text and role != collect.role}
