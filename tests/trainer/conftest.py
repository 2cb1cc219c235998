"""A home of its own for each test's jobs, on the session's servers."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from offing.storage.pool import Database
from tests.trainer.jobs import Bench


@pytest.fixture
async def bench(app_url: str, owner_url: str, tmp_path: Path) -> AsyncIterator[Bench]:
    async with Database(app_url, most=4) as database:
        yield Bench(database, owner_url, tmp_path)
