"""The gate's arithmetic: pairs, intervals, and each reason to refuse."""

from uuid import UUID

from offing.services.promotion import unpaired
from offing.services.training_gate import Result, Rules, judged, paired

TASKS = [UUID(int=n) for n in range(20)]


def results(*rewards: float | None, outcome: str = "answered", member: int = 0) -> list[Result]:
    return [Result(task, member, reward, outcome) for task, reward in zip(TASKS, rewards, strict=False)]


def test_differences_are_taken_task_by_task_and_the_interval_holds_their_mean() -> None:
    found = paired(results(*[1.0] * 10), results(*[1.0, 0.0] * 5))
    assert (found.pairs, found.candidate, found.champion, found.difference) == (10, 1.0, 0.5, 0.5)
    assert 0.1 < found.low < 0.5 < found.high < 0.9
    assert paired(results(*[1.0] * 10), results(*[1.0, 0.0] * 5)) == found
    same = paired(results(*[1.0, 0.0] * 5), results(*[1.0, 0.0] * 5))
    assert (same.difference, same.low, same.high) == (0.0, 0.0, 0.0)


def test_a_task_counts_once_however_many_members_it_has() -> None:
    ours = [Result(TASKS[0], n, 1.0, "answered") for n in range(9)] + [Result(TASKS[1], 0, 0.0, "answered")]
    theirs = [Result(TASKS[0], n, 0.0, "answered") for n in range(9)] + [Result(TASKS[1], 0, 1.0, "answered")]
    found = paired(ours, theirs)
    assert (found.pairs, found.tasks, found.difference) == (10, 2, 0.0)


def test_a_fault_of_the_platform_leaves_its_pair_and_is_no_zero() -> None:
    found = paired(results(1.0, None, 1.0), results(1.0, 1.0, None))
    assert (found.pairs, found.left_out, found.difference) == (1, 2, 0.0)
    assert paired(results(1.0), []).left_out == 1


def test_each_rule_refuses_with_its_figures() -> None:
    worse = paired(results(*[0.0] * 10), results(*[0.5] * 10))
    assert judged(worse, Rules(margin=0.5)).passed
    assert "-0.500" in judged(worse, Rules(margin=0.1)).why_not[0]
    loose = paired(results(*[1.0] * 10, outcome="violated"), results(*[1.0] * 10))
    assert "100.0% of its rollouts broke a rule" in judged(loose, Rules()).why_not[0]
    even = paired(results(*[1.0] * 10), results(*[1.0] * 10))
    assert judged(even, Rules(kl_ceiling=0.1), kl=0.05).passed
    assert "0.2 nats" in judged(even, Rules(kl_ceiling=0.1), kl=0.2).why_not[0]
    assert "only 2 pairs" in judged(paired(results(1.0, 1.0), results(1.0, 1.0)), Rules()).why_not[0]


def test_a_confident_gate_wants_the_whole_interval() -> None:
    found = paired(results(*[1.0, 0.0] * 6), results(*[0.0, 1.0] * 6))
    assert judged(found, Rules()).passed
    assert not judged(found, Rules(confident=True)).passed


def test_the_interval_of_unpaired_means_is_welch_s() -> None:
    low, high = unpaired([0.0, 0.0, 1.0, 1.0], [1.0, 1.0, 1.0, 1.0])
    assert round((low + high) / 2, 6) == -0.5
    assert round(high - low, 4) == round(2 * 1.96 * (1 / 3 / 4) ** 0.5, 4)
