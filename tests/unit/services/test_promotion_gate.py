"""The gate's arithmetic: pairs, intervals, and each reason to reject."""

from uuid import UUID

from offing.services.promotion import difference_interval
from offing.services.promotion_gate import EvaluationResult, GateRules, compare_paired, judge_gate

TASKS = [UUID(int=n) for n in range(20)]


def results(*rewards: float | None, outcome: str = "answered", member: int = 0) -> list[EvaluationResult]:
    return [EvaluationResult(task, member, reward, outcome) for task, reward in zip(TASKS, rewards, strict=False)]


def test_differences_are_taken_task_by_task_and_the_interval_holds_their_mean() -> None:
    result = compare_paired(results(*[1.0] * 10), results(*[1.0, 0.0] * 5))
    assert (result.pairs, result.candidate, result.active, result.difference) == (10, 1.0, 0.5, 0.5)
    assert 0.1 < result.low < 0.5 < result.high < 0.9
    assert compare_paired(results(*[1.0] * 10), results(*[1.0, 0.0] * 5)) == result
    same = compare_paired(results(*[1.0, 0.0] * 5), results(*[1.0, 0.0] * 5))
    assert (same.difference, same.low, same.high) == (0.0, 0.0, 0.0)


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
    worse = compare_paired(results(*[0.0] * 10), results(*[0.5] * 10))
    assert judge_gate(worse, GateRules(margin=0.5)).passed
    assert "-0.500" in judge_gate(worse, GateRules(margin=0.1)).reasons[0]
    loose = compare_paired(results(*[1.0] * 10, outcome="violated"), results(*[1.0] * 10))
    assert "100.0% of its rollouts violated a rule" in judge_gate(loose, GateRules()).reasons[0]
    even = compare_paired(results(*[1.0] * 10), results(*[1.0] * 10))
    assert judge_gate(even, GateRules(max_kl=0.1), kl=0.05).passed
    assert "0.2 nats per token" in judge_gate(even, GateRules(max_kl=0.1), kl=0.2).reasons[0]
    assert "only 2 pairs" in judge_gate(compare_paired(results(1.0, 1.0), results(1.0, 1.0)), GateRules()).reasons[0]


def test_a_confident_gate_wants_the_whole_interval() -> None:
    result = compare_paired(results(*[1.0, 0.0] * 6), results(*[0.0, 1.0] * 6))
    assert judge_gate(result, GateRules()).passed
    assert not judge_gate(result, GateRules(confident=True)).passed


def test_the_interval_of_unpaired_means_is_welch_s() -> None:
    low, high = difference_interval([0.0, 0.0, 1.0, 1.0], [1.0, 1.0, 1.0, 1.0])
    assert round((low + high) / 2, 6) == -0.5
    assert round(high - low, 4) == round(2 * 1.96 * (1 / 3 / 4) ** 0.5, 4)
