"""The experiment on unseen compositions and lengths; its small size says nothing about any algorithm."""

import pytest

from tests.results import unseen
from tests.results.experiment import Curve, Size
from tests.results.question_overlap import course_overlap


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
