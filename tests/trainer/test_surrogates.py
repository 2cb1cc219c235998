"""What is minimized, and that the derivatives are those of its value."""

from typing import Any

import numpy as np
import pytest

from offing_trainer.batch import Floats, build_training_batch
from offing_trainer.plugin import LossInput, LossTerm, PluginKind, plugin_key
from offing_trainer.plugin_registry import PLUGINS
from offing_trainer.regularizers.kl import estimate_kl
from offing_trainer.surrogates.ratios import clip_objective
from tests.trainer.builders import drifted, random_batch, rewarded, slope


def loss_input(seed: int = 1, by: float = 0.4, **changes: Any) -> LossInput:
    """Random rows under a policy that moved by about `by` nats, with mixed signs of credit."""
    batch = random_batch(seed)
    rng = np.random.default_rng(seed + 100)
    defaults: dict[str, Any] = {
        "batch": batch,
        "logprobs": drifted(batch, seed + 1, by),
        "entropy": rng.uniform(0, 2, batch.num_tokens),
        "advantage": rng.normal(0, 1, batch.num_tokens),
        "weight": rng.uniform(0, 0.1, batch.num_tokens),
        "columns": {"old_logprobs": batch.behavior_logprobs, "ref_logprobs": drifted(batch, seed + 2, by)},
        "state": {},
    }
    return LossInput(**(defaults | changes))


def loss(name: str, what: LossInput, seam: PluginKind = PluginKind.SURROGATE, **options: Any) -> LossTerm:
    plugin = PLUGINS[plugin_key(seam, name)]
    return plugin.apply(plugin.options.model_validate(options), what)


def moved(what: LossInput, **changes: Any) -> LossInput:
    names = ("batch", "logprobs", "entropy", "advantage", "weight", "columns", "state")
    return LossInput(**({name: getattr(what, name) for name in names} | changes))


DIFFERENTIABLE: list[tuple[PluginKind, str, dict[str, Any]]] = [
    (PluginKind.SURROGATE, "ppo-clip", {}),
    (PluginKind.SURROGATE, "ppo-clip", {"low": 0.1, "high": 0.3, "dual_clip": 1.5}),
    (PluginKind.SURROGATE, "gspo", {"low": 0.05, "high": 0.05, "unit": "rows"}),
    (PluginKind.SURROGATE, "gspo", {"low": 0.05, "high": 0.05, "unit": "turns"}),
    (PluginKind.SURROGATE, "reinforce", {}),
    (PluginKind.SURROGATE, "cross-entropy", {}),
    (PluginKind.REGULARIZER, "kl-ref", {"estimator": "k1"}),
    (PluginKind.REGULARIZER, "kl-ref", {"estimator": "k2"}),
    (PluginKind.REGULARIZER, "kl-ref", {"estimator": "k3"}),
    (PluginKind.REGULARIZER, "kl-ref", {"estimator": "k3", "max_value": None}),
    (PluginKind.REGULARIZER, "entropy", {}),
]


@pytest.mark.parametrize(("seam", "name", "options"), DIFFERENTIABLE)
def test_derivatives_are_those_of_the_value(seam: PluginKind, name: str, options: dict[str, Any]) -> None:
    what = loss_input()
    result = loss(name, what, seam, **options)

    def at(logp: Floats) -> float:
        return loss(name, moved(what, logprobs=logp), seam, **options).value

    def with_entropy(entropy: Floats) -> float:
        return loss(name, moved(what, entropy=entropy), seam, **options).value

    assert np.allclose(result.logprob_grads, slope(at, what.logprobs), atol=1e-7)
    by_entropy = np.zeros(len(what.logprobs)) if result.entropy_grads is None else result.entropy_grads
    assert np.allclose(by_entropy, slope(with_entropy, what.entropy), atol=1e-7)
    assert np.abs(result.logprob_grads).max() + np.abs(by_entropy).max() > 0


@pytest.mark.parametrize(("seam", "name", "options"), DIFFERENTIABLE)
def test_what_has_no_weight_has_no_gradient(seam: PluginKind, name: str, options: dict[str, Any]) -> None:
    what = loss_input()
    weight = np.where(what.batch.token_row % 2 == 0, 0.0, what.weight)
    result = loss(name, moved(what, weight=weight), seam, **options)
    assert (result.logprob_grads[weight == 0] == 0).all()


@pytest.mark.parametrize(("name", "options"), [(n, o) for s, n, o in DIFFERENTIABLE if s is PluginKind.SURROGATE])
def test_rows_without_an_advantage_add_nothing(name: str, options: dict[str, Any]) -> None:
    what = loss_input()
    silent = what.batch.token_row % 2 == 0
    result = loss(name, moved(what, advantage=np.where(silent, 0.0, what.advantage)), **options)
    assert (result.logprob_grads[silent] == 0).all()


def test_the_clip_takes_the_smaller_of_the_two_and_stops_the_gradient() -> None:
    ratio, advantage = np.array([0.5, 0.5, 1.5, 1.5, 1.0, 9.0]), np.array([1.0, -1.0, 1.0, -1.0, 2.0, -1.0])
    result = clip_objective(ratio, advantage, 0.2, 0.2, dual_clip=3.0)
    assert result.value.tolist() == pytest.approx([-0.5, 0.8, -1.2, 1.5, -2.0, 3.0])
    assert result.gradient.tolist() == [-1.0, 0.0, 0.0, 1.0, -2.0, 0.0]
    assert (result.clipped_low.tolist(), result.clipped_high.tolist()) == (
        [False, True, False, False, False, False],
        [False, False, True, False, False, True],
    )


def test_tokens_without_weight_are_not_counted_as_clipped() -> None:
    what = loss_input()
    assert loss("ppo-clip", what).metrics["clip_high"] > 0
    unweighted = moved(what, weight=np.zeros(what.batch.num_tokens))
    assert loss("ppo-clip", unweighted).metrics == {"clip_low": 0, "clip_high": 0}


def test_on_the_policy_that_sampled_the_ratio_is_one_and_nothing_is_clipped() -> None:
    what = loss_input(by=0.0)
    result = loss("ppo-clip", moved(what, logprobs=what.batch.behavior_logprobs))
    assert result.value == pytest.approx(-float(what.weight @ what.advantage))
    assert result.metrics == {"clip_low": 0, "clip_high": 0}
    plain = loss("reinforce", moved(what, logprobs=what.batch.behavior_logprobs))
    assert np.allclose(result.logprob_grads, plain.logprob_grads)


def test_a_sequence_has_the_geometric_mean_of_its_tokens_ratios() -> None:
    batch = build_training_batch([rewarded([1.0], [((2, 1),)])])
    shift = np.array([0.3, -0.1, 0.7])
    what = loss_input(
        batch=batch, logprobs=batch.behavior_logprobs + shift, entropy=np.ones(3), advantage=np.ones(3),
        weight=np.ones(3),
        columns={"old_logprobs": batch.behavior_logprobs},
    )  # fmt: skip
    by_row = loss("gspo", what, unit="rows", low=0.9, high=9)
    assert by_row.value == pytest.approx(-3 * np.exp(0.3))
    by_turn = loss("gspo", what, unit="turns", low=0.9, high=9)
    assert by_turn.value == pytest.approx(-2 * np.exp(0.1) - np.exp(0.7))
    assert by_turn.logprob_grads.tolist() == pytest.approx([-np.exp(0.1)] * 2 + [-np.exp(0.7)])


def test_with_one_token_a_sequence_gspo_is_ppo() -> None:
    batch = build_training_batch([rewarded([1.0] * 6, [((1,),)] * 6)])
    what = loss_input(
        batch=batch, logprobs=drifted(batch, 3, 0.5), entropy=np.ones(6), advantage=np.array([1.0, -1] * 3),
        weight=np.ones(6), columns={"old_logprobs": batch.behavior_logprobs},
    )  # fmt: skip
    one, other = loss("gspo", what, low=0.2, high=0.2), loss("ppo-clip", what)
    assert one.value == pytest.approx(other.value)
    assert np.allclose(one.logprob_grads, other.logprob_grads)


def test_ratios_that_would_overflow_are_finite_and_have_no_gradient() -> None:
    what = loss_input()
    far = moved(what, logprobs=what.batch.behavior_logprobs + 800, advantage=-np.ones(what.batch.num_tokens))
    result = loss("ppo-clip", far)
    assert np.isfinite(result.value)
    assert (result.logprob_grads == 0).all()
    assert np.isfinite(loss("kl-ref", far, PluginKind.REGULARIZER).value)


def test_estimators_of_divergence_agree_with_its_value() -> None:
    """Over all tokens of a small vocabulary, weighed by p, k1 and k3 are exactly the divergence."""
    rng = np.random.default_rng(2)
    p, q = rng.dirichlet(np.ones(5)), rng.dirichlet(np.ones(5))
    exact = float(p @ np.log(p / q))
    for name in ("k1", "k3"):
        assert float(p @ estimate_kl(name, np.log(q / p))[0]) == pytest.approx(exact)
    assert (estimate_kl("k3", np.log(q / p))[0] >= 0).all()
    assert estimate_kl("k2", np.array([0.2]))[0].tolist() == pytest.approx([0.02])


def test_imitation_never_pushes_away() -> None:
    what = loss_input()
    result = loss("cross-entropy", what)
    assert (result.logprob_grads <= 0).all()
    assert (result.logprob_grads[what.advantage < 0] == 0).all()


def test_a_token_far_from_the_reference_does_not_decide_a_step() -> None:
    what = loss_input()
    far = what.columns["ref_logprobs"].copy()
    far[0] = what.logprobs[0] + 12.0
    moved_far = moved(what, columns={**what.columns, "ref_logprobs": far})
    limited = loss("kl-ref", moved_far, PluginKind.REGULARIZER)
    free = loss("kl-ref", moved_far, PluginKind.REGULARIZER, max_value=None)
    assert limited.logprob_grads[0] == 0.0
    assert free.logprob_grads[0] / moved_far.weight[0] == pytest.approx(1 - np.exp(12.0))
    assert np.array_equal(limited.logprob_grads[1:], free.logprob_grads[1:])
    assert limited.value - free.value == pytest.approx(moved_far.weight[0] * (10.0 - (np.exp(12.0) - 13.0)))


def test_gspo_limits_the_mean_log_ratio_of_a_sequence() -> None:
    what = loss_input()
    near = loss("gspo", what, unit="rows")
    far = moved(what, columns={**what.columns, "old_logprobs": what.logprobs - 11.0})
    limited = loss("gspo", far, unit="rows", max_log_ratio=10.0)
    assert not limited.logprob_grads.any()
    assert loss("gspo", far, unit="rows").logprob_grads[what.advantage < 0].any()
    assert near.logprob_grads.any()
