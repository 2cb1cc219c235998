"""Rated runs are distilled into a prompt library in a browser and on the command line, by the worker of the stack."""

import asyncio
import os
import re
import subprocess
from pathlib import Path
from uuid import UUID

import pytest

from offing.services import ratings
from offing.storage import tenants
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Database
from tests.e2e.conftest import PATIENCE, Offing
from tests.e2e.test_web_ui import CHROMIUM, ROOT, browser_is_here
from tests.e2e.training_job import database_of

pytestmark = pytest.mark.timeout(3 * PATIENCE)

CORRECTION = "Name the engineer, not only the year."


async def corrected(database: Database, run_id: UUID) -> None:
    """Correct the report of a run, and opt in to training."""
    await ratings.rate_report(
        database, LOCAL_TENANT, run_id, person="me", sentence_id=None, value=-1, correction=CORRECTION
    )
    async with database.transaction(LOCAL_TENANT) as connection:
        await tenants.set_training_opt_in(connection, LOCAL_TENANT, True)


async def test_rated_runs_are_distilled_and_the_candidate_is_read_promoted_and_rolled_back(
    offing: Offing, home: Path, documents: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser_is_here()
    monkeypatch.setenv("OFFING_PORT", "0")
    try:
        started = await asyncio.to_thread(offing, "up", "--detach")
        link = re.search(r"http://\S+/login\?token=\S+", started.out + started.err)
        assert link, started.err
        submitted = await asyncio.to_thread(offing, "ask", "Who built Bell Rock?", "--docs", str(documents), "--json")
        async with database_of(home) as database:
            await corrected(database, UUID(submitted.json["run_id"]))
        environment = os.environ | {
            "OFFING_URL": link.group(0).split("/login")[0],
            "OFFING_LOGIN": link.group(0),
            "OFFING_CORRECTED": CORRECTION,
            "OFFING_SHOTS": str(tmp_path),
            "OFFING_CHROMIUM": str(CHROMIUM),
        }
        script = ["node", str(ROOT / "frontend/e2e/distillation.mjs")]
        done = await asyncio.to_thread(
            subprocess.run, script, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        await asyncio.to_thread(distill_on_the_command_line, offing)
    finally:
        await asyncio.to_thread(offing, "down")


def distill_on_the_command_line(offing: Offing) -> None:
    """`offing distill` waits for the worker; with `--detach` it does not."""
    created = offing("distill", "advice", "--engine", "extractive")
    assert created.code == 0, created.err
    assert created.out.strip() == "advice@2"
    assert "1 groups compared, 1 changes" in created.err
    queued = offing("distill", "notes", "--engine", "extractive", "--detach", "--json")
    assert queued.json["state"] == "queued"
    joined = offing("distill", "notes", "--engine", "extractive", "--json")
    assert joined.json["version"]["name"] == "notes"
