"""IterResearch end to end on a context in memory: its rounds, endings and reports, and what failures do to it."""

from typing import Any

import pytest

from offing.core.model import FailureKind
from offing.core.run import Budget, Depth, RunStatus, StopReason
from offing.core.step import StepKind
from offing.core.trajectory import BoundaryReason, Outcome, classify_outcome
from offing.sdk import DraftCitation, DraftSection, DraftSentence, ReportDraft
from offing_graphs.agentflow import graph as agentflow
from offing_graphs.iterresearch import graph, nodes
from offing_graphs.iterresearch.schemas import Call, Round, TurnPhase, Workspace, build_output
from tests.graphs.corpus import harbour
from tests.graphs.extractive.test_extractive import QUESTIONS
from tests.graphs.in_memory_context import Engine, InMemoryContext, carry_out, failing
from tests.graphs.world_runs import accuracy

QUESTION = "How often is the tide gauge calibrated?"
QUOTE = "The gauge is calibrated twice a year"


def run(question: str = QUESTION, **more: Any) -> InMemoryContext:
    return InMemoryContext(harbour(), question, **more)


def acting(inputs: Workspace, tool: str = "search_library", **args: Any) -> Round:
    call = Call(tool=tool, args=args or {"query": QUESTION})
    return build_output(inputs.phase, think="Let me see.", report="Nothing is known yet.", action=call)


def answering(inputs: Workspace, **more: Any) -> Round:
    cited = DraftSentence(text="Twice a year.", citations=(DraftCitation(evidence="E1", quote=QUOTE),))
    sections = (DraftSection(heading="Gauge", sentences=(cited,)),)
    draft = ReportDraft(title="Calibration", answer="Twice a year [E1].", sections=sections)
    return build_output(inputs.phase, report=f"“{QUOTE}” [E1]", answer=draft, **more)


def answers_after(rounds: int, **more: Any) -> Engine:
    """Searches in the given number of rounds, then answers; earlier where it must."""
    requests: list[Workspace] = []

    def answer(inputs: Workspace) -> Round:
        requests.append(inputs)
        done = inputs.phase is TurnPhase.FINAL or len(requests) > rounds
        return answering(inputs, **more) if done else acting(inputs)

    return answer


def stages(ctx: InMemoryContext) -> list[TurnPhase]:
    return [inputs.phase for _, inputs in ctx.role_inputs]


async def test_each_round_writes_a_report_and_acts_until_one_answers() -> None:
    ctx = run(engines={"researcher": answers_after(2)})
    await carry_out(ctx, graph)
    one = [StepKind.ROLE_CALL, StepKind.NOTE, StepKind.TOOL_RESULT]
    assert ctx.kinds() == [*one, *one, StepKind.ROLE_CALL, StepKind.NOTE, StepKind.REPORT]
    assert stages(ctx) == [TurnPhase.FIRST, TurnPhase.MIDDLE, TurnPhase.MIDDLE]
    assert ctx.report.stop_reason == StopReason.ANSWERED
    assert ctx.report.citations[0].quote == QUOTE
    assert all(s.is_supported for s in ctx.report.sentences())


async def test_every_version_of_the_report_is_on_record_with_its_round() -> None:
    ctx = run(engines={"researcher": answers_after(2)})
    await carry_out(ctx, graph)
    versions = [s for s in ctx.steps if s.kind is StepKind.NOTE]
    assert [(s.label, s.payload["round"], s.turn) for s in versions] == [("report", n, n) for n in (1, 2, 3)]
    assert versions[0].payload["report"] == "Nothing is known yet."
    assert QUOTE in versions[-1].payload["report"]


async def test_a_round_is_given_the_last_report_action_and_result_and_no_thought() -> None:
    ctx = run(engines={"researcher": answers_after(2)})
    await carry_out(ctx, graph)
    inputs = ctx.role_inputs[1][1]
    assert inputs.report == "Nothing is known yet."
    assert inputs.action == Call(tool="search_library", args={"query": QUESTION})
    assert [p.id for p in inputs.result.passages][:2] == ["E1", "E2"]
    assert "Let me see" not in "\n".join(m.text for _, messages in ctx.prompts for m in messages)


async def test_every_round_but_the_first_begins_a_segment_of_its_own() -> None:
    ctx = run(engines={"researcher": answers_after(2)})
    await carry_out(ctx, graph)
    assert [s.boundary_reason for s in ctx.role_calls] == [
        None,
        BoundaryReason.WORKSPACE_RESET,
        BoundaryReason.WORKSPACE_RESET,
    ]


async def test_the_state_holds_numbers_and_reasons_only() -> None:
    ctx = run()
    state = await carry_out(ctx, graph)
    assert set(state) == set(graph.initial_state(ctx.run))
    assert all(isinstance(v, int) or len(v) < 20 for v in state.values())


# Limits.


async def test_a_turn_limit_of_zero_goes_straight_to_the_report() -> None:
    ctx = run(budget=Budget(max_turns=0))
    await carry_out(ctx, graph)
    assert ctx.kinds() == [StepKind.REPORT]
    assert ctx.report.stop_reason == StopReason.TURN_LIMIT


@pytest.mark.parametrize("turns", [1, 2, 5])
async def test_the_last_round_must_answer_and_the_run_counts_as_truncated(turns: int) -> None:
    ctx = run(budget=Budget(max_turns=turns), engines={"researcher": answers_after(100)})
    await carry_out(ctx, graph)
    before = [TurnPhase.FIRST, *[TurnPhase.MIDDLE] * turns][: turns - 1]
    assert stages(ctx) == [*before, TurnPhase.FINAL]
    assert ctx.report.stop_reason == StopReason.TURN_LIMIT
    assert classify_outcome(RunStatus.DONE, StopReason(ctx.report.stop_reason)) is Outcome.TRUNCATED
    assert "limit on turns" in ctx.report.limits
    assert ctx.report.title == "Calibration"


async def test_a_run_without_tools_answers_at_once() -> None:
    ctx = run(specs=(), engines={"researcher": answers_after(100)})
    await carry_out(ctx, graph)
    assert stages(ctx) == [TurnPhase.FINAL]
    assert ctx.report.stop_reason == StopReason.ANSWERED


async def test_an_answer_that_says_that_nothing_answers_is_no_success() -> None:
    ctx = run(engines={"researcher": answers_after(1, answered=False)})
    await carry_out(ctx, graph)
    assert ctx.report.stop_reason == StopReason.NOTHING_FOUND
    assert classify_outcome(RunStatus.DONE, StopReason.NOTHING_FOUND) is Outcome.NO_ANSWER


@pytest.mark.parametrize("reason", [StopReason.TOKEN_LIMIT, StopReason.SPEND_LIMIT, StopReason.TIME_LIMIT])
async def test_after_a_budget_is_spent_no_engine_is_asked(reason: StopReason) -> None:
    ctx = run(stops=[None, None, reason], engines={"researcher": answers_after(100)})
    await carry_out(ctx, graph)
    assert ctx.report.stop_reason == reason
    assert ctx.report.citations
    assert len(ctx.prompts) == 1
    assert any("Nothing is known yet." in s.text for s in ctx.report.sentences())


async def test_a_model_free_run_that_is_cut_off_reports_its_quotes_and_not_its_own_list() -> None:
    ctx = run(stops=[None, None, None, StopReason.TIME_LIMIT])
    await carry_out(ctx, graph)
    assert ctx.report.citations
    assert "the time limit was reached" in ctx.report.limits
    assert "search_library" not in str(ctx.report.sections)


async def test_a_call_that_a_finish_request_prevented_is_reported_as_not_made() -> None:
    stops = [None, None, None, StopReason.FINISH_REQUESTED, StopReason.FINISH_REQUESTED]
    ctx = run(stops=stops, engines={"researcher": answers_after(100)})
    await carry_out(ctx, graph)
    assert len(ctx.calls) == 1
    assert ctx.role_inputs[-1][1].result is None
    assert "It was not made." in ctx.prompts[-1][1][1].text


@pytest.mark.parametrize("nth_request", [1, 2, 3])
async def test_a_person_who_asks_for_what_there_is_gets_the_answer_of_a_final_round(nth_request: int) -> None:
    stops = [None] * nth_request + [StopReason.FINISH_REQUESTED] * 2
    ctx = run(stops=stops, engines={"researcher": answers_after(100)})
    await carry_out(ctx, graph)
    assert stages(ctx)[-1] is TurnPhase.FINAL
    assert stages(ctx).count(TurnPhase.FINAL) == 1
    assert ctx.report.stop_reason == StopReason.FINISH_REQUESTED
    assert "a person asked" in ctx.report.limits


async def test_a_finish_request_before_anything_is_known_calls_no_engine() -> None:
    ctx = run(stops=[StopReason.FINISH_REQUESTED])
    await carry_out(ctx, graph)
    assert ctx.kinds() == [StepKind.REPORT]
    assert ctx.report.stop_reason == StopReason.FINISH_REQUESTED


# Failures.

FAILURES = [
    (FailureKind.BUDGET_EXHAUSTED, "token_limit", StopReason.TOKEN_LIMIT),
    (FailureKind.BUDGET_EXHAUSTED, "tenant_spend_limit", StopReason.TENANT_SPEND_LIMIT),
    (FailureKind.INVALID_OUTPUT, "", StopReason.INVALID_OUTPUT),
    (FailureKind.OVERLOADED, "", StopReason.PROVIDER_DOWN),
    (FailureKind.UNKNOWN_ENGINE, "", StopReason.PROVIDER_DOWN),
]


@pytest.mark.parametrize("rounds", [0, 1, 2])
@pytest.mark.parametrize(("kind", "stop", "reason"), FAILURES)
async def test_after_any_failure_there_is_a_partial_report_of_what_was_retrieved(
    rounds: int, kind: FailureKind, stop: str, reason: StopReason
) -> None:
    left = [acting] * rounds

    def engine(inputs: Workspace) -> Any:
        return left.pop()(inputs) if left else failing(kind, stop)(inputs)

    ctx = run(engines={"researcher": engine})
    await carry_out(ctx, graph)
    assert ctx.report.stop_reason == reason
    assert ctx.report.status == "partial"
    assert ctx.report.limits
    assert bool(ctx.report.citations) == (rounds > 0)
    assert ("Nothing is known yet." in str(ctx.report.sections)) == (rounds > 0)


async def test_a_call_that_cannot_be_made_is_a_result_that_the_next_round_sees() -> None:
    calls = [("browse_web", {"url": "x"}), ("search_library", {"words": "x"})]

    def engine(inputs: Workspace) -> Round:
        return acting(inputs, calls[0][0], **calls.pop(0)[1]) if calls else answering(inputs)

    ctx = run(engines={"researcher": engine})
    await carry_out(ctx, graph)
    results = [inputs.result for _, inputs in ctx.role_inputs[1:]]
    assert [r.status for r in results] == ["invalid", "invalid"]
    assert "no tool browse_web" in ctx.prompts[1][1][1].text
    assert ctx.turns == 3


async def test_a_tool_that_fails_is_told_and_the_run_continues() -> None:
    ctx = run(broken={"search_library": "The index is being rebuilt."}, engines={"researcher": answers_after(1)})
    await carry_out(ctx, graph)
    assert "rebuilt" in ctx.prompts[1][1][1].text
    assert ctx.report.title == "Calibration"


async def test_a_message_in_mid_run_is_consumed_and_keeps_an_answer_from_ending_it() -> None:
    ctx = run()

    def engine(inputs: Workspace) -> Round:
        if not inputs.user_messages and inputs.phase is TurnPhase.MIDDLE:
            ctx.say("Also say where tickets are sold.")
            return answering(inputs)
        return acting(inputs) if inputs.phase is TurnPhase.FIRST else answering(inputs)

    ctx.engines = {"researcher": engine}
    await carry_out(ctx, graph)
    assert [inputs.user_messages for _, inputs in ctx.role_inputs] == [(), (), ("Also say where tickets are sold.",)]
    assert ctx.role_inputs[2][1].report
    assert ctx.role_inputs[2][1].action is None
    assert ctx.report.stop_reason == StopReason.ANSWERED


async def test_a_round_that_runs_again_is_given_what_it_was_given_the_first_time() -> None:
    ctx = run(engines={"researcher": answers_after(3)})
    await carry_out(ctx, graph)
    turns = [s.seq for s in ctx.steps if s.kind is StepKind.ROLE_CALL]
    tools = [s.seq for s in ctx.steps if s.kind is StepKind.TOOL_RESULT]
    first = ctx.role_inputs[2][1]
    ctx.role_inputs.clear()

    class Runtime:
        context = ctx

    state: Any = {**graph.initial_state(ctx.run), "turn": 2, "round": turns[1], "tool": tools[1]}
    await nodes.research(state, Runtime())  # type: ignore[arg-type]
    assert ctx.role_inputs[0][1] == first


# Without a model.


@pytest.mark.parametrize(("question", "expected"), QUESTIONS)
async def test_a_question_about_the_documents_is_answered_without_a_model(question: str, expected: str) -> None:
    ctx = run(question)
    await carry_out(ctx, graph)
    assert ctx.report.answer is not None
    assert expected in ctx.report.answer.text
    assert all(s.is_supported and not s.rejected for s in ctx.report.sentences())
    assert ctx.report.stop_reason == StopReason.ANSWERED


@pytest.mark.parametrize(
    "question", [QUESTION, "Compare the Heron and the Tern", "What does a berth cost and what is the wifi password?"]
)
async def test_without_a_model_the_answer_is_that_of_a_graph_that_remembers_everything(question: str) -> None:
    ours, theirs = run(question), run(question)
    await carry_out(ours, graph)
    await carry_out(theirs, agentflow)
    assert ours.report.sections == theirs.report.sections
    assert ours.report.answer == theirs.report.answer
    assert ours.report.limits == theirs.report.limits
    assert ours.calls == theirs.calls


@pytest.mark.parametrize("question", ["What is the salary of the harbour master?", "qwertz uiop?", "¿Dónde está?"])
async def test_what_the_documents_do_not_say_is_said_to_be_missing(question: str) -> None:
    ctx = run(question)
    await carry_out(ctx, graph)
    assert ctx.report.stop_reason == StopReason.NOTHING_FOUND
    assert "Not found" in ctx.report.limits


async def test_a_sum_is_calculated() -> None:
    ctx = run("What is 12% of 350?")
    await carry_out(ctx, graph)
    assert [c.tool for c in ctx.calls] == ["calculate"]
    assert ctx.report.answer is not None
    assert "= 42" in ctx.report.answer.text


async def test_a_run_that_ended_elsewhere_gets_a_fallback_report_from_what_was_retrieved() -> None:
    ctx = run(engines={"researcher": answers_after(1)})
    await carry_out(ctx, graph)
    assert graph.fallback_report is not None
    draft = graph.fallback_report(ctx.run, await ctx.get_evidence(240))
    assert QUOTE in str(draft)


# In a synthetic world.


async def test_an_oracle_answers_a_world_and_chance_does_not() -> None:
    assert await accuracy(graph, "oracle") >= 0.95
    assert await accuracy(graph, "random") < 0.25


@pytest.mark.parametrize("prompt_format", ["text", "compact"])
async def test_an_oracle_answers_a_world_in_every_form(prompt_format: str) -> None:
    assert await accuracy(graph, "oracle", 40, prompt_formats={"researcher": prompt_format}) >= 0.95


async def test_a_deep_run_writes_its_answer_when_the_latest_rounds_find_nothing_new() -> None:
    budget = Budget(max_turns=20, depth=Depth.DEEP)
    ctx = run(engines={"researcher": answers_after(100)}, budget=budget)
    await carry_out(ctx, graph)
    assert ctx.report.stop_reason == StopReason.SATURATED
    assert (ctx.turns, stages(ctx)[-1]) == (5, TurnPhase.FINAL), "one search that finds, three in vain, the answer"
    assert any(s.is_supported for s in ctx.report.sentences())
    prompts = ["\n".join(m.text for m in messages) for _, messages in ctx.prompts]
    assert ["This is a deep run." in text for text in prompts] == [True, True, True, True, False]


async def test_a_deep_run_in_vain_ends_with_nothing_found() -> None:
    budget = Budget(max_turns=20, depth=Depth.DEEP)
    ctx = run(engines={"researcher": answers_after(100, answered=False)}, budget=budget)
    await carry_out(ctx, graph)
    assert ctx.report.stop_reason == StopReason.NOTHING_FOUND


async def test_a_standard_run_searches_in_vain_up_to_its_turn_limit() -> None:
    ctx = run(engines={"researcher": answers_after(100)}, budget=Budget(max_turns=8))
    await carry_out(ctx, graph)
    assert (ctx.report.stop_reason, ctx.turns) == (StopReason.TURN_LIMIT, 8)
    assert not any("deep" in inputs.model_dump() for _, inputs in ctx.role_inputs)
