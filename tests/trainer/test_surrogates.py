"""What is minimised, and that the derivatives are those of its value."""

from typing import Any

import numpy as np
import pytest

from offing_trainer.batch import Floats, batch_of
from offing_trainer.catalogue import built_in, by_name
from offing_trainer.regularisers.kl import estimated
from offing_trainer.seam import Loss, LossGiven, Seam
from offing_trainer.surrogates.ratios import clipped
from tests.trainer.builders import drifted, random_batch, rewarded, slope

PLUGINS = by_name(built_in())


def given(seed: int = 1, by: float = 0.4, **changes: Any) -> LossGiven:
    """Random rows under a policy that moved by about `by` nats, with mixed signs of credit."""
    batch = random_batch(seed)
    rng = np.random.default_rng(seed + 100)
    defaults: dict[str, Any] = {
        "batch": batch,
        "logp": drifted(batch, seed + 1, by),
        "entropy": rng.uniform(0, 2, batch.tokens),
        "advantage": rng.normal(0, 1, batch.tokens),
        "weight": rng.uniform(0, 0.1, batch.tokens),
        "columns": {"logp_old": batch.behaviour, "logp_ref": drifted(batch, seed + 2, by)},
        "state": {},
    }
    return LossGiven(**(defaults | changes))


def loss(name: str, what: LossGiven, seam: Seam = Seam.SURROGATE, **options: Any) -> Loss:
    plugin = PLUGINS[seam, name]
    return plugin.apply(plugin.options.model_validate(options), what)


def moved(what: LossGiven, **changes: Any) -> LossGiven:
    names = ("batch", "logp", "entropy", "advantage", "weight", "columns", "state")
    return LossGiven(**({name: getattr(what, name) for name in names} | changes))


DIFFERENTIABLE: list[tuple[Seam, str, dict[str, Any]]] = [
    (Seam.SURROGATE, "ppo-clip", {}),
    (Seam.SURROGATE, "ppo-clip", {"low": 0.1, "high": 0.3, "dual": 1.5}),
    (Seam.SURROGATE, "gspo", {"low": 0.05, "high": 0.05, "over": "rows"}),
    (Seam.SURROGATE, "gspo", {"low": 0.05, "high": 0.05, "over": "turns"}),
    (Seam.SURROGATE, "reinforce", {}),
    (Seam.SURROGATE, "cross-entropy", {}),
    (Seam.REGULARISE, "kl-ref", {"estimator": "k1"}),
    (Seam.REGULARISE, "kl-ref", {"estimator": "k2"}),
    (Seam.REGULARISE, "kl-ref", {"estimator": "k3"}),
    (Seam.REGULARISE, "entropy", {}),
]


@pytest.mark.parametrize(("seam", "name", "options"), DIFFERENTIABLE)
def test_derivatives_are_those_of_the_value(seam: Seam, name: str, options: dict[str, Any]) -> None:
    what = given()
    found = loss(name, what, seam, **options)

    def at(logp: Floats) -> float:
        return loss(name, moved(what, logp=logp), seam, **options).value

    def with_entropy(entropy: Floats) -> float:
        return loss(name, moved(what, entropy=entropy), seam, **options).value

    assert np.allclose(found.dlogp, slope(at, what.logp), atol=1e-7)
    by_entropy = np.zeros(len(what.logp)) if found.dentropy is None else found.dentropy
    assert np.allclose(by_entropy, slope(with_entropy, what.entropy), atol=1e-7)
    assert np.abs(found.dlogp).max() + np.abs(by_entropy).max() > 0


@pytest.mark.parametrize(("seam", "name", "options"), DIFFERENTIABLE)
def test_what_has_no_weight_has_no_gradient(seam: Seam, name: str, options: dict[str, Any]) -> None:
    what = given()
    weight = np.where(what.batch.token_row % 2 == 0, 0.0, what.weight)
    found = loss(name, moved(what, weight=weight), seam, **options)
    assert (found.dlogp[weight == 0] == 0).all()


@pytest.mark.parametrize(("name", "options"), [(n, o) for s, n, o in DIFFERENTIABLE if s is Seam.SURROGATE])
def test_rows_without_an_advantage_add_nothing(name: str, options: dict[str, Any]) -> None:
    what = given()
    silent = what.batch.token_row % 2 == 0
    found = loss(name, moved(what, advantage=np.where(silent, 0.0, what.advantage)), **options)
    assert (found.dlogp[silent] == 0).all()


def test_the_clip_takes_the_smaller_of_the_two_and_stops_the_gradient() -> None:
    ratio, advantage = np.array([0.5, 0.5, 1.5, 1.5, 1.0, 9.0]), np.array([1.0, -1.0, 1.0, -1.0, 2.0, -1.0])
    found = clipped(ratio, advantage, 0.2, 0.2, dual=3.0)
    assert found.value.tolist() == pytest.approx([-0.5, 0.8, -1.2, 1.5, -2.0, 3.0])
    assert found.slope.tolist() == [-1.0, 0.0, 0.0, 1.0, -2.0, 0.0]
    assert (found.low.tolist(), found.high.tolist()) == (
        [False, True, False, False, False, False],
        [False, False, True, False, False, True],
    )


def test_tokens_without_weight_are_not_counted_as_clipped() -> None:
    what = given()
    assert loss("ppo-clip", what).figures["clip_high"] > 0
    unweighted = moved(what, weight=np.zeros(what.batch.tokens))
    assert loss("ppo-clip", unweighted).figures == {"clip_low": 0, "clip_high": 0}


def test_on_the_policy_that_sampled_the_ratio_is_one_and_nothing_is_clipped() -> None:
    what = given(by=0.0)
    found = loss("ppo-clip", moved(what, logp=what.batch.behaviour))
    assert found.value == pytest.approx(-float(what.weight @ what.advantage))
    assert found.figures == {"clip_low": 0, "clip_high": 0}
    plain = loss("reinforce", moved(what, logp=what.batch.behaviour))
    assert np.allclose(found.dlogp, plain.dlogp)


def test_a_sequence_has_the_geometric_mean_of_its_tokens_ratios() -> None:
    batch = batch_of([rewarded([1.0], [((2, 1),)])])
    shift = np.array([0.3, -0.1, 0.7])
    what = given(
        batch=batch, logp=batch.behaviour + shift, entropy=np.ones(3), advantage=np.ones(3), weight=np.ones(3),
        columns={"logp_old": batch.behaviour},
    )  # fmt: skip
    by_row = loss("gspo", what, over="rows", low=0.9, high=9)
    assert by_row.value == pytest.approx(-3 * np.exp(0.3))
    by_turn = loss("gspo", what, over="turns", low=0.9, high=9)
    assert by_turn.value == pytest.approx(-2 * np.exp(0.1) - np.exp(0.7))
    assert by_turn.dlogp.tolist() == pytest.approx([-np.exp(0.1)] * 2 + [-np.exp(0.7)])


def test_with_one_token_a_sequence_gspo_is_ppo() -> None:
    batch = batch_of([rewarded([1.0] * 6, [((1,),)] * 6)])
    what = given(
        batch=batch, logp=drifted(batch, 3, 0.5), entropy=np.ones(6), advantage=np.array([1.0, -1] * 3),
        weight=np.ones(6), columns={"logp_old": batch.behaviour},
    )  # fmt: skip
    one, other = loss("gspo", what, low=0.2, high=0.2), loss("ppo-clip", what)
    assert one.value == pytest.approx(other.value)
    assert np.allclose(one.dlogp, other.dlogp)


def test_ratios_that_would_overflow_are_finite_and_have_no_gradient() -> None:
    what = given()
    far = moved(what, logp=what.batch.behaviour + 800, advantage=-np.ones(what.batch.tokens))
    found = loss("ppo-clip", far)
    assert np.isfinite(found.value)
    assert (found.dlogp == 0).all()
    assert np.isfinite(loss("kl-ref", far, Seam.REGULARISE).value)


def test_estimators_of_divergence_agree_with_its_value() -> None:
    """Over all tokens of a small vocabulary, weighed by p, k1 and k3 are exactly the divergence."""
    rng = np.random.default_rng(2)
    p, q = rng.dirichlet(np.ones(5)), rng.dirichlet(np.ones(5))
    exact = float(p @ np.log(p / q))
    for name in ("k1", "k3"):
        assert float(p @ estimated(name, np.log(q / p))[0]) == pytest.approx(exact)
    assert (estimated("k3", np.log(q / p))[0] >= 0).all()
    assert estimated("k2", np.array([0.2]))[0].tolist() == pytest.approx([0.02])


def test_imitation_never_pushes_away() -> None:
    what = given()
    found = loss("cross-entropy", what)
    assert (found.dlogp <= 0).all()
    assert (found.dlogp[what.advantage < 0] == 0).all()
