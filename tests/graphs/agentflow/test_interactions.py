"""What a run asks a person before it researches, and that a crashed worker changes nothing of it."""

from collections.abc import Callable
from typing import Any

from offing.core.input_request import InputResponse, ReviewDecision
from offing.core.interaction import Interaction
from offing.core.step import StepKind
from offing.testing import assert_survives_worker_loss, simulate_run
from offing_graphs.agentflow import graph
from offing_graphs.agentflow.interactions import MAX_PARTS, OWN_JUDGMENT, join_parts, parse_questions
from offing_graphs.shared.schemas import Analysis, TaskContext

DOCUMENTS = {"tides.md": "# Tides\n\nThe moon pulls the sea twice a day.\n"}
QUESTION = "What pulls the sea?"
REVIEW, CLARIFY = frozenset({Interaction.PLAN_REVIEW}), frozenset({Interaction.CLARIFY})
PLAN = "Is this the plan to follow?"
ASKED = "Which sea is meant?"
ANALYSIS: dict[str, Any] = {"summary": "The sea.", "sub_questions": ["What pulls the sea?"]}


def asks(*questions: str) -> dict[str, Callable[[Any], Any]]:
    """An analyst that asks these questions before it splits the question into parts."""

    def answer(inputs: Any) -> Any:
        return ANALYSIS if hasattr(inputs, "tools") else {"questions": list(questions)}

    return {"analyst": answer}


async def test_an_edited_plan_is_the_one_that_is_followed() -> None:
    responses = {PLAN: InputResponse(decision=ReviewDecision.EDITED, steps=("What pulls?", "How often?"))}
    run = await simulate_run(graph, QUESTION, documents=DOCUMENTS, interactions=REVIEW, input_responses=responses)
    (edited,) = [step for step in run.steps if step.label == "reviewed plan"]
    assert edited.payload["output"]["sub_questions"] == ["What pulls?", "How often?"]
    assert run.state["analysis"] == edited.seq
    coverage = run.list_steps(StepKind.VERIFICATION)[0].payload["output"]["coverage"]
    assert [one["sub_question"] for one in coverage] == ["What pulls?", "How often?"]


async def test_a_comment_makes_the_plan_again_until_one_is_approved_or_there_were_enough() -> None:
    seen: list[tuple[str, ...]] = []

    def analyze(inputs: Any) -> Analysis:
        seen.append(inputs.user_messages)
        return Analysis(**ANALYSIS)

    responses = {PLAN: InputResponse(decision=ReviewDecision.COMMENTED, comment="Also the sun.")}
    run = await simulate_run(
        graph,
        QUESTION,
        documents=DOCUMENTS,
        interactions=REVIEW,
        input_responses=responses,
        answers={"analyst": analyze},
    )
    assert seen == [("Also the sun.",) * n for n in range(4)]
    assert len(run.list_steps(StepKind.INPUT_REQUEST)) == 4
    assert run.report is not None


async def test_what_is_unclear_is_asked_and_every_role_reads_the_answer() -> None:
    read: dict[str, str] = {}

    def analyze(inputs: Any) -> Any:
        if not hasattr(inputs, "tools"):
            return {"questions": [ASKED]}
        read["analyst"] = inputs.clarification
        return ANALYSIS

    run = await simulate_run(
        graph,
        QUESTION,
        documents=DOCUMENTS,
        interactions=CLARIFY,
        revises=["analyst"],
        input_responses={ASKED: InputResponse(text="The North Sea")},
        answers={"analyst": analyze},
    )
    assert read["analyst"].splitlines() == [
        "Before the run was asked:",
        ASKED,
        "The person answered:",
        "The North Sea",
    ]
    assert run.state["clarification"] > 0
    assert next(step.label for step in run.steps if step.kind is StepKind.NOTE) == "clarification"


async def test_a_clear_question_and_an_analyst_without_a_model_ask_nothing() -> None:
    script = asks()
    clear = await simulate_run(
        graph, QUESTION, documents=DOCUMENTS, interactions=CLARIFY, revises=["analyst"], answers=script
    )
    plain = await simulate_run(graph, QUESTION, documents=DOCUMENTS, interactions=CLARIFY)
    for run in (clear, plain):
        assert run.list_steps(StepKind.INPUT_REQUEST) == ()
        assert run.state["clarification"] == 0


async def test_without_a_response_the_run_uses_its_own_judgment_and_the_plan_as_it_is() -> None:
    script = asks(ASKED)
    run = await simulate_run(
        graph,
        QUESTION,
        documents=DOCUMENTS,
        interactions=REVIEW | CLARIFY,
        revises=["analyst"],
        answers=script,
    )
    assert [step.title for step in run.list_steps(StepKind.INPUT_RESPONSE)] == [OWN_JUDGMENT, "approved"]


async def test_interactions_survive_a_crash_at_every_point() -> None:
    script = asks(ASKED, "When?")
    await assert_survives_worker_loss(
        graph,
        QUESTION,
        documents=DOCUMENTS,
        interactions=REVIEW | CLARIFY,
        revises=["analyst"],
        answers=script,
        input_responses={
            PLAN: InputResponse(decision=ReviewDecision.EDITED, steps=("What pulls the sea?", "How often?")),
            f"1. {ASKED}\n2. When?": InputResponse(text="The North Sea, today"),
        },
    )


def test_more_steps_than_an_analysis_has_parts_are_joined_and_none_is_lost() -> None:
    steps = tuple(f"step {n}" for n in range(MAX_PARTS + 3))
    parts = join_parts((*steps, "  "))
    assert len(parts) == MAX_PARTS
    assert all(any(step in part for part in parts) for step in steps)


def test_questions_in_text_are_read_line_by_line() -> None:
    output = parse_questions("<questions>\n1. Which sea?\n- When?\n</questions>", TaskContext(question=QUESTION))
    assert getattr(output, "questions", None) == ("Which sea?", "When?")
    nothing = parse_questions("<questions>Nothing.</questions>", TaskContext(question=QUESTION))
    assert getattr(nothing, "questions", None) == ()
