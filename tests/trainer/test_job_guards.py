from offing_trainer.config import GuardConfig
from offing_trainer.job.guards import tripped

LIMITS = GuardConfig()


def test_a_single_rare_token_that_became_likely_is_no_distance_and_a_policy_that_moved_is() -> None:
    outlier = {"kl": 4.2, "kl_k1": 0.01}
    assert tripped(LIMITS, {}, outlier) is None
    found = tripped(LIMITS, {}, {"kl": 0.9, "kl_k1": 0.6})
    assert found is not None
    assert str(found) == "distance to the sampling policy: 0.6, and the limit is 0.5"


def test_figures_that_are_not_there_and_those_within_their_limits_break_no_guard() -> None:
    assert tripped(LIMITS, {}, {}) is None
    assert tripped(LIMITS, {"entropy": 1.0}, {"entropy": 0.5, "kl_k1": -0.1, "ratio": 1.2}) is None


def test_a_figure_that_is_no_number_breaks_its_guard() -> None:
    found = tripped(LIMITS, {}, {"kl_k1": float("nan")})
    assert found is not None
