"""Comparisons of hierarchical with flat credit run in miniature, and what is read from curves is in them."""

import math
from pathlib import Path

import pytest

from tests.results import hae_delay, hae_episodes, hae_flow, hae_variance
from tests.results.experiment import Curve, Experiment, Point, Size


@pytest.mark.parametrize(
    "experiment", [hae_episodes.EXPERIMENT, hae_variance.EXPERIMENT, hae_delay.EXPERIMENT], ids=lambda one: one.name
)
def test_every_arm_has_every_metric_and_the_same_seed_gives_the_same_curve(
    experiment: Experiment, tmp_path: Path
) -> None:
    curves = [experiment.run(arm, 0, tmp_path, Size.MINIATURE) for arm in experiment.arms]
    for curve in curves:
        results = {name: value for point in curve.points for name, value in point.figures.items()}
        assert set(results) == set(experiment.figures)
        assert all(math.isfinite(value) for value in results.values())
    again = experiment.run(curves[0].arm, 0, tmp_path, Size.MINIATURE)
    assert [point.figures for point in again.points] == [point.figures for point in curves[0].points]
    assert any("|" in line for line in experiment.read(curves))
    assert experiment.read(curves[:1])


@pytest.mark.parametrize("arm", hae_flow.EXPERIMENT.arms)
def test_the_real_graph_is_trained_with_critics_by_either_advantage(arm: str, tmp_path: Path) -> None:
    curve = hae_flow.EXPERIMENT.run(arm, 0, tmp_path, Size.MINIATURE)
    assert [point.step for point in curve.points] == [0, 1, 2]
    assert set(hae_flow.EXPERIMENT.figures) <= set(curve.points[-1].figures)
    requests = {name for name in curve.points[-1].figures if name.endswith("/target_count")}
    heads = {"flat": ("value",), "gigpo": (), "grouped": ()}.get(arm, ("value_high", "value_low", "value_switch"))
    assert requests == {f"step_{head}/target_count" for head in heads}
    assert hae_flow.read([curve])


def corridor(arm: str, seed: int, there: int) -> Curve:
    """A learner that gets there at that episode at every rate."""
    shares = [(seen, 1.0 if seen >= there else 0.2) for seen in range(100, 1000, 100)]
    named = [f"opened-at-{rate:g}" for rate in hae_episodes.RATES]
    return Curve(arm, seed, tuple(Point(seen, 0.0, dict.fromkeys(named, share)) for seen, share in shares))


@pytest.mark.parametrize(
    ("needed", "verdict"),
    [
        ((100, 200, 400), "| -267 (-410 to -123) | yes |"),
        ((700, 800, 800), "| +267 (+123 to +410) | **no, more** |"),
    ],
)
def test_who_needs_fewer_episodes_is_read_from_the_curves(needed: tuple[int, ...], verdict: str) -> None:
    curves = [corridor("hierarchical", seed, there) for seed, there in enumerate(needed)]
    flat = [corridor("flat", seed, 400 + 100 * seed) for seed in range(3)]
    lines = hae_episodes.read([*curves, *flat])
    assert sum(line.endswith(verdict) for line in lines) == len(hae_episodes.RATES)
    never = hae_episodes.read([*curves, *flat, corridor("flat", 3, 5000)])
    assert f"{len(hae_episodes.RATES)} of {7 * len(hae_episodes.RATES)} learners" in never[-1]


def test_variance_is_compared_at_the_same_lambda() -> None:
    curves = [
        Curve(arm, seed, tuple(Point(lam, 0.0, {"variance-all": by * lam}) for lam in hae_variance.LAMBDAS))
        for arm, by in (("hierarchical", 1.5), ("flat", 2.0))
        for seed in (3, 4)
    ]
    assert hae_variance.ratios(curves, "variance-all", 90) == {3: 0.75, 4: 0.75}


def test_arms_are_judged_at_their_best_rate() -> None:
    def learner(arm: str, there: int) -> Curve:
        shares = [(seen, 1.0 if seen >= there else 0.2) for seen in range(100, 2000, 100)]
        named = {f"opened-{cells}-at-{rate:g}": rate for cells in hae_delay.CORRIDORS for rate in hae_delay.RATES}
        points = [
            Point(seen, 0.0, {name: share if rate == 1.0 else 0.0 for name, rate in named.items()})
            for seen, share in shares
        ]
        return Curve(arm, 0, tuple(points))

    lines = hae_delay.read([learner("hierarchical", 300), learner("gigpo", 500)])
    assert any(line.startswith("| GiGPO | 9 | 1 | 500 | -200 |") for line in lines)
