"""Calls of roles: a search takes two, no call repeats what another wrote, and the planner sees what was found."""

from typing import Any

import pytest

from offing.core.run import Budget, Depth, StopReason
from offing.core.step import StepKind
from offing.sdk import InvalidOutput
from offing_graphs.agentflow import graph, nodes, prompts
from offing_graphs.agentflow.nodes import NEEDLESS_VERDICT_TITLE
from offing_graphs.agentflow.roles import CARRIED_OVER, PART_ID, VERIFIER
from offing_graphs.agentflow.schemas import Command, Verdict, VerifierInput
from offing_graphs.shared.schemas import Analysis, Coverage, Plan, WriterInput
from tests.graphs.corpus import harbour
from tests.graphs.in_memory_context import Engine, InMemoryContext, carry_out

QUESTION = "How often is the tide gauge calibrated?"
SEARCHES = ("tide gauge", "calibration", "calibrated twice a year")


def plan(args: dict[str, Any] | None, tool: str = "search_library") -> Plan:
    return Plan(justification="It is next.", context="tide gauge", sub_goal="Find it", tool=tool, args=args)


def planner(*args: dict[str, Any] | None) -> Engine:
    """A planner that names these arguments, one after the other."""
    left = list(args)
    return lambda _inputs: plan(left.pop(0))


def stops_after(turns: int) -> Engine:
    def verify(inputs: Any) -> Verdict:
        coverage = tuple(Coverage(sub_question=q, covered=True) for q in inputs.analysis.sub_questions)
        return Verdict(analysis="", coverage=coverage, stop=inputs.turn >= turns)

    return verify


async def run(*args: dict[str, Any] | None, **more: Any) -> InMemoryContext:
    engines = {"planner": planner(*args), "verifier": stops_after(len(args)), **more.pop("engines", {})}
    ctx = InMemoryContext(harbour(), QUESTION, Budget(max_turns=8), engines=engines, **more)
    await carry_out(ctx, graph)
    return ctx


def roles_of(ctx: InMemoryContext) -> list[str]:
    return [name for name, _ in ctx.prompts]


async def test_a_search_takes_two_calls_besides_the_analysis_and_the_report() -> None:
    ctx = await run(*({"query": words} for words in SEARCHES))
    assert roles_of(ctx) == ["analyst", *["planner", "verifier"] * len(SEARCHES), "generator"]
    assert [call.args["query"] for call in ctx.calls] == list(SEARCHES)
    assert ctx.report.stop_reason == StopReason.ANSWERED
    assert ctx.report.citations


async def test_the_record_says_that_the_plan_named_the_arguments() -> None:
    ctx = await run({"query": "tide gauge"}, None)
    planned, written = [s for s in ctx.steps if s.kind is StepKind.TOOL_CALL]
    assert planned.payload["arguments_from"] == "plan"
    assert planned.payload["output"] == {"tool": "search_library", "args": {"query": "tide gauge"}}
    assert planned.detail == "The plan named the arguments."
    assert planned.turn == 1
    assert "tide gauge" in planned.title
    assert "arguments_from" not in written.payload
    assert roles_of(ctx).count("executor") == 1


@pytest.mark.parametrize("args", [{"words": "tide gauge"}, {"query": ""}, {"query": "tide gauge", "limit": 900}, {}])
async def test_arguments_that_the_tool_would_reject_go_to_the_executor(args: dict[str, Any]) -> None:
    corrects: Engine = lambda _inputs: Command(tool="search_library", args={"query": "gauge"})  # noqa: E731
    ctx = await run(args, engines={"executor": corrects})
    assert roles_of(ctx) == ["analyst", "planner", "executor", "verifier", "generator"]
    assert [call.args for call in ctx.calls] == [{"query": "gauge"}]
    prompt = "\n".join(m.text for role, messages in ctx.prompts if role == "executor" for m in messages)
    assert '"args": ' in prompt  # it can correct them


async def test_the_planner_and_the_verifier_see_the_passages_themselves() -> None:
    ctx = await run({"query": "tide gauge"}, {"query": "calibration"})
    first, second = ["\n".join(m.text for m in messages) for role, messages in ctx.prompts if role == "planner"]
    assert "Passage E1 (" not in first
    assert "Passage E1 (" in second
    assert "During calibration the readings are marked as provisional." in second


def test_a_plan_without_arguments_is_recorded_as_before() -> None:
    assert set(plan(None).model_dump(mode="json")) == {"justification", "context", "sub_goal", "tool"}
    assert Plan.model_validate(plan({}).model_dump(mode="json")).args == {}


TEXT = """Justification: It is next.
Context: tide gauge
Sub-Goal: Find it
Tool Name: search_library"""


def test_the_text_of_a_plan_may_name_the_arguments() -> None:
    inputs: Any = None  # the parser needs none
    assert prompts.parse_text_plan(TEXT, inputs) == plan(None)
    args = {"query": "tide gauge", "limit": 3}
    text = prompts.render_text_plan(plan(args), inputs)
    assert text == TEXT + '\nArguments: {"limit": 3, "query": "tide gauge"}'
    assert prompts.parse_text_plan(text, inputs) == plan(args)
    assert prompts.render_text_plan(plan(None), inputs) == TEXT


@pytest.mark.parametrize("written", ["", "query=tide gauge", "[1]", '{"query": '])
def test_arguments_that_are_no_object_are_sent_back(written: str) -> None:
    inputs: Any = None
    answer = prompts.parse_text_plan(f"{TEXT}\nArguments: {written}", inputs)
    assert isinstance(answer, InvalidOutput)
    assert "args" in answer.problem or "Arguments" in answer.problem


def test_a_line_of_a_verdict_names_its_sub_question_by_number() -> None:
    analysis = Analysis(summary="s", sub_questions=("How often?", "By whom?"))
    inputs = VerifierInput(question=QUESTION, analysis=analysis, tools=(), turn=1, remaining=2)
    text = """<analysis>Nobody is named.</analysis>
<coverage>
yes | 1 | E1 |
no | By whom? | | a name
no | 7 | | unknown number
</coverage>
<stop>false</stop>"""
    verdict = prompts.parse_text_verdict(text, inputs)
    assert isinstance(verdict, Verdict)
    assert [c.sub_question for c in verdict.coverage] == ["How often?", "By whom?", "7"]
    assert prompts.parse_text_verdict(prompts.render_text_verdict(verdict, inputs), inputs) == verdict


PARTS = Analysis(summary="s", sub_questions=("How often?", "By whom?", "Why?"))
JUDGED = VerifierInput(question=QUESTION, analysis=PARTS, tools=(), turn=1, remaining=2)


def test_a_verdict_may_say_that_a_part_is_covered_partly_or_not_in_the_documents() -> None:
    text = """<analysis>Nobody is named.</analysis>
<coverage>
partly | p1 | E1 | the months
not in documents | P2 | | a name
searched, not in the documents | 3 | | a reason
</coverage>
<stop>false</stop>"""
    verdict = prompts.parse_text_verdict(text, JUDGED)
    assert isinstance(verdict, Verdict)
    assert [c.sub_question for c in verdict.coverage] == list(PARTS.sub_questions)
    assert [c.state for c in verdict.coverage] == ["partly", "not_in_documents", "not_in_documents"]
    assert not any(c.covered for c in verdict.coverage)
    assert prompts.parse_text_verdict(prompts.render_text_verdict(verdict, JUDGED), JUDGED) == verdict


@pytest.mark.parametrize(
    ("written", "state"),
    [
        ({}, ""),
        ({"state": None}, ""),
        ({"state": "no idea"}, ""),
        ({"state": "Partly"}, "partly"),
        ({"state": "not in documents"}, "not_in_documents"),
        ({"covered": True, "state": "partly"}, ""),
    ],
)
def test_a_state_is_optional_and_one_that_is_not_known_fails_nothing(written: dict[str, Any], state: str) -> None:
    coverage = Coverage.model_validate({"sub_question": "By whom?", "covered": False} | written)
    assert coverage.state == state
    assert ("state" in coverage.model_dump(mode="json")) == bool(state)


def test_a_verdict_in_json_may_name_parts_by_their_ids() -> None:
    assert VERIFIER.repair_output
    coverage = (Coverage(sub_question="p2", covered=True), Coverage(sub_question="p9", covered=True))
    named, repairs = VERIFIER.repair_output(Verdict(analysis="", coverage=coverage, stop=False), JUDGED)
    assert [c.sub_question for c in named.coverage] == ["By whom?", "p9"]
    assert repairs == (PART_ID,)
    assert VERIFIER.repair_output(named, JUDGED) == (named, ())


def test_a_verdict_that_leaves_out_parts_keeps_what_was_judged_of_them() -> None:
    assert VERIFIER.repair_output
    earlier = (
        Coverage(sub_question="How often?", covered=True, evidence=("E1",)),
        Coverage(sub_question="By whom?", covered=False, missing="the name"),
        Coverage(sub_question="Of what else?", covered=True),
    )
    inputs = JUDGED.model_copy(update={"verdict": Verdict(analysis="", coverage=earlier, stop=False)})
    new = Verdict(analysis="", coverage=(Coverage(sub_question="p2", covered=True),), stop=False)
    whole, repairs = VERIFIER.repair_output(new, inputs)
    assert [(c.sub_question, c.covered) for c in whole.coverage] == [("By whom?", True), ("How often?", True)]
    assert whole.coverage[1].evidence == ("E1",)
    assert repairs == (PART_ID, CARRIED_OVER)
    assert VERIFIER.repair_output(whole, inputs) == (whole, ())


async def test_parts_have_the_same_ids_in_each_turn_and_the_planner_sees_what_is_not_in_the_documents() -> None:
    def analyze(_inputs: Any) -> Analysis:
        return PARTS

    def verify(inputs: Any) -> Verdict:
        coverage = Coverage(sub_question="By whom?", covered=False, state="not_in_documents")
        return Verdict(analysis="", coverage=(coverage,), stop=inputs.turn > 1)

    ctx = await run({"query": "gauge"}, {"query": "tide"}, engines={"analyst": analyze, "verifier": verify})
    texts = ["\n".join(m.text for m in messages) for role, messages in ctx.prompts if role in {"planner", "verifier"}]
    assert len(texts) == 4
    assert all('"p1": "How often?", "p2": "By whom?", "p3": "Why?"' in text for text in texts)
    second = [text for text in texts if "This is step 2." in text]
    assert ['"state": "not_in_documents"' in text for text in second] == [True]


def test_the_verifier_is_asked_only_for_what_is_missing() -> None:
    for text in (prompts.VERIFIER_PROMPT, prompts.VERDICT_FORMAT_RULE, str(Verdict.model_json_schema())):
        assert "only what is missing" in text.lower()


def goes_on(covered: bool = False, stop: bool = False) -> Engine:
    return lambda inputs: Verdict(
        analysis="", coverage=(Coverage(sub_question=inputs.question, covered=covered),), stop=stop
    )


def unasked(ctx: InMemoryContext) -> list[int]:
    return [step.turn for step in ctx.steps if step.title == NEEDLESS_VERDICT_TITLE]


async def in_vain(*queries: str, verifier: Engine, max_turns: int) -> InMemoryContext:
    engines = {"planner": planner(*({"query": words} for words in queries)), "verifier": verifier}
    ctx = InMemoryContext(harbour(), QUESTION, Budget(max_turns=max_turns), engines=engines)
    await carry_out(ctx, graph)
    return ctx


@pytest.mark.parametrize("depth", [Depth.STANDARD, Depth.DEEP])
async def test_the_verifier_is_not_asked_again_when_nothing_was_found_and_no_turn_is_left(depth: Depth) -> None:
    engines = {"planner": planner(*({"query": words} for words in ("zzz", "qqq", "xyzzy"))), "verifier": goes_on()}
    ctx = InMemoryContext(harbour(), QUESTION, Budget(max_turns=3, depth=depth), engines=engines)
    await carry_out(ctx, graph)
    assert roles_of(ctx) == ["analyst", "planner", "verifier", "planner", "verifier", "planner"]
    assert unasked(ctx) == [3]
    assert ctx.report.stop_reason == StopReason.NOTHING_FOUND
    (note,) = [step for step in ctx.steps if step.title == NEEDLESS_VERDICT_TITLE]
    assert note.payload["skipped_role"] == "verifier"


@pytest.mark.parametrize("verifier", [goes_on(stop=True), goes_on(covered=True, stop=True), goes_on()])
async def test_a_judgment_in_its_place_would_have_changed_nothing(
    verifier: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = [goes_on()]
    then: Engine = lambda inputs: (left.pop() if left else verifier)(inputs)  # noqa: E731
    spared = await in_vain("zzz", "qqq", verifier=goes_on(), max_turns=2)

    def never(*_: object) -> bool:
        return False

    monkeypatch.setattr(nodes, "_is_verdict_needless", never)
    run_with_verdict = await in_vain("zzz", "qqq", verifier=then, max_turns=2)
    assert roles_of(run_with_verdict)[-1] == "verifier"
    assert unasked(spared) == [2]
    assert spared.draft == run_with_verdict.draft
    assert spared.report.stop_reason == run_with_verdict.report.stop_reason


async def test_a_judgment_that_could_matter_is_made_in_the_last_turn_too() -> None:
    late_find = await in_vain("zzz", "tide gauge", verifier=stops_after(2), max_turns=2)
    assert roles_of(late_find)[-2:] == ["verifier", "generator"]
    assert late_find.report.stop_reason == StopReason.ANSWERED
    again = await in_vain("tide gauge", "zzz", verifier=stops_after(2), max_turns=2)
    assert roles_of(again)[-2:] == ["verifier", "generator"]
    assert again.report.stop_reason == StopReason.ANSWERED
    first = await in_vain("zzz", verifier=goes_on(), max_turns=1)
    assert roles_of(first) == ["analyst", "planner", "verifier"]
    assert unasked(late_find) == unasked(again) == unasked(first) == []


def judging(_inputs: Any) -> Verdict:
    """A verifier that finds one part answered and one open."""
    answered = Coverage(sub_question="How often?", covered=True, evidence=("E1",))
    missing = Coverage(sub_question="By whom?", covered=False, missing="a name")
    return Verdict(analysis="", coverage=(answered, missing), stop=True)


async def test_the_last_judgment_reaches_the_writer() -> None:
    ctx = await run({"query": "tide gauge"}, engines={"verifier": judging})
    (inputs,) = (inputs for name, inputs in ctx.role_inputs if name == "generator")
    assert isinstance(inputs, WriterInput)
    assert inputs.covering == ("E1",)
    assert inputs.open_parts == ("By whom?: a name",)
