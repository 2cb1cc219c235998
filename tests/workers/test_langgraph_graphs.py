"""Graphs that are written for LangGraph alone, on a real worker: what they come to, and what they leave behind."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from offing.core.input_request import InputResponse
from offing.core.run import CancelMode, RunStatus, StopReason
from offing.core.step import StepKind
from offing.services.input_requests import list_input_requests, submit_response
from offing.services.run_views import list_nodes
from offing.services.runs import cancel_run
from tests.documents import ingest_folder
from tests.workers.conftest import Platform, SharedServers
from tests.workers.langgraph_runs import answer_of, model_calls, prompts, report_of, started, turns_of
from tests.workers.langgraph_scripts import (
    FUNCTIONAL,
    GRAPHS,
    MAP_REDUCE,
    PLAYS,
    REACT,
    REMEMBERING,
    REVIEW,
    SUPERVISOR,
    Play,
    calls,
    says,
)

ENVIRONMENT = {"OFFING_EXTRA_GRAPHS": GRAPHS, "OFFING_SLICE_MAX_TURNS": "2"}
"""Slices that are shorter than any of the runs, so that each continues from its checkpoints."""


@pytest.mark.parametrize("durability", ["sync", "exit"])
@pytest.mark.parametrize("play", [*PLAYS, REMEMBERING], ids=lambda play: play.graph)
async def test_a_graph_runs_as_it_was_written_and_trains_by_imitation(
    play: Play, durability: str, shared_platform: Platform
) -> None:
    run = await started(shared_platform, replace(play.request(), durability=durability))
    ended = await shared_platform.ended(run.id)
    steps, turns = await shared_platform.steps(run.id), await turns_of(shared_platform, run.id)
    assert (ended.status, ended.stop_reason) == (RunStatus.DONE, StopReason.ANSWERED), ended.error
    assert await answer_of(shared_platform, run.id) == play.answer
    assert len(model_calls(steps)) == play.calls == len(turns) == len(set(prompts(turns)))
    assert ended.usage.turns == play.calls
    assert {turn.trainable for turn in turns} == {"sft"}
    assert any(turn.is_final for turn in turns)


async def test_the_report_of_a_langgraph_graph_says_who_wrote_it_and_that_nothing_is_cited(
    shared_platform: Platform,
) -> None:
    run = await started(shared_platform, REACT.request())
    await shared_platform.ended(run.id)
    report = await report_of(shared_platform, run.id)
    assert report.written_by == "scripted"
    assert "no source" in report.limits
    assert report.citations == ()


async def test_a_tool_call_and_its_result_stand_in_the_words_of_the_next_prompt(shared_platform: Platform) -> None:
    run = await started(shared_platform, REACT.request())
    await shared_platform.ended(run.id)
    last = (await turns_of(shared_platform, run.id))[-1]
    assert [m.role for m in last.messages] == ["system", "user", "assistant", "user", "assistant", "user"]
    assert last.messages[2].text.count("<tool_call>") == 2
    assert "<tool_response>\n4 degrees and rain\n</tool_response>" in last.messages[3].text
    assert last.messages[5].text == "<tool_response>\n23.0\n</tool_response>"
    assert [turn.segment_idx for turn in await turns_of(shared_platform, run.id)] == [0, 0, 0]


async def test_the_turn_budget_ends_a_langgraph_graph_with_what_it_has(shared_platform: Platform) -> None:
    run = await started(shared_platform, replace(SUPERVISOR, turns=3).request())
    ended = await shared_platform.ended(run.id)
    assert (ended.status, ended.stop_reason) == (RunStatus.DONE, StopReason.TURN_LIMIT), ended.error
    assert len(model_calls(await shared_platform.steps(run.id))) == 3 == ended.usage.turns
    assert await answer_of(shared_platform, run.id) == "It has 17 moons."


async def test_a_model_that_gives_no_answer_ends_the_run_with_its_reason(shared_platform: Platform) -> None:
    agent: dict[str, Any] = {
        "answers": [says("never")],
        "fail": {"1": {"kind": "authentication_failed", "message": "no key"}},
    }
    run = await started(shared_platform, replace(REACT, lines={"agent": agent}).request())
    ended = await shared_platform.ended(run.id)
    assert (ended.status, ended.stop_reason) == (RunStatus.DONE, StopReason.PROVIDER_DOWN)
    assert ended.error == "agent: no key"


async def test_an_answer_that_calls_an_unknown_tool_is_the_graphs_to_deal_with(shared_platform: Platform) -> None:
    lines = {"agent": {"answers": [calls("launch", what="rocket"), says("There is no such tool.")]}}
    run = await started(shared_platform, replace(REACT, lines=lines).request())
    await shared_platform.ended(run.id)
    assert await answer_of(shared_platform, run.id) == "There is no such tool."


async def test_a_conversation_continues_in_its_thread(shared_platform: Platform) -> None:
    first = await started(shared_platform, REACT.request())
    await shared_platform.ended(first.id)
    lines = {"agent": {"answers": [says("So I said.")]}}
    again = replace(REACT, question="And now?", lines=lines)
    second = await started(shared_platform, again.request(thread=first.thread_id))
    await shared_platform.ended(second.id)
    (turn,) = await turns_of(shared_platform, second.id)
    assert "How warm are Oslo" in turn.messages[1].text
    assert turn.messages[-1].text == "And now?"
    assert [m.turn for m in turn.messages] == [0] * len(turn.messages)


async def test_a_person_is_asked_and_what_the_graph_streams_is_noted(shared_platform: Platform) -> None:
    run = await started(shared_platform, REVIEW.request())
    for text in ("be warmer", "yes"):
        await shared_platform.until(run.id, lambda row: row.status is RunStatus.WAITING)
        (open_one,) = [
            q.request
            for q in await list_input_requests(shared_platform.database, shared_platform.tenant, run.id)
            if q.pending
        ]
        number, notifier, tenant = open_one.seq, shared_platform.notifier, shared_platform.tenant
        await submit_response(
            shared_platform.database,
            notifier,
            tenant,
            run.id,
            number,
            InputResponse(text=text),
            responded_by="somebody",
        )
    ended, steps = await shared_platform.ended(run.id), await shared_platform.steps(run.id)
    assert ended.status is RunStatus.DONE, ended.error
    assert await answer_of(shared_platform, run.id) == REVIEW.answer
    assert len(model_calls(steps)) == REVIEW.calls
    assert tuple(s.title for s in steps if s.kind is StepKind.NOTE) == REVIEW.notes
    assert [s.title for s in steps if s.kind is StepKind.INPUT_REQUEST] == ["Shall this be sent?"] * 2


async def test_each_superstep_of_a_langgraph_run_is_kept_and_of_the_subgraphs_that_it_called_nothing(
    shared_platform: Platform, shared_servers: SharedServers
) -> None:
    run = await started(shared_platform, SUPERVISOR.request())
    await shared_platform.ended(run.id)
    async with shared_platform.database.transaction(shared_platform.tenant) as connection:
        cursor = await connection.execute(
            "select ns, superstep from checkpoint where run_id = %s order by nth", (run.id,)
        )
        assert await cursor.fetchall() == [("", superstep) for superstep in range(-1, 4)]
        values = await connection.execute(
            "select distinct ns from checkpoint_value where thread_id = %s", (run.thread_id,)
        )
        assert set(await values.fetchall()) <= {("",)}


async def test_what_our_tools_found_can_be_quoted_and_is_cited(shared_platform: Platform, tmp_path: Path) -> None:
    (tmp_path / "halls.md").write_text("# Halls\n\nThe roof of the old hall was built in 1907 by Ada Lund.\n")
    await ingest_folder(shared_platform.database, shared_platform.tenant, tmp_path)
    text = says('The sources say "the old hall was built in 1907". It still stands.')
    lines = {"reader": {"answers": [calls("search_library", query="roof old hall"), text]}}
    run = await started(shared_platform, Play("plain_reader", "How old is the roof?", lines, "", 2).request())
    await shared_platform.ended(run.id)
    report, (_, turn) = await report_of(shared_platform, run.id), await turns_of(shared_platform, run.id)
    (citation,) = report.citations
    assert "the old hall was built in 1907" in citation.quote
    assert report.answer is not None
    assert report.answer.is_supported
    assert "[E1] " in turn.messages[-1].text
    assert "result of search_library " in turn.messages[-1].text


async def test_a_tool_of_ours_that_fails_tells_the_model_why(shared_platform: Platform) -> None:
    lines = {"reader": {"answers": [calls("search_library", query=""), says("I could not search.")]}}
    run = await started(shared_platform, Play("plain_reader", "How old?", lines, "", 2).request())
    assert (await shared_platform.ended(run.id)).status is RunStatus.DONE
    assert "query" in (await turns_of(shared_platform, run.id))[-1].messages[-1].text


async def test_the_functional_form_runs_too(shared_platform: Platform) -> None:
    run = await started(shared_platform, FUNCTIONAL.request())
    ended = await shared_platform.ended(run.id)
    assert ended.status is RunStatus.DONE, ended.error
    assert await answer_of(shared_platform, run.id) == FUNCTIONAL.answer
    assert len(model_calls(await shared_platform.steps(run.id))) == FUNCTIONAL.calls


async def test_a_person_who_asks_to_write_now_gets_what_there_is(shared_platform: Platform) -> None:
    lines = {
        "supervisor": {"answers": [calls("Route", next="researcher")]},
        "researcher": {"answers": [says("It has 17 moons.")]},
    }
    endless = replace(SUPERVISOR, turns=2000, lines=lines)
    run = await started(shared_platform, endless.request(delay_ms=20))
    while not any(s.title == "It has 17 moons." for s in await shared_platform.steps(run.id)):
        assert not (await shared_platform.run(run.id)).is_terminal
    await cancel_run(
        shared_platform.database, shared_platform.notifier, shared_platform.tenant, run.id, CancelMode.FINISH
    )
    ended = await shared_platform.ended(run.id)
    assert (ended.status, ended.stop_reason) == (RunStatus.DONE, StopReason.FINISH_REQUESTED)
    assert await answer_of(shared_platform, run.id) == "It has 17 moons."


async def test_a_node_that_was_started_with_send_has_its_calls(shared_platform: Platform) -> None:
    run = await started(shared_platform, MAP_REDUCE.request())
    await shared_platform.ended(run.id)
    nodes = {node.node: node for node in await list_nodes(shared_platform.database, shared_platform.tenant, run.id)}
    assert "" not in nodes
    assert nodes["write_verse"].visits == 1
    assert nodes["write_verse"].steps >= 4
    assert "writer" in nodes["write_verse"].roles
