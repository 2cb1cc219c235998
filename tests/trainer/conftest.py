"""A home of its own for each test's jobs, on the session's servers."""

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from offing.core.training_rows import TrainingRow
from offing.storage.pool import Database
from tests.trainer.jobs import Bench

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # before torch is loaded: tests share their cores


@pytest.fixture
async def bench(app_url: str, owner_url: str, tmp_path: Path) -> AsyncIterator[Bench]:
    async with Database(app_url, max_connections=4) as database:
        yield Bench(database, owner_url, tmp_path, asyncio.get_running_loop())


@pytest.fixture(scope="session")
def policy_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small policy with random weights."""
    from tests.trainer.sampled_rollouts import small_policy

    return small_policy(tmp_path_factory.mktemp("policies") / "p@1")


@pytest.fixture(scope="session")
def sampled_rows(policy_folder: Path) -> list[TrainingRow]:
    """Five rows that it sampled, of one to three turns, of different lengths and temperatures."""
    from tests.trainer.sampled_rollouts import rollouts

    return rollouts(policy_folder)
