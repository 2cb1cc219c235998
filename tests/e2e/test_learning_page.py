"""Rated runs become a prompt library in a real browser and on the command line, done by the stack's own worker."""

import asyncio
import os
import re
import subprocess
from pathlib import Path
from uuid import UUID

import pytest

from offing.services import ratings
from offing.storage import views
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Database
from tests.e2e.conftest import PATIENCE, Offing
from tests.e2e.test_page import CHROMIUM, ROOT, browser_is_here
from tests.e2e.training import database_of

pytestmark = pytest.mark.timeout(3 * PATIENCE)

SAID = "Name the engineer, not only the year."


async def corrected(database: Database, run: UUID) -> None:
    """A person's correction of a run's report, and the consent to learn from it."""
    await ratings.rate(database, LOCAL_TENANT, run, person="me", claim=None, value=-1, correction=SAID)
    async with database.transaction(LOCAL_TENANT) as connection:
        await views.change_opt_in(connection, LOCAL_TENANT, True)


async def test_rated_runs_are_learned_from_and_what_comes_of_it_is_read_promoted_and_taken_back(
    offing: Offing, home: Path, documents: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser_is_here()
    monkeypatch.setenv("OFFING_PORT", "0")
    try:
        started = await asyncio.to_thread(offing, "up", "--detach")
        link = re.search(r"http://\S+/login\?token=\S+", started.out + started.err)
        assert link, started.err
        asked = await asyncio.to_thread(offing, "ask", "Who built Bell Rock?", "--docs", str(documents), "--json")
        async with database_of(home) as database:
            await corrected(database, UUID(asked.json["run_id"]))
        environment = os.environ | {
            "OFFING_URL": link.group(0).split("/login")[0],
            "OFFING_LOGIN": link.group(0),
            "OFFING_CORRECTED": SAID,
            "OFFING_SHOTS": str(tmp_path),
            "OFFING_CHROMIUM": str(CHROMIUM),
        }
        script = ["node", str(ROOT / "frontend/e2e/learning.mjs")]
        done = await asyncio.to_thread(
            subprocess.run, script, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        await asyncio.to_thread(learned_by_command, offing)
    finally:
        await asyncio.to_thread(offing, "down")


def learned_by_command(offing: Offing) -> None:
    """`offing learn` waits for the worker; with `--detach` it does not."""
    made = offing("learn", "advice", "--engine", "extractive")
    assert made.code == 0, made.err
    assert made.out.strip() == "advice@2"
    assert "1 groups compared, 1 changes" in made.err
    queued = offing("learn", "notes", "--engine", "extractive", "--detach", "--json")
    assert queued.json["state"] == "queued"
    joined = offing("learn", "notes", "--engine", "extractive", "--json")
    assert joined.json["version"]["name"] == "notes"
