"""A process that runs a job and kills itself, without any goodbye, when the job says a phase for the nth time."""

import asyncio
import os
import signal
from collections import Counter
from pathlib import Path
from typing import Any
from uuid import UUID

from offing.storage.pool import Database
from offing_trainer.job.job_runner import JobContext
from offing_trainer.job.pipeline_trainer import open_trainer
from offing_trainer.job.process import run_one_job
from tests.workers.worker_forks import forks, preload

preload("torch", "transformers", "tests.trainer.killed_job", "offing_trainer.learner.local_learner")


def run_until_killed(url: str, home: Path, job_id: UUID, phase: str, times: int) -> None:
    """Returns when the process is dead. Raises when it came to an end by itself."""
    process: Any = forks().Process(target=_run, args=(url, home, job_id, phase, times))
    process.start()
    process.join()
    if process.exitcode != -signal.SIGKILL:
        raise AssertionError(f"the process ended with {process.exitcode} before phase {phase}")


def _run(url: str, home: Path, job_id: UUID, phase: str, times: int) -> None:
    messages = Counter[str]()

    def hear(_job: object, now: str, _figures: object) -> None:
        messages[now] += 1
        if now == phase and messages[now] == times:
            os.kill(os.getpid(), signal.SIGKILL)

    async def run() -> None:
        async with Database(url, max_connections=3) as database:
            await run_one_job(JobContext(database, home, home / "policies", open_trainer, on_phase=hear), job_id)

    asyncio.run(run())
