"""A process that runs a job and kills itself, without any goodbye, when the job says a phase for the nth time."""

import asyncio
import multiprocessing
import os
import signal
from collections import Counter
from pathlib import Path
from typing import Any
from uuid import UUID

from offing.storage.pool import Database
from offing_trainer.job.process import run_one
from offing_trainer.job.running import Room
from offing_trainer.job.trainee import begin

FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["torch", "transformers", "tests.trainer.killed", "offing_trainer.learner.local"])


def run_until_killed(url: str, home: Path, job: UUID, phase: str, times: int) -> None:
    """Returns when the process is dead. Raises when it came to an end by itself."""
    process: Any = FORKS.Process(target=_run, args=(url, home, job, phase, times))
    process.start()
    process.join()
    if process.exitcode != -signal.SIGKILL:
        raise AssertionError(f"the process ended with {process.exitcode} before phase {phase}")


def _run(url: str, home: Path, job: UUID, phase: str, times: int) -> None:
    said = Counter[str]()

    def hear(_job: object, now: str, _figures: object) -> None:
        said[now] += 1
        if now == phase and said[now] == times:
            os.kill(os.getpid(), signal.SIGKILL)

    async def run() -> None:
        async with Database(url, most=3) as database:
            await run_one(Room(database, home, home / "policies", begin, said=hear), job)

    asyncio.run(run())
