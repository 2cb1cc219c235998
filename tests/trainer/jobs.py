"""Jobs over stored rollouts with a tiny policy of random weights; a test states only what matters to it."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg

from offing.models.policy_folder import hash_policy
from offing.services import policies
from offing.services import training_jobs as training_job_service
from offing.services.policies import PolicyRegistration
from offing.storage import training_jobs
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Database
from offing.storage.training_jobs import TrainingJobRow
from offing_engine.random_policy import create_random_policy
from offing_trainer.config import parse_config
from offing_trainer.job.data_report import DataReport, build_data_report
from offing_trainer.job.job_runner import JobContext
from offing_trainer.job.pipeline_trainer import open_trainer
from offing_trainer.job.process import run_one_job
from offing_trainer.pipeline import build_job_pipeline
from tests.storage.rollouts import LONG_AGO, A, Collected

WORDS = [f"w{n}" for n in range(400)]
"""More than any id that `tests.storage.rollouts` writes."""

NO_GUARDS: dict[str, Any] = dict.fromkeys(
    ("max_entropy_drop", "max_entropy_rise", "max_kl", "max_ratio", "max_reward_drop", "max_violation_rise"), 1e9
)

TABLES: dict[str, Any] = {
    "algorithm": "flow-grpo",
    "policy": "planner@1",
    "data": {"groups_per_step": 2, "min_informative_groups": 1},
    "pipeline": {"surrogate": {"name": "reinforce"}, "regularizers": []},
    "learner": {"learning_rate": 1e-3, "cpu_threads": 1, "device": "cpu", "minibatches": 2},
    "guards": NO_GUARDS,
}
"""What was recorded here came from no such policy, so that ratios would say nothing."""


@dataclass
class Bench:
    """A home with one policy, and stored groups."""

    database: Database
    owner_url: str
    home: Path
    loop: asyncio.AbstractEventLoop | None = None
    phases: list[str] = field(default_factory=list[str])
    tokenizer: str = ""
    """Of the policy that was made last, with which groups are then told to have been sampled."""

    @property
    def context(self) -> JobContext:
        return JobContext(
            self.database,
            self.home,
            self.home / "policies",
            open_trainer,
            on_phase=lambda job, phase, metrics: self.phases.append(phase),
        )

    async def policy(self, name: str = "planner", *, seed: int = 0) -> str:
        folder = self.home / f"{name}-{seed}"
        create_random_policy(folder, WORDS, seed=seed)
        digest = hash_policy(folder, None)
        row, _ = await policies.register_version(
            self.database, LOCAL_TENANT, PolicyRegistration(name=name, kind="full", uri=str(folder), hashes=digest)
        )
        self.tokenizer = digest.tokenizer
        return f"{row.name}@{row.version}"

    async def groups(
        self,
        count: int,
        *,
        size: int = 2,
        first: int = 0,
        rewards: tuple[float, ...] = (1.0, 0.0),
        role_calls: Callable[[int, int], list[A]] | None = None,
        tokenizer: str | None = None,
        answers: Sequence[str] | None = ("w1",),
    ) -> list[UUID]:
        """Complete groups, a minute apart, each with rollouts of these rewards in turn. `answers`: of their tasks, if
        anything is known to be right."""
        collected, created = Collected(self.database, LOCAL_TENANT, self.owner_url), list[UUID]()
        for nth in range(first, first + count):
            created.append(collected.group(size=size, answers=answers))
            for member in range(size):
                turns = (role_calls or _role_calls)(nth, member)
                await collected.rollout(
                    *turns, group_id=created[-1], member=member, reward=rewards[member % len(rewards)]
                )
            self.complete(created[-1], nth)
        self._sampled_with(tokenizer or self.tokenizer)
        return created

    def _sampled_with(self, tokenizer: str) -> None:
        with psycopg.connect(self.owner_url, autocommit=True) as owner:
            owner.execute("update app.role_call set tokenizer_sha256 = %s where tokenizer_sha256 = 'tok'", (tokenizer,))

    def pin(self, group_id: UUID, policy: str) -> None:
        """As a collector that was asked for this version of the planner."""
        name, _, version = policy.partition("@")
        with psycopg.connect(self.owner_url, autocommit=True) as owner:
            owner.execute(
                "update app.rollout_group set policy_version_ids = jsonb_build_object('planner', "
                "(select id from app.policy_version where name = %s and version = %s)) where id = %s",
                (name, int(version), group_id),
            )

    def violate(self, group_ids: Sequence[UUID]) -> None:
        """The rollouts of these groups that have no reward above 0 violated a rule."""
        with psycopg.connect(self.owner_url, autocommit=True) as owner:
            owner.execute(
                "update app.rollout set outcome = 'violated' where group_id = any(%s) and reward = 0",
                (list(group_ids),),
            )

    def same_task(self, one: UUID, other: UUID) -> None:
        """Two groups are of the same task."""
        with psycopg.connect(self.owner_url, autocommit=True) as owner:
            owner.execute(
                "update app.rollout_group set task_id = (select task_id from app.rollout_group where id = %s) "
                "where id = %s",
                (one, other),
            )

    def later(self, work: Coroutine[Any, Any, Any]) -> None:
        """Do something from a job's thread on the loop, and wait for it."""
        assert self.loop is not None
        asyncio.run_coroutine_threadsafe(work, self.loop).result(30)

    def folder(self, job_id: UUID) -> Path:
        return self.home / "training" / str(job_id)

    async def inspected(self, job: TrainingJobRow) -> DataReport:
        config = parse_config(job.config)
        policy = await policies.get_version_by_name(self.database, LOCAL_TENANT, config.policy)
        return await build_data_report(self.database, LOCAL_TENANT, config, build_job_pipeline(config), policy)

    def complete(self, group_id: UUID, minutes: int, state: str = "complete") -> None:
        with psycopg.connect(self.owner_url, autocommit=True) as owner:
            owner.execute(
                "update app.rollout_group set completed_at = %s, state = %s where id = %s",
                (LONG_AGO + timedelta(minutes=minutes), state, group_id),
            )

    async def job(self, **tables: Any) -> TrainingJobRow:
        return await training_job_service.create_job(self.database, LOCAL_TENANT, {**TABLES, **tables})

    async def run(self, job_id: UUID, context: JobContext | None = None) -> TrainingJobRow:
        done = await run_one_job(context or self.context, job_id)
        assert done is not None
        return done

    async def ledger(self, job_id: UUID) -> dict[str, int]:
        async with self.database.transaction(LOCAL_TENANT) as connection:
            return await training_jobs.count_ledger_reasons(connection, job_id)


def _role_calls(nth: int, member: int) -> list[A]:
    return [A(f"turn {nth} {member} {turn}"[: 6 + member]) for turn in range(1 + member % 2)]


def job_context(bench: Bench, **what: Any) -> JobContext:
    return replace(bench.context, **what)
