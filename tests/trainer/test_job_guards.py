from offing_trainer.config import GuardConfig
from offing_trainer.job.guards import find_violation

LIMITS = GuardConfig()


def test_a_single_rare_token_that_became_likely_is_no_distance_and_a_policy_that_moved_is() -> None:
    outlier = {"kl": 4.2, "kl_k1": 0.01}
    assert find_violation(LIMITS, {}, outlier) is None
    violation = find_violation(LIMITS, {}, {"kl": 0.9, "kl_k1": 0.6})
    assert violation is not None
    assert str(violation) == "KL divergence from the sampling policy: 0.6, above the limit of 0.5"


def test_metrics_that_are_not_there_and_those_within_their_limits_break_no_guard() -> None:
    assert find_violation(LIMITS, {}, {}) is None
    assert find_violation(LIMITS, {"entropy": 1.0}, {"entropy": 0.5, "kl_k1": -0.1, "ratio": 1.2}) is None


def test_a_metric_that_is_no_number_breaks_its_guard() -> None:
    violation = find_violation(LIMITS, {}, {"kl_k1": float("nan")})
    assert violation is not None
