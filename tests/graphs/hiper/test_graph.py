"""HiPER end to end on a context in memory: segments and drift, its endings, and what happens when things fail."""

from typing import Any

import pytest

from offing.core.model import FailureKind
from offing.core.run import Budget, StopReason
from offing.core.step import StepKind
from offing.sdk import DraftCitation, DraftSection, DraftSentence, ReportDraft
from offing_graphs.agentflow import graph as agentflow
from offing_graphs.hiper import graph
from offing_graphs.hiper.schemas import Action, AgentInput, Turn
from offing_graphs.hiper.segments import locate_turn
from tests.graphs.hiper.builders import ANSWER, QUESTION, keep, records, run, says, switch
from tests.graphs.in_memory_context import carry_out, failing

# A run.


async def test_a_run_acts_and_records_turn_by_turn_and_answers() -> None:
    ctx = run()
    state = await carry_out(ctx, graph)
    turn = [StepKind.ROLE_CALL, StepKind.TOOL_RESULT, StepKind.MEMORY]
    assert ctx.kinds() == [*turn * (ctx.turns - 1), StepKind.ROLE_CALL, StepKind.MEMORY, StepKind.REPORT]
    assert state["stop"] == StopReason.ANSWERED
    assert ctx.report.answer is not None
    assert "twice a year" in ctx.report.answer.text
    assert ctx.report.answer.is_supported


@pytest.mark.parametrize(
    "question",
    [QUESTION, "Compare the Heron and the Tern", "What does a berth cost and how can one pay?", "What is 12 * 7?"],
)
async def test_its_report_without_a_model_is_the_one_of_agentflow(question: str) -> None:
    ours, theirs = run(question), run(question)
    await carry_out(ours, graph)
    await carry_out(theirs, agentflow)
    assert ours.report.answer == theirs.report.answer
    assert [c.quote for c in ours.report.citations] == [c.quote for c in theirs.report.citations]
    assert not [rejected for s in ours.report.sentences() for rejected in s.rejected]


async def test_the_state_holds_numbers_and_reasons_only() -> None:
    from offing_graphs.hiper.state import State

    ctx = run()
    state = await carry_out(ctx, graph)
    assert set(state) == set(graph.initial_state(ctx.run)) == set(State.__annotations__)
    assert graph.turn_counter in State.__annotations__
    assert all(isinstance(v, int) or (isinstance(v, str) and len(v) < 20) for v in state.values())


async def test_without_a_model_a_subgoal_is_a_part_of_the_question_and_lasts_several_turns() -> None:
    ctx = run("What does a berth cost and how can one pay?")
    await carry_out(ctx, graph)
    bands = [(r.subgoal_nr, r.subgoal) for r in records(ctx)]
    assert len(dict.fromkeys(bands)) == 2
    assert [r.switch for r in records(ctx)] == ["SWITCH", "KEEP", "SWITCH", "KEEP", "KEEP"]


async def test_a_call_that_cannot_be_made_is_a_turn_like_any_other() -> None:
    turns = (switch("a", Action(tool="browse_web")), keep("a", Action(tool="read_source")), keep("a", ANSWER))
    ctx = run(engines={"agent": says(*turns)}, broken={"search_library": "away"})
    await carry_out(ctx, graph)
    assert [(r.tool, r.status) for r in records(ctx)] == [
        ("browse_web", "invalid"),
        ("read_source", "invalid"),
        ("answer", "ok"),
    ]
    assert "no tool browse_web" in records(ctx)[0].finding


# Segments.


async def test_a_run_that_always_keeps_is_one_segment() -> None:
    ctx = run(engines={"agent": says(keep("a"), keep("a"), keep("a", ANSWER))})
    await carry_out(ctx, graph)
    assert [(r.boundary, r.subgoal_nr, r.subgoal, r.drifted) for r in records(ctx)] == [
        (True, 1, "a", False),
        (False, 1, "a", False),
        (False, 1, "a", False),
    ]


async def test_a_run_that_always_switches_has_a_segment_a_turn_also_with_the_same_words() -> None:
    ctx = run(engines={"agent": says(switch("a"), switch("b"), switch("b", ANSWER))})
    await carry_out(ctx, graph)
    assert [(r.boundary, r.subgoal_nr, r.subgoal) for r in records(ctx)] == [
        (True, 1, "a"),
        (True, 2, "b"),
        (True, 3, "b"),
    ]


async def test_a_keep_with_other_words_is_recorded_as_drift_and_keeps_the_old_subgoal() -> None:
    ctx = run(engines={"agent": says(switch("a"), keep("b"), keep(""), keep(" a "), keep("a", ANSWER))})
    await carry_out(ctx, graph)
    assert [r.drifted for r in records(ctx)] == [False, True, True, False, False]
    assert {r.subgoal for r in records(ctx)} == {"a"}
    messages = [inputs.subgoal for _, inputs in ctx.role_inputs]
    assert messages == ["", "a", "a", "a", "a"]


async def test_every_record_names_the_answer_that_it_places() -> None:
    ctx = run()
    await carry_out(ctx, graph)
    turns = [s for s in ctx.steps if s.kind is StepKind.ROLE_CALL]
    assert [r.output_seq for r in records(ctx)] == [s.seq for s in turns]
    assert [r.turn for r in records(ctx)] == [s.turn for s in turns]


def test_the_first_turn_always_opens_a_segment() -> None:
    for first in (keep(""), keep("a"), switch("a")):
        position = locate_turn(first, None)
        assert (position.boundary, position.segment_number, position.subgoal, position.drifted) == (
            True,
            1,
            first.subgoal,
            False,
        )


# Endings.


async def test_at_the_turn_limit_the_agent_is_asked_for_an_answer_alone() -> None:
    answers = (switch("a"), keep("a"), keep("a", ANSWER))
    ctx = run(budget=Budget(max_turns=2), engines={"agent": says(*answers)})
    await carry_out(ctx, graph)
    assert ctx.report.stop_reason == StopReason.TURN_LIMIT
    assert ctx.report.answer is not None
    assert ctx.report.answer.text == "So."
    forced = ctx.role_inputs[-1][1]
    assert (forced.reason, forced.remaining) == ("turn_limit", 0)
    assert "must be `answer` or `give_up`" in ctx.prompts[-1][1][-1].text
    assert [(r.turn, r.boundary) for r in records(ctx)] == [(1, True), (2, False), (0, False)]


async def test_an_answer_in_the_last_turn_counts() -> None:
    ctx = run(budget=Budget(max_turns=2), engines={"agent": says(switch("a"), keep("a", ANSWER))})
    await carry_out(ctx, graph)
    assert ctx.report.stop_reason == StopReason.ANSWERED


async def test_a_forced_answer_that_is_a_tool_call_is_not_made() -> None:
    ctx = run(budget=Budget(max_turns=1), engines={"agent": says(switch("a"))})
    await carry_out(ctx, graph)
    assert len(ctx.calls) == 1
    assert ctx.report.stop_reason == StopReason.TURN_LIMIT
    assert ctx.report.citations
    assert records(ctx)[-1].status == "not_made"


async def test_a_turn_limit_of_zero_goes_straight_to_the_report() -> None:
    ctx = run(budget=Budget(max_turns=0))
    await carry_out(ctx, graph)
    assert ctx.kinds() == [StepKind.REPORT]
    assert ctx.report.stop_reason == StopReason.TURN_LIMIT


async def test_giving_up_is_nothing_found() -> None:
    ctx = run(engines={"agent": says(switch("a"), keep("a", ANSWER.model_copy(update={"tool": "give_up"})))})
    await carry_out(ctx, graph)
    assert ctx.report.stop_reason == StopReason.NOTHING_FOUND
    assert ctx.report.status == "partial"


async def test_an_answer_without_support_is_no_complete_report() -> None:
    ctx = run(engines={"agent": says(switch("a", ANSWER))})
    await carry_out(ctx, graph)
    assert ctx.report.stop_reason == StopReason.NOTHING_FOUND
    assert ctx.report.status == "partial"


async def test_a_limit_with_nothing_found_is_said_and_not_written_by_a_model() -> None:
    ctx = run(
        budget=Budget(max_turns=1),
        engines={"agent": says(switch("a", Action(tool="search_library", args={"query": "q"})))},
    )
    ctx.library = type(ctx.library)([("empty.md", "# Unrelated\n\nBread is baked at night.\n")])
    await carry_out(ctx, graph)
    assert ctx.report.stop_reason == StopReason.NOTHING_FOUND
    assert len(ctx.role_inputs) == 1


@pytest.mark.parametrize(("node", "nth_request"), [("agent", 0), ("act", 1), ("second agent", 2)])
async def test_every_node_asks_whether_to_stop_before_it_does_anything(node: str, nth_request: int) -> None:
    ctx = run(stops=[None] * nth_request + [StopReason.TIME_LIMIT])
    await carry_out(ctx, graph)
    assert ctx.report.stop_reason == StopReason.TIME_LIMIT, node
    expected = [StepKind.ROLE_CALL, StepKind.TOOL_RESULT]
    assert [k for k in ctx.kinds() if k in expected] == expected[:nth_request]
    assert len(records(ctx)) == min(nth_request, 1)


@pytest.mark.parametrize("reason", [StopReason.TOKEN_LIMIT, StopReason.SPEND_LIMIT, StopReason.TIME_LIMIT])
async def test_after_a_budget_is_spent_no_engine_is_asked_to_finish(reason: StopReason) -> None:
    ctx = run(stops=[None, None, reason])
    await carry_out(ctx, graph)
    assert ctx.report.stop_reason == reason
    assert ctx.report.citations
    assert len(ctx.role_inputs) == 1


FAILURES = [
    (FailureKind.BUDGET_EXHAUSTED, "token_limit", StopReason.TOKEN_LIMIT),
    (FailureKind.INVALID_OUTPUT, "", StopReason.INVALID_OUTPUT),
    (FailureKind.OVERLOADED, "", StopReason.PROVIDER_DOWN),
    (FailureKind.UNKNOWN_ENGINE, "", StopReason.PROVIDER_DOWN),
]


@pytest.mark.parametrize("turn", [1, 2, "forced"])
@pytest.mark.parametrize(("kind", "stop", "reason"), FAILURES)
async def test_whenever_its_engine_fails_there_is_a_partial_report_with_the_reason(
    turn: int | str, kind: FailureKind, stop: str, reason: StopReason
) -> None:
    fails = failing(kind, stop)

    def engine(inputs: AgentInput) -> Any:
        now = "forced" if inputs.reason else inputs.turn
        return fails(inputs) if now == turn else switch("a")

    ctx = run(budget=Budget(max_turns=3), engines={"agent": engine})
    await carry_out(ctx, graph)
    assert ctx.report.stop_reason == reason
    assert ctx.report.status == "partial"
    assert ctx.report.limits
    assert bool(ctx.report.citations) is (turn != 1)


async def test_a_message_while_it_answers_is_consumed_in_another_turn() -> None:
    ctx = run()

    def agent(inputs: AgentInput) -> Turn:
        if inputs.turn == 2:
            ctx.say("Also say when the Heron departs last.")
        return switch("a") if inputs.turn == 1 else keep("a", ANSWER)

    ctx.engines = {"agent": agent}
    await carry_out(ctx, graph)
    assert [inputs.user_messages for _, inputs in ctx.role_inputs] == [
        (),
        (),
        ("Also say when the Heron departs last.",),
    ]
    assert ctx.turns == 3
    assert ctx.report.stop_reason == StopReason.ANSWERED


async def test_a_message_while_it_answers_in_its_last_turn_is_consumed_in_the_forced_answer() -> None:
    ctx = run(budget=Budget(max_turns=2))

    def agent(inputs: AgentInput) -> Turn:
        if inputs.turn == 2:
            ctx.say("Also say when the Heron departs last.")
        return switch("a") if inputs.turn == 1 else keep("a", ANSWER)

    ctx.engines = {"agent": agent}
    await carry_out(ctx, graph)
    assert ctx.role_inputs[-1][1].user_messages == ("Also say when the Heron departs last.",)
    assert ctx.role_inputs[-1][1].reason == ctx.report.stop_reason == StopReason.TURN_LIMIT


async def test_a_quote_that_was_not_retrieved_is_not_accepted() -> None:
    invented = DraftSentence(
        text="It is so.", citations=(DraftCitation(evidence="E1", quote="never written anywhere"),)
    )
    report = ReportDraft(title="T", sections=(DraftSection(heading="H", sentences=(invented,)),))
    ctx = run(engines={"agent": says(switch("a"), keep("a", Action(tool="answer", report=report)))})
    await carry_out(ctx, graph)
    assert not ctx.report.citations
    assert ctx.report.sentences()[0].rejected


async def test_the_fallback_report_uses_what_was_retrieved() -> None:
    ctx = run(stops=[None, None, StopReason.FINISH_REQUESTED])
    await carry_out(ctx, graph)
    assert graph.fallback_report is not None
    draft: ReportDraft = graph.fallback_report(ctx.run, tuple(ctx.collected))
    assert (await ctx.submit_report(draft, StopReason.GRAPH_ERROR)).citations
    assert "Nothing in the documents" in graph.fallback_report(ctx.run, ()).answer


async def test_a_node_that_runs_again_is_given_what_it_was_given_the_first_time() -> None:
    from offing_graphs.hiper import nodes

    ctx = run(
        budget=Budget(max_turns=4), engines={"agent": says(switch("a"), keep("a"), switch("b"), keep("b", ANSWER))}
    )
    await carry_out(ctx, graph)
    first = next(inputs for _, inputs in ctx.role_inputs if inputs.turn == 2)

    class Runtime:
        context = ctx

    ctx.role_inputs.clear()
    await nodes.agent({**graph.initial_state(ctx.run), "turn": 1, "output_seq": 1}, Runtime())  # type: ignore[arg-type]
    again = ctx.role_inputs[0][1]
    assert again == first


async def test_the_same_run_twice_gives_the_same_steps() -> None:
    one, two = run("Compare the Heron and the Tern"), run("Compare the Heron and the Tern")
    await carry_out(one, graph)
    await carry_out(two, graph)
    assert one.steps == two.steps


# The prompt.


async def test_the_prompt_shows_two_turns_whole_and_the_subgoal_in_force() -> None:
    queries = ("alpha", "beta", "gamma")
    turns = [keep("Find it", Action(tool="search_library", args={"query": f"tide {q}"})) for q in queries]
    ctx = run(engines={"agent": says(*turns, keep("Find it", ANSWER))})
    await carry_out(ctx, graph)
    first, last = (messages[-1].text for _, messages in (ctx.prompts[0], ctx.prompts[3]))
    assert "The current subgoal: None" in first
    assert "This is turn 1 of 12." in first
    assert [q for q in queries if f"tide {q}" in last] == ["beta", "gamma"]
    assert "The current subgoal: Find it" in last


async def test_values_that_no_passage_holds_stay_in_sight() -> None:
    sum_of = Action(tool="calculate", args={"expression": "6*7"})
    ctx = run(engines={"agent": says(switch("a", sum_of), keep("a"), keep("a"), keep("a", ANSWER))})
    await carry_out(ctx, graph)
    assert "6*7 = 42" in ctx.prompts[3][1][-1].text


def test_an_answer_with_a_report_has_an_author_and_a_tool_call_has_none() -> None:
    from offing.kernel.report_author import has_draft

    assert has_draft(Turn, keep("a", ANSWER).model_dump(mode="json"))
    assert not has_draft(Turn, keep("a").model_dump(mode="json"))
