"""A picture is the same for the same numbers, and shows them."""

import random
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from tests.results.charts import drawn, seeds_and_mean, ticks
from tests.results.testing.stub_experiment import EXPERIMENT, curve

CURVES = [curve(arm, seed) for arm in EXPERIMENT.arms for seed in (0, 1, 2)]


def test_the_same_curves_in_any_order_are_the_same_bytes() -> None:
    shuffled = random.Random(1).sample(CURVES, len(CURVES))
    assert shuffled != CURVES
    assert drawn(EXPERIMENT, shuffled) == drawn(EXPERIMENT, CURVES)


def test_each_metric_has_a_panel_with_a_line_per_seed_and_a_mean_per_arm() -> None:
    root = ElementTree.fromstring(drawn(EXPERIMENT, CURVES))
    lines = [line.get("class") for line in root.iter("{http://www.w3.org/2000/svg}polyline")]
    assert lines.count("seed") == 2 * 2 * 3
    assert lines.count("mean") == 2 * 2 + 2
    texts = [text.text for text in root.iter("{http://www.w3.org/2000/svg}text")]
    for name in ("ours", "the other", "right answers, share", "rounds of right answers", "training steps"):
        assert name in texts


def test_everything_lies_within_the_picture() -> None:
    root = ElementTree.fromstring(drawn(EXPERIMENT, CURVES))
    width, height = (float(root.get(side) or 0) for side in ("width", "height"))
    for line in root.iter("{http://www.w3.org/2000/svg}polyline"):
        for x, y in (map(float, point.split(",")) for point in (line.get("points") or "").split()):
            assert 0 <= x <= width
            assert 0 <= y <= height


def test_a_mean_is_over_steps_that_every_seed_has() -> None:
    seeds, mean = seeds_and_mean(CURVES, "ours", "rounds")
    assert [len(line) for line in seeds] == [3, 3, 3]
    assert mean == [(20, 5.0), (30, 4.0), (40, 4.0)]
    cut_short = replace(curve("ours", 7), points=curve("ours", 7).points[:3])
    assert seeds_and_mean([CURVES[0], cut_short], "ours", "right")[1][-1] == (20, pytest.approx((0.2 + 0.34) / 2))


@pytest.mark.parametrize(
    ("low", "high", "maximum", "expected"),
    [
        (0.0, 1.0, 6, (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)),
        (0.0, 640.0, 6, (0.0, 200.0, 400.0, 600.0, 800.0)),
        (-0.3, 0.9, 6, (-0.5, 0.0, 0.5, 1.0)),
        (5.0, 5.0, 6, (5.0, 6.0)),
        (0.0, 0.0, 6, (0.0, 0.1)),
    ],
)
def test_ticks_are_round_and_hold_what_they_must(
    low: float, high: float, maximum: int, expected: tuple[float, ...]
) -> None:
    result = ticks(low, high, maximum)
    assert result == expected
    assert result[0] <= low
    assert result[-1] >= high
    assert 2 <= len(result) <= maximum
