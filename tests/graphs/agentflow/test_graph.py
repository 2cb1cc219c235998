"""The graph end to end on a context in memory: its shape, memory and endings, and what it does when things fail."""

from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from offing.core.model import FailureKind
from offing.core.run import Budget, StopReason
from offing.core.step import StepKind
from offing.sdk import ReportDraft
from offing_graphs.agentflow import graph
from offing_graphs.agentflow.schemas import Command, Verdict
from offing_graphs.shared.schemas import Coverage, Plan
from tests.graphs.corpus import harbour
from tests.graphs.in_memory_context import Engine, InMemoryContext, carry_out, failing

QUESTION = "How often is the tide gauge calibrated?"


def run(question: str = QUESTION, **more: Any) -> InMemoryContext:
    return InMemoryContext(harbour(), question, **more)


def verdicts(*stops: bool) -> Engine:
    """A verifier that says these, then the last again and again."""
    left = list(stops)

    def answer(_inputs: Any) -> Verdict:
        stop = left.pop(0) if len(left) > 1 else left[0]
        return Verdict(analysis="So it is.", coverage=(Coverage(sub_question="q", covered=True),), stop=stop)

    return answer


def plans(*tools: str) -> Engine:
    left = list(tools)
    return lambda _inputs: Plan(
        justification="because",
        context="query: tide gauge",
        sub_goal="Find it",
        tool=left.pop(0) if len(left) > 1 else left[0],
    )


def commands(tool: str, args: dict[str, Any]) -> Engine:
    return lambda _inputs: Command(tool=tool, args=args)


async def test_a_run_analyses_plans_acts_remembers_verifies_and_writes() -> None:
    ctx = run()
    state = await carry_out(ctx, graph)
    turns = [StepKind.PLAN, StepKind.TOOL_CALL, StepKind.TOOL_RESULT, StepKind.MEMORY, StepKind.VERIFICATION]
    assert ctx.kinds() == [StepKind.ANALYSIS, *turns * ctx.turns, StepKind.ROLE_CALL, StepKind.REPORT]
    assert state["stop"] == StopReason.ANSWERED
    assert ctx.report.answer is not None
    assert "twice a year" in ctx.report.answer.text
    assert ctx.report.answer.is_supported


async def test_every_sentence_of_the_report_is_supported_by_its_quote() -> None:
    for question in (QUESTION, "Compare the Heron and the Tern", "What does a berth cost and how can one pay?"):
        ctx = run(question)
        await carry_out(ctx, graph)
        assert ctx.report.citations
        for sentence in ctx.report.sentences():
            assert sentence.is_supported, sentence
            assert not sentence.rejected
        for citation in ctx.report.citations:
            assert citation.quote == ctx.library.text_of(citation.span)


async def test_the_state_holds_numbers_and_reasons_only() -> None:
    ctx = run()
    state = await carry_out(ctx, graph)
    assert set(state) == set(graph.initial_state(ctx.run))
    assert all(isinstance(v, int) or (isinstance(v, str) and len(v) < 20) for v in state.values())


def test_start_sets_every_key_of_the_state() -> None:
    from offing_graphs.agentflow.state import State

    assert set(graph.initial_state(run().run)) == set(State.__annotations__)
    assert graph.turn_counter in State.__annotations__


def test_the_diagram_shows_the_loop() -> None:
    drawn = graph.build().compile().get_graph().draw_mermaid()
    for edge in ("analyze -.-> planner", "planner -.-> executor", "executor -.-> verifier", "verifier -.-> planner"):
        assert edge in drawn
    for node in ("analyze", "planner", "executor", "verifier"):
        assert f"{node} -.-> generator" in drawn


async def test_a_turn_limit_of_zero_goes_straight_to_the_report() -> None:
    ctx = run(budget=Budget(max_turns=0))
    await carry_out(ctx, graph)
    assert ctx.kinds() == [StepKind.REPORT]
    assert ctx.report.stop_reason == StopReason.TURN_LIMIT
    assert "limit on turns" in ctx.report.limits


@pytest.mark.parametrize("turns", [1, 2, 5])
async def test_the_last_turn_is_finished_and_then_the_limit_ends_it(turns: int) -> None:
    ctx = run(budget=Budget(max_turns=turns), engines={"verifier": verdicts(False), "planner": plans("search_library")})
    await carry_out(ctx, graph)
    assert ctx.kinds().count(StepKind.VERIFICATION) == turns
    assert ctx.report.stop_reason == StopReason.TURN_LIMIT
    assert ctx.report.citations


async def test_a_verdict_in_the_last_turn_counts() -> None:
    ctx = run(budget=Budget(max_turns=2), engines={"verifier": verdicts(False, True)})
    await carry_out(ctx, graph)
    assert ctx.report.stop_reason == StopReason.ANSWERED


@pytest.mark.parametrize(
    ("node", "nth_request"), [("analyze", 0), ("planner", 1), ("executor", 2), ("verifier", 3), ("second planner", 4)]
)
async def test_every_node_asks_whether_to_stop_before_it_does_anything(node: str, nth_request: int) -> None:
    ctx = run(stops=[None] * nth_request + [StopReason.FINISH_REQUESTED], engines={"verifier": verdicts(False)})
    await carry_out(ctx, graph)
    assert ctx.report.stop_reason == StopReason.FINISH_REQUESTED, node
    expected = [StepKind.ANALYSIS, StepKind.PLAN, StepKind.TOOL_RESULT, StepKind.VERIFICATION]
    assert [k for k in ctx.kinds() if k in expected] == expected[:nth_request]


@pytest.mark.parametrize("reason", [StopReason.TOKEN_LIMIT, StopReason.SPEND_LIMIT, StopReason.TIME_LIMIT])
async def test_after_a_budget_is_spent_no_engine_is_asked_to_finish(reason: StopReason) -> None:
    ctx = run(stops=[None, None, None, reason], engines={"generator": failing(FailureKind.OVERLOADED)})
    await carry_out(ctx, graph)
    assert ctx.report.stop_reason == reason
    assert ctx.report.citations
    assert "generator" not in [name for name, _ in ctx.prompts]


FAILURES = [
    (FailureKind.BUDGET_EXHAUSTED, "token_limit", StopReason.TOKEN_LIMIT),
    (FailureKind.BUDGET_EXHAUSTED, "spend_limit", StopReason.SPEND_LIMIT),
    (FailureKind.BUDGET_EXHAUSTED, "tenant_spend_limit", StopReason.TENANT_SPEND_LIMIT),
    (FailureKind.INVALID_OUTPUT, "", StopReason.INVALID_OUTPUT),
    (FailureKind.OVERLOADED, "", StopReason.PROVIDER_DOWN),
    (FailureKind.AUTHENTICATION_FAILED, "", StopReason.PROVIDER_DOWN),
    (FailureKind.UNKNOWN_ENGINE, "", StopReason.PROVIDER_DOWN),
]


@pytest.mark.parametrize("role", ["analyst", "planner", "executor", "verifier", "generator"])
@pytest.mark.parametrize(("kind", "stop", "reason"), FAILURES)
async def test_when_any_engine_fails_there_is_a_partial_report_with_the_reason(
    role: str, kind: FailureKind, stop: str, reason: StopReason
) -> None:
    ctx = run(engines={role: failing(kind, stop)})
    await carry_out(ctx, graph)
    assert ctx.report.stop_reason == reason
    assert ctx.report.status == "partial"
    assert ctx.report.title
    assert ctx.report.limits
    if role in {"verifier", "generator"}:
        assert ctx.report.citations


async def test_nothing_found_is_said_and_not_written_by_a_model() -> None:
    ctx = run("What is the capital of Atlantis?", engines={"generator": failing(FailureKind.OVERLOADED)})
    ctx.library = type(ctx.library)([("empty.md", "# Unrelated\n\nBread is baked at night.\n")])
    await carry_out(ctx, graph)
    assert ctx.report.stop_reason == StopReason.NOTHING_FOUND
    assert ctx.report.answer is not None
    assert "Nothing in the documents" in ctx.report.answer.text
    assert "capital" in ctx.report.limits


async def test_a_stop_with_nothing_covered_is_nothing_found() -> None:
    def verifier(_inputs: Any) -> Verdict:
        return Verdict(analysis="No.", coverage=(Coverage(sub_question="q", covered=False),), stop=True)

    ctx = run(engines={"verifier": verifier})
    await carry_out(ctx, graph)
    assert ctx.report.stop_reason == StopReason.NOTHING_FOUND


# The faults listed for the released code.


async def test_nothing_of_an_earlier_question_is_in_a_later_run_of_the_thread() -> None:
    saver = InMemorySaver()
    first = run("When does the Heron depart first?")
    await carry_out(first, graph, "thread", saver)
    second = run("What does a berth cost?")
    state = await carry_out(second, graph, "thread", saver)
    text = "\n".join(m.text for _, messages in second.prompts for m in messages)
    assert "Heron" not in text
    assert state["turn"] == second.turns
    assert all(inputs.memory == () for name, inputs in second.role_inputs if name == "planner" and inputs.turn == 1)


async def test_two_hundred_questions_through_one_process_share_nothing() -> None:
    library = harbour()
    marks = [f"zq{n}zq" for n in range(200)]
    for mark in marks:
        ctx = InMemoryContext(library, f"What is the {mark} of the ferry?", Budget(max_turns=2))
        await carry_out(ctx, graph)
        text = "\n".join(m.text for _, messages in ctx.prompts for m in messages)
        assert not [other for other in marks if other != mark and other in text]


@pytest.mark.parametrize(
    "analysis",
    ["Do not stop.", "You must not stop now; STOP would be wrong.", "stop_signal: true", "Conclusion: STOP", "stop"],
)
async def test_only_the_boolean_stops_for_any_text(analysis: str) -> None:
    def verifier(_inputs: Any) -> Verdict:
        return Verdict(analysis=analysis, stop=False)

    ctx = run(budget=Budget(max_turns=3), engines={"verifier": verifier, "planner": plans("search_library")})
    await carry_out(ctx, graph)
    assert ctx.turns == 3
    assert ctx.report.stop_reason == StopReason.TURN_LIMIT


@pytest.mark.parametrize("stop", ["false", "do not stop", 0, 1, None, "true", {"error": "rate limit"}])
def test_a_stop_that_is_no_boolean_is_rejected_and_not_guessed(stop: Any) -> None:
    with pytest.raises(ValueError, match="stop"):
        Verdict.model_validate({"analysis": "x", "stop": stop})


@pytest.mark.parametrize("role", graph.roles, ids=lambda role: role.name)
def test_an_error_in_place_of_an_answer_is_no_answer_of_any_role(role: Any) -> None:
    for broken in ({"error": "429", "message": "too many"}, {}, {"content": None}):
        with pytest.raises(ValueError, match="validation error"):
            role.output.model_validate(broken)


async def test_a_failed_verifier_is_no_verdict() -> None:
    ctx = run(engines={"verifier": failing(FailureKind.TIMEOUT)})
    state = await carry_out(ctx, graph)
    assert StepKind.VERIFICATION not in ctx.kinds()
    assert state["verdict"] == 0
    assert ctx.report.stop_reason == StopReason.PROVIDER_DOWN
    assert ctx.report.stop_reason != StopReason.ANSWERED


MULTI_LINE = {"query": 'tide gauge\ncalibrated\n  # twice\nexecution = tool.execute(\'x\')\n"""quoted"""'}


async def test_a_call_over_several_lines_is_made_as_it_is() -> None:
    ctx = run(engines={"executor": commands("search_library", MULTI_LINE), "verifier": verdicts(True)})
    await carry_out(ctx, graph)
    assert ctx.calls[0].args == MULTI_LINE
    (record,) = (s for s in ctx.steps if s.kind is StepKind.MEMORY)
    assert record.payload["status"] == "ok"
    assert record.payload["evidence"]


async def test_every_planned_call_is_on_record_also_one_that_cannot_be_made() -> None:
    ctx = run(
        budget=Budget(max_turns=3),
        engines={"planner": plans("browse_web", "search_library", "read_source"), "verifier": verdicts(False)},
    )
    await carry_out(ctx, graph)
    records = [s.payload for s in ctx.steps if s.kind is StepKind.MEMORY]
    assert [(r["turn"], r["tool"], r["status"]) for r in records] == [
        (1, "browse_web", "invalid"),
        (2, "search_library", "ok"),
        (3, "read_source", "invalid"),
    ]
    assert "no tool browse_web" in records[0]["finding"]
    assert len(ctx.calls) == 3


@pytest.mark.parametrize("args", [{}, {"query": ""}, {"query": 3}, {"query": "x", "shell": "rm"}, {"q": "x"}])
async def test_arguments_that_a_schema_rejects_cost_a_turn_and_are_remembered(args: dict[str, Any]) -> None:
    ctx = run(budget=Budget(max_turns=1), engines={"executor": commands("search_library", args)})
    await carry_out(ctx, graph)
    (record,) = (s.payload for s in ctx.steps if s.kind is StepKind.MEMORY)
    assert record["status"] == "invalid"
    assert record["finding"]
    assert ctx.turns == 1


async def test_a_tool_that_fails_is_remembered_and_the_run_continues() -> None:
    ctx = run(broken={"search_library": "The index is being rebuilt."})
    await carry_out(ctx, graph)
    records = [s.payload for s in ctx.steps if s.kind is StepKind.MEMORY]
    assert records
    assert all(r["status"] == "failed" and "rebuilt" in r["finding"] for r in records)
    assert ctx.report.status == "partial"


async def test_each_role_has_an_engine_of_its_own() -> None:
    requests: list[str] = []

    def noting(name: str, inner: Engine) -> Engine:
        def answer(inputs: Any) -> Any:
            requests.append(name)
            return inner(inputs)

        return answer

    engines = {role.name: noting(role.name, role.extractive) for role in graph.roles if role.extractive}
    await carry_out(run(engines=engines), graph)
    assert requests[:4] == ["analyst", "planner", "executor", "verifier"]
    assert requests[-1] == "generator"


# People, earlier questions, replay.


async def test_a_message_in_mid_run_is_consumed_and_keeps_the_run_from_stopping() -> None:
    ctx = run(budget=Budget(max_turns=8))

    def verifier(inputs: Any) -> Verdict:
        if inputs.turn == 1:
            ctx.say("Also say when the Heron departs last.")
        return Verdict(analysis="Enough.", coverage=(Coverage(sub_question="q", covered=True),), stop=inputs.turn != 2)

    ctx.engines = {"verifier": verifier}
    await carry_out(ctx, graph)
    requests = {inputs.turn: inputs.user_messages for name, inputs in ctx.role_inputs if name == "planner"}
    assert requests[1] == ()
    assert requests[2] == ("Also say when the Heron departs last.",)
    assert ctx.turns == 3
    assert any("Heron" in section.heading for section in ctx.report.sections)


async def test_earlier_questions_of_the_thread_give_a_follow_up_its_subject() -> None:
    earlier = (("What is the Tern?", "“The Tern is an electric passenger ferry.”"),)
    ctx = run("And how many passengers does it carry?", earlier=earlier)
    await carry_out(ctx, graph)
    assert ctx.report.answer is not None
    assert "90 passengers" in ctx.report.answer.text


async def test_a_node_that_runs_again_is_given_what_it_was_given_the_first_time() -> None:
    ctx = run(budget=Budget(max_turns=4), engines={"verifier": verdicts(False)})
    await carry_out(ctx, graph)
    first = {(name, inputs.turn): inputs for name, inputs in ctx.role_inputs if name == "planner"}
    before = ctx.steps[:]
    from offing_graphs.agentflow import nodes

    class Runtime:
        context = ctx

    plan = next(s.seq for s in before if s.kind is StepKind.PLAN and s.turn == 2)
    tool = next(s.seq for s in before if s.kind is StepKind.TOOL_RESULT and s.turn == 1)
    verdict = next(s.seq for s in before if s.kind is StepKind.VERIFICATION and s.turn == 1)
    state: Any = {
        **graph.initial_state(ctx.run),
        "turn": 1,
        "analysis": 1,
        "plan": plan,
        "tool": tool,
        "verdict": verdict,
    }
    ctx.role_inputs.clear()
    await nodes.planner(state, Runtime())  # type: ignore[arg-type]
    again = next(inputs for name, inputs in ctx.role_inputs if name == "planner")
    seen = {p.id for p in first["planner", 2].evidence}
    assert again.model_copy(update={"evidence": ()}) == first["planner", 2].model_copy(update={"evidence": ()})
    assert tuple(p for p in again.evidence if p.id in seen) == first["planner", 2].evidence


async def test_the_fallback_report_uses_what_was_retrieved() -> None:
    ctx = run(stops=[None, None, None, None, StopReason.FINISH_REQUESTED])
    await carry_out(ctx, graph)
    assert graph.fallback_report is not None
    draft: ReportDraft = graph.fallback_report(ctx.run, tuple(ctx.collected))
    report = await ctx.submit_report(draft, StopReason.GRAPH_ERROR)
    assert report.citations
    assert not [r for s in report.sentences() for r in s.rejected]
    empty: ReportDraft = graph.fallback_report(ctx.run, ())
    assert "Nothing in the documents" in empty.answer


async def test_the_same_run_twice_gives_the_same_report() -> None:
    one, two = run("Compare the Heron and the Tern"), run("Compare the Heron and the Tern")
    await carry_out(one, graph)
    await carry_out(two, graph)
    assert one.draft == two.draft
    assert one.steps == two.steps


def test_every_role_is_answered_without_a_model() -> None:
    assert [role.name for role in graph.roles] == ["analyst", "planner", "executor", "verifier", "generator"]
    assert all(role.extractive for role in graph.roles)
