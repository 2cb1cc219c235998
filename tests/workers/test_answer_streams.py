"""Answers of a model through a real worker: drafts for viewers, and requests that end with their run."""

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from offing.bus.live_events import DraftEvent
from offing.core.answer_draft import DraftChange, DraftEnd, DraftPart
from offing.core.run import Budget, CancelMode, RunStatus
from offing.core.step import StepKind
from offing.services.runs import RunRequest, cancel_run
from offing.storage.runs import RunRow
from tests.documents import ingest_folder
from tests.model_provider.replies import Completion, Cut, Slow
from tests.model_provider.server import WireServer, scripted
from tests.workers.conftest import Platform
from tests.workers.test_models import ANALYSIS, COMMAND, PLAN, SUPPORTED_REPORT, TEXT, VERDICT, says, through

LONG = Completion("x" * 9000)
"""A thousand events of a stream."""


async def submit_question(platform: Platform, folder: Path, server: WireServer) -> RunRow:
    (folder / "tower.md").write_text(f"# Eddystone\n\n{TEXT}\n")
    await ingest_folder(platform.database, platform.tenant, folder)
    request = RunRequest("Who built the third tower?", budget=Budget(max_turns=3), engines=through(server))
    return await platform.submit(request)


@asynccontextmanager
async def collect_changes(platform: Platform, run: RunRow) -> AsyncGenerator[list[DraftChange]]:
    """All changes of drafts that a subscriber of the run gets during the block."""
    changes: list[DraftChange] = []

    async def collect() -> None:
        async with platform.notifier.live.subscribe(platform.tenant, [run.id]) as events:
            async for event in events:
                if isinstance(event, DraftEvent):
                    changes.append(event.change)

    collecting = asyncio.create_task(collect())
    try:
        yield changes
    finally:
        collecting.cancel()
        await asyncio.gather(collecting, return_exceptions=True)


async def wait_for_draft(platform: Platform, run: RunRow, seconds: float = 60) -> DraftPart:
    give_up = time.monotonic() + seconds
    while not (drafts := await platform.notifier.live.list_drafts(platform.tenant, run.id)):
        assert time.monotonic() < give_up, "no draft was published"
        await asyncio.sleep(0.02)
    return drafts[0]


async def test_plan_verdict_and_report_are_shown_while_they_are_written_and_a_lost_attempt_is_withdrawn(
    shared_platform: Platform, tmp_path: Path
) -> None:
    replies = (
        says(ANALYSIS),
        Slow(says(PLAN), 0.02, between=True),
        says(COMMAND),
        Cut(says(VERDICT)),
        Slow(says(VERDICT), 0.02, between=True),
        Slow(says(SUPPORTED_REPORT), 0.02, between=True),
    )
    async with WireServer(scripted(*replies)) as server:
        run = await submit_question(shared_platform, tmp_path, server)
        async with collect_changes(shared_platform, run) as changes:
            ended = await shared_platform.ended(run.id)
            await asyncio.sleep(0.3)
        streamed = [body.get("stream") for body in server.bodies]
    assert ended.status is RunStatus.DONE
    assert streamed == [True] * 2 + [None] + [True] * 3  # the executor's command has no reader
    parts = [change for change in changes if isinstance(change, DraftPart)]
    texts: dict[tuple[str, int], str] = {}
    for part in parts:
        key = part.draft.role, part.draft.attempt
        texts[key] = texts.get(key, "")[: part.offset] + part.text
    assert texts["planner", 1].startswith("start\nthird tower\nfind the")
    assert ("verifier", 2) in texts
    assert "Smeaton built" in texts["generator", 1]
    assert {part.draft.role for part in parts if part.draft.is_unverified} == {"generator"}
    assert len(parts) < 60, "the parts are larger than the events of the provider"
    assert await shared_platform.notifier.live.list_drafts(shared_platform.tenant, run.id) == []
    assert isinstance(changes[-1], DraftEnd)
    steps = await shared_platform.steps(run.id)
    plan = next(step for step in steps if step.kind is StepKind.PLAN)
    assert 0 < plan.payload["first_text_ms"] <= (plan.ms or 0)


@pytest.mark.parametrize("streams", [True, False])
async def test_a_cancelled_run_closes_its_request_within_a_second_and_pays_for_what_it_received(
    shared_platform: Platform, tmp_path: Path, streams: bool
) -> None:
    slow = Slow(Completion('{"summary": "' + "word " * 3000), 0.05 if streams else 60, between=streams)
    async with WireServer(scripted(slow)) as server:
        run = await submit_question(shared_platform, tmp_path, server)
        if streams:
            await wait_for_draft(shared_platform, run)
        else:
            await shared_platform.until(run.id, lambda _: bool(server.requests))
        began = asyncio.get_running_loop().time()
        await cancel_run(
            shared_platform.database, shared_platform.notifier, shared_platform.tenant, run.id, CancelMode.DISCARD
        )
        ended = await shared_platform.ended(run.id)
        await asyncio.sleep(0.1)
    assert ended.status is RunStatus.CANCELLED
    assert len(server.hangups) == 1
    print(f"closed {server.hangups[0] - began:.2f} s after the cancellation")
    assert server.hangups[0] - began < 1.0
    assert (ended.usage.tokens > 0) is streams
    assert await shared_platform.notifier.live.list_drafts(shared_platform.tenant, run.id) == []
