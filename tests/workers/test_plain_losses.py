"""Plain graphs whose worker is killed in the middle: the same answer, and no call that was recorded is made again."""

import asyncio
import random
from collections.abc import Sequence
from uuid import UUID

from offing.core.question import Answer
from offing.core.run import RunStatus
from offing.core.step import StepKind
from offing.services.questions import answer, asked
from offing.storage.runs import RunRow
from tests.workers.conftest import Platform, StartWorker
from tests.workers.plain_runs import answer_of, model_calls, prompts, started, turns_of
from tests.workers.plain_scripts import GRAPHS, PLAYS, REVIEW

QUICK = {
    "OFFING_GRAPHS": GRAPHS,
    "OFFING_LEASE_SECONDS": "1",
    "OFFING_HEARTBEAT_SECONDS": "0.25",
    "OFFING_SWEEP_SECONDS": "0.4",
}

SLOW = 60
"""Milliseconds of a model's answer, so that a kill falls into one."""


async def answered_when_asked(platform: Platform, run: UUID) -> RunRow:
    """Say `be warmer`, then `yes`, to whatever is asked, until the run has ended."""
    said = 0
    while not (row := await platform.until(run, lambda row: row.terminal or row.status is RunStatus.WAITING)).terminal:
        for one in [q.question for q in await asked(platform.database, platform.tenant, run) if q.open]:
            text, said = ("be warmer", "yes")[min(said, 1)], said + 1
            given = Answer(text=text)
            await answer(platform.database, platform.hints, platform.tenant, run, one.number, given, by="somebody")
        await asyncio.sleep(0.02)
    return row


async def killed_after(platform: Platform, runs: Sequence[UUID], calls: int, start: StartWorker) -> None:
    """A worker takes the runs and is killed once so many model calls of theirs are on record."""
    worker = start(**QUICK)
    async with asyncio.timeout(60):
        while sum([len(model_calls(await platform.steps(run))) for run in runs]) < calls:
            assert not all([(await platform.run(run)).terminal for run in runs])
            await asyncio.sleep(0.01)
    worker.kill()


async def test_graphs_of_all_shapes_survive_the_loss_of_their_worker(
    platform: Platform, start_worker: StartWorker
) -> None:
    """The moment is random, and another one for each of them."""
    begun = [(play, (await started(platform, play.request(delay_ms=SLOW))).id) for play in (*PLAYS, REVIEW)]
    calls = random.randrange(1, sum(play.calls for play, _ in begun) - 2)
    await killed_after(platform, [run for _, run in begun], calls, start_worker)
    start_worker(**QUICK)
    for play, run in begun:
        ended = await answered_when_asked(platform, run)
        steps, turns = await platform.steps(run), await turns_of(platform, run)
        seen = f"{play.graph}, killed after {calls} calls: {[(s.kind, s.key) for s in steps]}"
        assert ended.status is RunStatus.DONE, ended.error
        assert await answer_of(platform, run) == play.answer, seen
        assert len(model_calls(steps)) == play.calls == len(set(prompts(turns))), seen
        assert [s.title for s in steps if s.kind is StepKind.NOTE] == list(play.notes), seen
