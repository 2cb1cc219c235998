"""The web UI in a browser over stored rows: opening a long run, scrolling, catching up, and lists with 10,000 runs.

It uses a stack of its own. The rows are inserted by the functions of the storage and by SQL, because writing them is
measured elsewhere. Times begin with the navigation and end with the first frame that shows the content, with the files
of the page in the cache of the browser.
"""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from uuid import UUID

from offing.clock import new_id
from offing.core.run import RunStatus, StopReason
from offing.core.step import StepDraft, StepKind
from offing.storage import runs, steps, threads
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Database
from tests.bench.measurement import Aim, Measurement
from tests.e2e.training_job import database_of
from tests.storage.builders import a_run

FRONTEND = Path(__file__).parents[2] / "frontend"

TURNS = 2048

MISSED = 5000
"""Steps that are appended while the page has no connection."""

RUNS = 10_000

BATCH = 512

KINDS = (StepKind.PLAN, StepKind.TOOL_CALL, StepKind.MEMORY, StepKind.VERIFICATION)
"""The steps of a turn."""

INSERT_THREADS = """
    insert into thread (id, tenant_id, title)
      select gen_random_uuid(), %(tenant)s, 'Question ' || n from generate_series(1, %(count)s) n
"""

INSERT_RUNS = """
    insert into run (id, tenant_id, thread_id, graph, graph_version, question, engines, tool_policy,
                     tool_policy_sha256, budget, status, stop_reason, ended_at)
      select gen_random_uuid(), tenant_id, id, 'agentflow', '1', title || ' on lighthouses', '{}', '{}', '',
             '{"turns": 3}', 'done', 'answered', clock_timestamp() from thread where title like 'Question %%'
"""


def web_ui_speed() -> list[Measurement]:
    """Start a stack, fill it and measure in a browser."""
    with tempfile.TemporaryDirectory(prefix="offing-bench-", ignore_cleanup_errors=True) as folder:
        environment = os.environ | {"OFFING_HOME": folder, "OFFING_PORT": "0"}

        def offing(*words: str) -> str:
            command = [sys.executable, "-m", "offing.cli", *words]
            return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout

        try:
            offing("up", "--detach")
            link = next(word for word in offing("login").split() if "/login?token=" in word)
            return _measurements(asyncio.run(_measure(Path(folder), link)))
        finally:
            offing("down")


async def _measure(home: Path, link: str) -> Mapping[str, Any]:
    async with database_of(home) as database:
        long = await _insert_run(database, TURNS * len(KINDS), RunStatus.DONE)
        live = await _insert_run(database, len(KINDS), RunStatus.PAUSED)
        await _insert_list(database)
        known = {"long": str(long), "live": str(live), "steps": TURNS * len(KINDS)}
        environment = os.environ | {
            "OFFING_URL": link.split("/login")[0],
            "OFFING_LOGIN": link,
            "OFFING_RUNS": json.dumps(known),
        }
        browser = await asyncio.create_subprocess_exec(
            "node",
            "e2e/speed.mjs",
            cwd=FRONTEND,
            env=environment,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        assert browser.stdin
        assert browser.stdout
        assert json.loads(await browser.stdout.readline()) == "lost"
        await _append(database, live, MISSED)
        browser.stdin.write(f"{1 + len(KINDS) + MISSED}\n".encode())
        figures = json.loads(await browser.stdout.readline())
        assert await browser.wait() == 0
        return figures


async def _insert_run(database: Database, step_count: int, status: RunStatus) -> UUID:
    """Store a run with these steps after its first one."""
    new = a_run(id=new_id(), question=f"A run of {step_count} steps")
    async with database.transaction(LOCAL_TENANT) as connection:
        await threads.insert_thread(connection, LOCAL_TENANT, new.thread_id, new.question)
        await runs.insert_run(connection, LOCAL_TENANT, new)
        await steps.append_external(connection, new.id, [StepDraft(StepKind.QUEUED, new.question)])
        reason = StopReason.ANSWERED if status is RunStatus.DONE else None
        await runs.set_run_status(connection, new.id, status, reason)
    await _append(database, new.id, step_count)
    return new.id


async def _append(database: Database, run: UUID, count: int) -> None:
    drafts = [
        StepDraft(
            KINDS[nth % len(KINDS)],
            f"Step {nth} of a run that reads about lighthouses",
            {"text": "What was found. " * 20},
            detail="A second line of the timeline",
            ms=120,
            tokens=40,
            turn=1 + nth // len(KINDS),
        )
        for nth in range(count)
    ]
    for at in range(0, count, BATCH):
        async with database.transaction(LOCAL_TENANT) as connection:
            await steps.append_external(connection, run, drafts[at : at + BATCH])


async def _insert_list(database: Database) -> None:
    async with database.transaction(LOCAL_TENANT) as connection:
        await connection.execute(INSERT_THREADS, {"tenant": LOCAL_TENANT, "count": RUNS})
        await connection.execute(INSERT_RUNS, {})


def _measurements(figures: Mapping[str, Any]) -> list[Measurement]:
    def below(seconds: float) -> Aim:
        return Aim(f"under {seconds:g} s", at_most=seconds)

    nodes = max(figures["open"]["nodes"], figures["scroll"]["nodes"])
    frame = Aim("under 20 ms", at_most=0.02)
    bare = (figures["scroll"]["bare"],)
    return [
        Measurement(f"opening a stored run of {TURNS:,} turns", (figures["open"]["seconds"],), "ms", aim=below(1)),
        Measurement("elements of the page of this run", (nodes,), "count", aim=Aim("under 3,000", at_most=3000)),
        Measurement(
            "a frame while its timeline scrolls, 95th percentile",
            (figures["scroll"]["ours"],),
            "ms",
            bare,
            bare_what="a plain list of as many rows",
            aim=frame,
        ),
        Measurement(f"catching up with {MISSED:,} missed steps", (figures["catchUp"],), "ms", aim=below(1)),
        Measurement(f"opening the home page with {RUNS:,} runs", (figures["home"]["seconds"],), "ms", aim=below(0.5)),
        Measurement(f"opening the list of {RUNS:,} runs", (figures["runs"]["seconds"],), "ms", aim=below(0.5)),
    ]
