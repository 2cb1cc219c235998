"""Plain graphs whose worker is killed in the middle: the same answer, and no call that was recorded is made again."""

import asyncio
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

from offing.core.input_request import InputResponse
from offing.core.run import RunStatus
from offing.core.step import StepKind
from offing.services.input_requests import list_input_requests, submit_response
from offing.storage.runs import RunRow
from tests.workers.conftest import Platform, StartWorker
from tests.workers.langgraph_runs import answer_of, model_calls, prompts, started, turns_of
from tests.workers.langgraph_scripts import GRAPHS, PLAYS, REACT, REMEMBERING, REVIEW, Play, says

QUICK = {
    "OFFING_EXTRA_GRAPHS": GRAPHS,
    "OFFING_LEASE_SECONDS": "1",
    "OFFING_HEARTBEAT_INTERVAL_SECONDS": "0.25",
    "OFFING_SWEEP_INTERVAL_SECONDS": "0.4",
}

SLOW = 60
"""Milliseconds of a model's answer, so that a kill falls into one."""


async def respond_when_waiting(platform: Platform, run_id: UUID) -> RunRow:
    """Say `be warmer`, then `yes`, to whatever is asked, until the run has ended."""
    message = 0
    while not (
        row := await platform.until(run_id, lambda row: row.is_terminal or row.status is RunStatus.WAITING)
    ).is_terminal:
        for one in [
            q.request for q in await list_input_requests(platform.database, platform.tenant, run_id) if q.pending
        ]:
            text, message = ("be warmer", "yes")[min(message, 1)], message + 1
            inputs = InputResponse(text=text)
            await submit_response(
                platform.database, platform.notifier, platform.tenant, run_id, one.seq, inputs, responded_by="somebody"
            )
        await asyncio.sleep(0.02)
    return row


async def killed_after(platform: Platform, runs: Sequence[UUID], calls: int, start: StartWorker) -> None:
    """A worker claims the runs and is killed when this number of their model calls is on record."""
    worker = start(**QUICK)
    async with asyncio.timeout(60):
        while sum([len(model_calls(await platform.steps(run))) for run in runs]) < calls:
            assert not all([(await platform.run(run)).is_terminal for run in runs])
            await asyncio.sleep(0.01)
    worker.kill()


async def test_graphs_of_all_shapes_survive_the_crash_of_their_worker(
    platform: Platform, start_worker: StartWorker
) -> None:
    """The moment is random, and another one for each of them."""
    begun = [
        (play, (await started(platform, play.request(delay_ms=SLOW))).id) for play in (*PLAYS, REMEMBERING, REVIEW)
    ]
    calls = random.randrange(1, sum(play.calls for play, _ in begun) - 2)
    await killed_after(platform, [run for _, run in begun], calls, start_worker)
    start_worker(**QUICK)
    for play, run in begun:
        ended = await respond_when_waiting(platform, run)
        steps, turns = await platform.steps(run), await turns_of(platform, run)
        seen = f"{play.graph}, killed after {calls} calls: {[(s.kind, s.call_key) for s in steps]}"
        assert ended.status is RunStatus.DONE, ended.error
        assert await answer_of(platform, run) == play.answer, seen
        assert len(model_calls(steps)) == play.calls == len(set(prompts(turns))), seen
        assert [s.title for s in steps if s.kind is StepKind.NOTE] == list(play.notes), seen


async def test_a_run_keeps_as_many_checkpoints_as_the_setting_says(
    platform: Platform, start_worker: StartWorker
) -> None:
    start_worker(**QUICK, OFFING_KEEP_RUNNING_CHECKPOINTS="2")
    run = await started(platform, REACT.request())
    await platform.ended(run.id)
    async with platform.database.transaction(platform.tenant) as connection:
        cursor = await connection.execute("select superstep from checkpoint where run_id = %s order by 1", (run.id,))
        assert [superstep for (superstep,) in await cursor.fetchall()] == [4, 5]
    assert await answer_of(platform, run.id) == REACT.answer


async def test_a_journalled_function_in_a_subgraph_is_done_once_and_another_again(
    platform: Platform, start_worker: StartWorker, tmp_path: Path
) -> None:
    noted = tmp_path / "noted"
    lines: dict[str, dict[str, Any]] = {"agent": {"answers": [says("Done.")]}}
    run = await started(platform, Play("plain_keeping", "Work", lines, "Done.", 1).request(delay_ms=1500))
    worker = start_worker(**QUICK, NOTED=str(noted))
    await until_written(noted, 2)
    await streamed(platform, run.id)
    worker.kill()
    start_worker(**QUICK, NOTED=str(noted))
    ended = await platform.ended(run.id)
    (turn,) = await turns_of(platform, run.id)
    assert ended.status is RunStatus.DONE, ended.error
    assert noted.read_text().split() == ["kept", "again", "again"]
    assert turn.messages[-1].parts[-1] == "kept 1"
    assert [s.title for s in await platform.steps(run.id) if s.label == "streams"] == ["working"]


async def until_written(file: Path, lines: int) -> None:
    async with asyncio.timeout(60):
        while not file.exists() or len(file.read_text().splitlines()) < lines:  # noqa: ASYNC110, ASYNC240
            await asyncio.sleep(0.01)


async def streamed(platform: Platform, run_id: UUID) -> None:
    """What the graph's writer was given is on record."""
    async with asyncio.timeout(60):
        while not any(step.label == "streams" for step in await platform.steps(run_id)):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
