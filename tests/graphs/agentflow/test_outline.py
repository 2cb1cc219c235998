"""A plan that a person changes while the run works: what the roles see of it, and crashes on the way."""

from typing import Any

from offing.core.plan_outline import PlanItem
from offing.core.run import Budget, StopReason
from offing.core.step import StepKind
from offing.sdk import CONSUMED_FIELD
from offing.testing import assert_survives_worker_loss, simulate_run
from offing_graphs.agentflow import graph
from offing_graphs.agentflow.extractive import plan_next_step
from offing_graphs.agentflow.schemas import PlannerInput, Verdict
from offing_graphs.router import graph as router
from offing_graphs.shared.schemas import Coverage

DOCUMENTS = {
    "gulls.md": "# Gulls\n\nGulls nest on cliffs. A gull lays three eggs in May.\n\n## Food\n\nGulls eat fish.\n",
    "terns.md": "# Terns\n\nA tern lays two eggs in June. Terns eat small fish.\n",
}
QUESTION = "How many eggs does a gull lay?"
CHANGED = (PlanItem("What do gulls eat?", must_answer=True), PlanItem("When does a tern lay eggs?"))
PARTS = tuple(item.text for item in CHANGED)


def judge(*, stop: bool, covered: bool) -> Any:
    def answer(inputs: Any) -> Verdict:
        parts = inputs.analysis.sub_questions
        coverage = tuple(Coverage(sub_question=part, covered=covered) for part in parts)
        return Verdict(analysis="So it is.", coverage=coverage, stop=stop)

    return answer


async def test_the_next_plan_is_made_with_the_changed_parts_and_their_marks() -> None:
    seen: list[PlannerInput] = []

    def planner(inputs: PlannerInput) -> Any:
        seen.append(inputs)
        return plan_next_step(inputs)

    run = await simulate_run(
        graph,
        QUESTION,
        documents=DOCUMENTS,
        budget=Budget(max_turns=3),
        answers={"planner": planner},
        user_messages={4: CHANGED},
    )
    first, second = seen[:2]
    assert first.analysis.sub_questions == ("How many eggs does a gull lay",)
    assert second.analysis.sub_questions == PARTS
    assert [part.must_answer for part in second.plan] == [True, False]
    assert second.user_messages == ()
    prompt = "\n".join(message.text for message in graph.roles[1].render(second))
    assert "1. What do gulls eat? (must be answered)\n2. When does a tern lay eggs?" in prompt
    (change,) = run.list_steps(StepKind.USER_MESSAGE)
    (note,) = [step for step in run.list_steps(StepKind.NOTE) if CONSUMED_FIELD in step.payload]
    assert note.payload[CONSUMED_FIELD] == change.seq
    assert run.list_steps(StepKind.PLAN)[1].seq > note.seq > change.seq


async def test_a_changed_plan_survives_a_crash_at_every_moment_between_queueing_and_delivery() -> None:
    for after_steps in (2, 5, 7):
        run = await assert_survives_worker_loss(
            graph,
            QUESTION,
            documents=DOCUMENTS,
            budget=Budget(max_turns=4),
            user_messages={after_steps: CHANGED},
        )
        notes = [step for step in run.list_steps(StepKind.NOTE) if CONSUMED_FIELD in step.payload]
        assert len(notes) == 1, after_steps
        assert any("gulls eat" in step.title for step in run.list_steps(StepKind.PLAN) if step.seq > notes[0].seq)


async def test_only_the_latest_of_two_changes_counts() -> None:
    run = await simulate_run(
        graph, QUESTION, documents=DOCUMENTS, budget=Budget(max_turns=3), user_messages={4: CHANGED, 6: CHANGED[1:]}
    )
    verification = run.list_steps(StepKind.VERIFICATION)[-1]
    assert [one["sub_question"] for one in verification.payload["output"]["coverage"]] == list(PARTS[1:])


async def test_a_run_continues_while_a_part_that_must_be_answered_is_open() -> None:
    for must_answer, turns in ((True, 4), (False, 2)):
        run = await simulate_run(
            graph,
            QUESTION,
            documents=DOCUMENTS,
            budget=Budget(max_turns=4),
            answers={"verifier": judge(stop=True, covered=False)},
            user_messages={4: [PlanItem("What do gulls eat?", must_answer=must_answer)]},
        )
        assert run.usage.turns == turns
        assert run.report is not None


async def test_a_covered_part_that_must_be_answered_lets_the_run_stop() -> None:
    run = await simulate_run(
        graph,
        QUESTION,
        documents=DOCUMENTS,
        budget=Budget(max_turns=4),
        answers={"verifier": judge(stop=True, covered=True)},
        user_messages={4: CHANGED},
    )
    assert run.usage.turns == 2
    assert run.report is not None
    assert run.report.stop_reason == StopReason.ANSWERED


async def test_the_loop_of_the_router_reads_a_changed_plan_too() -> None:
    assert router.has_editable_plan
    run = await assert_survives_worker_loss(
        router,
        "What is a puffin afraid of?",
        documents=DOCUMENTS,
        budget=Budget(max_turns=4),
        user_messages={7: CHANGED},
    )
    assert run.report is not None
