"""Runs that wait for a person: nothing is lost, doubled or asked twice, whatever happens meanwhile."""

import asyncio
from datetime import UTC, datetime, timedelta
from time import monotonic
from uuid import UUID

import pytest
import redis

from offing.core.errors import Conflict, InvalidInput
from offing.core.policy import Policy, Rule
from offing.core.question import Answer, Asking, Question, QuestionKind, Verdict, asking_json
from offing.core.run import Budget, CancelMode, RunStatus, StopReason
from offing.core.step import StepDraft, StepKind
from offing.core.usage import UsageDelta
from offing.kernel.wait_conditions import Awaited
from offing.services import rollouts, tasks
from offing.services.graphs import installed
from offing.services.questions import answer, asked
from offing.services.rollouts import BatchRequest
from offing.services.runs import RunRequest, cancel, pause, resume
from offing.storage import questions, reports, runs, steps
from offing.storage.questions import NewQuestion
from offing.storage.runs import RunRow
from offing_workers.replay import replayed
from offing_workers.waiting import release
from tests.workers.collecting import Collector, a_task
from tests.workers.conftest import Platform, StartWorker
from tests.workers.processes import ALL_GRAPHS


def waits(row: RunRow) -> bool:
    return row.status is RunStatus.WAITING


async def begun(platform: Platform, graph: str, **more: object) -> UUID:
    return (await platform.submit(RunRequest("Ask me", graph=graph, **more))).id  # type: ignore[arg-type]


async def still_open(platform: Platform, run: UUID) -> list[Question]:
    return [one.question for one in await asked(platform.database, platform.tenant, run) if one.open]


async def waiting(platform: Platform, run: UUID, prompt: str) -> Question:
    """The open question of these words, once the run waits for it."""
    while True:
        await platform.until(run, waits)
        if found := [q for q in await still_open(platform, run) if q.asking.prompt == prompt]:
            return found[0]
        await asyncio.sleep(0.02)


async def say(platform: Platform, run: UUID, question: Question, given: Answer) -> Question:
    number, hints = question.number, platform.hints
    return await answer(platform.database, hints, platform.tenant, run, number, given, by="somebody")


async def answer_all(platform: Platform, run: UUID) -> None:
    """Answer everything that the run asks with the first letter of the question, until it has ended."""
    while not (await platform.until(run, lambda row: waits(row) or row.terminal)).terminal:
        for question in await still_open(platform, run):
            await say(platform, run, question, Answer(text=question.asking.prompt[0]))


async def heard(platform: Platform, run: UUID) -> list[str]:
    """What the graph made of the answers, once it has ended."""
    assert (await platform.ended(run)).status is RunStatus.DONE
    async with platform.database.transaction(platform.tenant) as connection:
        report = await reports.latest(connection, run)
    assert report is not None
    return [sentence.text for sentence in report.sentences()]


async def kinds(platform: Platform, run: UUID) -> list[StepKind]:
    return [step.kind for step in await platform.steps(run)]


async def test_a_plain_interrupt_becomes_a_question_and_its_answer_is_what_it_returns(standing: Platform) -> None:
    run = await begun(standing, "plain_ask")
    question = await waiting(standing, run, "Which one?")
    row = await standing.run(run)
    await say(standing, run, question, Answer(text="[1, 2]"))
    assert await heard(standing, run) == ["one [1, 2]"]
    assert row.waiting_for == "a person's answer"
    assert question.asking.kind is QuestionKind.INTERRUPT


async def test_interrupts_of_neighbours_are_answered_in_any_order_and_none_runs_twice(standing: Platform) -> None:
    run = await begun(standing, "plain_branches")
    await say(standing, run, await waiting(standing, run, "First?"), Answer(text="a"))
    await say(standing, run, await waiting(standing, run, "Second?"), Answer(text="b"))
    await say(standing, run, await waiting(standing, run, "Which one?"), Answer(text="plain words"))
    assert await heard(standing, run) == ["one 'plain words'", "quiet", "two a b"]
    found = await kinds(standing, run)
    assert (found.count(StepKind.QUESTION), found.count(StepKind.ANSWER)) == (3, 3)


async def test_a_graph_reviews_asks_and_approves_one_after_the_other(standing: Platform) -> None:
    run = await begun(standing, "asking")
    edited = Answer(verdict=Verdict.EDITED, steps=("read", "write"))
    await say(standing, run, await waiting(standing, run, "Find it"), edited)
    await say(standing, run, await waiting(standing, run, "Which year?"), Answer(text="1991"))
    await say(standing, run, await waiting(standing, run, "Delete the draft?"), Answer(approved=True, comment="do"))
    assert await heard(standing, run) == ["edited read+write 1991 True"]
    told = [s.title for s in await standing.steps(run) if s.kind is StepKind.ANSWER]
    assert told == ["edited", "1991", "approved: do"]


async def test_two_branches_ask_at_once_and_the_answered_one_does_not_wait_for_the_other(standing: Platform) -> None:
    run = await begun(standing, "branching")
    right = await waiting(standing, run, "Right?")
    left = await waiting(standing, run, "Left?")
    await say(standing, run, right, Answer(text="r"))
    await standing.until(run, lambda row: waits(row) and row.last_seq > right.number)
    assert (await kinds(standing, run)).count(StepKind.ANSWER) == 1
    await say(standing, run, left, Answer(text="l"))
    assert await heard(standing, run) == ["left l", "quiet", "right 42 r"]
    found = await kinds(standing, run)
    assert [found.count(kind) for kind in (StepKind.QUESTION, StepKind.TOOL, StepKind.NOTE)] == [2, 1, 1]


async def test_the_first_answer_stands_and_an_answer_must_fit(standing: Platform) -> None:
    run = await begun(standing, "asking")
    plan = await waiting(standing, run, "Find it")
    with pytest.raises(InvalidInput, match="comment"):
        await say(standing, run, plan, Answer(verdict=Verdict.COMMENTED))
    await say(standing, run, plan, Answer())
    with pytest.raises(Conflict, match="has been answered"):
        await say(standing, run, plan, Answer())
    year = await waiting(standing, run, "Which year?")
    with pytest.raises(InvalidInput, match="1990, 1991"):
        await say(standing, run, year, Answer(text="1992"))
    await cancel(standing.database, standing.hints, standing.tenant, run, CancelMode.DISCARD)


async def test_a_question_that_nobody_answers_in_time_takes_its_default(standing: Platform) -> None:
    run = await begun(standing, "defaulting")
    assert await heard(standing, run) == ["hurried nobody"]
    (question,) = [one.question for one in await asked(standing.database, standing.tenant, run)]
    assert (question.answerer, question.answered_by) == ("default", "")


async def test_a_waiting_run_is_cancelled_at_once(standing: Platform) -> None:
    run = await begun(standing, "plain_ask")
    question = await waiting(standing, run, "Which one?")
    await cancel(standing.database, standing.hints, standing.tenant, run, CancelMode.DISCARD)
    assert (await standing.run(run)).status is RunStatus.CANCELLED
    assert await still_open(standing, run) == []
    with pytest.raises(Conflict, match="has ended"):
        await say(standing, run, question, Answer(text="1"))


@pytest.mark.parametrize("graph", ["plain_ask", "asking"])
async def test_a_waiting_run_that_is_told_to_write_asks_nobody_any_more(standing: Platform, graph: str) -> None:
    run = await begun(standing, graph)
    await standing.until(run, waits)
    await cancel(standing.database, standing.hints, standing.tenant, run, CancelMode.WRITE)
    ended = await standing.ended(run)
    assert (ended.status, ended.stop_reason) == (RunStatus.DONE, StopReason.ASKED_TO_WRITE)


async def test_a_run_that_is_told_to_write_takes_the_default_of_what_it_asked(standing: Platform) -> None:
    run = await begun(standing, "deciding")
    await standing.until(run, waits)
    await cancel(standing.database, standing.hints, standing.tenant, run, CancelMode.WRITE)
    assert await heard(standing, run) == ["patient approved"]


async def test_a_run_whose_deadline_passes_while_it_waits_ends_with_what_it_has(standing: Platform) -> None:
    run = await begun(standing, "plain_ask", deadline=datetime.now(UTC) + timedelta(seconds=1))
    ended = await standing.ended(run)
    assert (ended.status, ended.stop_reason) == (RunStatus.DONE, StopReason.TIME_LIMIT)


async def test_a_run_that_asks_after_its_deadline_has_passed_waits_no_longer(platform: Platform) -> None:
    run = await held(platform, deadline=datetime.now(UTC) - timedelta(seconds=1))
    async with platform.database.transaction(platform.tenant) as connection:
        assert (await release(connection, run, WANTED, told_to_write=False)).wait_seconds == 0


async def test_an_answer_to_a_paused_run_is_kept_until_it_is_resumed(standing: Platform) -> None:
    run = await begun(standing, "plain_ask")
    question = await waiting(standing, run, "Which one?")
    await pause(standing.database, standing.hints, standing.tenant, run)
    await say(standing, run, question, Answer(text="7"))
    assert (await standing.run(run)).status is RunStatus.PAUSED
    await resume(standing.database, standing.hints, standing.tenant, run)
    assert await heard(standing, run) == ["one 7"]


async def test_a_run_that_is_resumed_without_an_answer_waits_again_for_the_same_question(standing: Platform) -> None:
    run = await begun(standing, "asking")
    question = await waiting(standing, run, "Find it")
    await pause(standing.database, standing.hints, standing.tenant, run)
    await resume(standing.database, standing.hints, standing.tenant, run)
    again = await waiting(standing, run, "Find it")
    assert again.number == question.number
    await cancel(standing.database, standing.hints, standing.tenant, run, CancelMode.DISCARD)


async def test_nothing_is_worked_while_a_run_waits(standing: Platform) -> None:
    run = await begun(standing, "plain_ask")
    await waiting(standing, run, "Which one?")
    before = (await standing.run(run)).spent.seconds
    async with standing.database.transaction(standing.tenant) as connection:
        await connection.execute("select pg_sleep(0.3)")
    (question,), answered = await still_open(standing, run), monotonic()
    await say(standing, run, question, Answer(text="1"))
    ended = await standing.ended(run)
    assert ended.spent.seconds - before < monotonic() - answered


@pytest.mark.parametrize("graph", ["plain_branches", "branching"])
async def test_at_durability_exit_a_run_waits_and_goes_on_the_same(standing: Platform, graph: str) -> None:
    run = await begun(standing, graph, durability="exit")
    await answer_all(standing, run)
    expected = {"plain_branches": ["one 'W'", "quiet", "two F S"], "branching": ["left L", "quiet", "right 42 R"]}
    assert await heard(standing, run) == expected[graph]


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
        await say(platform, run, (await still_open(platform, run))[0], Answer(text="x"))
        assert (await platform.run(run)).status is RunStatus.QUEUED
    start_worker()
    for run, asked_in_all in zip(both, (3, 2), strict=True):
        await answer_all(platform, run)
        assert len(await heard(platform, run)) == 3
        assert (await kinds(platform, run)).count(StepKind.QUESTION) == asked_in_all


async def test_a_worker_that_is_killed_right_after_the_answer_takes_it_up_once(
    platform: Platform, start_worker: StartWorker
) -> None:
    worker = start_worker()
    run = await begun(platform, "asking")
    plan = await waiting(platform, run, "Find it")
    await say(platform, run, plan, Answer())
    worker.kill()
    start_worker()
    await say(platform, run, await waiting(platform, run, "Which year?"), Answer(text="1990"))
    await say(platform, run, await waiting(platform, run, "Delete the draft?"), Answer())
    assert await heard(platform, run) == ["approved look+write 1990 False"]
    assert (await kinds(platform, run)).count(StepKind.ANSWER) == 3


WANTED = Awaited(questions=(2,))


async def held(platform: Platform, **more: object) -> UUID:
    """A run in a worker's hands that has asked its question 2."""
    run = await begun(platform, "asking", **more)
    claim = await runs.claim(platform.database, run, "hands", 30)
    assert claim is not None
    async with platform.database.transaction(platform.tenant) as connection:
        asking = Asking(QuestionKind.ASK, "Which year?")
        draft = StepDraft(StepKind.QUESTION, "Which year?", asking_json(asking))
        (step,) = await steps.append(connection, claim.fence, 30, [draft], UsageDelta())
        await questions.insert(connection, claim.fence, NewQuestion(step.seq, asking))
    return run


async def how_it_is_let_go(platform: Platform, run: UUID, *, told: bool = False) -> RunStatus:
    async with platform.database.transaction(platform.tenant) as connection:
        return (await release(connection, run, WANTED, told_to_write=told)).status


async def test_an_answer_that_comes_before_the_wait_is_stored_lets_the_run_go_on(platform: Platform) -> None:
    run = await held(platform)
    before = await how_it_is_let_go(platform, run)
    (question,) = await still_open(platform, run)
    await say(platform, run, question, Answer(text="1990"))
    assert (before, await how_it_is_let_go(platform, run)) == (RunStatus.WAITING, RunStatus.QUEUED)


@pytest.mark.parametrize("mode", list(CancelMode))
async def test_a_wish_that_comes_before_the_wait_is_stored_does_not_wait_with_the_run(
    platform: Platform, mode: CancelMode
) -> None:
    run = await held(platform)
    await cancel(platform.database, platform.hints, platform.tenant, run, mode)
    assert await how_it_is_let_go(platform, run) is RunStatus.QUEUED
    heard_of_it = RunStatus.WAITING if mode is CancelMode.WRITE else RunStatus.QUEUED
    assert await how_it_is_let_go(platform, run, told=True) is heard_of_it


async def test_a_pause_that_is_asked_for_before_the_wait_is_stored_is_kept(platform: Platform) -> None:
    run = await held(platform)
    await pause(platform.database, platform.hints, platform.tenant, run)
    assert await how_it_is_let_go(platform, run) is RunStatus.PAUSED


ASK_FIRST = Policy(rules=(Rule(tool="calculate", effect="ask", others=True, name="sums", reason="They cost."),))


async def test_a_rule_that_says_ask_has_a_person_decide_on_each_call(standing: Platform) -> None:
    run = await begun(standing, "using", tool_policy=ASK_FIRST)
    first = await waiting(standing, run, "May the run use calculate?")
    assert first.asking.kind is QuestionKind.TOOL
    assert all(word in first.asking.detail for word in ('"1 + 1"', "sums", "They cost."))
    await say(standing, run, first, Answer(approved=True))
    await standing.until(run, lambda row: waits(row) and row.last_seq > first.number + 2)
    second = await waiting(standing, run, "May the run use calculate?")
    await say(standing, run, second, Answer(approved=False, comment="not that one"))
    allowed, denied = await heard(standing, run)
    assert '"2 + 2"' in second.asking.detail
    assert denied.startswith("ok 2") or allowed.startswith("ok 2")
    assert any(text.startswith("denied") and "not that one" in text for text in (allowed, denied))
    places = {s.key.path for s in await standing.steps(run) if s.kind is StepKind.QUESTION and s.key}
    assert len(places) == 2, "an approval is good for one call"


@pytest.mark.parametrize("graph", ["asking", "using"])
async def test_a_run_with_answers_is_the_same_again_from_its_record(standing: Platform, graph: str) -> None:
    run = await begun(standing, graph, **({"tool_policy": ASK_FIRST} if graph == "using" else {}))
    while not (await standing.until(run, lambda row: waits(row) or row.terminal)).terminal:
        for question in await still_open(standing, run):
            await say(standing, run, question, Answer(text="1990", approved=True))
    again = await replayed(standing.database, standing.tenant, run, installed(ALL_GRAPHS))
    assert again.same, again.detail
    assert again.calls == again.recorded


async def test_a_graph_that_interrupted_itself_is_replayed_with_the_answers_that_it_got(standing: Platform) -> None:
    run = await begun(standing, "plain_ask")
    await answer_all(standing, run)
    again = await replayed(standing.database, standing.tenant, run, installed(ALL_GRAPHS))
    assert again.same, again.detail


@pytest.mark.parametrize("durability", ["exit", "sync"])
async def test_a_rollout_waits_for_nobody(
    collector: Collector, platform: Platform, start_worker: StartWorker, durability: str
) -> None:
    """With a default it goes on; without one it fails and says why."""
    collector.hints.wake_all = platform.hints.wake_all
    ids = (await tasks.store(collector.database, collector.tenant, "test", [a_task("Ask?")])).ids
    every = installed(ALL_GRAPHS)
    for graph in ("deciding", "asking", "plain_ask"):
        request = BatchRequest(graph, ids, 1, {}, None, budget=Budget(turns=2), durability=durability)
        await rollouts.create(collector.database, collector.hints, collector.tenant, request, graphs=every)
    members = await collector.members()  # before a failed one gets its next attempt
    start_worker(OFFING_SWEEP_SECONDS="0.3")
    ended = [await platform.ended(member.run) for member in members]
    with_default = {row.graph: row for row in ended}.pop("deciding")
    assert await heard(platform, with_default.id) == ["patient approved"]
    failed = [row for row in ended if row.graph != "deciding"]
    assert [row.status for row in failed] == [RunStatus.FAILED] * 2
    assert all("rollout has nobody to ask" in (row.error or "") for row in failed)
    assert [await asked(platform.database, platform.tenant, row.id) for row in ended] == [[], [], []]
