"""Forks: what is on record is read back and never done again, whatever run they begin from."""

import asyncio
import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from offing.core.model import EngineChoice
from offing.core.policy import Policy, Rule
from offing.core.question import Answer
from offing.core.run import Budget, RunStatus, StopReason
from offing.core.step import Step, StepKind
from offing.services.child_runs import family
from offing.services.forks import ForkRequest, fork
from offing.services.graphs import installed
from offing.services.questions import answer, asked
from offing.services.runs import RunRequest, submit
from offing.storage import runs, trajectories
from offing.storage.runs import RunRow
from tests.workers import plain_scripts, shipping
from tests.workers.conftest import Platform
from tests.workers.families import asking
from tests.workers.plain_runs import answer_of, model_calls, prompts, turns_of
from tests.workers.plain_scripts import FUNCTIONAL, PLAYS, REACT, REMEMBERING, REVIEW, Play, says
from tests.workers.processes import ALL_GRAPHS

GRAPHS = f"{ALL_GRAPHS},{shipping.GRAPHS},{plain_scripts.GRAPHS}"

FILE = Path(tempfile.mkdtemp()) / "shipped"

STANDING = {"OFFING_GRAPHS": GRAPHS, shipping.SHIPPED: str(FILE)}

SPEAKER = EngineChoice(engine="scripted", options={"answers": [{"word": "w{turn} {nonce}"}]})
"""Its words tell the seed that they were made with."""


@pytest.fixture(autouse=True)
def nothing_shipped() -> None:
    FILE.write_text("")


def shipped() -> list[int]:
    """What was shipped since the last look."""
    found = [int(line) for line in FILE.read_text().split()]
    FILE.write_text("")
    return found


async def begun(platform: Platform, request: RunRequest) -> RunRow:
    made = await submit(platform.database, platform.hints, platform.tenant, request, graphs=installed(GRAPHS))
    return made.run


async def ended(platform: Platform, request: RunRequest) -> RunRow:
    return await platform.ended((await begun(platform, request)).id)


async def forked(platform: Platform, run: UUID, at: int | None = None, **more: Any) -> RunRow:
    request = ForkRequest(run, at, **more)
    made = await fork(platform.database, platform.hints, platform.tenant, request, graphs=installed(GRAPHS))
    return made.run


def shipping_request(**more: Any) -> RunRequest:
    allowed = Policy(rules=(Rule(tool="ship", others=True, reason="It writes to a file of the test."),))
    given: dict[str, Any] = {"budget": Budget(turns=9), "seed": 4, "tool_policy": allowed, **more}
    return RunRequest("Ship", "shipping", engines={"speaker": SPEAKER}, **given)


def told(steps: list[Step]) -> list[tuple[Any, ...]]:
    return [(s.seq, s.kind, s.title, s.payload, s.key, s.at, s.turn, s.tokens) for s in steps]


def keys(steps: list[Step]) -> Counter[tuple[Any, ...]]:
    """The calls on record by their place, in which digests of what new answers say have no part."""
    return Counter((step.kind, step.key.superstep, step.key.path) for step in steps if step.key is not None)


async def answered(platform: Platform, run: UUID, *said: str) -> RunRow:
    """Give these answers to whatever is asked, one after the other, until the run has ended."""
    left = list(said)
    while not (row := await platform.until(run, lambda row: row.terminal or row.status is RunStatus.WAITING)).terminal:
        for one in [q.question for q in await asked(platform.database, platform.tenant, run) if q.open]:
            given = Answer(text=left.pop(0))
            await answer(platform.database, platform.hints, platform.tenant, run, one.number, given, by="somebody")
        await asyncio.sleep(0.02)
    assert left == []
    return row


def words(steps: list[Step]) -> list[str]:
    return [step.title for step in steps if step.kind is StepKind.PLAN]


@pytest.mark.parametrize("durability", ["sync", "exit"])
async def test_a_fork_from_any_step_repeats_no_recorded_call_and_no_effect(durability: str, standing: Platform) -> None:
    origin = await ended(standing, replace(shipping_request(), durability=durability))
    record = await standing.steps(origin.id)
    assert shipped() == [1, 2, 3]
    for at in range(1, len(record)):
        run = await standing.ended((await forked(standing, origin.id, at)).id)
        steps = await standing.steps(run.id)
        assert told(steps[:at]) == told(record[:at])
        assert (run.status, run.stop_reason, run.spent.turns) == (RunStatus.DONE, StopReason.ANSWERED, 3)
        done = [step.payload["args"]["n"] for step in record[:at] if step.kind is StepKind.TOOL]
        assert shipped() == [n for n in (1, 2, 3) if n not in done]
        kinds = [[s.kind for s in found if s.key] for found in (steps, record)]
        assert kinds[0] == kinds[1]
        said = words(record[:at])
        assert words(steps)[: len(said)] == said
        assert not {*words(steps)[len(said) :]} & {*words(record)}


async def test_a_fork_knows_which_effects_were_declared_so_that_no_upgrade_repeats_them(standing: Platform) -> None:
    origin = await ended(standing, shipping_request())
    record = await standing.steps(origin.id)
    last = [step.seq for step in record if step.kind is StepKind.TOOL][1]
    for at, kept in ((last, [1, 2]), (last - 1, [1])):
        run = await forked(standing, origin.id, at)
        async with standing.database.transaction(standing.tenant) as connection:
            query = "select (args->>'n')::integer from intent where run_id = %s and fence <= 1 order by 1"
            found = await (await connection.execute(query, (run.id,))).fetchall()
        assert [n for (n,) in found] == kept
        await standing.ended(run.id)


async def test_a_fork_of_branches_side_by_side_keeps_what_each_had_on_record(standing: Platform) -> None:
    origin = await ended(standing, RunRequest("Fork", "forked", engines={"speaker": SPEAKER}, budget=Budget(turns=2)))
    record = await standing.steps(origin.id)
    for at in range(3, len(record)):
        run = await standing.ended((await forked(standing, origin.id, at)).id)
        steps = await standing.steps(run.id)
        assert (run.status, run.spent.turns) == (RunStatus.DONE, 2), run.error
        assert told(steps[:at]) == told(record[:at])
        assert keys(steps) == keys(record)


async def test_a_running_run_is_forked_as_it_is_and_goes_on_itself(standing: Platform) -> None:
    slow = SPEAKER.model_copy(update={"options": {**SPEAKER.options, "delay_ms": 300}})
    origin = await begun(standing, replace(shipping_request(), engines={"speaker": slow}))
    await standing.until(origin.id, lambda row: row.last_seq >= 6)
    run = await forked(standing, origin.id)
    assert run.forked_at is not None
    both = [await standing.ended(one.id) for one in (origin, run)]
    assert [row.status for row in both] == [RunStatus.DONE, RunStatus.DONE]
    mine, theirs = [await standing.steps(one.id) for one in (run, origin)]
    assert told(mine[: run.forked_at]) == told(theirs[: run.forked_at])
    kept = [s.payload["args"]["n"] for s in mine[: run.forked_at] if s.kind is StepKind.TOOL]
    assert sorted(shipped()) == sorted([1, 2, 3, *(n for n in (1, 2, 3) if n not in kept)])


async def test_a_fork_of_a_fork_goes_on_from_either_part_of_it(standing: Platform) -> None:
    origin = await ended(standing, shipping_request())
    record = await standing.steps(origin.id)
    first = await standing.ended((await forked(standing, origin.id, 6)).id)
    between = await standing.steps(first.id)
    shipped()
    for at in (4, 7, len(between) - 2):
        second = await standing.ended((await forked(standing, first.id, at)).id)
        steps = await standing.steps(second.id)
        assert (second.status, second.forked_from, second.forked_at) == (RunStatus.DONE, first.id, at)
        assert told(steps[:at]) == told(between[:at])
        assert keys(steps) == keys(record)
        done = [s.payload["args"]["n"] for s in between[:at] if s.kind is StepKind.TOOL]
        assert shipped() == [n for n in (1, 2, 3) if n not in done]


async def test_a_run_that_ran_out_of_turns_goes_on_with_more_of_them_and_a_word_from_a_person(
    standing: Platform,
) -> None:
    origin = await ended(standing, shipping_request(budget=Budget(turns=2)))
    assert origin.stop_reason is StopReason.TURN_LIMIT
    last = [step for step in await standing.steps(origin.id) if step.turn == 2][-1]
    run = await forked(standing, origin.id, last.seq, budget=Budget(turns=5), message="Hurry")
    row = await standing.ended(run.id)
    steps = await standing.steps(run.id)
    assert (row.stop_reason, row.spent.turns) == (StopReason.ANSWERED, 3)
    memory = [step.title for step in steps if step.kind is StepKind.MEMORY]
    assert [text.endswith("Hurry") for text in memory] == [False, False, True]
    assert shipped() == [1, 2, 3]


async def test_another_engine_answers_from_the_fork_on_and_the_first_steps_keep_theirs(standing: Platform) -> None:
    origin = await ended(standing, shipping_request())
    other = EngineChoice(engine="scripted", options={"answers": [{"word": "other{turn}"}]})
    run = await forked(standing, origin.id, 5, engines={"speaker": other})
    await standing.ended(run.id)
    said = words(await standing.steps(run.id))
    assert said[:1] == words(await standing.steps(origin.id))[:1]
    assert said[1:] == ["other2", "other3"]


@pytest.mark.parametrize("durability", ["sync", "exit"])
@pytest.mark.parametrize("play", [*PLAYS, REMEMBERING, FUNCTIONAL], ids=lambda play: play.graph)
async def test_a_graph_written_for_langgraph_is_forked_from_any_of_its_calls(
    play: Play, durability: str, standing: Platform
) -> None:
    origin = await ended(standing, replace(play.request(), durability=durability))
    record = await standing.steps(origin.id)
    for at in [step.seq for step in record if step.key is not None]:
        run = await standing.ended((await forked(standing, origin.id, at)).id)
        steps = await standing.steps(run.id)
        assert run.status is RunStatus.DONE, run.error
        assert await answer_of(standing, run.id) == play.answer
        assert told(steps[:at]) == told(record[:at])
        assert keys(steps) == keys(record)
        assert len(model_calls(steps)) == play.calls == run.spent.turns
        assert len(set(prompts(await turns_of(standing, run.id)))) == play.calls


async def test_what_a_langgraph_graph_did_without_the_journal_is_not_done_again_once_its_superstep_is_over(
    standing: Platform,
) -> None:
    """Its supersteps are those of the origin, whose checkpoints came along."""
    origin = await ended(standing, REACT.request())
    record = await standing.steps(origin.id)
    last = model_calls(record)[-1]
    run = await forked(standing, origin.id, last.seq)
    await standing.ended(run.id)
    async with standing.database.transaction(standing.tenant) as connection:
        query = "select checkpoint_id, created_at from checkpoint where run_id = %s and created_at < %s order by nth"
        found = [await (await connection.execute(query, (one, last.at))).fetchall() for one in (origin.id, run.id)]
    assert found[0] == found[1]
    assert len(found[0]) > 3


async def test_an_interrupt_that_was_answered_is_not_asked_again_and_one_after_the_fork_is(standing: Platform) -> None:
    made = await begun(standing, REVIEW.request())
    origin = await answered(standing, made.id, "be warmer", "yes")
    record = await standing.steps(origin.id)
    assert [step.kind for step in record].count(StepKind.ANSWER) == 2
    for at in range(2, len(record) - 1):
        kept = [step for step in record[:at] if step.kind is StepKind.ANSWER]
        run = await forked(standing, origin.id, at)
        row = await answered(standing, run.id, *("be warmer", "yes")[len(kept) :])
        steps = await standing.steps(run.id)
        assert row.status is RunStatus.DONE, row.error
        assert await answer_of(standing, run.id) == REVIEW.answer
        assert told(steps[:at]) == told(record[:at])
        assert [[s.kind for s in found].count(StepKind.QUESTION) for found in (steps, record)] == [2, 2]
        assert keys(steps) == keys(record)


async def test_what_a_person_answered_is_read_back_and_an_open_question_is_put_again(standing: Platform) -> None:
    made = await begun(standing, RunRequest("Ask me", "branching"))
    origin = await answered(standing, made.id, "one", "two")
    record = await standing.steps(origin.id)
    for at in range(2, len(record) - 1):
        kept = [step for step in record[:at] if step.kind is StepKind.ANSWER]
        run = await forked(standing, origin.id, at)
        row = await answered(standing, run.id, *("one", "two")[len(kept) :])
        steps = await standing.steps(run.id)
        assert row.status is RunStatus.DONE, row.error
        assert told(steps[:at]) == told(record[:at])
        assert keys(steps) == keys(record)


async def test_a_child_run_whose_result_was_recorded_is_not_run_again(standing: Platform) -> None:
    question = asking({"question": "one", "turns": 2}, {"question": "two", "turns": 3})
    origin = await ended(standing, RunRequest(question, "family", budget=Budget(turns=20)))
    record = await standing.steps(origin.id)
    consumed = [step.seq for step in record if step.kind is StepKind.TOOL]
    for at, made in ((consumed[-1], 0), (consumed[0], 1), (consumed[0] - 1, 2)):
        run = await standing.ended((await forked(standing, origin.id, at)).id)
        assert (run.status, run.spent.turns) == (RunStatus.DONE, origin.spent.turns), run.error
        found = await family(standing.database, standing.tenant, run.id)
        assert len(found.children) == made
    assert keys(await standing.steps(run.id)) == keys(record)


async def test_a_child_run_is_forked_as_a_run_of_its_own(standing: Platform) -> None:
    parent = await ended(
        standing, RunRequest(asking({"question": "one", "turns": 3}), "family", budget=Budget(turns=9))
    )
    (child,) = (await family(standing.database, standing.tenant, parent.id)).children
    record = await standing.steps(child.id)
    run = await standing.ended((await forked(standing, child.id, len(record) // 2)).id)
    above = await family(standing.database, standing.tenant, run.id)
    assert (run.kind, run.status, above.parent, run.budget) == ("ask", RunStatus.DONE, None, Budget(turns=3))
    assert keys(await standing.steps(run.id)) == keys(record)


async def test_a_follow_up_is_forked_with_what_it_saw_of_its_thread_and_nothing_later(standing: Platform) -> None:
    first = await ended(standing, RunRequest("first", "conversing"))
    second = await ended(standing, RunRequest("second", "conversing", thread=first.thread))
    await ended(standing, RunRequest("third", "conversing", thread=first.thread))
    run, record = second, await standing.steps(second.id)
    for at in range(1, len(record)):
        run = await standing.ended((await forked(standing, second.id, at)).id)
        assert run.status is RunStatus.DONE, run.error
        steps = await standing.steps(run.id)
        assert [s.payload for s in steps if s.key] == [s.payload for s in record if s.key]
        assert keys(steps) == keys(record)
        assert run.thread != second.thread
    after = await ended(standing, RunRequest("fourth", "conversing", thread=run.thread))
    async with standing.database.transaction(standing.tenant) as connection:
        known = await runs.earlier_answers(connection, after.thread, after.id, 9)
        recorded = await trajectories.earlier_answers(connection, run.id)
    assert [asked for asked, _ in known] == ["first", "second"]
    assert [asked for asked, _ in recorded] == ["first"]


async def test_a_follow_up_of_a_langgraph_graph_goes_on_from_the_state_that_its_thread_had(standing: Platform) -> None:
    first = await ended(standing, REACT.request())
    lines = {"agent": {"answers": [says("So I said."), says("And so on.")]}}
    second = await ended(standing, replace(REACT, question="And now?", lines=lines).request(thread=first.thread))
    for at in (1, 2, 3):
        run = await standing.ended((await forked(standing, second.id, at)).id)
        assert run.status is RunStatus.DONE, run.error
        assert prompts(await turns_of(standing, run.id)) == prompts(await turns_of(standing, second.id))
        assert keys(await standing.steps(run.id)) == keys(await standing.steps(second.id))
