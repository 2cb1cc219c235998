"""The penalty for rejected completions: which tokens get it, and when it is rejected as a setting."""

from typing import Any

import pytest

from offing_trainer.batch import RolloutGroup
from offing_trainer.pipeline import InvalidPipelineError, Pipeline
from tests.trainer.builders import a_group, a_pipeline, a_sample, a_step, by_row

WITH_REJECTED = {"name": "policy-turns", "include_rejected": True}


def penalized(penalty: float = 0.75, **seams: Any) -> Pipeline:
    modifier = {"name": "invalid-action-penalty", "penalty": penalty}
    return a_pipeline(**{"view": WITH_REJECTED, "advantage_modifiers": [modifier], **seams})


def a_violation_among(*rewards: float) -> RolloutGroup:
    """The first rollout ends with a completion that no role could use, and the others have these rewards."""
    first = a_sample(0.0, ((2,), (3,)), outcome="violated", fractures=["root", "rejected"])
    return a_group(first, *(a_sample(reward, run=run) for run, reward in enumerate(rewards, 2)))


def test_in_a_group_that_fails_only_the_rejected_completion_gets_an_advantage() -> None:
    step = a_step(penalized(), [a_violation_among(0.0, 0.0, 0.0)])
    assert by_row(step.batch, step.advantage) == [0.0, -0.75, 0.0, 0.0, 0.0]
    assert step.active_rows.tolist() == [1]


def test_beside_a_success_the_penalty_is_added_to_the_advantage() -> None:
    step = a_step(penalized(), [a_violation_among(1.0, 0.0)])
    failed, won = -0.577350, 1.154701
    assert by_row(step.batch, step.advantage) == pytest.approx([failed, failed - 0.75, won, failed], abs=1e-5)


def test_a_penalty_of_zero_leaves_a_group_that_fails_without_an_advantage() -> None:
    step = a_step(penalized(0.0), [a_violation_among(0.0, 0.0)])
    assert not step.advantage.any()


@pytest.mark.parametrize("view", [{"name": "policy-turns"}, {"name": "surviving"}])
def test_a_view_without_rejected_completions_is_rejected_with_the_option_to_set(view: dict[str, Any]) -> None:
    with pytest.raises(InvalidPipelineError, match=r"advantage_modifiers: .*leaves out rejected.*include_rejected"):
        penalized(view=view)


@pytest.mark.parametrize("penalty", [-0.1, float("inf"), float("nan")])
def test_a_penalty_is_a_finite_number_of_at_least_zero(penalty: float) -> None:
    with pytest.raises(InvalidPipelineError, match=r"advantage_modifiers\.penalty"):
        penalized(penalty)
