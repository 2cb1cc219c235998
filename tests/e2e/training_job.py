"""A training job under way as its rows tell it, in the home of a running stack; no learner is needed."""

import asyncio
import json
import math
from pathlib import Path
from urllib.parse import quote
from uuid import UUID

from offing.clock import new_id
from offing.models.policy_folder import PolicyHashes
from offing.services import policies
from offing.services.policies import PolicyRegistration
from offing.storage import training_jobs
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Database
from offing.storage.training_jobs import CommittedStep, JobFencingToken

TAKE = "update training_job set state = 'running', fence = 1, started_at = clock_timestamp() where id = %s"

TERM = 600.0
"""Seconds that the claim lasts: longer than the test."""


def database_of(home: Path) -> Database:
    """Of the stack that runs in this home."""
    sockets = f"{json.loads((home / 'up.json').read_text())['run']}/pg"
    return Database(f"postgresql://offing_app@/offing?host={quote(sockets, safe='')}", max_connections=2)


async def under_way(database: Database) -> JobFencingToken:
    """A candidate, and a job that is ours from the transaction that makes it: no trainer can have taken it before."""
    await policies.register_version(
        database,
        LOCAL_TENANT,
        PolicyRegistration(name="planner", kind="full", uri="/p", hashes=PolicyHashes("s", "t", "p")),
    )
    async with database.transaction(LOCAL_TENANT) as connection:
        config = {"algorithm": "flow-grpo", "policy": "planner@1", "max_steps": 1000}
        job = await training_jobs.insert_job(
            connection, LOCAL_TENANT, new_id(), kind="train", name="planner", config=config, config_sha256="c", seed=0
        )
        await connection.execute(TAKE, (job.id,))
    held = JobFencingToken(job.id, LOCAL_TENANT, 1)
    await commit(database, held, 1)
    return held


def metrics_of(step: int) -> dict[str, float]:
    """Metrics of a step as a job has them."""
    share = min(1.0, 0.2 + step / 2000 + 0.02 * math.sin(step))
    return {
        "reward": share, "success_rate": share, "violation_fraction": 0.05 / (1 + step / 10),
        "entropy": 1.0 / (1 + step / 40), "kl": 0.01 + 0.005 * math.cos(step), "grad_norm": 0.3, "clip_low": 0.004,
        "clip_high": 0.002 + 0.001 * math.cos(step), "groups": 4.0, "groups_informative": 3.0,
    }  # fmt: skip


async def commit(database: Database, held: JobFencingToken, step: int) -> str | None:
    """A step with its figures; what people wish of the job."""
    metrics = metrics_of(step)
    done = CommittedStep(step, step, "", dict[UUID, str](), group_count=4, metrics=metrics, phase=f"step {step}")
    async with database.transaction(held.tenant_id) as connection:
        return await training_jobs.commit_step(connection, held, TERM, done)


async def until_told(database: Database, held: JobFencingToken) -> str:
    """Commit a step every moment until a person asks for a rest, and rest. What was asked for."""
    step = 2
    while (request := await commit(database, held, step)) is None:
        await asyncio.sleep(0.5)
        step += 1
    async with database.transaction(held.tenant_id) as connection:
        await training_jobs.release_job(connection, held, "paused", stop_reason="requested by a person")
    return request
