"""Graphs that are written for LangGraph alone, on real workers: what they come to, and that losing one changes nothing."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from uuid import UUID

import pytest

from offing.core.run import RunStatus, StopReason
from offing.core.step import Step, StepKind
from offing.services.graphs import installed
from offing.services.runs import RunRequest, submit
from offing.storage import reports
from offing.storage.runs import RunRow
from tests.workers.conftest import Platform, Standing
from tests.workers.plain_scripts import GRAPHS, PLAYS, Play

STANDING = {"OFFING_GRAPHS": GRAPHS}


async def started(platform: Platform, request: RunRequest) -> RunRow:
    submitted = await submit(platform.database, platform.hints, platform.tenant, request, graphs=installed(GRAPHS))
    return submitted.run


async def answer_of(platform: Platform, run: UUID) -> str:
    async with platform.database.transaction(platform.tenant) as connection:
        report = await reports.latest(connection, run)
    assert report is not None
    return report.answer.text if report.answer else ""


def model_calls(steps: list[Step]) -> list[Step]:
    return [step for step in steps if step.kind is StepKind.TURN]


@pytest.mark.parametrize("play", PLAYS, ids=lambda play: play.graph)
async def test_a_graph_runs_as_it_was_written(play: Play, platform: Platform, start_worker) -> None:
    start_worker(**STANDING)
    run = await started(platform, play.request())
    ended = await platform.ended(run.id)
    steps = await platform.steps(run.id)
    assert (ended.status, ended.stop_reason) == (RunStatus.DONE, StopReason.ANSWERED), ended.error
    assert await answer_of(platform, run.id) == play.answer
    assert len(model_calls(steps)) == play.calls
