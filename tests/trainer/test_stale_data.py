"""What holds an update of old or one-sided data together: bounded importance, balanced clips, guards of likelihood and
entropy, entropy-modulated credit."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from offing_trainer.advantages.entropy_modulated import EntropyModulated, entropy_modulated
from offing_trainer.batch import Batch, Floats, batch_of
from offing_trainer.regularisers.entropy_band import HISTORY, EntropyBand, entropy_band, remember
from offing_trainer.regularisers.likelihood_guard import LikelihoodGuard, likelihood_guard
from offing_trainer.seam import AdvantageGiven, LossGiven, Rewards, SurveyGiven, WeightGiven
from offing_trainer.surrogates.balanced_clip import BOUNDS, BalancedClip, balanced, share
from offing_trainer.weights.truncated_importance import TruncatedImportance, truncated_importance
from tests.trainer.builders import a_group, a_sample, random_batch, slope

TWO_TURNS = batch_of([a_group(a_sample(1.0, ((2, 2),), logprobs=[-1.0, -1.0, -1.0, -1.0]))])


def weighed(moved: list[float], **how: Any) -> list[float]:
    given = WeightGiven(TWO_TURNS, np.zeros(4), {"logp_old": -1.0 + np.log(moved)}, 0.0)
    return truncated_importance(TruncatedImportance(**how), given).tolist()


def test_ratios_are_truncated_or_masked_a_token_a_turn_or_a_row() -> None:
    moved = [0.5, 4.0, 1.0, 1.5]
    assert weighed(moved) == pytest.approx([0.5, 2.0, 1.0, 1.5])
    assert weighed(moved, how="mask", low=0.6) == pytest.approx([0.0, 0.0, 1.0, 1.5])
    assert weighed(moved, over="turns", high=1.8) == pytest.approx([1.8, 1.8, 1.5, 1.5])
    assert weighed(moved, over="turns", high=1.8, how="mask") == pytest.approx([0.0, 0.0, 1.5, 1.5])
    assert weighed(moved, over="rows", high=9.0) == pytest.approx([3.0] * 4)
    assert weighed(moved, over="rows", high=9.0, mean=True) == pytest.approx([3.0**0.25] * 4)


def test_weights_that_have_not_moved_weigh_one_exactly() -> None:
    assert weighed([1.0] * 4, over="rows") == [1.0] * 4


def test_a_product_over_a_long_row_does_not_overflow() -> None:
    assert weighed([1e300] * 4, over="rows") == [2.0] * 4


def test_bounds_must_be_in_order() -> None:
    with pytest.raises(ValueError, match="low must be below high"):
        TruncatedImportance(low=3.0)


FOUR = np.log([0.7, 0.8, 1.1, 1.5])
SIGNS = np.array([-1.0, -1.0, 1.0, 1.0])


def surveyed(batch: Batch, log_ratio: Floats, advantage: Floats, **how: Any) -> Any:
    columns = {"logp_old": batch.behaviour, "logp_start": batch.behaviour + log_ratio}
    return balanced(BalancedClip(**how), SurveyGiven(batch, advantage, columns, 0.0, {}))[BOUNDS]


def test_opening_a_bound_never_lowers_the_share() -> None:
    rng = np.random.default_rng(8)
    ratio, advantage, options = rng.lognormal(0, 0.6, 400), rng.normal(size=400), BalancedClip()
    lows = [share(options, ratio, advantage, low, 1.2) for low in np.arange(0.6, 0.91, 0.05)]
    highs = [share(options, ratio, advantage, 0.9, high) for high in np.arange(1.2, 3.01, 0.1)]
    assert (np.diff(lows + highs) >= 0).all()
    assert lows[0] < lows[-1] < highs[-1]


def test_bounds_open_only_as_far_as_the_share_needs_the_lower_one_first() -> None:
    first = share(BalancedClip(), np.exp(FOUR), SIGNS, 0.6, 1.2)
    assert first == pytest.approx(1.1 / (1.1 + 1.5))
    found = surveyed(TWO_TURNS, FOUR, SIGNS, target=0.5)
    assert (found["low"], found["high"]) == (0.75, 1.2)
    assert found["share"] == pytest.approx(1.1 / 1.9)
    found = surveyed(TWO_TURNS, FOUR, SIGNS, target=1.0)
    assert (found["low"], found["high"], found["share"]) == (0.85, 1.2, 1.0)
    none_good = surveyed(TWO_TURNS, np.zeros(4), -np.abs(SIGNS), target=0.5)
    assert (none_good["low"], none_good["high"]) == (0.9, 3.0)


def test_without_a_target_the_clip_is_fixed() -> None:
    for seed in range(5):
        rng = np.random.default_rng(seed)
        batch = random_batch(seed)
        found = surveyed(batch, rng.normal(size=batch.tokens), rng.normal(size=batch.tokens), target=0.0)
        assert (found["low"], found["high"]) == (0.6, 1.2)


def lost(batch: Batch, logp: Floats, advantage: float, weight: float = 1.0, **how: Any) -> Any:
    n = batch.tokens
    given = LossGiven(
        batch, logp, np.zeros(n), np.full(n, advantage), np.full(n, weight), {"logp_old": batch.behaviour}, {}
    )
    return likelihood_guard(LikelihoodGuard(**how), given)


def test_likelihood_that_fell_in_a_turn_that_fell_as_a_whole_costs() -> None:
    logp = TWO_TURNS.behaviour + np.array([-0.5, 0.2, -0.1, 0.3])
    found = lost(TWO_TURNS, logp, 1.0, 0.25)
    assert found.value == pytest.approx(0.25 * 0.5)
    assert found.dlogp.tolist() == [-0.25, 0.0, 0.0, 0.0]
    assert lost(TWO_TURNS, logp, 1.0, gate="tokens").value == pytest.approx(0.6)
    assert lost(TWO_TURNS, logp, 1.0, gate="rows").value == pytest.approx(0.6)
    assert lost(TWO_TURNS, logp - np.array([0, 0, 0, 0.3]), 1.0).value == pytest.approx(0.6)


def test_no_fall_costs_nothing_and_what_did_badly_may_fall() -> None:
    assert lost(TWO_TURNS, TWO_TURNS.behaviour + 0.1, 1.0).value == 0
    assert lost(TWO_TURNS, TWO_TURNS.behaviour, 1.0).value == 0
    assert lost(TWO_TURNS, TWO_TURNS.behaviour - 1.0, -1.0).value == 0
    assert lost(TWO_TURNS, TWO_TURNS.behaviour - 1.0, 0.0).value == pytest.approx(4.0)


def test_answers_can_weigh_another_amount() -> None:
    batch = batch_of([a_group(a_sample(1.0, ((2,),), kinds=(("action", "answer"),)))])
    assert lost(batch, batch.behaviour - 1.0, 1.0, answer_weight=0.0).dlogp.tolist() == [-1.0, 0.0]


def band_state(batch: Batch, progress: float = 0.0, state: Any = None, **how: Any) -> Any:
    return remember(EntropyBand(**how), SurveyGiven(batch, np.zeros(batch.tokens), {}, progress, state or {}))


def held(batch: Batch, entropy: Floats, state: Any, **how: Any) -> Any:
    given = LossGiven(batch, batch.behaviour, entropy, np.zeros(batch.tokens), np.full(batch.tokens, 0.5), {}, state)
    return entropy_band(EntropyBand(**how), given)


SURE = batch_of([a_group(a_sample(1.0, ((2, 2),), entropy=[1.0, 1.0, 0.5, 0.7]))])


def test_a_first_step_has_no_band_and_a_second_that_of_the_first() -> None:
    first = band_state(SURE)
    assert held(SURE, np.array([9.0, 0, 9, 0]), first).value == 0
    second = band_state(SURE, state=first)
    assert second[HISTORY]["band"] == pytest.approx({"1": 1.0, "2": 0.6}, abs=1e-3)
    assert held(SURE, np.array([1.19, 0.81, 0.7, 0.5]), second).value == 0
    found = held(SURE, np.array([1.5, 0.5, 0.6, 0.6]), second)
    assert found.value == pytest.approx(0.5 * (0.3 + 0.3))
    assert found.dentropy.tolist() == [0.5, -0.5, 0.0, 0.0]
    assert not found.dlogp.any()


def test_history_is_the_mean_of_the_steps_before() -> None:
    state = band_state(SURE)
    twice = band_state(replace(SURE, entropy=SURE.entropy * 3), state=state)
    thrice = band_state(SURE, state=twice)
    assert thrice[HISTORY]["band"]["1"] == pytest.approx(2.0)
    assert thrice[HISTORY]["turns"]["1"][1] == 3


def test_a_turns_mean_may_be_held_in_place_of_each_token() -> None:
    second = band_state(SURE, state=band_state(SURE))
    assert held(SURE, np.array([1.5, 0.5, 0.6, 0.6]), second, over="turns").value == 0
    found = held(SURE, np.array([2.0, 1.0, 0.6, 0.6]), second, over="turns")
    assert found.value == pytest.approx(2 * 0.5 * 0.3)
    assert found.dentropy.tolist() == [0.5, 0.5, 0.0, 0.0]


def test_the_hinge_pulls_and_fades() -> None:
    second = band_state(SURE, 0.5, band_state(SURE), fade=1.0)
    rng = np.random.default_rng(2)
    for over in ("tokens", "turns"):
        entropy = rng.uniform(0.2, 2.0, 4)
        found = held(SURE, entropy, second, over=over)
        numeric = slope(lambda at, over=over: held(SURE, at, second, over=over).value, entropy)
        np.testing.assert_allclose(found.dentropy, numeric, atol=1e-8)
        assert found.dentropy.any()
    full = band_state(SURE, 0.5, band_state(SURE))
    entropy = np.array([3.0, 3, 3, 3])
    assert held(SURE, entropy, second).value == pytest.approx(held(SURE, entropy, full).value / 2)


WORKED = batch_of(
    [a_group(a_sample(1.0, ((2, 1),), entropy=[0.1, 0.3, 1.0]), a_sample(0.0, ((1, 1),), run=2, entropy=[0.6, 0.2]))]
)
BY_TURN = np.array([1.0, 1.0, 1.0, -1.0, -1.0])


def modulated(**how: Any) -> Floats:
    given = AdvantageGiven(WORKED, Rewards(WORKED.reward, np.zeros(WORKED.turns)), {}, {})
    return entropy_modulated(EntropyModulated(**how), given, BY_TURN)


def test_sure_turns_are_credited_more_by_the_worked_values() -> None:
    np.testing.assert_allclose(modulated()[1:], [1.4276, 0.5408, -0.6696, -1.2988], atol=1e-4)
    assert modulated()[0] == modulated()[1]


def test_without_strength_the_advantage_is_only_centred() -> None:
    np.testing.assert_allclose(modulated(k=0.0, zeta=0.0), BY_TURN)
    np.testing.assert_array_equal(modulated(k=0.0, zeta=0.0, centre=False), BY_TURN)


def test_gains_have_mean_one_over_turns() -> None:
    gain = modulated(zeta=0.0, centre=False) / BY_TURN
    assert gain[[0, 2, 3, 4]].mean() == pytest.approx(1.0)
