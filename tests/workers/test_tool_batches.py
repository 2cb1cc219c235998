"""Tool calls that a node makes at the same time, through real workers: recorded each, in one order, never repeated."""

import asyncio
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from offing.core.input_request import InputResponse
from offing.core.run import CancelMode, RunStatus
from offing.core.step import Step, StepKind
from offing.core.tool_policy import ToolPolicy, ToolRule
from offing.services.graphs import open_registry
from offing.services.input_requests import list_input_requests, submit_response
from offing.services.runs import RunRequest, cancel_run, submit_run
from offing.storage import reports
from offing.storage.runs import RunRow
from offing_workers.replay import replay_run
from tests.workers import batch_graph
from tests.workers.batch_graph import question_for
from tests.workers.conftest import Platform

FOLDER = Path(tempfile.mkdtemp(prefix="offing-batches-"))
ENVIRONMENT = {"OFFING_EXTRA_GRAPHS": batch_graph.GRAPHS, batch_graph.FOLDER: str(FOLDER)}
REGISTRY = open_registry(batch_graph.GRAPHS)


def rule(tool: str, effect: str = "allow", **more: Any) -> ToolRule:
    return ToolRule.model_validate(
        {"tool": tool, "effect": effect, "allow_other_args": True, "reason": "It writes to a test file.", **more}
    )


FREE = ToolPolicy(rules=(rule("look"), rule("send")))


async def submit(platform: Platform, question: str, policy: ToolPolicy = FREE, **more: Any) -> RunRow:
    request = RunRequest(question, "batching", tool_policy=policy, **more)
    return (await submit_run(platform.database, platform.notifier, platform.tenant, request, graphs=REGISTRY)).run


def let_end(log: str, *numbers: int) -> None:
    for number in numbers:
        (FOLDER / f"{log}.{number}.go").touch()


def started(log: str) -> list[int]:
    path = FOLDER / log
    return [int(line) for line in path.read_text().split()] if path.exists() else []


async def begun(log: str, count: int) -> None:
    """Wait until that many calls have begun."""
    async with asyncio.timeout(60):
        while len(started(log)) < count:  # noqa: ASYNC110  a worker writes it
            await asyncio.sleep(0.02)


async def results(platform: Platform, run: RunRow) -> list[Step]:
    return [step for step in await platform.steps(run.id) if step.kind is StepKind.TOOL_RESULT]


async def recorded(platform: Platform, run: RunRow, count: int) -> None:
    """Wait until that many results are recorded."""
    async with asyncio.timeout(60):
        while len(await results(platform, run)) < count:  # noqa: ASYNC110  a worker writes it
            await asyncio.sleep(0.02)


async def outcome_of(platform: Platform, run: RunRow) -> str:
    """What the run's own report says of the results, in the order in which its node got them."""
    async with platform.database.transaction(platform.tenant) as connection:
        report = await reports.find_latest_report(connection, run.id)
    assert report is not None
    return report.sentences()[0].text


def numbers(steps: Sequence[Step]) -> list[int]:
    return [step.payload["args"]["n"] for step in steps]


async def test_calls_run_side_by_side_and_results_keep_their_order_whatever_ends_first(
    shared_platform: Platform,
) -> None:
    run = await submit(shared_platform, question_for("side", "look:waits", "look:waits", "look"))
    await begun("side", 3)
    await recorded(shared_platform, run, 1)
    let_end("side", 2)
    await recorded(shared_platform, run, 2)
    let_end("side", 1)
    ended = await shared_platform.ended(run.id)
    steps = await results(shared_platform, run)
    assert ended.status is RunStatus.DONE
    assert numbers(steps) == [3, 2, 1]
    assert [step.payload["batch"]["number"] for step in steps] == [3, 2, 1]
    assert len({step.call_key for step in steps}) == 3
    assert "call 3 of 3 at once" in steps[0].detail
    assert await outcome_of(shared_platform, run) == "1 ok, 2 ok, 3 ok"
    replayed = await replay_run(shared_platform.database, shared_platform.tenant, run.id, REGISTRY)
    assert replayed.is_same, replayed.detail


async def test_a_single_call_is_recorded_as_it_always_was(shared_platform: Platform) -> None:
    run = await submit(shared_platform, question_for("single", "look"))
    await shared_platform.ended(run.id)
    (step,) = await results(shared_platform, run)
    assert "batch" not in step.payload
    assert "at once" not in step.detail


async def test_a_failing_or_denied_call_does_not_lose_the_others(shared_platform: Platform) -> None:
    policy = ToolPolicy(rules=(rule("look"), ToolRule(tool="send", effect="forbid")))
    run = await submit(shared_platform, question_for("fails", "look:fails", "send", "look"), policy)
    ended = await shared_platform.ended(run.id)
    steps = sorted(await results(shared_platform, run), key=lambda step: step.payload["batch"]["number"])
    assert ended.status is RunStatus.DONE
    assert [step.payload["status"] for step in steps] == ["failed", "denied", "ok"]
    assert await outcome_of(shared_platform, run) == "- failed, - denied, 3 ok"


async def test_a_limit_on_calls_holds_within_a_batch_for_the_first_ones(shared_platform: Platform) -> None:
    policy = ToolPolicy(rules=(rule("look", max_calls=2),))
    run = await submit(shared_platform, question_for("limit", "look", "look", "look", "look"), policy)
    await shared_platform.ended(run.id)
    steps = sorted(await results(shared_platform, run), key=lambda step: step.payload["batch"]["number"])
    assert [step.payload["status"] for step in steps] == ["ok", "ok", "denied", "denied"]


async def test_each_call_that_needs_it_is_approved_while_the_others_are_made_once(shared_platform: Platform) -> None:
    policy = ToolPolicy(rules=(rule("look"), rule("send", "ask")))
    run = await submit(shared_platform, question_for("asks", "send", "look", "send"), policy)
    await shared_platform.until(run.id, lambda row: row.status is RunStatus.WAITING)
    assert started("asks") == [2]
    requests = [
        one.request for one in await list_input_requests(shared_platform.database, shared_platform.tenant, run.id)
    ]
    assert len(requests) == 2
    for request, is_approved in zip(requests, (True, False), strict=True):
        await submit_response(
            shared_platform.database,
            shared_platform.notifier,
            shared_platform.tenant,
            run.id,
            request.seq,
            InputResponse(approved=is_approved),
            responded_by="somebody",
        )
    ended = await shared_platform.ended(run.id)
    steps = sorted(await results(shared_platform, run), key=lambda step: step.payload["batch"]["number"])
    assert ended.status is RunStatus.DONE, ended.error
    assert [step.payload["status"] for step in steps] == ["ok", "ok", "denied"]
    assert started("asks") == [2, 1]
    assert await outcome_of(shared_platform, run) == "1 ok, 2 ok, - denied"
    assert (await replay_run(shared_platform.database, shared_platform.tenant, run.id, REGISTRY)).is_same


async def test_a_cancelled_run_ends_during_a_batch_and_keeps_what_is_recorded(shared_platform: Platform) -> None:
    run = await submit(shared_platform, question_for("cancel", "look:waits", "look"))
    await recorded(shared_platform, run, 1)
    await cancel_run(
        shared_platform.database, shared_platform.notifier, shared_platform.tenant, run.id, CancelMode.DISCARD
    )
    assert (await shared_platform.ended(run.id)).status is RunStatus.CANCELLED
    assert numbers(await results(shared_platform, run)) == [2]


async def test_a_run_that_writes_at_its_end_records_a_batch_in_the_order_of_its_calls(
    shared_platform: Platform,
) -> None:
    question = question_for("exit", "look:waits", "look:waits", "look")
    run = await submit(shared_platform, question, durability="exit")
    await begun("exit", 3)
    let_end("exit", 2)
    await asyncio.sleep(0.2)
    let_end("exit", 1)
    await shared_platform.ended(run.id)
    assert numbers(await results(shared_platform, run)) == [1, 2, 3]
    assert await outcome_of(shared_platform, run) == "1 ok, 2 ok, 3 ok"
