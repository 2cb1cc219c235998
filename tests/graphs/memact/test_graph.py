"""Memory as action: a run from its question to its report, over documents and without a model."""

from dataclasses import replace
from typing import Any

import pytest

from offing.core.run import StopReason
from offing.core.step import StepKind
from offing_graphs.memact import graph, supo
from offing_graphs.memact.context import EDITING_CONFIG
from offing_graphs.memact.graph import configure_graph
from offing_graphs.memact.nodes import AgentNodes
from offing_graphs.memact.schemas import Act, AgentInput
from offing_graphs.memact.state import State
from tests.graphs.extractive.test_extractive import QUESTIONS
from tests.graphs.in_memory_context import carry_out
from tests.graphs.memact.builders import DONE, QUESTION, SEARCH, acts, prune, rows, run, texts, write


async def test_a_run_acts_and_answers_and_its_answer_is_the_report() -> None:
    ctx = run()
    state = await carry_out(ctx, graph)
    assert set(ctx.kinds()) == {StepKind.ROLE_CALL, StepKind.TOOL_RESULT, StepKind.REPORT}
    assert state["stop"] == ctx.report.stop_reason == StopReason.ANSWERED
    assert ctx.report.answer
    assert "twice a year" in ctx.report.answer.text


async def test_the_state_holds_numbers_and_words_only() -> None:
    ctx = run(engines=acts(SEARCH, write("n"), SEARCH, prune("r1"), DONE))
    state = await carry_out(ctx, graph)
    assert set(state) == set(graph.initial_state(ctx.run)) == set(State.__annotations__)
    for value in state.values():
        assert (
            isinstance(value, int)
            or (isinstance(value, str) and len(value) < 20)
            or all(isinstance(number, int) for number in value)
        )
    assert graph.turn_counter in state


async def test_the_system_and_the_question_are_in_every_prompt() -> None:
    ctx = run(engines=acts(SEARCH, prune("r1", "system", "question"), DONE))
    await carry_out(ctx, graph)
    assert len({texts(messages)[0] for _, messages in ctx.prompts}) == 1
    assert all(QUESTION in messages[1].text for _, messages in ctx.prompts)


async def test_a_call_that_cannot_be_made_is_a_record_and_costs_a_turn() -> None:
    ctx = run(engines=acts(Act(tool="browse_web"), Act(tool="search_library", args={"q": 1}), DONE))
    await carry_out(ctx, graph)
    messages = [e.observation for e in ctx.role_inputs[-1][1].records]
    assert "no tool browse_web" in messages[0]
    assert messages[1]
    assert [e.ok for e in ctx.role_inputs[-1][1].records] == [False, False]


async def test_a_message_in_mid_run_stays_where_it_was_first_shown_and_puts_an_answer_off() -> None:
    def agent(inputs: AgentInput) -> Act:
        if inputs.turn == 2:
            ctx.say("Also say when the Heron departs last.")
        return {1: SEARCH, 2: DONE, 3: SEARCH}.get(inputs.turn, DONE)

    ctx = run(engines={"agent": agent}, prompt_formats={"agent": "text"})
    await carry_out(ctx, graph)
    assert ctx.turns == 4
    assert len(rows(ctx.role_calls)) == 1
    assert "Heron departs last" in ctx.role_calls[2].messages[-1].text
    assert "not been handed over" in ctx.role_calls[2].messages[-1].text
    assert ctx.report.stop_reason == StopReason.ANSWERED


async def test_a_node_that_runs_again_is_given_what_it_was_given_the_first_time() -> None:
    ctx = run(engines=acts(SEARCH, SEARCH, prune("r1"), SEARCH, DONE))
    state = await carry_out(ctx, graph)
    first = ctx.role_inputs[-1][1]
    ctx.role_inputs.clear()

    class Runtime:
        context = ctx

    again: Any = {**state, "turn": state["turn"] - 1, "stop": ""}
    await AgentNodes(EDITING_CONFIG).agent(again, Runtime())  # type: ignore[arg-type]
    assert ctx.role_inputs[0][1] == first


async def test_nothing_of_an_earlier_question_is_in_a_later_run_of_the_thread() -> None:
    from langgraph.checkpoint.memory import InMemorySaver

    saver = InMemorySaver()
    await carry_out(run("When does the Heron depart first?"), graph, "thread", saver)
    second = run("What does a berth cost?")
    await carry_out(second, graph, "thread", saver)
    assert not any("Heron" in m.text for _, messages in second.prompts[:1] for m in messages)


@pytest.mark.parametrize("built_graph", [graph, supo], ids=lambda g: g.name)
@pytest.mark.parametrize(("question", "expected"), QUESTIONS)
async def test_a_question_about_the_documents_is_answered_without_a_model(
    built_graph: Any, question: str, expected: str
) -> None:
    ctx = run(question)
    await carry_out(ctx, built_graph)
    assert ctx.report.answer
    assert expected in ctx.report.answer.text
    assert ctx.report.answer.is_supported
    assert all(s.is_supported and not s.rejected for s in ctx.report.sentences())


async def test_without_a_model_a_full_context_is_pruned_to_what_tells_something() -> None:
    small = configure_graph("small", "", "", replace(EDITING_CONFIG, max_context_tokens=2_400))
    ctx = run("What does a berth cost, how often is the tide gauge calibrated, and what is the wifi password?")
    await carry_out(ctx, small)
    (edit, *_) = [s.payload for s in ctx.steps if s.kind is StepKind.MEMORY]
    assert edit["deleted"]
    assert "[E" in edit["note"]
    assert ctx.report.answer
    assert "12 crowns" in ctx.report.answer.text
    assert "twice a year" in ctx.report.answer.text
    queries = [c.args["query"] for c in ctx.calls if c.tool == "search_library"]
    assert len(queries) == len(set(queries))


async def test_what_the_documents_do_not_say_is_said_to_be_missing() -> None:
    ctx = run("Who won the regatta of 1999?")
    await carry_out(ctx, graph)
    assert ctx.report.stop_reason == StopReason.NOTHING_FOUND
    assert "Not found" in ctx.report.limits


def test_the_diagram_shows_the_loop() -> None:
    for built_graph in (graph, supo):
        drawn = built_graph.build().compile().get_graph().draw_mermaid()
        for edge in ("agent -.-> tool", "agent -.-> memory", "tool -.-> agent", "tool -.-> summarize"):
            assert edge in drawn
