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


def test_a_reward_that_falls_and_violations_that_become_frequent_break_a_guard_that_is_set() -> None:
    first, later = {"reward": 0.5, "violation_fraction": 0.02}, {"reward": 0.3, "violation_fraction": 0.27}
    assert find_violation(LIMITS, first, later) is None
    for guards, text in (
        (GuardConfig(max_reward_drop=0.1), "drop of mean reward: 0.2, above the limit of 0.1"),
        (
            GuardConfig(max_violation_rise=0.2),
            "rise of the fraction of rollouts that violated a rule: 0.25, above the limit of 0.2",
        ),
    ):
        assert str(find_violation(guards, first, later)) == text
        assert find_violation(guards, later, first) is None, "what became better"
        assert find_violation(guards, first, {}) is find_violation(guards, {}, later) is None, "not measured"
