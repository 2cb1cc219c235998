"""Runs that wait for a person: nothing is lost, doubled or asked twice, whatever happens meanwhile."""

import asyncio
from datetime import UTC, datetime, timedelta
from time import monotonic
from uuid import UUID

import pytest
import redis

from offing.core.errors import Conflict, InvalidInput
from offing.core.input_request import (
    InputKind,
    InputPrompt,
    InputRequest,
    InputResponse,
    ReviewDecision,
    prompt_to_json,
)
from offing.core.run import Budget, CancelMode, RunStatus, StopReason
from offing.core.step import StepDraft, StepKind
from offing.core.tool_policy import ToolPolicy, ToolRule
from offing.core.usage import UsageDelta
from offing.kernel.wait_conditions import PendingWaits
from offing.services import rollouts, tasks
from offing.services.graphs import open_registry
from offing.services.input_requests import list_input_requests, submit_response
from offing.services.rollouts import BatchRequest
from offing.services.runs import RunRequest, cancel_run, pause_run, resume_run
from offing.storage import claims, input_requests, reports, steps
from offing.storage.input_requests import NewInputRequest
from offing.storage.runs import RunRow
from offing_workers.replay import replay_run
from offing_workers.wait_release import decide_release
from tests.workers.conftest import Platform, StartWorker
from tests.workers.processes import ALL_GRAPHS
from tests.workers.rollout_batches import Collector, a_task


def waits(row: RunRow) -> bool:
    return row.status is RunStatus.WAITING


async def begun(platform: Platform, graph: str, **more: object) -> UUID:
    return (await platform.submit(RunRequest("Ask me", graph=graph, **more))).id  # type: ignore[arg-type]


async def still_open(platform: Platform, run_id: UUID) -> list[InputRequest]:
    return [one.request for one in await list_input_requests(platform.database, platform.tenant, run_id) if one.pending]


async def waiting(platform: Platform, run_id: UUID, prompt: str) -> InputRequest:
    """The open question of these words, once the run waits for it."""
    while True:
        await platform.until(run_id, waits)
        if results := [q for q in await still_open(platform, run_id) if q.input_prompt.prompt == prompt]:
            return results[0]
        await asyncio.sleep(0.02)


async def respond(platform: Platform, run_id: UUID, question: InputRequest, inputs: InputResponse) -> InputRequest:
    number, notifier = question.seq, platform.notifier
    return await submit_response(
        platform.database, notifier, platform.tenant, run_id, number, inputs, responded_by="somebody"
    )


async def answer_all(platform: Platform, run_id: UUID) -> None:
    """Answer everything that the run asks with the first letter of the question, until it has ended."""
    while not (await platform.until(run_id, lambda row: waits(row) or row.is_terminal)).is_terminal:
        for question in await still_open(platform, run_id):
            await respond(platform, run_id, question, InputResponse(text=question.input_prompt.prompt[0]))


async def list_responses(platform: Platform, run_id: UUID) -> list[str]:
    """What the graph made of the answers, once it has ended."""
    assert (await platform.ended(run_id)).status is RunStatus.DONE
    async with platform.database.transaction(platform.tenant) as connection:
        report = await reports.find_latest_report(connection, run_id)
    assert report is not None
    return [sentence.text for sentence in report.sentences()]


async def kinds(platform: Platform, run_id: UUID) -> list[StepKind]:
    return [step.kind for step in await platform.steps(run_id)]


async def test_a_plain_interrupt_becomes_a_question_and_its_answer_is_what_it_returns(
    shared_platform: Platform,
) -> None:
    run = await begun(shared_platform, "plain_ask")
    question = await waiting(shared_platform, run, "Which one?")
    row = await shared_platform.run(run)
    await respond(shared_platform, run, question, InputResponse(text="[1, 2]"))
    assert await list_responses(shared_platform, run) == ["one [1, 2]"]
    assert row.waiting_for == "a person's answer"
    assert question.input_prompt.kind is InputKind.INTERRUPT


async def test_interrupts_of_neighbours_are_answered_in_any_order_and_none_runs_twice(
    shared_platform: Platform,
) -> None:
    run = await begun(shared_platform, "plain_branches")
    await respond(shared_platform, run, await waiting(shared_platform, run, "First?"), InputResponse(text="a"))
    await respond(shared_platform, run, await waiting(shared_platform, run, "Second?"), InputResponse(text="b"))
    await respond(
        shared_platform, run, await waiting(shared_platform, run, "Which one?"), InputResponse(text="plain words")
    )
    assert await list_responses(shared_platform, run) == ["one 'plain words'", "quiet", "two a b"]
    result = await kinds(shared_platform, run)
    assert (result.count(StepKind.INPUT_REQUEST), result.count(StepKind.INPUT_RESPONSE)) == (3, 3)


async def test_a_graph_reviews_asks_and_approves_one_after_the_other(shared_platform: Platform) -> None:
    run = await begun(shared_platform, "asking")
    edited = InputResponse(decision=ReviewDecision.EDITED, steps=("read", "write"))
    await respond(shared_platform, run, await waiting(shared_platform, run, "Find it"), edited)
    await respond(shared_platform, run, await waiting(shared_platform, run, "Which year?"), InputResponse(text="1991"))
    await respond(
        shared_platform,
        run,
        await waiting(shared_platform, run, "Delete the draft?"),
        InputResponse(approved=True, comment="do"),
    )
    assert await list_responses(shared_platform, run) == ["edited read+write 1991 True"]
    messages = [s.title for s in await shared_platform.steps(run) if s.kind is StepKind.INPUT_RESPONSE]
    assert messages == ["edited", "1991", "approved: do"]


async def test_two_branches_ask_at_once_and_the_answered_one_does_not_wait_for_the_other(
    shared_platform: Platform,
) -> None:
    run = await begun(shared_platform, "branching")
    right = await waiting(shared_platform, run, "Right?")
    left = await waiting(shared_platform, run, "Left?")
    await respond(shared_platform, run, right, InputResponse(text="r"))
    await shared_platform.until(run, lambda row: waits(row) and row.last_seq > right.seq)
    assert (await kinds(shared_platform, run)).count(StepKind.INPUT_RESPONSE) == 1
    await respond(shared_platform, run, left, InputResponse(text="l"))
    assert await list_responses(shared_platform, run) == ["left l", "quiet", "right 42 r"]
    result = await kinds(shared_platform, run)
    assert [result.count(kind) for kind in (StepKind.INPUT_REQUEST, StepKind.TOOL_RESULT, StepKind.NOTE)] == [2, 1, 1]


async def test_the_first_answer_stands_and_an_answer_must_fit(shared_platform: Platform) -> None:
    run = await begun(shared_platform, "asking")
    plan = await waiting(shared_platform, run, "Find it")
    with pytest.raises(InvalidInput, match="comment"):
        await respond(shared_platform, run, plan, InputResponse(decision=ReviewDecision.COMMENTED))
    await respond(shared_platform, run, plan, InputResponse())
    with pytest.raises(Conflict, match="already has a response"):
        await respond(shared_platform, run, plan, InputResponse())
    year = await waiting(shared_platform, run, "Which year?")
    with pytest.raises(InvalidInput, match="1990, 1991"):
        await respond(shared_platform, run, year, InputResponse(text="1992"))
    await cancel_run(
        shared_platform.database, shared_platform.notifier, shared_platform.tenant, run, CancelMode.DISCARD
    )


async def test_a_question_that_nobody_answers_in_time_takes_its_default(shared_platform: Platform) -> None:
    run = await begun(shared_platform, "defaulting")
    assert await list_responses(shared_platform, run) == ["briefly_asking nobody"]
    (question,) = [
        one.request for one in await list_input_requests(shared_platform.database, shared_platform.tenant, run)
    ]
    assert (question.responder, question.responded_by) == ("default", "")


async def test_a_waiting_run_is_cancelled_at_once(shared_platform: Platform) -> None:
    run = await begun(shared_platform, "plain_ask")
    question = await waiting(shared_platform, run, "Which one?")
    await cancel_run(
        shared_platform.database, shared_platform.notifier, shared_platform.tenant, run, CancelMode.DISCARD
    )
    assert (await shared_platform.run(run)).status is RunStatus.CANCELLED
    assert await still_open(shared_platform, run) == []
    with pytest.raises(Conflict, match="has ended"):
        await respond(shared_platform, run, question, InputResponse(text="1"))


@pytest.mark.parametrize("graph", ["plain_ask", "asking"])
async def test_a_waiting_run_that_is_asked_to_finish_asks_nobody_any_more(
    shared_platform: Platform, graph: str
) -> None:
    run = await begun(shared_platform, graph)
    await shared_platform.until(run, waits)
    await cancel_run(shared_platform.database, shared_platform.notifier, shared_platform.tenant, run, CancelMode.FINISH)
    ended = await shared_platform.ended(run)
    assert (ended.status, ended.stop_reason) == (RunStatus.DONE, StopReason.FINISH_REQUESTED)


async def test_a_run_that_is_asked_to_finish_takes_the_default_of_what_it_asked(shared_platform: Platform) -> None:
    run = await begun(shared_platform, "deciding")
    await shared_platform.until(run, waits)
    await cancel_run(shared_platform.database, shared_platform.notifier, shared_platform.tenant, run, CancelMode.FINISH)
    assert await list_responses(shared_platform, run) == ["patient approved"]


async def test_a_run_whose_deadline_passes_while_it_waits_ends_with_what_it_has(shared_platform: Platform) -> None:
    run = await begun(shared_platform, "plain_ask", deadline=datetime.now(UTC) + timedelta(seconds=1))
    ended = await shared_platform.ended(run)
    assert (ended.status, ended.stop_reason) == (RunStatus.DONE, StopReason.TIME_LIMIT)


async def test_a_run_that_asks_after_its_deadline_has_passed_waits_no_longer(platform: Platform) -> None:
    run = await waiting_run(platform, deadline=datetime.now(UTC) - timedelta(seconds=1))
    async with platform.database.transaction(platform.tenant) as connection:
        assert (await decide_release(connection, run, WAITS, finish_requested=False)).wait_seconds == 0


async def test_an_answer_to_a_paused_run_is_kept_until_it_is_resumed(shared_platform: Platform) -> None:
    run = await begun(shared_platform, "plain_ask")
    question = await waiting(shared_platform, run, "Which one?")
    await pause_run(shared_platform.database, shared_platform.notifier, shared_platform.tenant, run)
    await respond(shared_platform, run, question, InputResponse(text="7"))
    assert (await shared_platform.run(run)).status is RunStatus.PAUSED
    await resume_run(shared_platform.database, shared_platform.notifier, shared_platform.tenant, run)
    assert await list_responses(shared_platform, run) == ["one 7"]


async def test_a_run_that_is_resumed_without_an_answer_waits_again_for_the_same_question(
    shared_platform: Platform,
) -> None:
    run = await begun(shared_platform, "asking")
    question = await waiting(shared_platform, run, "Find it")
    await pause_run(shared_platform.database, shared_platform.notifier, shared_platform.tenant, run)
    await resume_run(shared_platform.database, shared_platform.notifier, shared_platform.tenant, run)
    again = await waiting(shared_platform, run, "Find it")
    assert again.seq == question.seq
    await cancel_run(
        shared_platform.database, shared_platform.notifier, shared_platform.tenant, run, CancelMode.DISCARD
    )


async def test_nothing_is_worked_while_a_run_waits(shared_platform: Platform) -> None:
    run = await begun(shared_platform, "plain_ask")
    await waiting(shared_platform, run, "Which one?")
    before = (await shared_platform.run(run)).usage.seconds
    async with shared_platform.database.transaction(shared_platform.tenant) as connection:
        await connection.execute("select pg_sleep(0.3)")
    (question,), answered = await still_open(shared_platform, run), monotonic()
    await respond(shared_platform, run, question, InputResponse(text="1"))
    ended = await shared_platform.ended(run)
    assert ended.usage.seconds - before < monotonic() - answered


@pytest.mark.parametrize("graph", ["plain_branches", "branching"])
async def test_at_durability_exit_a_run_waits_and_continues_the_same(shared_platform: Platform, graph: str) -> None:
    run = await begun(shared_platform, graph, durability="exit")
    await answer_all(shared_platform, run)
    expected = {"plain_branches": ["one 'W'", "quiet", "two F S"], "branching": ["left L", "quiet", "right 42 R"]}
    assert await list_responses(shared_platform, run) == expected[graph]


async def test_a_worker_that_is_killed_while_runs_wait_costs_nothing(
    platform: Platform, start_worker: StartWorker, redis_url: str
) -> None:
    """Nor does a Valkey that has lost everything."""
    worker = start_worker()
    both = [await begun(platform, graph) for graph in ("plain_branches", "branching")]
    for run in both:
        await platform.until(run, waits)
        assert len(await still_open(platform, run)) == 2
    worker.kill()
    with redis.Redis.from_url(redis_url) as client:  # pyright: ignore[reportUnknownMemberType]
        client.flushall()  # pyright: ignore[reportUnknownMemberType]
    for run in both:
        await respond(platform, run, (await still_open(platform, run))[0], InputResponse(text="x"))
        assert (await platform.run(run)).status is RunStatus.QUEUED
    start_worker()
    for run, asked_in_all in zip(both, (3, 2), strict=True):
        await answer_all(platform, run)
        assert len(await list_responses(platform, run)) == 3
        assert (await kinds(platform, run)).count(StepKind.INPUT_REQUEST) == asked_in_all


async def test_a_worker_that_is_killed_right_after_the_answer_takes_it_up_once(
    platform: Platform, start_worker: StartWorker
) -> None:
    worker = start_worker()
    run = await begun(platform, "asking")
    plan = await waiting(platform, run, "Find it")
    await respond(platform, run, plan, InputResponse())
    worker.kill()
    start_worker()
    await respond(platform, run, await waiting(platform, run, "Which year?"), InputResponse(text="1990"))
    await respond(platform, run, await waiting(platform, run, "Delete the draft?"), InputResponse())
    assert await list_responses(platform, run) == ["approved look+write 1990 False"]
    assert (await kinds(platform, run)).count(StepKind.INPUT_RESPONSE) == 3


WAITS = PendingWaits(request_numbers=(2,))


async def waiting_run(platform: Platform, **more: object) -> UUID:
    """A run in a worker's hands that has asked its question 2."""
    run = await begun(platform, "asking", **more)
    claim = await claims.claim_run(platform.database, run, "hands", 30)
    assert claim is not None
    async with platform.database.transaction(platform.tenant) as connection:
        prompt = InputPrompt(InputKind.FREE_TEXT, "Which year?")
        draft = StepDraft(StepKind.INPUT_REQUEST, "Which year?", prompt_to_json(prompt))
        (step,) = await steps.append_steps(connection, claim.fence, 30, [draft], UsageDelta())
        await input_requests.insert_input_request(connection, claim.fence, NewInputRequest(step.seq, prompt))
    return run


async def release_status(platform: Platform, run_id: UUID, *, finish_requested: bool = False) -> RunStatus:
    async with platform.database.transaction(platform.tenant) as connection:
        return (await decide_release(connection, run_id, WAITS, finish_requested=finish_requested)).status


async def test_an_answer_that_comes_before_the_wait_is_stored_lets_the_run_continue(platform: Platform) -> None:
    run = await waiting_run(platform)
    before = await release_status(platform, run)
    (question,) = await still_open(platform, run)
    await respond(platform, run, question, InputResponse(text="1990"))
    assert (before, await release_status(platform, run)) == (RunStatus.WAITING, RunStatus.QUEUED)


@pytest.mark.parametrize("mode", list(CancelMode))
async def test_a_control_request_before_the_wait_is_stored_does_not_wait_with_the_run(
    platform: Platform, mode: CancelMode
) -> None:
    run = await waiting_run(platform)
    await cancel_run(platform.database, platform.notifier, platform.tenant, run, mode)
    assert await release_status(platform, run) is RunStatus.QUEUED
    heard_of_it = RunStatus.WAITING if mode is CancelMode.FINISH else RunStatus.QUEUED
    assert await release_status(platform, run, finish_requested=True) is heard_of_it


async def test_a_pause_that_is_asked_for_before_the_wait_is_stored_is_kept(platform: Platform) -> None:
    run = await waiting_run(platform)
    await pause_run(platform.database, platform.notifier, platform.tenant, run)
    assert await release_status(platform, run) is RunStatus.PAUSED


APPROVAL_POLICY = ToolPolicy(
    rules=(ToolRule(tool="calculate", effect="ask", allow_other_args=True, name="sums", reason="They cost."),)
)


async def test_a_rule_that_says_ask_has_a_person_decide_on_each_call(shared_platform: Platform) -> None:
    run = await begun(shared_platform, "using", tool_policy=APPROVAL_POLICY)
    first = await waiting(shared_platform, run, "May the run use calculate?")
    assert first.input_prompt.kind is InputKind.TOOL
    assert all(word in first.input_prompt.detail for word in ('"1 + 1"', "sums", "They cost."))
    await respond(shared_platform, run, first, InputResponse(approved=True))
    await shared_platform.until(run, lambda row: waits(row) and row.last_seq > first.seq + 2)
    second = await waiting(shared_platform, run, "May the run use calculate?")
    await respond(shared_platform, run, second, InputResponse(approved=False, comment="not that one"))
    allowed, denied = await list_responses(shared_platform, run)
    assert '"2 + 2"' in second.input_prompt.detail
    assert denied.startswith("ok 2") or allowed.startswith("ok 2")
    assert any(text.startswith("denied") and "not that one" in text for text in (allowed, denied))
    positions = {
        s.call_key.path for s in await shared_platform.steps(run) if s.kind is StepKind.INPUT_REQUEST and s.call_key
    }
    assert len(positions) == 2, "an approval is good for one call"


@pytest.mark.parametrize("graph", ["asking", "using"])
async def test_a_run_with_answers_is_the_same_again_from_its_record(shared_platform: Platform, graph: str) -> None:
    run = await begun(shared_platform, graph, **({"tool_policy": APPROVAL_POLICY} if graph == "using" else {}))
    while not (await shared_platform.until(run, lambda row: waits(row) or row.is_terminal)).is_terminal:
        for question in await still_open(shared_platform, run):
            await respond(shared_platform, run, question, InputResponse(text="1990", approved=True))
    again = await replay_run(shared_platform.database, shared_platform.tenant, run, open_registry(ALL_GRAPHS))
    assert again.is_same, again.detail
    assert again.replayed_calls == again.recorded_calls


async def test_a_graph_that_interrupted_itself_is_replayed_with_the_answers_that_it_got(
    shared_platform: Platform,
) -> None:
    run = await begun(shared_platform, "plain_ask")
    await answer_all(shared_platform, run)
    again = await replay_run(shared_platform.database, shared_platform.tenant, run, open_registry(ALL_GRAPHS))
    assert again.is_same, again.detail


@pytest.mark.parametrize("durability", ["exit", "sync"])
async def test_a_rollout_waits_for_nobody(
    collector: Collector, platform: Platform, start_worker: StartWorker, durability: str
) -> None:
    """With a default it continues; without one it fails and says why."""
    collector.notifier.dispatch_runs = platform.notifier.dispatch_runs
    ids = (await tasks.store_tasks(collector.database, collector.tenant, "test", [a_task("Ask?")])).task_ids
    every = open_registry(ALL_GRAPHS)
    for graph in ("deciding", "asking", "plain_ask"):
        request = BatchRequest(graph, ids, 1, {}, None, budget=Budget(max_turns=2), durability=durability)
        await rollouts.create_batch(collector.database, collector.notifier, collector.tenant, request, graphs=every)
    members = await collector.members()  # before a failed one gets its next attempt
    start_worker(OFFING_SWEEP_INTERVAL_SECONDS="0.3")
    ended = [await platform.ended(member.run_id) for member in members]
    with_default = {row.graph: row for row in ended}.pop("deciding")
    assert await list_responses(platform, with_default.id) == ["patient approved"]
    failed = [row for row in ended if row.graph != "deciding"]
    assert [row.status for row in failed] == [RunStatus.FAILED] * 2
    assert all("rollout has no person to ask" in (row.error or "") for row in failed)
    assert [await list_input_requests(platform.database, platform.tenant, row.id) for row in ended] == [[], [], []]
