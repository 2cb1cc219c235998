"""Durability `exit`: one transaction per slice, the same record as `sync`, and a lost slice is repeated as a whole."""

import asyncio
from dataclasses import replace
from typing import Any

from offing.core.model import EngineConfig
from offing.core.run import Budget, RunStatus
from offing.core.step import Step, StepKind
from offing.services.runs import RunRequest
from tests.workers.conftest import Platform, StartWorker


def counted(turns: int, durability: str, *, delay_ms: int = 0, **options: Any) -> RunRequest:
    script = {"answers": [{"word": "w{turn} {nonce}"}], "delay_ms": delay_ms, **options}
    engines = {"speaker": EngineConfig(engine="scripted", options=script)}
    request = RunRequest("Count", "counting", budget=Budget(max_turns=turns), engines=engines, seed=5)
    return replace(request, durability=durability)


def describe_steps(steps: list[Step]) -> list[tuple[Any, ...]]:
    """What a step says, without times and without ids of citations."""
    return [(s.seq, s.kind, s.title, s.turn, s.call_key, s.ok, s.payload) for s in steps]


async def test_the_record_is_the_same_in_both_durabilities(platform: Platform, start_worker: StartWorker) -> None:
    start_worker()
    runs = [await platform.submit(counted(7, d)) for d in ("sync", "exit")]
    ended = [await platform.ended(r.id) for r in runs]
    one, other = [describe_steps(await platform.steps(r.id)) for r in runs]
    assert {row.status for row in ended} == {RunStatus.DONE}
    assert [step[1:] for step in one] == [step[1:] for step in other]
    assert [row.usage.turns for row in ended] == [7, 7]


async def test_nothing_is_written_before_the_slice_ends(platform: Platform, start_worker: StartWorker) -> None:
    start_worker()
    run = await platform.submit(counted(10, "exit", delay_ms=150))
    steps = await platform.steps(run.id)
    while not (await platform.run(run.id)).is_terminal:  # asked after the steps, which are those of a run under way
        assert [s.kind for s in steps] == [StepKind.QUEUED]
        await asyncio.sleep(0.05)
        steps = await platform.steps(run.id)
    assert len(await platform.steps(run.id)) > 30


async def test_a_lost_slice_is_done_again_whole_with_the_same_result(
    platform: Platform, start_worker: StartWorker
) -> None:
    first = start_worker()
    run, calm = [await platform.submit(counted(10, "exit", delay_ms=500)) for _ in range(2)]
    await platform.running(run.id)
    await asyncio.sleep(0.8)
    first.kill()
    start_worker()
    ended = await platform.ended(run.id)
    await platform.ended(calm.id)
    words = [[s.title for s in await platform.steps(r.id) if s.kind is StepKind.PLAN] for r in (run, calm)]
    assert (ended.status, ended.fence) == (RunStatus.DONE, 2)
    assert words[0] == words[1]
    assert len(words[0]) == 10


async def test_a_run_of_several_slices_continues_where_each_ended(
    platform: Platform, start_worker: StartWorker
) -> None:
    start_worker(OFFING_SLICE_MAX_TURNS="3")
    run = await platform.submit(counted(10, "exit"))
    ended = await platform.ended(run.id)
    steps = await platform.steps(run.id)
    assert (ended.status, ended.fence) == (RunStatus.DONE, 4)
    assert [s.turn for s in steps if s.kind is StepKind.PLAN] == list(range(1, 11))
    assert [s.seq for s in steps] == list(range(1, len(steps) + 1))
    assert [s.payload["sentences"] for s in steps if s.kind is StepKind.REPORT] == [10]
