"""The graph end to end on a context in memory: its shape, memory and endings, and what it does when things fail."""

from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from offing.core.model import FailureKind
from offing.core.run import Budget, StopReason
from offing.core.step import StepKind
from offing.sdk import ReportDraft
from offing_graphs.agentflow import graph
from offing_graphs.agentflow.shapes import Command, Verdict
from offing_graphs.parts.shapes import Coverage, Plan
from tests.graphs.corpus import harbour
from tests.graphs.stand_in import Engine, StandIn, carry_out, failing

QUESTION = "How often is the tide gauge calibrated?"


def run(question: str = QUESTION, **more: Any) -> StandIn:
    return StandIn(harbour(), question, **more)


def verdicts(*stops: bool) -> Engine:
    """A verifier that says these, then the last again and again."""
    left = list(stops)

    def answer(_given: Any) -> Verdict:
        stop = left.pop(0) if len(left) > 1 else left[0]
        return Verdict(analysis="So it is.", coverage=(Coverage(sub_question="q", covered=True),), stop=stop)

    return answer


def plans(*tools: str) -> Engine:
    left = list(tools)
    return lambda _given: Plan(
        justification="because",
        context="query: tide gauge",
        sub_goal="Find it",
        tool=left.pop(0) if len(left) > 1 else left[0],
    )


def commands(tool: str, args: dict[str, Any]) -> Engine:
    return lambda _given: Command(tool=tool, args=args)


async def test_a_run_analyses_plans_acts_remembers_verifies_and_writes() -> None:
    ctx = run()
    state = await carry_out(ctx, graph)
    turns = [StepKind.PLAN, StepKind.COMMAND, StepKind.TOOL, StepKind.MEMORY, StepKind.VERDICT]
    assert ctx.kinds() == [StepKind.ANALYSIS, *turns * ctx.turns, StepKind.TURN, StepKind.REPORT]
    assert state["stop"] == StopReason.ANSWERED
    assert ctx.report.answer is not None
    assert "twice a year" in ctx.report.answer.text
    assert ctx.report.answer.supported


async def test_every_sentence_of_the_report_is_supported_by_its_quote() -> None:
    for question in (QUESTION, "Compare the Heron and the Tern", "What does a berth cost and how can one pay?"):
        ctx = run(question)
        await carry_out(ctx, graph)
        assert ctx.report.citations
        for sentence in ctx.report.sentences():
            assert sentence.supported, sentence
            assert not sentence.rejected
        for citation in ctx.report.citations:
            assert citation.quote == ctx.library.text_of(citation.span)


async def test_the_state_holds_numbers_and_reasons_only() -> None:
    ctx = run()
    state = await carry_out(ctx, graph)
    assert set(state) == set(graph.start(ctx.run))
    assert all(isinstance(v, int) or (isinstance(v, str) and len(v) < 20) for v in state.values())


def test_start_sets_every_key_of_the_state() -> None:
    from offing_graphs.agentflow.state import State

    assert set(graph.start(run().run)) == set(State.__annotations__)
    assert graph.turn_key in State.__annotations__


def test_the_diagram_shows_the_loop() -> None:
    drawn = graph.build().compile().get_graph().draw_mermaid()
    for edge in ("analyse -.-> planner", "planner -.-> executor", "executor -.-> verifier", "verifier -.-> planner"):
        assert edge in drawn
    for node in ("analyse", "planner", "executor", "verifier"):
        assert f"{node} -.-> generator" in drawn


async def test_a_turn_limit_of_zero_goes_straight_to_the_report() -> None:
    ctx = run(budget=Budget(turns=0))
    await carry_out(ctx, graph)
    assert ctx.kinds() == [StepKind.REPORT]
    assert ctx.report.reason == StopReason.TURN_LIMIT
    assert "limit on turns" in ctx.report.limits


@pytest.mark.parametrize("turns", [1, 2, 5])
async def test_the_last_turn_is_finished_and_then_the_limit_ends_it(turns: int) -> None:
    ctx = run(budget=Budget(turns=turns), engines={"verifier": verdicts(False), "planner": plans("search_library")})
    await carry_out(ctx, graph)
    assert ctx.kinds().count(StepKind.VERDICT) == turns
    assert ctx.report.reason == StopReason.TURN_LIMIT
    assert ctx.report.citations


async def test_a_verdict_in_the_last_turn_counts() -> None:
    ctx = run(budget=Budget(turns=2), engines={"verifier": verdicts(False, True)})
    await carry_out(ctx, graph)
    assert ctx.report.reason == StopReason.ANSWERED


@pytest.mark.parametrize(
    ("node", "asked"), [("analyse", 0), ("planner", 1), ("executor", 2), ("verifier", 3), ("second planner", 4)]
)
async def test_every_node_asks_whether_to_stop_before_it_does_anything(node: str, asked: int) -> None:
    ctx = run(stops=[None] * asked + [StopReason.ASKED_TO_WRITE], engines={"verifier": verdicts(False)})
    await carry_out(ctx, graph)
    assert ctx.report.reason == StopReason.ASKED_TO_WRITE, node
    expected = [StepKind.ANALYSIS, StepKind.PLAN, StepKind.TOOL, StepKind.VERDICT]
    assert [k for k in ctx.kinds() if k in expected] == expected[:asked]


@pytest.mark.parametrize("reason", [StopReason.TOKEN_LIMIT, StopReason.SPEND_LIMIT, StopReason.TIME_LIMIT])
async def test_after_a_budget_is_spent_no_engine_is_asked_to_write(reason: StopReason) -> None:
    ctx = run(stops=[None, None, None, reason], engines={"generator": failing(FailureKind.OVERLOADED)})
    await carry_out(ctx, graph)
    assert ctx.report.reason == reason
    assert ctx.report.citations
    assert "generator" not in [name for name, _ in ctx.prompts]


FAILURES = [
    (FailureKind.OUT_OF_BUDGET, "token_limit", StopReason.TOKEN_LIMIT),
    (FailureKind.OUT_OF_BUDGET, "spend_limit", StopReason.SPEND_LIMIT),
    (FailureKind.OUT_OF_BUDGET, "tenant_spend_limit", StopReason.TENANT_SPEND_LIMIT),
    (FailureKind.INVALID_OUTPUT, "", StopReason.INVALID_OUTPUT),
    (FailureKind.OVERLOADED, "", StopReason.PROVIDER_DOWN),
    (FailureKind.REFUSED_KEY, "", StopReason.PROVIDER_DOWN),
    (FailureKind.UNKNOWN_ENGINE, "", StopReason.PROVIDER_DOWN),
]


@pytest.mark.parametrize("role", ["analyst", "planner", "executor", "verifier", "generator"])
@pytest.mark.parametrize(("kind", "stop", "reason"), FAILURES)
async def test_whatever_engine_fails_there_is_a_partial_report_with_the_reason(
    role: str, kind: FailureKind, stop: str, reason: StopReason
) -> None:
    ctx = run(engines={role: failing(kind, stop)})
    await carry_out(ctx, graph)
    assert ctx.report.reason == reason
    assert ctx.report.status == "partial"
    assert ctx.report.title
    assert ctx.report.limits
    if role in {"verifier", "generator"}:
        assert ctx.report.citations


async def test_nothing_found_is_said_and_not_written_by_a_model() -> None:
    ctx = run("What is the capital of Atlantis?", engines={"generator": failing(FailureKind.OVERLOADED)})
    ctx.library = type(ctx.library)([("empty.md", "# Unrelated\n\nBread is baked at night.\n")])
    await carry_out(ctx, graph)
    assert ctx.report.reason == StopReason.NOTHING_FOUND
    assert ctx.report.answer is not None
    assert "Nothing in the documents" in ctx.report.answer.text
    assert "capital" in ctx.report.limits


async def test_a_stop_with_nothing_covered_is_nothing_found() -> None:
    def verifier(_given: Any) -> Verdict:
        return Verdict(analysis="No.", coverage=(Coverage(sub_question="q", covered=False),), stop=True)

    ctx = run(engines={"verifier": verifier})
    await carry_out(ctx, graph)
    assert ctx.report.reason == StopReason.NOTHING_FOUND


# The faults listed for the released code.


async def test_nothing_of_an_earlier_question_is_in_a_later_run_of_the_thread() -> None:
    saver = InMemorySaver()
    first = run("When does the Heron depart first?")
    await carry_out(first, graph, "thread", saver)
    second = run("What does a berth cost?")
    state = await carry_out(second, graph, "thread", saver)
    said = "\n".join(m.text for _, messages in second.prompts for m in messages)
    assert "Heron" not in said
    assert state["turn"] == second.turns
    assert all(given.memory == () for name, given in second.given if name == "planner" and given.turn == 1)


async def test_two_hundred_questions_through_one_process_share_nothing() -> None:
    library = harbour()
    marks = [f"zq{n}zq" for n in range(200)]
    for mark in marks:
        ctx = StandIn(library, f"What is the {mark} of the ferry?", Budget(turns=2))
        await carry_out(ctx, graph)
        said = "\n".join(m.text for _, messages in ctx.prompts for m in messages)
        assert not [other for other in marks if other != mark and other in said]


@pytest.mark.parametrize(
    "analysis",
    ["Do not stop.", "You must not stop now; STOP would be wrong.", "stop_signal: true", "Conclusion: STOP", "stop"],
)
async def test_only_the_boolean_stops_whatever_the_text_says(analysis: str) -> None:
    def verifier(_given: Any) -> Verdict:
        return Verdict(analysis=analysis, stop=False)

    ctx = run(budget=Budget(turns=3), engines={"verifier": verifier, "planner": plans("search_library")})
    await carry_out(ctx, graph)
    assert ctx.turns == 3
    assert ctx.report.reason == StopReason.TURN_LIMIT


@pytest.mark.parametrize("stop", ["false", "do not stop", 0, 1, None, "true", {"error": "rate limit"}])
def test_a_stop_that_is_no_boolean_is_refused_and_not_guessed(stop: Any) -> None:
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
    assert StepKind.VERDICT not in ctx.kinds()
    assert state["verdict"] == 0
    assert ctx.report.reason == StopReason.PROVIDER_DOWN
    assert ctx.report.reason != StopReason.ANSWERED


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
        budget=Budget(turns=3),
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
async def test_arguments_that_a_schema_refuses_cost_a_turn_and_are_remembered(args: dict[str, Any]) -> None:
    ctx = run(budget=Budget(turns=1), engines={"executor": commands("search_library", args)})
    await carry_out(ctx, graph)
    (record,) = (s.payload for s in ctx.steps if s.kind is StepKind.MEMORY)
    assert record["status"] == "invalid"
    assert record["finding"]
    assert ctx.turns == 1


async def test_a_tool_that_fails_is_remembered_and_the_run_goes_on() -> None:
    ctx = run(broken={"search_library": "The index is being rebuilt."})
    await carry_out(ctx, graph)
    records = [s.payload for s in ctx.steps if s.kind is StepKind.MEMORY]
    assert records
    assert all(r["status"] == "failed" and "rebuilt" in r["finding"] for r in records)
    assert ctx.report.status == "partial"


async def test_each_role_has_an_engine_of_its_own() -> None:
    asked: list[str] = []

    def noting(name: str, inner: Engine) -> Engine:
        def answer(given: Any) -> Any:
            asked.append(name)
            return inner(given)

        return answer

    engines = {role.name: noting(role.name, role.extractive) for role in graph.roles if role.extractive}
    await carry_out(run(engines=engines), graph)
    assert asked[:4] == ["analyst", "planner", "executor", "verifier"]
    assert asked[-1] == "generator"


# People, earlier questions, replay.


async def test_a_message_in_mid_run_is_taken_up_and_keeps_the_run_from_stopping() -> None:
    ctx = run(budget=Budget(turns=8))

    def verifier(given: Any) -> Verdict:
        if given.turn == 1:
            ctx.say("Also say when the Heron departs last.")
        return Verdict(analysis="Enough.", coverage=(Coverage(sub_question="q", covered=True),), stop=given.turn != 2)

    ctx.engines = {"verifier": verifier}
    await carry_out(ctx, graph)
    wishes = {given.turn: given.wishes for name, given in ctx.given if name == "planner"}
    assert wishes[1] == ()
    assert wishes[2] == ("Also say when the Heron departs last.",)
    assert ctx.turns == 3
    assert any("Heron" in section.heading for section in ctx.report.sections)


async def test_earlier_questions_of_the_thread_give_a_follow_up_its_subject() -> None:
    earlier = (("What is the Tern?", "“The Tern is an electric passenger ferry.”"),)
    ctx = run("And how many passengers does it carry?", earlier=earlier)
    await carry_out(ctx, graph)
    assert ctx.report.answer is not None
    assert "90 passengers" in ctx.report.answer.text


async def test_a_node_that_runs_again_is_given_what_it_was_given_the_first_time() -> None:
    ctx = run(budget=Budget(turns=4), engines={"verifier": verdicts(False)})
    await carry_out(ctx, graph)
    first = {(name, given.turn): given for name, given in ctx.given if name == "planner"}
    before = ctx.steps[:]
    from offing_graphs.agentflow import nodes

    class Runtime:
        context = ctx

    plan = next(s.seq for s in before if s.kind is StepKind.PLAN and s.turn == 2)
    tool = next(s.seq for s in before if s.kind is StepKind.TOOL and s.turn == 1)
    verdict = next(s.seq for s in before if s.kind is StepKind.VERDICT and s.turn == 1)
    state: Any = {**graph.start(ctx.run), "turn": 1, "analysis": 1, "plan": plan, "tool": tool, "verdict": verdict}
    ctx.given.clear()
    await nodes.planner(state, Runtime())  # type: ignore[arg-type]
    again = next(given for name, given in ctx.given if name == "planner")
    seen = {p.id for p in first["planner", 2].evidence}
    assert again.model_copy(update={"evidence": ()}) == first["planner", 2].model_copy(update={"evidence": ()})
    assert tuple(p for p in again.evidence if p.id in seen) == first["planner", 2].evidence


async def test_salvage_writes_from_what_was_retrieved() -> None:
    ctx = run(stops=[None, None, None, None, StopReason.ASKED_TO_WRITE])
    await carry_out(ctx, graph)
    assert graph.salvage is not None
    draft: ReportDraft = graph.salvage(ctx.run, tuple(ctx.found))
    report = await ctx.deliver(draft, StopReason.GRAPH_ERROR)
    assert report.citations
    assert not [r for s in report.sentences() for r in s.rejected]
    empty: ReportDraft = graph.salvage(ctx.run, ())
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
