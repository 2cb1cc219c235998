"""Forks: what is on record is read back and never done again, whatever run they begin from."""

import asyncio
import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from offing.core.input_request import InputResponse
from offing.core.model import EngineConfig
from offing.core.run import Budget, RunStatus, StopReason
from offing.core.step import Step, StepKind
from offing.core.tool_policy import ToolPolicy, ToolRule
from offing.services.child_runs import get_run_tree
from offing.services.forks import ForkRequest, fork_run
from offing.services.graphs import open_registry
from offing.services.input_requests import list_input_requests, submit_response
from offing.services.runs import RunRequest, submit_run
from offing.storage import runs, trajectories
from offing.storage.runs import RunRow
from tests.workers import langgraph_scripts, side_effect_graph
from tests.workers.conftest import Platform
from tests.workers.langgraph_runs import answer_of, model_calls, prompts, turns_of
from tests.workers.langgraph_scripts import FUNCTIONAL, PLAYS, REACT, REMEMBERING, REVIEW, Play, says
from tests.workers.parent_graph import question_for
from tests.workers.processes import ALL_GRAPHS

GRAPHS = f"{ALL_GRAPHS},{side_effect_graph.GRAPHS},{langgraph_scripts.GRAPHS}"

FILE = Path(tempfile.mkdtemp()) / "shipped"

ENVIRONMENT = {"OFFING_EXTRA_GRAPHS": GRAPHS, side_effect_graph.SHIPPED: str(FILE)}

SPEAKER = EngineConfig(engine="scripted", options={"answers": [{"word": "w{turn} {nonce}"}]})
"""Its words tell the seed that they were made with."""


@pytest.fixture(autouse=True)
def nothing_shipped() -> None:
    FILE.write_text("")


def shipped() -> list[int]:
    """What was shipped since the last look."""
    results = [int(line) for line in FILE.read_text().split()]
    FILE.write_text("")
    return results


async def begun(platform: Platform, request: RunRequest) -> RunRow:
    created = await submit_run(
        platform.database, platform.notifier, platform.tenant, request, graphs=open_registry(GRAPHS)
    )
    return created.run


async def ended(platform: Platform, request: RunRequest) -> RunRow:
    return await platform.ended((await begun(platform, request)).id)


async def forked(platform: Platform, run_id: UUID, at: int | None = None, **more: Any) -> RunRow:
    request = ForkRequest(run_id, at, **more)
    created = await fork_run(
        platform.database, platform.notifier, platform.tenant, request, graphs=open_registry(GRAPHS)
    )
    return created.run


def shipping_request(**more: Any) -> RunRequest:
    allowed = ToolPolicy(
        rules=(ToolRule(tool="ship", allow_other_args=True, reason="It writes to a file of the test."),)
    )
    inputs: dict[str, Any] = {"budget": Budget(max_turns=9), "seed": 4, "tool_policy": allowed, **more}
    return RunRequest("Ship", "shipping", engines={"speaker": SPEAKER}, **inputs)


def describe_steps(steps: list[Step]) -> list[tuple[Any, ...]]:
    return [(s.seq, s.kind, s.title, s.payload, s.call_key, s.at, s.turn, s.tokens) for s in steps]


def keys(steps: list[Step]) -> Counter[tuple[Any, ...]]:
    """The calls on record by their place, in which digests of what new answers say have no part."""
    return Counter(
        (step.kind, step.call_key.superstep, step.call_key.path) for step in steps if step.call_key is not None
    )


async def answered(platform: Platform, run_id: UUID, *message: str) -> RunRow:
    """Give these answers to whatever is asked, one after the other, until the run has ended."""
    left = list(message)
    while not (
        row := await platform.until(run_id, lambda row: row.is_terminal or row.status is RunStatus.WAITING)
    ).is_terminal:
        for one in [
            q.request for q in await list_input_requests(platform.database, platform.tenant, run_id) if q.pending
        ]:
            inputs = InputResponse(text=left.pop(0))
            await submit_response(
                platform.database, platform.notifier, platform.tenant, run_id, one.seq, inputs, responded_by="somebody"
            )
        await asyncio.sleep(0.02)
    assert left == []
    return row


def words(steps: list[Step]) -> list[str]:
    return [step.title for step in steps if step.kind is StepKind.PLAN]


@pytest.mark.parametrize("durability", ["sync", "exit"])
async def test_a_fork_from_any_step_repeats_no_recorded_call_and_no_effect(
    durability: str, shared_platform: Platform
) -> None:
    origin = await ended(shared_platform, replace(shipping_request(), durability=durability))
    record = await shared_platform.steps(origin.id)
    assert shipped() == [1, 2, 3]
    for at in range(1, len(record)):
        run = await shared_platform.ended((await forked(shared_platform, origin.id, at)).id)
        steps = await shared_platform.steps(run.id)
        assert describe_steps(steps[:at]) == describe_steps(record[:at])
        assert (run.status, run.stop_reason, run.usage.turns) == (RunStatus.DONE, StopReason.ANSWERED, 3)
        done = [step.payload["args"]["n"] for step in record[:at] if step.kind is StepKind.TOOL_RESULT]
        assert shipped() == [n for n in (1, 2, 3) if n not in done]
        kinds = [[s.kind for s in result if s.call_key] for result in (steps, record)]
        assert kinds[0] == kinds[1]
        text = words(record[:at])
        assert words(steps)[: len(text)] == text
        assert not {*words(steps)[len(text) :]} & {*words(record)}


async def test_a_fork_knows_which_effects_were_declared_so_that_no_upgrade_repeats_them(
    shared_platform: Platform,
) -> None:
    origin = await ended(shared_platform, shipping_request())
    record = await shared_platform.steps(origin.id)
    last = [step.seq for step in record if step.kind is StepKind.TOOL_RESULT][1]
    for at, stored in ((last, [1, 2]), (last - 1, [1])):
        run = await forked(shared_platform, origin.id, at)
        async with shared_platform.database.transaction(shared_platform.tenant) as connection:
            query = "select (args->>'n')::integer from intent where run_id = %s and fence <= 1 order by 1"
            rows = await (await connection.execute(query, (run.id,))).fetchall()
        assert [n for (n,) in rows] == stored
        await shared_platform.ended(run.id)


async def test_a_fork_of_branches_side_by_side_keeps_what_each_had_on_record(shared_platform: Platform) -> None:
    origin = await ended(
        shared_platform, RunRequest("Fork", "forked", engines={"speaker": SPEAKER}, budget=Budget(max_turns=2))
    )
    record = await shared_platform.steps(origin.id)
    for at in range(3, len(record)):
        run = await shared_platform.ended((await forked(shared_platform, origin.id, at)).id)
        steps = await shared_platform.steps(run.id)
        assert (run.status, run.usage.turns) == (RunStatus.DONE, 2), run.error
        assert describe_steps(steps[:at]) == describe_steps(record[:at])
        assert keys(steps) == keys(record)


async def test_a_running_run_is_forked_as_it_is_and_continues_itself(shared_platform: Platform) -> None:
    slow = SPEAKER.model_copy(update={"options": {**SPEAKER.options, "delay_ms": 300}})
    origin = await begun(shared_platform, replace(shipping_request(), engines={"speaker": slow}))
    await shared_platform.until(origin.id, lambda row: row.last_seq >= 6)
    run = await forked(shared_platform, origin.id)
    assert run.forked_at is not None
    both = [await shared_platform.ended(one.id) for one in (origin, run)]
    assert [row.status for row in both] == [RunStatus.DONE, RunStatus.DONE]
    mine, theirs = [await shared_platform.steps(one.id) for one in (run, origin)]
    assert describe_steps(mine[: run.forked_at]) == describe_steps(theirs[: run.forked_at])
    stored = [s.payload["args"]["n"] for s in mine[: run.forked_at] if s.kind is StepKind.TOOL_RESULT]
    assert sorted(shipped()) == sorted([1, 2, 3, *(n for n in (1, 2, 3) if n not in stored)])


async def test_a_fork_of_a_fork_continues_from_either_part_of_it(shared_platform: Platform) -> None:
    origin = await ended(shared_platform, shipping_request())
    record = await shared_platform.steps(origin.id)
    first = await shared_platform.ended((await forked(shared_platform, origin.id, 6)).id)
    between = await shared_platform.steps(first.id)
    shipped()
    for at in (4, 7, len(between) - 2):
        second = await shared_platform.ended((await forked(shared_platform, first.id, at)).id)
        steps = await shared_platform.steps(second.id)
        assert (second.status, second.forked_from, second.forked_at) == (RunStatus.DONE, first.id, at)
        assert describe_steps(steps[:at]) == describe_steps(between[:at])
        assert keys(steps) == keys(record)
        done = [s.payload["args"]["n"] for s in between[:at] if s.kind is StepKind.TOOL_RESULT]
        assert shipped() == [n for n in (1, 2, 3) if n not in done]


async def test_a_run_that_ran_out_of_turns_continues_with_more_of_them_and_a_word_from_a_person(
    shared_platform: Platform,
) -> None:
    origin = await ended(shared_platform, shipping_request(budget=Budget(max_turns=2)))
    assert origin.stop_reason is StopReason.TURN_LIMIT
    last = [step for step in await shared_platform.steps(origin.id) if step.turn == 2][-1]
    run = await forked(shared_platform, origin.id, last.seq, budget=Budget(max_turns=5), message="Hurry")
    row = await shared_platform.ended(run.id)
    steps = await shared_platform.steps(run.id)
    assert (row.stop_reason, row.usage.turns) == (StopReason.ANSWERED, 3)
    memory = [step.title for step in steps if step.kind is StepKind.MEMORY]
    assert [text.endswith("Hurry") for text in memory] == [False, False, True]
    assert shipped() == [1, 2, 3]


async def test_another_engine_answers_from_the_fork_on_and_the_first_steps_keep_theirs(
    shared_platform: Platform,
) -> None:
    origin = await ended(shared_platform, shipping_request())
    other = EngineConfig(engine="scripted", options={"answers": [{"word": "other{turn}"}]})
    run = await forked(shared_platform, origin.id, 5, engines={"speaker": other})
    await shared_platform.ended(run.id)
    text = words(await shared_platform.steps(run.id))
    assert text[:1] == words(await shared_platform.steps(origin.id))[:1]
    assert text[1:] == ["other2", "other3"]


@pytest.mark.parametrize("durability", ["sync", "exit"])
@pytest.mark.parametrize("play", [*PLAYS, REMEMBERING, FUNCTIONAL], ids=lambda play: play.graph)
async def test_a_graph_written_for_langgraph_is_forked_from_any_of_its_calls(
    play: Play, durability: str, shared_platform: Platform
) -> None:
    origin = await ended(shared_platform, replace(play.request(), durability=durability))
    record = await shared_platform.steps(origin.id)
    for at in [step.seq for step in record if step.call_key is not None]:
        run = await shared_platform.ended((await forked(shared_platform, origin.id, at)).id)
        steps = await shared_platform.steps(run.id)
        assert run.status is RunStatus.DONE, run.error
        assert await answer_of(shared_platform, run.id) == play.answer
        assert describe_steps(steps[:at]) == describe_steps(record[:at])
        assert keys(steps) == keys(record)
        assert len(model_calls(steps)) == play.calls == run.usage.turns
        assert len(set(prompts(await turns_of(shared_platform, run.id)))) == play.calls


async def test_what_a_langgraph_graph_did_without_the_journal_is_not_done_again_once_its_superstep_is_over(
    shared_platform: Platform,
) -> None:
    """Its supersteps are those of the origin, whose checkpoints came along."""
    origin = await ended(shared_platform, REACT.request())
    record = await shared_platform.steps(origin.id)
    last = model_calls(record)[-1]
    run = await forked(shared_platform, origin.id, last.seq)
    await shared_platform.ended(run.id)
    async with shared_platform.database.transaction(shared_platform.tenant) as connection:
        query = "select checkpoint_id, created_at from checkpoint where run_id = %s and created_at < %s order by nth"
        results = [await (await connection.execute(query, (one, last.at))).fetchall() for one in (origin.id, run.id)]
    assert results[0] == results[1]
    assert len(results[0]) > 3


async def test_an_interrupt_that_was_answered_is_not_asked_again_and_one_after_the_fork_is(
    shared_platform: Platform,
) -> None:
    created = await begun(shared_platform, REVIEW.request())
    origin = await answered(shared_platform, created.id, "be warmer", "yes")
    record = await shared_platform.steps(origin.id)
    assert [step.kind for step in record].count(StepKind.INPUT_RESPONSE) == 2
    for at in range(2, len(record) - 1):
        stored = [step for step in record[:at] if step.kind is StepKind.INPUT_RESPONSE]
        run = await forked(shared_platform, origin.id, at)
        row = await answered(shared_platform, run.id, *("be warmer", "yes")[len(stored) :])
        steps = await shared_platform.steps(run.id)
        assert row.status is RunStatus.DONE, row.error
        assert await answer_of(shared_platform, run.id) == REVIEW.answer
        assert describe_steps(steps[:at]) == describe_steps(record[:at])
        assert [[s.kind for s in result].count(StepKind.INPUT_REQUEST) for result in (steps, record)] == [2, 2]
        assert keys(steps) == keys(record)


async def test_what_a_person_answered_is_read_back_and_an_open_question_is_put_again(shared_platform: Platform) -> None:
    created = await begun(shared_platform, RunRequest("Ask me", "branching"))
    origin = await answered(shared_platform, created.id, "one", "two")
    record = await shared_platform.steps(origin.id)
    for at in range(2, len(record) - 1):
        stored = [step for step in record[:at] if step.kind is StepKind.INPUT_RESPONSE]
        run = await forked(shared_platform, origin.id, at)
        row = await answered(shared_platform, run.id, *("one", "two")[len(stored) :])
        steps = await shared_platform.steps(run.id)
        assert row.status is RunStatus.DONE, row.error
        assert describe_steps(steps[:at]) == describe_steps(record[:at])
        assert keys(steps) == keys(record)


async def test_a_child_run_whose_result_was_recorded_is_not_run_again(shared_platform: Platform) -> None:
    question = question_for({"question": "one", "turns": 2}, {"question": "two", "turns": 3})
    origin = await ended(shared_platform, RunRequest(question, "family", budget=Budget(max_turns=20)))
    record = await shared_platform.steps(origin.id)
    consumed = [step.seq for step in record if step.kind is StepKind.TOOL_RESULT]
    for at, created in ((consumed[-1], 0), (consumed[0], 1), (consumed[0] - 1, 2)):
        run = await shared_platform.ended((await forked(shared_platform, origin.id, at)).id)
        assert (run.status, run.usage.turns) == (RunStatus.DONE, origin.usage.turns), run.error
        run_tree = await get_run_tree(shared_platform.database, shared_platform.tenant, run.id)
        assert len(run_tree.children) == created
    assert keys(await shared_platform.steps(run.id)) == keys(record)


async def test_a_child_run_is_forked_as_a_run_of_its_own(shared_platform: Platform) -> None:
    parent = await ended(
        shared_platform, RunRequest(question_for({"question": "one", "turns": 3}), "family", budget=Budget(max_turns=9))
    )
    (child,) = (await get_run_tree(shared_platform.database, shared_platform.tenant, parent.id)).children
    record = await shared_platform.steps(child.id)
    run = await shared_platform.ended((await forked(shared_platform, child.id, len(record) // 2)).id)
    above = await get_run_tree(shared_platform.database, shared_platform.tenant, run.id)
    assert (run.kind, run.status, above.parent_id) == ("interactive", RunStatus.DONE, None)
    assert run.budget == Budget(max_turns=3)
    assert keys(await shared_platform.steps(run.id)) == keys(record)


async def test_a_follow_up_is_forked_with_what_it_saw_of_its_thread_and_nothing_later(
    shared_platform: Platform,
) -> None:
    first = await ended(shared_platform, RunRequest("first", "conversing"))
    second = await ended(shared_platform, RunRequest("second", "conversing", thread_id=first.thread_id))
    await ended(shared_platform, RunRequest("third", "conversing", thread_id=first.thread_id))
    run, record = second, await shared_platform.steps(second.id)
    for at in range(1, len(record)):
        run = await shared_platform.ended((await forked(shared_platform, second.id, at)).id)
        assert run.status is RunStatus.DONE, run.error
        steps = await shared_platform.steps(run.id)
        assert [s.payload for s in steps if s.call_key] == [s.payload for s in record if s.call_key]
        assert keys(steps) == keys(record)
        assert run.thread_id != second.thread_id
    after = await ended(shared_platform, RunRequest("fourth", "conversing", thread_id=run.thread_id))
    async with shared_platform.database.transaction(shared_platform.tenant) as connection:
        known = await runs.list_earlier_answers(connection, after.thread_id, after.id, 9)
        recorded = await trajectories.list_earlier_answers(connection, run.id)
    assert [request for request, _ in known] == ["first", "second"]
    assert [request for request, _ in recorded] == ["first"]


async def test_a_follow_up_of_a_langgraph_graph_continues_from_the_state_that_its_thread_had(
    shared_platform: Platform,
) -> None:
    first = await ended(shared_platform, REACT.request())
    lines = {"agent": {"answers": [says("So I said."), says("And so on.")]}}
    second = await ended(
        shared_platform, replace(REACT, question="And now?", lines=lines).request(thread=first.thread_id)
    )
    for at in (1, 2, 3):
        run = await shared_platform.ended((await forked(shared_platform, second.id, at)).id)
        assert run.status is RunStatus.DONE, run.error
        assert prompts(await turns_of(shared_platform, run.id)) == prompts(await turns_of(shared_platform, second.id))
        assert keys(await shared_platform.steps(run.id)) == keys(await shared_platform.steps(second.id))
