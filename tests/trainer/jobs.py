"""Jobs over stored rollouts with a tiny policy of random weights; a test states only what matters to it."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg

from offing.models.policy_folder import hashes_in
from offing.services import policies, training
from offing.storage import training_jobs
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Database
from offing.storage.training_jobs import JobRow
from offing_engine.small import new_policy
from offing_trainer.chain import chain_for
from offing_trainer.config import config_of
from offing_trainer.job.inspecting import Found, inspected
from offing_trainer.job.process import run_one
from offing_trainer.job.running import Room
from offing_trainer.job.trainee import begin
from tests.storage.rollouts import LONG_AGO, A, Collected

WORDS = [f"w{n}" for n in range(400)]
"""More than any id that `tests.storage.rollouts` writes."""

NO_GUARDS: dict[str, Any] = dict.fromkeys(
    ("entropy_drop", "entropy_rise", "kl_limit", "ratio_limit", "reward_drop"), 1e9
)

TABLES: dict[str, Any] = {
    "algorithm": "flow-grpo",
    "policy": "planner@1",
    "data": {"groups_per_step": 2, "minimum_informative_groups": 1},
    "chain": {"surrogate": {"name": "reinforce"}, "regularise": []},
    "learner": {"learning_rate": 1e-3, "threads": 1, "device": "cpu", "minibatches": 2},
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
    def room(self) -> Room:
        return Room(
            self.database,
            self.home,
            self.home / "policies",
            begin,
            said=lambda job, phase, figures: self.phases.append(phase),
        )

    async def policy(self, name: str = "planner", *, seed: int = 0) -> str:
        folder = self.home / f"{name}-{seed}"
        new_policy(folder, WORDS, seed=seed)
        found = hashes_in(folder, None)
        row, _ = await policies.register(
            self.database, LOCAL_TENANT, name=name, kind="full", uri=str(folder), sha256=found.weights,
            tokenizer_sha256=found.tokenizer, template_sha256=found.template,
        )  # fmt: skip
        self.tokenizer = found.tokenizer
        return f"{row.name}@{row.version}"

    async def groups(
        self,
        count: int,
        *,
        size: int = 2,
        first: int = 0,
        rewards: tuple[float, ...] = (1.0, 0.0),
        told: Callable[[int, int], list[A]] | None = None,
        tokenizer: str | None = None,
        answers: Sequence[str] | None = ("w1",),
    ) -> list[UUID]:
        """Complete groups, a minute apart, each with rollouts of these rewards in turn. `answers`: of their tasks, if
        anything is known to be right."""
        collected, made = Collected(self.database, LOCAL_TENANT, self.owner_url), list[UUID]()
        for nth in range(first, first + count):
            made.append(collected.group(size=size, answers=answers))
            for member in range(size):
                turns = (told or _told)(nth, member)
                await collected.rollout(*turns, group=made[-1], member=member, reward=rewards[member % len(rewards)])
            self.complete(made[-1], nth)
        self._sampled_with(tokenizer or self.tokenizer)
        return made

    def _sampled_with(self, tokenizer: str) -> None:
        with psycopg.connect(self.owner_url, autocommit=True) as owner:
            owner.execute("update app.turn set tokenizer_sha256 = %s where tokenizer_sha256 = 'tok'", (tokenizer,))

    def pin(self, group: UUID, policy: str) -> None:
        """As a collector that was asked for this version of the planner."""
        name, _, version = policy.partition("@")
        with psycopg.connect(self.owner_url, autocommit=True) as owner:
            owner.execute(
                "update app.rollout_group set policies = jsonb_build_object('planner', "
                "(select id from app.policy_version where name = %s and version = %s)) where id = %s",
                (name, int(version), group),
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

    def folder(self, job: UUID) -> Path:
        return self.home / "training" / str(job)

    async def inspected(self, job: JobRow) -> Found:
        config = config_of(job.config)
        policy = await policies.named(self.database, LOCAL_TENANT, config.policy)
        return await inspected(self.database, LOCAL_TENANT, config, chain_for(config), policy)

    def complete(self, group: UUID, minutes: int, state: str = "complete") -> None:
        with psycopg.connect(self.owner_url, autocommit=True) as owner:
            owner.execute(
                "update app.rollout_group set completed_at = %s, state = %s where id = %s",
                (LONG_AGO + timedelta(minutes=minutes), state, group),
            )

    async def job(self, **tables: Any) -> JobRow:
        return await training.create(self.database, LOCAL_TENANT, {**TABLES, **tables})

    async def run(self, job: UUID, room: Room | None = None) -> JobRow:
        done = await run_one(room or self.room, job)
        assert done is not None
        return done

    async def ledger(self, job: UUID) -> dict[str, int]:
        async with self.database.transaction(LOCAL_TENANT) as connection:
            return await training_jobs.ledger_counts(connection, job)


def _told(nth: int, member: int) -> list[A]:
    return [A(f"turn {nth} {member} {turn}"[: 6 + member]) for turn in range(1 + member % 2)]


def with_room(bench: Bench, **what: Any) -> Room:
    return replace(bench.room, **what)
