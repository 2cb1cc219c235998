"""What holds an update of old or one-sided data together: bounded importance, balanced clips, guards of likelihood and
entropy, entropy-modulated credit."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from offing_trainer.advantages.entropy_modulated import EntropyModulatedOptions, entropy_modulated
from offing_trainer.batch import Floats, TrainingBatch, build_training_batch
from offing_trainer.plugin import AdvantageInput, LossInput, Rewards, StepStatisticsInput, TokenWeightInput
from offing_trainer.regularizers.entropy_band import HISTORY_TABLE, EntropyBandOptions, entropy_band, update_history
from offing_trainer.regularizers.likelihood_guard import LikelihoodGuardOptions, likelihood_guard
from offing_trainer.surrogates.balanced_clip import BOUNDS_TABLE, BalancedClipOptions, positive_fraction, update_bounds
from offing_trainer.token_weights.truncated_importance import TruncatedImportanceOptions, truncated_importance
from tests.trainer.builders import a_group, a_sample, random_batch, slope

TWO_TURNS = build_training_batch([a_group(a_sample(1.0, ((2, 2),), logprobs=[-1.0, -1.0, -1.0, -1.0]))])


def weighed(moved: list[float], **how: Any) -> list[float]:
    inputs = TokenWeightInput(TWO_TURNS, np.zeros(4), {"old_logprobs": -1.0 + np.log(moved)}, 0.0)
    return truncated_importance(TruncatedImportanceOptions(**how), inputs).tolist()


def test_ratios_are_truncated_or_masked_a_token_a_turn_or_a_row() -> None:
    moved = [0.5, 4.0, 1.0, 1.5]
    assert weighed(moved) == pytest.approx([0.5, 2.0, 1.0, 1.5])
    assert weighed(moved, mode="mask", min_ratio=0.6) == pytest.approx([0.0, 0.0, 1.0, 1.5])
    assert weighed(moved, unit="turns", max_ratio=1.8) == pytest.approx([1.8, 1.8, 1.5, 1.5])
    assert weighed(moved, unit="turns", max_ratio=1.8, mode="mask") == pytest.approx([0.0, 0.0, 1.5, 1.5])
    assert weighed(moved, unit="rows", max_ratio=9.0) == pytest.approx([3.0] * 4)
    assert weighed(moved, unit="rows", max_ratio=9.0, geometric_mean=True) == pytest.approx([3.0**0.25] * 4)


def test_weights_that_have_not_moved_weigh_one_exactly() -> None:
    assert weighed([1.0] * 4, unit="rows") == [1.0] * 4


def test_a_product_over_a_long_row_does_not_overflow() -> None:
    assert weighed([1e300] * 4, unit="rows") == [2.0] * 4


def test_bounds_must_be_in_order() -> None:
    with pytest.raises(ValueError, match="low must be below high"):
        TruncatedImportanceOptions(min_ratio=3.0)


FOUR = np.log([0.7, 0.8, 1.1, 1.5])
SIGNS = np.array([-1.0, -1.0, 1.0, 1.0])


def surveyed(batch: TrainingBatch, log_ratio: Floats, advantage: Floats, **how: Any) -> Any:
    columns = {"old_logprobs": batch.behavior_logprobs, "start_logprobs": batch.behavior_logprobs + log_ratio}
    return update_bounds(BalancedClipOptions(**how), StepStatisticsInput(batch, advantage, columns, 0.0, {}))[
        BOUNDS_TABLE
    ]


def test_opening_a_bound_never_lowers_the_share() -> None:
    rng = np.random.default_rng(8)
    ratio, advantage, options = rng.lognormal(0, 0.6, 400), rng.normal(size=400), BalancedClipOptions()
    lows = [positive_fraction(options, ratio, advantage, low, 1.2) for low in np.arange(0.6, 0.91, 0.05)]
    highs = [positive_fraction(options, ratio, advantage, 0.9, high) for high in np.arange(1.2, 3.01, 0.1)]
    assert (np.diff(lows + highs) >= 0).all()
    assert lows[0] < lows[-1] < highs[-1]


def test_bounds_open_only_as_far_as_the_share_needs_the_lower_one_first() -> None:
    first = positive_fraction(BalancedClipOptions(), np.exp(FOUR), SIGNS, 0.6, 1.2)
    assert first == pytest.approx(1.1 / (1.1 + 1.5))
    result = surveyed(TWO_TURNS, FOUR, SIGNS, target_fraction=0.5)
    assert (result["low"], result["high"]) == (0.75, 1.2)
    assert result["fraction"] == pytest.approx(1.1 / 1.9)
    result = surveyed(TWO_TURNS, FOUR, SIGNS, target_fraction=1.0)
    assert (result["low"], result["high"], result["fraction"]) == (0.85, 1.2, 1.0)
    none_good = surveyed(TWO_TURNS, np.zeros(4), -np.abs(SIGNS), target_fraction=0.5)
    assert (none_good["low"], none_good["high"]) == (0.9, 3.0)


def test_without_a_target_the_clip_is_fixed() -> None:
    for seed in range(5):
        rng = np.random.default_rng(seed)
        batch = random_batch(seed)
        result = surveyed(
            batch, rng.normal(size=batch.num_tokens), rng.normal(size=batch.num_tokens), target_fraction=0.0
        )
        assert (result["low"], result["high"]) == (0.6, 1.2)


def compute_loss(batch: TrainingBatch, logp: Floats, advantage: float, weight: float = 1.0, **how: Any) -> Any:
    n = batch.num_tokens
    inputs = LossInput(
        batch,
        logp,
        np.zeros(n),
        np.full(n, advantage),
        np.full(n, weight),
        {"old_logprobs": batch.behavior_logprobs},
        {},
    )
    return likelihood_guard(LikelihoodGuardOptions(**how), inputs)


def test_likelihood_that_fell_in_a_turn_that_fell_as_a_whole_costs() -> None:
    logp = TWO_TURNS.behavior_logprobs + np.array([-0.5, 0.2, -0.1, 0.3])
    result = compute_loss(TWO_TURNS, logp, 1.0, 0.25)
    assert result.value == pytest.approx(0.25 * 0.5)
    assert result.logprob_grads.tolist() == [-0.25, 0.0, 0.0, 0.0]
    assert compute_loss(TWO_TURNS, logp, 1.0, gate="tokens").value == pytest.approx(0.6)
    assert compute_loss(TWO_TURNS, logp, 1.0, gate="rows").value == pytest.approx(0.6)
    assert compute_loss(TWO_TURNS, logp - np.array([0, 0, 0, 0.3]), 1.0).value == pytest.approx(0.6)


def test_no_fall_costs_nothing_and_what_did_badly_may_fall() -> None:
    assert compute_loss(TWO_TURNS, TWO_TURNS.behavior_logprobs + 0.1, 1.0).value == 0
    assert compute_loss(TWO_TURNS, TWO_TURNS.behavior_logprobs, 1.0).value == 0
    assert compute_loss(TWO_TURNS, TWO_TURNS.behavior_logprobs - 1.0, -1.0).value == 0
    assert compute_loss(TWO_TURNS, TWO_TURNS.behavior_logprobs - 1.0, 0.0).value == pytest.approx(4.0)


def test_answers_can_weigh_another_amount() -> None:
    batch = build_training_batch([a_group(a_sample(1.0, ((2,),), kinds=(("action", "answer"),)))])
    assert compute_loss(batch, batch.behavior_logprobs - 1.0, 1.0, answer_weight=0.0).logprob_grads.tolist() == [
        -1.0,
        0.0,
    ]


def band_state(batch: TrainingBatch, progress: float = 0.0, state: Any = None, **how: Any) -> Any:
    return update_history(
        EntropyBandOptions(**how), StepStatisticsInput(batch, np.zeros(batch.num_tokens), {}, progress, state or {})
    )


def compute_coefficients(batch: TrainingBatch, entropy: Floats, state: Any, **how: Any) -> Any:
    inputs = LossInput(
        batch, batch.behavior_logprobs, entropy, np.zeros(batch.num_tokens), np.full(batch.num_tokens, 0.5), {}, state
    )
    return entropy_band(EntropyBandOptions(**how), inputs)


SURE = build_training_batch([a_group(a_sample(1.0, ((2, 2),), entropy=[1.0, 1.0, 0.5, 0.7]))])


def test_a_first_step_has_no_band_and_a_second_that_of_the_first() -> None:
    first = band_state(SURE)
    assert compute_coefficients(SURE, np.array([9.0, 0, 9, 0]), first).value == 0
    second = band_state(SURE, state=first)
    assert second[HISTORY_TABLE]["band"] == pytest.approx({"1": 1.0, "2": 0.6}, abs=1e-3)
    assert compute_coefficients(SURE, np.array([1.19, 0.81, 0.7, 0.5]), second).value == 0
    result = compute_coefficients(SURE, np.array([1.5, 0.5, 0.6, 0.6]), second)
    assert result.value == pytest.approx(0.5 * (0.3 + 0.3))
    assert result.entropy_grads.tolist() == [0.5, -0.5, 0.0, 0.0]
    assert not result.logprob_grads.any()


def test_history_is_the_mean_of_the_steps_before() -> None:
    state = band_state(SURE)
    twice = band_state(replace(SURE, entropy=SURE.entropy * 3), state=state)
    thrice = band_state(SURE, state=twice)
    assert thrice[HISTORY_TABLE]["band"]["1"] == pytest.approx(2.0)
    assert thrice[HISTORY_TABLE]["turns"]["1"][1] == 3


def test_a_turns_mean_may_be_held_in_place_of_each_token() -> None:
    second = band_state(SURE, state=band_state(SURE))
    assert compute_coefficients(SURE, np.array([1.5, 0.5, 0.6, 0.6]), second, unit="turns").value == 0
    result = compute_coefficients(SURE, np.array([2.0, 1.0, 0.6, 0.6]), second, unit="turns")
    assert result.value == pytest.approx(2 * 0.5 * 0.3)
    assert result.entropy_grads.tolist() == [0.5, 0.5, 0.0, 0.0]


def test_the_hinge_pulls_and_fades() -> None:
    second = band_state(SURE, 0.5, band_state(SURE), final_decay=1.0)
    rng = np.random.default_rng(2)
    for over in ("tokens", "turns"):
        entropy = rng.uniform(0.2, 2.0, 4)
        result = compute_coefficients(SURE, entropy, second, unit=over)
        numeric = slope(lambda at, over=over: compute_coefficients(SURE, at, second, unit=over).value, entropy)
        np.testing.assert_allclose(result.entropy_grads, numeric, atol=1e-8)
        assert result.entropy_grads.any()
    full = band_state(SURE, 0.5, band_state(SURE))
    entropy = np.array([3.0, 3, 3, 3])
    assert compute_coefficients(SURE, entropy, second).value == pytest.approx(
        compute_coefficients(SURE, entropy, full).value / 2
    )


WORKED = build_training_batch(
    [a_group(a_sample(1.0, ((2, 1),), entropy=[0.1, 0.3, 1.0]), a_sample(0.0, ((1, 1),), run=2, entropy=[0.6, 0.2]))]
)
BY_TURN = np.array([1.0, 1.0, 1.0, -1.0, -1.0])


def modulated(**how: Any) -> Floats:
    inputs = AdvantageInput(WORKED, Rewards(WORKED.reward, np.zeros(WORKED.num_turns)), {}, {})
    return entropy_modulated(EntropyModulatedOptions(**how), inputs, BY_TURN)


def test_confident_turns_get_more_advantage_by_the_worked_values() -> None:
    np.testing.assert_allclose(modulated()[1:], [1.4276, 0.5408, -0.6696, -1.2988], atol=1e-4)
    assert modulated()[0] == modulated()[1]


def test_without_strength_the_advantage_is_only_centred() -> None:
    np.testing.assert_allclose(modulated(k=0.0, zeta=0.0), BY_TURN)
    np.testing.assert_array_equal(modulated(k=0.0, zeta=0.0, center=False), BY_TURN)


def test_gains_have_mean_one_over_turns() -> None:
    gain = modulated(zeta=0.0, center=False) / BY_TURN
    assert gain[[0, 2, 3, 4]].mean() == pytest.approx(1.0)
