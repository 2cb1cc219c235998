"""Hierarchical advantages from stored rollouts: which token gets which stream, penalties, and the critics' loss."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from offing.core.errors import InvalidInput
from offing.core.training_rows import TrainingRow
from offing_trainer.advantages import hae, turn_gae
from offing_trainer.advantages.hae import HaeOptions
from offing_trainer.batch import Floats, TrainingBatch, TrainingRollout, build_training_batch
from offing_trainer.critic import compute_value_loss, explained_variance
from offing_trainer.learner.row_layout import build_layout
from offing_trainer.plugin import AdvantageInput, RewardInput, Rewards
from offing_trainer.rewards.keep_penalty import KeepPenaltyOptions, keep_penalty
from offing_trainer.step_metrics import MetricAccumulator
from offing_trainer.turn_math import select_trained_turns, turn_indices
from tests.trainer.builders import CONTEXT, a_group, a_sample, random_batch, rewarded, slope, turns_of

OPENS, GOES_ON = ("switch", "subgoal", "action"), ("switch", "kept", "action")
TURNS = (OPENS, GOES_ON, GOES_ON, OPENS, GOES_ON, OPENS, GOES_ON)
COLUMNS = {
    "value_low": np.array((0.30, 0.35, 0.40, 0.45, 0.50, 0.60, 0.80)),
    "value_high": np.array((0.25, np.nan, np.nan, 0.42, np.nan, 0.55, np.nan)),
    "value_switch": np.array((0.26, 0.31, 0.36, 0.41, 0.46, 0.51, 0.56)),
}
FAITHFUL = HaeOptions(gamma=0.95, lam_turn=0.9, lam_segment=0.8, standardize=False)
RELEASED = FAITHFUL.model_copy(update={"undecided_baseline": "release"})


def one_rollout(turns: Any = TURNS, **more: Any) -> TrainingBatch:
    shape = [[len(kinds) for kinds in turns]]
    return build_training_batch([a_group(a_sample(1.0, shape, kinds=turns, **more))])


def one_rollout_row(turns: Any) -> TrainingRow:
    return a_sample(1.0, [[len(kinds) for kinds in turns]], kinds=turns).rows[0]


def settled_rewards(batch: TrainingBatch, turn: Any = None) -> Rewards:
    return Rewards(batch.reward, np.zeros(batch.num_turns) if turn is None else np.array(turn))


def compute_advantages(
    batch: TrainingBatch, options: HaeOptions = FAITHFUL, columns: Any = None, turn: Any = None
) -> Any:
    inputs = AdvantageInput(batch, settled_rewards(batch, turn), columns or COLUMNS, {})
    return hae.PLUGIN.apply(options, inputs)[0]


def of_kind(batch: TrainingBatch, token: Floats, kind: int) -> Floats:
    return token[batch.span_kind == kind]


def test_each_block_gets_its_own_stream() -> None:
    batch = one_rollout()
    token = compute_advantages(batch, turn=(0, 0, 0.2, 0, 0, 0, 0)).per_token
    low = (0.203624, 0.200145, 0.199, 0.044237, 0.0225, 0.331, 0.2)
    np.testing.assert_allclose(of_kind(batch, token, hae.ACTION), low, atol=1e-6)
    np.testing.assert_allclose(of_kind(batch, token, hae.SUBGOAL), (0.541071, 0.365175, 0.4), atol=1e-6)
    switch = (0.280597, 0.25905, 0.239, 0.086375, 0.0625, 0.44, 0.44)
    np.testing.assert_allclose(of_kind(batch, token, hae.SWITCH), switch, atol=1e-6)


def test_a_copied_subgoal_gets_no_advantage_except_in_the_first_turn_which_opens_a_segment() -> None:
    batch = one_rollout((GOES_ON, *TURNS[1:]))
    stored = of_kind(batch, compute_advantages(batch).per_token, hae.UNCHANGED_SUBGOAL)
    assert stored[0] == of_kind(one_rollout(), compute_advantages(one_rollout()).per_token, hae.SUBGOAL)[0] != 0
    np.testing.assert_array_equal(stored[1:], 0.0)


def test_an_answer_that_is_an_action_as_a_whole_keeps_and_gets_the_low_stream_alone() -> None:
    batch = one_rollout((OPENS, ("action",) * 4, *TURNS[2:]))
    token = compute_advantages(batch, RELEASED).per_token
    np.testing.assert_array_equal(token[3:7], compute_advantages(one_rollout()).per_token[5])


def test_what_no_role_could_read_continues_with_the_segment_and_is_an_action_as_a_whole() -> None:
    token = compute_advantages(one_rollout((*TURNS[:6], ("text",) * 4)), RELEASED).per_token
    np.testing.assert_array_equal(token[-4:], compute_advantages(one_rollout()).per_token[-1])


def test_what_no_role_could_read_is_held_against_what_its_turns_beginning_is_worth() -> None:
    result = compute_advantages(one_rollout((*TURNS[:6], ("text",) * 4)))
    np.testing.assert_allclose(result.per_token[-4:], 1.0 - COLUMNS["value_switch"][-1])
    last_read = 0.95 * COLUMNS["value_switch"][-1] - COLUMNS["value_low"][-2]
    np.testing.assert_allclose(result.per_token[-5], last_read + 0.95 * 0.9 * result.per_token[-1])


def test_the_low_critic_is_not_trained_on_what_no_role_could_read() -> None:
    targets = compute_advantages(one_rollout((*TURNS[:6], ("text",) * 4))).value_targets
    assert np.isnan(targets["value_low"]).tolist() == [False] * 6 + [True]
    assert not np.isnan(targets["value_switch"]).any()


def test_masks_are_disjoint_and_a_keeping_turn_has_no_subgoal_mask() -> None:
    for seed in range(20):
        batch = random_batch(seed)
        masks = hae.token_masks(batch)
        assert (np.sum(list(masks.values()), 0) <= 1).all()
        assert hae.segment_starts(batch)[batch.token_turn[masks[hae.SUBGOAL]]].all()
        columns = {name: np.zeros(batch.num_turns) for name in COLUMNS}
        token = compute_advantages(batch, FAITHFUL, columns).per_token
        assert not token[~np.any(list(masks.values()), 0)].any()


def test_a_standardized_stream_has_mean_zero_and_deviation_one_over_the_turns_that_have_it() -> None:
    batch = one_rollout()
    token = compute_advantages(batch, FAITHFUL.model_copy(update={"standardize": True})).per_token
    for kind in (hae.ACTION, hae.SUBGOAL, hae.SWITCH):
        stream = of_kind(batch, token, kind)
        assert stream.mean() == pytest.approx(0, abs=1e-9)
        assert stream.std() == pytest.approx(1, abs=1e-6)


def test_a_stream_that_one_turn_alone_has_says_nothing_when_standardized() -> None:
    batch = one_rollout((OPENS, *(GOES_ON,) * 6))
    token = compute_advantages(batch, HaeOptions()).per_token
    np.testing.assert_array_equal(of_kind(batch, token, hae.SUBGOAL), 0.0)


def test_a_turn_that_is_context_alone_is_no_step_and_its_reward_counts_to_the_turn_before() -> None:
    row = one_rollout_row(TURNS)
    mask = row.loss_mask.copy()
    mask[row.turn_index == 6] = False
    batch = build_training_batch([a_group(TrainingRollout(row.metadata, (replace(row, loss_mask=mask),)))])
    columns = {name: np.where(np.arange(7) == 6, np.nan, column) for name, column in COLUMNS.items()}
    result, shorter = compute_advantages(batch, columns=columns), one_rollout(TURNS[:6])
    alone = compute_advantages(shorter, columns={name: column[:6] for name, column in COLUMNS.items()})
    np.testing.assert_allclose(result.per_token, alone.per_token)
    assert np.isnan(result.value_targets["value_low"]).tolist() == [False] * 6 + [True]


def test_the_reward_of_a_context_turn_before_the_first_counts_to_the_first_of_its_own_rollout() -> None:
    batch = build_training_batch([rewarded([1.0, 0.5], turns_of(2, 3))])
    known = np.array([2, 2, 0, 2, 2])
    rewards = Rewards(batch.reward, np.array([0.0, 0.0, 0.25, 0.0, 0.0]))
    turns, paid = select_trained_turns(replace(batch, turn_token_counts=known), rewards)
    assert turns.tolist() == [0, 1, 3, 4]
    assert paid.tolist() == [0.0, 1.0, 0.25, 0.5]


def test_the_low_value_is_read_after_the_subgoal_whether_it_is_new_or_kept() -> None:
    new, stored = (one_rollout_row((kinds,)) for kinds in (OPENS, GOES_ON))
    assert build_layout(new).decision_end.tolist() == build_layout(stored).decision_end.tolist() == [CONTEXT + 1]


def test_critics_are_asked_where_their_streams_are() -> None:
    targets = compute_advantages(one_rollout()).value_targets
    assert set(targets) == {"value_low", "value_high", "value_switch"}
    assert np.isnan(targets["value_high"]).tolist() == [False, True, True, False, True, False, True]
    assert not np.isnan(targets["value_low"]).any()
    paper = hae.PLUGIN.needs_for_options
    assert paper is not None
    assert "value_keep" in paper(HaeOptions(switch="paper"))


def test_the_papers_switch_is_weighted_by_its_probability() -> None:
    columns = COLUMNS | {"value_keep": np.full(7, 0.3), "value_high": np.full(7, 0.5)}
    batch = one_rollout(logprobs=[np.log(0.8), 0, 0] * 7)
    token = compute_advantages(batch, FAITHFUL.model_copy(update={"switch": "paper"}), columns).per_token
    keep, switch = -(1 - 0.8) * 0.2, (1 - 0.8) * 0.2
    np.testing.assert_allclose(
        of_kind(batch, token, hae.SWITCH), (0, keep, keep, switch, keep, switch, keep), atol=1e-6
    )


def test_a_critic_that_says_nothing_where_it_is_read_is_rejected_by_name() -> None:
    with pytest.raises(InvalidInput, match="value_high: the critic has no value at 1 turns"):
        compute_advantages(
            one_rollout(), FAITHFUL, COLUMNS | {"value_high": np.append([np.nan], COLUMNS["value_high"][1:])}
        )


def test_continuing_costs_a_share_of_the_rollout_or_a_fixed_amount_a_turn() -> None:
    batch = one_rollout(ids=[1, 5, 9] * 7)
    paid = keep_penalty(KeepPenaltyOptions(keep_reward=-0.7), RewardInput(batch, settled_rewards(batch), {}, {}))[
        0
    ].turn
    np.testing.assert_allclose(paid, [0, -0.1, -0.1, 0, -0.1, 0, -0.1])
    paid = keep_penalty(
        KeepPenaltyOptions(keep_reward=-0.7, per_rollout=False), RewardInput(batch, settled_rewards(batch), {}, {})
    )[0].turn
    np.testing.assert_allclose(paid, [0, -0.7, -0.7, 0, -0.7, 0, -0.7])


def test_a_copy_that_is_none_costs_more() -> None:
    ids = [1, 5, 9] * 7
    ids[2 * 3 + 1] = 6
    batch = one_rollout(ids=ids)
    paid = keep_penalty(
        KeepPenaltyOptions(keep_reward=0.0, changed_subgoal_reward=-0.3),
        RewardInput(batch, settled_rewards(batch), {}, {}),
    )[0].turn
    np.testing.assert_allclose(paid, [0, 0, -0.3, 0, 0, 0, 0])


def test_flat_turn_gae_is_the_same_for_all_tokens_of_a_turn() -> None:
    batch = one_rollout()
    columns = {"value": COLUMNS["value_low"]}
    options = turn_gae.TurnGaeOptions(gamma=0.95, lam=0.9, standardize=False)
    result = turn_gae.PLUGIN.apply(options, AdvantageInput(batch, settled_rewards(batch), columns, {}))[0]
    flat = compute_advantages(one_rollout((OPENS, *(GOES_ON,) * 6)))
    np.testing.assert_allclose(result.per_token[2::3], of_kind(batch, flat.per_token, hae.ACTION))
    np.testing.assert_array_equal(result.per_token[0::3], result.per_token[2::3])
    np.testing.assert_allclose(result.value_targets["value"], result.per_token[::3] + COLUMNS["value_low"])


def test_whitening_over_tokens_is_that_of_the_same_values_written_once_per_token() -> None:
    values, counts = np.array([0.5, -1.0, 2.0]), np.array([3, 1, 4])
    written = np.repeat(values, counts)
    expected = (written - written.mean()) / np.sqrt(written.var(ddof=1) + 1e-8)
    np.testing.assert_allclose(np.repeat(turn_gae.whiten(values, counts), counts), expected)
    assert turn_gae.whiten(values[:1], counts[1:2]).tolist() == [0.0]
    by_turn, by_token = [
        turn_gae.PLUGIN.apply(
            turn_gae.TurnGaeOptions(entries=entries),
            AdvantageInput(one_rollout(), settled_rewards(one_rollout()), {"value": COLUMNS["value_low"]}, {}),
        )[0].per_token
        for entries in ("turns", "tokens")
    ]
    assert by_token.std(ddof=1) == pytest.approx(1.0)
    assert by_turn.std() == pytest.approx(1.0)


def test_the_value_loss_has_the_derivative_it_says() -> None:
    rng = np.random.default_rng(3)
    target, before = rng.normal(size=12), {"value_low": rng.normal(size=12)}
    target[4] = np.nan
    values = before["value_low"] + rng.normal(0, 0.8, 12)

    def loss(at: Floats) -> Any:
        return compute_value_loss({"value_low": at}, {"value_low": target}, before, turn_weight=0.3, clip=0.5)

    result = loss(values)
    np.testing.assert_allclose(result.value_grads["value_low"], slope(lambda at: loss(at).value, values), atol=1e-6)
    assert result.value_grads["value_low"][4] == 0
    assert 0 < result.metrics["value_low/clipped"] < 11
    assert result.metrics["value_low/target_count"] == 11


def test_a_value_far_from_where_it_was_is_not_pulled_further() -> None:
    def pull(value: float) -> float:
        arrays = ({"v": np.array([value])}, {"v": np.array([2.0])}, {"v": np.array([0.0])})
        return float(compute_value_loss(*arrays, turn_weight=1.0, clip=0.5).value_grads["v"][0])

    assert pull(0.4) == pytest.approx(-1.6)
    assert pull(0.6) == 0.0
    assert pull(-0.6) == pytest.approx(-2.6)


def test_explained_variance_is_one_for_a_perfect_critic_and_unknown_without_variance() -> None:
    target = np.array([0.0, 1.0, 3.0])

    def share(values: Floats, target: Floats) -> float | None:
        return explained_variance(compute_value_loss({"v": values}, {"v": target}, {}, turn_weight=1.0).metrics, "v")

    assert share(target, target) == pytest.approx(1.0)
    assert share(np.full(3, 4.0), target) == pytest.approx(0.0)
    assert share(target, np.ones(3)) is None


def test_a_step_tells_what_share_each_head_explained_in_any_cut() -> None:
    rng, tallies = np.random.default_rng(5), [MetricAccumulator(), MetricAccumulator()]
    target, values = rng.normal(size=20), rng.normal(size=20)
    target[3] = np.nan
    for tally, parts in zip(tallies, ([np.arange(20)], np.array_split(rng.permutation(20), 3)), strict=True):
        for part in parts:
            tally.add(compute_value_loss({"value": values[part]}, {"value": target[part]}, {}, turn_weight=1.0).metrics)
    whole, parts = (tally.compute_metrics() for tally in tallies)
    assert whole == pytest.approx(parts)
    known = ~np.isnan(target)
    share = 1 - np.var(target[known] - values[known]) / np.var(target[known])
    squared = np.mean((target[known] - values[known]) ** 2)
    assert whole == pytest.approx(
        {
            "value/target_count": 19,
            "value/clipped": 0,
            "value/squared_error": squared,
            "value/explained_variance": share,
        }
    )


def test_turns_come_row_after_row_as_a_learner_gives_their_values() -> None:
    batch = build_training_batch([a_group(a_sample(1.0, ((2, 3), (4,)), run=1), a_sample(0.0, ((1,), (1, 1)), run=2))])
    assert turn_indices(batch, np.array([3, 0])).tolist() == [4, 5, 0, 1]
