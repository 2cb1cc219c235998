"""The gate's arithmetic: pairs, intervals, and each reason to reject."""

from random import Random
from uuid import UUID

import pytest

from offing.core.errors import InvalidInput
from offing.services.promotion_gate import (
    EvaluationResult,
    GateRules,
    Guard,
    check_guards,
    compare_paired,
    find_level,
    merge_guards,
    run_gate_rules,
)

TASKS = [UUID(int=n) for n in range(20)]


def results(*rewards: float | None, outcome: str = "answered", member: int = 0) -> list[EvaluationResult]:
    return [EvaluationResult(task, member, reward, outcome) for task, reward in zip(TASKS, rewards, strict=False)]


def test_differences_are_taken_task_by_task_and_the_interval_holds_their_mean() -> None:
    result = compare_paired(results(*[1.0] * 10), results(*[1.0, 0.0] * 5))
    assert (result.pairs, result.candidate, result.active, result.difference) == (10, 1.0, 0.5, 0.5)
    assert 0.0 < result.low < 0.5 < result.high < 0.9
    assert compare_paired(results(*[1.0] * 10), results(*[1.0, 0.0] * 5)) == result
    same = compare_paired(results(*[1.0, 0.0] * 5), results(*[1.0, 0.0] * 5))
    assert same.difference == 0.0
    assert same.low == -same.high < -0.1


def test_a_task_counts_once_however_many_members_it_has() -> None:
    ours = [EvaluationResult(TASKS[0], n, 1.0, "answered") for n in range(9)] + [
        EvaluationResult(TASKS[1], 0, 0.0, "answered")
    ]
    theirs = [EvaluationResult(TASKS[0], n, 0.0, "answered") for n in range(9)] + [
        EvaluationResult(TASKS[1], 0, 1.0, "answered")
    ]
    result = compare_paired(ours, theirs)
    assert (result.pairs, result.tasks, result.difference) == (10, 2, 0.0)


def test_a_fault_of_the_platform_leaves_its_pair_and_is_no_zero() -> None:
    result = compare_paired(results(1.0, None, 1.0), results(1.0, 1.0, None))
    assert (result.pairs, result.excluded_pairs, result.difference) == (1, 2, 0.0)
    assert compare_paired(results(1.0), []).excluded_pairs == 1


def test_each_rule_rejects_with_its_numbers() -> None:
    def reasons(
        ours: list[EvaluationResult], theirs: list[EvaluationResult], rules: GateRules, kl: float | None = None
    ) -> str:
        return "; ".join(run_gate_rules(ours, theirs, rules, kl=kl).reasons)

    good, half, bad = results(*[1.0] * 10), results(*[0.5] * 10), results(*[0.0] * 10)
    assert not reasons(bad, half, GateRules(margin=0.5, confident=False))
    assert "-0.500, and the minimum is -0.100" in reasons(bad, half, GateRules(margin=0.1, confident=False))
    violated = results(*[1.0] * 10, outcome="violated")
    assert "100.0% of its rollouts violated a rule" in reasons(violated, bad, GateRules())
    assert not reasons(good, bad, GateRules(max_kl=0.1), kl=0.05)
    assert "0.2 nats per token" in reasons(good, bad, GateRules(max_kl=0.1), kl=0.2)
    assert "only 2 pairs" in reasons(good[:2], bad[:2], GateRules())


def test_an_equal_candidate_does_not_pass_unless_a_margin_or_the_mean_decides() -> None:
    ours, theirs = results(*[1.0, 0.0] * 10), results(*[0.0, 1.0] * 10)
    rejected = run_gate_rules(ours, theirs, GateRules())
    assert not rejected.passed
    assert "in 80 of 100 cases" in rejected.reasons[0]
    assert run_gate_rules(ours, theirs, GateRules(margin=0.6)).passed
    assert run_gate_rules(ours, theirs, GateRules(confident=False)).passed
    assert not run_gate_rules(theirs, theirs, GateRules()).passed


def test_a_candidate_that_is_worse_in_a_guarded_metric_is_rejected_if_that_is_certain() -> None:
    def measured(reward: float, *tokens: int, score: float | None = None) -> list[EvaluationResult]:
        return [EvaluationResult(TASKS[n], 0, reward, "answered", 1, t, {"f1": score}) for n, t in enumerate(tokens)]

    theirs = measured(0.0, *[100, 120] * 6, score=0.8)
    rules = GateRules(guards=merge_guards([Guard("tokens", 0.1, is_relative=True)]))
    (reason,) = run_gate_rules(measured(1.0, *[150, 170] * 6), theirs, rules).reasons
    assert reason == "its tokens is 160, compared with 110 for the active version, and may be worse by at most 11"
    assert run_gate_rules(measured(1.0, *[105, 125] * 6), theirs, rules).passed
    noisy = [100] * 11 + [1500]
    assert run_gate_rules(measured(1.0, *noisy), theirs, rules).passed
    fidelity = GateRules(guards=(Guard("f1", 0.1),))
    assert not run_gate_rules(measured(1.0, *[100] * 12, score=0.4), theirs, fidelity).passed
    assert run_gate_rules(measured(1.0, *[100] * 12, score=0.9), theirs, fidelity).passed
    assert "has a value of f1" in run_gate_rules(measured(1.0, *[100] * 12), theirs, fidelity).reasons[0]
    with pytest.raises(InvalidInput, match=r"no metric 'f2'.*Use one of: f1, tokens, turns, violations"):
        check_guards(GateRules(guards=(Guard("f2"),)), theirs)


def test_each_further_look_asks_for_more_and_all_together_err_in_five_of_a_hundred_cases() -> None:
    assert find_level(1) == pytest.approx(0.95)
    assert sum((1 - find_level(looks)) / 2 for looks in range(1, 10_000)) < 0.05
    ours, theirs = results(*[1.0] * 6, *[0.0] * 6), results(*[0.0] * 12)
    first, third = [run_gate_rules(ours, theirs, GateRules(), looks=looks) for looks in (1, 3)]
    assert first.passed
    assert not third.passed
    assert third.comparison.low < first.comparison.low


CASES, TASK_COUNT, EFFECT = 300, 200, 0.15
"""Simulated cases, tasks of an evaluation, and a difference of success rates that it should show."""


def simulate_passes(rng: Random, effect: float, looks: int = 1) -> float:
    """Return the fraction of simulated gates that pass at any look.

    Tasks differ in difficulty, rewards are 0 or 1, 3 % of the rollouts of both versions violate a rule, and the
    candidate succeeds more often by `effect`. Each look draws new rollouts.
    """
    identifiers = [UUID(int=n) for n in range(TASK_COUNT)]

    def draw(bonus: float) -> list[EvaluationResult]:
        return [
            EvaluationResult(
                task,
                0,
                float(rng.random() < 0.2 + 0.4 * task.int / TASK_COUNT + bonus),
                "violated" if rng.random() < 0.03 else "answered",
            )
            for task in identifiers
        ]

    passed = 0
    for _ in range(CASES):
        passed += any(
            run_gate_rules(draw(effect), draw(0.0), GateRules(), looks=look).passed for look in range(1, looks + 1)
        )
    return passed / CASES


def test_an_equal_candidate_passes_in_at_most_five_of_a_hundred_cases_however_often_one_looks() -> None:
    assert simulate_passes(Random(1), 0.0) <= 0.04
    assert simulate_passes(Random(2), 0.0, looks=5) <= 0.05


def test_a_candidate_better_by_the_stated_effect_passes_in_at_least_eighty_of_a_hundred_cases() -> None:
    assert simulate_passes(Random(3), EFFECT) >= 0.8


def test_the_detectable_difference_is_one_that_is_found_in_eighty_of_a_hundred_cases() -> None:
    rng = Random(4)
    ours = [EvaluationResult(UUID(int=n), 0, float(rng.random() < 0.5), "answered") for n in range(TASK_COUNT)]
    theirs = [EvaluationResult(UUID(int=n), 0, float(rng.random() < 0.4), "answered") for n in range(TASK_COUNT)]
    detectable = compare_paired(ours, theirs).detectable_difference
    assert detectable is not None
    assert 0.7 < simulate_passes(Random(5), detectable) < 0.9
