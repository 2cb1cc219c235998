"""The experiment on unseen compositions and lengths; its small size says nothing about any algorithm."""

import asyncio
from pathlib import Path

import pytest

from offing.sdk import RuleContext, RuleFunction
from offing_engine.random_policy import create_random_policy
from offing_graphs.agentflow.schemas import PlannerInput
from offing_graphs.shared.schemas import Plan
from offing_world.agentflow.compact_format import plan_look_up
from offing_world.agentflow.rule_roles import PLANNER_RULES
from offing_world.compact_notation import VOCABULARY
from offing_world.lookup_rules import find_next_look_up
from tests.results import unseen
from tests.results.batch_sampling import opened
from tests.results.experiment import Curve, Size
from tests.results.question_overlap import course_overlap
from tests.results.rollouts import How, PlannedRollout, Played, played
from tests.results.starting_policies import ruled


@pytest.fixture(scope="module")
def curves(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Curve]:
    folder = tmp_path_factory.mktemp("results")
    return {arm: unseen.run(arm, 0, folder, Size.MINIATURE) for arm in unseen.ARMS}


def test_every_arm_starts_with_the_same_policy_and_ends_after_as_many_rollouts(curves: dict[str, Curve]) -> None:
    starts = [curve.points[0].figures for curve in curves.values()]
    assert all(start == starts[0] for start in starts)
    assert {curve.points[-1].step for curve in curves.values()} == {2}
    assert curves["rejection"].points[-1].figures["step_rollouts"] >= 0


def test_every_number_of_look_ups_is_evaluated_and_tabled(curves: dict[str, Curve]) -> None:
    figures = curves["flow-grpo"].points[-1].figures
    assert {f"greedy_success_{n}" for n in range(1, 7)} <= set(figures)
    text = "\n".join(unseen.read(list(curves.values())))
    assert "| start |" in text
    assert "| rejection sampling |" in text


def test_no_evaluated_composition_is_trained_or_demonstrated() -> None:
    overlap = course_overlap(unseen.course("flow-grpo", Size.FULL))
    assert (overlap.longer, overlap.longer_words) == (200, 0)
    assert unseen.LESSON.tested_hops is None
    assert {task.hops for task in unseen.LESSON.drawn(200, 0)} <= {1, 2, 3, 4, 5}


def stubborn(inputs: PlannerInput, _context: RuleContext) -> Plan:
    """Make the question's first look-up with the first tool in every turn."""
    return plan_look_up(find_next_look_up(inputs.question, ()), inputs.tools[0].name)


def answered(folder: Path, rule: RuleFunction[PlannerInput, Plan]) -> list[Played]:
    create_random_policy(folder / "words", VOCABULARY)
    words = opened(folder / "words", "words@1")
    planned = [PlannedRollout(task, n) for n, task in enumerate(unseen.QUESTIONS.held_out(24))]
    speaker = ruled(words, "rule", {"rule": rule})
    return asyncio.run(played(unseen.graph_setup(), planned, How(turns=8), speaker, words.chat_template))


def test_every_call_of_an_oracle_is_needed(tmp_path: Path) -> None:
    assert {one.scores["needed"] for one in answered(tmp_path, PLANNER_RULES["oracle"])} == {1.0}


def test_a_planner_that_makes_the_same_call_repeats_all_but_the_first(tmp_path: Path) -> None:
    scores = [one.scores for one in answered(tmp_path, stubborn) if one.turns == 8]
    assert {one["repeated"] for one in scores} <= {6 / 7, 7 / 8}
    assert min(one["needed"] for one in scores) <= 1 / 7, "the first call gave a value"
