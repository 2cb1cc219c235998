"""A worker removes what ended runs no longer need, and threads continue from what it keeps."""

import asyncio
import os
import time
from pathlib import Path
from uuid import UUID

import pytest

from offing.core.run import Budget, RunStatus
from offing.core.step import StepKind
from offing.services.graph_folders import copy_version, load_project
from offing.services.runs import RunRequest
from offing.settings import Settings
from offing_workers.retention import remove_unused_graphs
from tests.workers.conftest import Platform, StartWorker
from tests.workers.rollout_batches import Sql

CHECKPOINTS = "select count(*) from app.checkpoint where run_id = %s"

PATIENCE = 60.0


async def left(sql: Sql, run_id: UUID, expected: int) -> None:
    deadline = time.monotonic() + PATIENCE
    while sql(CHECKPOINTS, run_id) != [(expected,)]:
        assert time.monotonic() < deadline, sql(CHECKPOINTS, run_id)
        await asyncio.sleep(0.1)


@pytest.mark.timeout(300)
async def test_an_ended_run_keeps_its_last_checkpoint_and_its_thread_continues(
    platform: Platform, start_worker: StartWorker, sql: Sql
) -> None:
    start_worker(OFFING_RETENTION_INTERVAL_SECONDS="0.5", OFFING_KEEP_CHECKPOINTS_DAYS="0")
    first = await platform.submit(RunRequest("Count", "counting", budget=Budget(max_turns=5)))
    assert (await platform.ended(first.id, PATIENCE)).status is RunStatus.DONE
    await left(sql, first.id, 1)
    second = await platform.submit(
        RunRequest("Again", "counting", thread_id=first.thread_id, budget=Budget(max_turns=2))
    )
    assert (await platform.ended(second.id, PATIENCE)).status is RunStatus.DONE
    tools = [step.turn for step in await platform.steps(second.id) if step.kind is StepKind.TOOL_RESULT]
    assert tools == [1, 2]
    assert len(await platform.steps(first.id)) > 10
    await left(sql, second.id, 1)
    exit_run = await platform.submit(RunRequest("Exit", "counting", budget=Budget(max_turns=3), durability="exit"))
    assert (await platform.ended(exit_run.id, PATIENCE)).status is RunStatus.DONE
    await left(sql, exit_run.id, 0)


PROJECT = """
[project]
name = "harbor"
[project.entry-points."offing.graphs"]
harbor = "harbor:graph"
"""


def store_version(folder: Path, home: Path, word: str, *, days: float) -> str:
    """The version of a graph in a folder that contains `word`, and a copy of it that is `days` days old."""
    (folder / "harbor").mkdir(parents=True, exist_ok=True)
    (folder / "pyproject.toml").write_text(PROJECT)
    (folder / "harbor/__init__.py").write_text(f"graph = {word!r}\n")
    project = load_project(folder)
    created_at = time.time() - days * 86_400
    os.utime(copy_version(project, home), (created_at, created_at))
    return project.version


async def test_copies_of_graphs_that_no_run_names_go_after_a_day_and_those_on_offer_stay(
    platform: Platform, sql: Sql, tmp_path: Path
) -> None:
    folder, home = tmp_path / "project", tmp_path / "home"
    named, unused, recent, offered = (
        store_version(folder, home, word, days=days) for word, days in (("a", 9), ("b", 2), ("c", 0.5), ("d", 9))
    )
    run = await platform.submit(RunRequest("Count", "counting"))
    sql("update app.run set graph_version = %s, status = 'done', ended_at = now() where id = %s", named, run.id)
    settings = Settings(home=home, graph_paths=str(folder))
    assert await remove_unused_graphs(platform.database, settings) == (unused,)
    assert {copy.name for copy in (home / "graphs").iterdir()} == {named, recent, offered}
    assert await remove_unused_graphs(platform.database, settings) == ()


async def test_no_copy_goes_while_it_is_not_known_what_is_on_offer(platform: Platform, tmp_path: Path) -> None:
    folder, home = tmp_path / "project", tmp_path / "home"
    store_version(folder, home, "a", days=9)
    (folder / "pyproject.toml").write_text("[project")
    assert await remove_unused_graphs(platform.database, Settings(home=home, graph_paths=str(folder))) == ()
    assert len(list((home / "graphs").iterdir())) == 1
