"""Every published way to train, against slow references that were written from the papers' formulas alone.

The references (tests/trainer/reference) are loops over plain records of the same stored rows; they know neither the
trainer's arrays nor its derivatives. Compared are credit, weights, losses and slopes, to 1e-6, on groups that have
turns and rows without tokens, a group of one, one that failed as a whole, and one that nobody can train.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import ceil
from typing import Any
from uuid import UUID

import numpy as np
import pytest

from offing_trainer.batch import RolloutGroup, TrainingRollout
from tests.trainer.builders import a_group, a_pipeline, a_recipe, random_groups
from tests.trainer.reference import advantages as by
from tests.trainer.reference import losses as of
from tests.trainer.reference.cases import CASES, Case, calls_of, expected_loss, rewards_of, z_over_rollouts
from tests.trainer.reference.records import PerToken, Rollout, Row, all_rows, deviation, in_groups, records_of, spread
from tests.trainer.reference.trainer_results import (
    TrainerResult,
    awkward_groups,
    compute_with_trainer,
    entropies,
    logps,
)

SEEDS = (1, 2)


def both(case: Case, groups: Sequence[RolloutGroup], **how: Any) -> tuple[TrainerResult, list[Rollout]]:
    rollouts = records_of(groups)
    facts = {run: {"tool_calls": calls} for run, calls in calls_of(rollouts).items()}
    return compute_with_trainer(case.pipeline, groups, rollouts, mode=case.mode, facts=facts, **how), rollouts


def trained(case: Case, rollouts: Sequence[Rollout], answer: TrainerResult) -> list[Row]:
    """The rows that the trainer trained."""
    records = {row.key: row for row in all_rows(rollouts)}
    return [records[key] for key in answer.rows]


def alike(one: PerToken, other: PerToken, keys: Sequence[str], tolerance: float = 1e-6) -> None:
    """Rows that the first does not name have 0."""
    for key in keys:
        mine = list(one.get(key, [0.0] * len(other[key])))
        assert mine == pytest.approx(list(other[key]), abs=tolerance), key


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", CASES)
def test_tokens_get_the_advantages_of_the_papers(name: str, seed: int) -> None:
    answer, rollouts = both(CASES[name], awkward_groups(seed))
    assert any(any(values) for values in answer.credit.values())
    alike(answer.credit, CASES[name].credit(rollouts), answer.rows)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", CASES)
def test_tokens_weigh_what_the_papers_say(name: str, seed: int) -> None:
    case = CASES[name]
    answer, rollouts = both(case, awkward_groups(seed))
    expected = case.average(trained(case, rollouts, answer), rollouts)
    for row, mine, theirs in zip(answer.rows, answer.weights, expected, strict=True):
        if any(answer.credit[row]):  # the others' ratios are not looked at
            assert list(mine) == pytest.approx(list(theirs), abs=1e-12)


@pytest.mark.parametrize("name", [name for name in CASES if not name.startswith("dcpo")])
def test_the_rows_that_are_trained_are_those_of_the_papers(name: str) -> None:
    case = CASES[name]
    answer, rollouts = both(case, awkward_groups(4))
    assert sorted(answer.rows) == sorted(row.key for row in (case.chosen or all_rows)(rollouts))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", CASES)
def test_losses_and_their_slopes_are_those_of_the_papers(name: str, seed: int) -> None:
    case = CASES[name]
    answer, rollouts = both(case, awkward_groups(seed, groups=2, rollouts=3))
    rows, now = trained(case, rollouts, answer), logps("now", rollouts)
    value = expected_loss(case, rollouts, rows)
    assert answer.value == pytest.approx(value(now), abs=1e-6)
    moving = {row.key: now[row.key] for row in rows}
    alike(answer.logprob_grads, of.slopes(lambda at: value({**now, **at}), moving), sorted(moving))


@pytest.mark.parametrize("name", CASES)
def test_order_and_parts_change_no_slope(name: str) -> None:
    case, groups = CASES[name], awkward_groups(6)
    straight, _ = both(case, groups)
    if name != "dcpo":  # what it draws is by order, so that parts alone are compared
        groups = [RolloutGroup(g.key, g.task, tuple(reversed(g.rollouts))) for g in reversed(groups)]
    other, _ = both(case, groups, parts=4)
    assert other.value == pytest.approx(straight.value, abs=1e-9)
    alike(other.logprob_grads, straight.logprob_grads, sorted(straight.logprob_grads), 1e-9)


# Over steps -------------------------------------------------------------------------------------------------------


def test_success_is_tracked_over_steps_as_single_stream_optimization_says() -> None:
    tracker, state = by.SuccessTracker(), None
    for version, moved in ((1, 1), (3, 2), (4, 1)):
        groups = random_groups(version, 4, 3, policy=f"planner@{version}", reward=lambda rng: float(rng.random()))
        rollouts = records_of(groups)
        answer = compute_with_trainer(
            a_recipe("spo", advantage={"name": "tracker", "min_retention": 0.1}), groups, rollouts, state=state
        )
        alike(answer.credit, spread(rollouts, by.of_rollouts(rollouts, tracker.credit(rollouts))), answer.rows)
        share = by.kept_fraction(0.03 * moved, least=0.1)
        for task in {rollout.task for rollout in rollouts}:
            tracker.remember(task, [rollout.reward for rollout in rollouts if rollout.task == task], share)
        state = answer.state


def test_the_minimum_calls_of_a_task_are_remembered_over_steps() -> None:
    pipeline, state = (
        a_pipeline(rewards=[{"name": "tool-efficiency"}], advantage={"name": "group-z", "std": "none"}),
        None,
    )
    before: list[Rollout] = []
    costs: dict[str, float] = {}
    for step in range(3):
        groups = [replace(g, key=f"{g.key} {step}") for g in awkward_groups(step + 11)]
        groups = [replace(g, rollouts=tuple(_run(s, 1000 * step + n) for n, s in enumerate(g.rollouts, 20 * m)))
                  for m, g in enumerate(groups)]  # fmt: skip
        rollouts = records_of(groups)
        costs |= {run: calls + 3 - step for run, calls in calls_of(rollouts).items()}
        facts = {rollout.run: {"tool_calls": costs[rollout.run]} for rollout in rollouts}
        answer = compute_with_trainer(pipeline, groups, rollouts, state=state, facts=facts)
        paid = by.efficient([*before, *rollouts], costs)
        assert answer.ready.rewards.rollout.tolist() == pytest.approx([paid[run] for run in answer.ready.batch.run_ids])
        before, state = [*before, *rollouts], answer.state


def _run(sample: TrainingRollout, run: int) -> TrainingRollout:
    """The same under another run id."""
    renamed = replace(sample.metadata, run_id=UUID(int=run + 1))
    return replace(sample, metadata=renamed, rows=tuple(replace(row, metadata=renamed) for row in sample.rows))


@pytest.mark.parametrize("over", ["tokens", "turns"])
def test_entropy_is_kept_in_the_band_of_the_steps_before(over: str) -> None:
    term = {"name": "entropy-band", "coefficient": 0.3, "unit": over}
    pipeline, groups = a_pipeline(regularizers=[term]), awkward_groups(22, groups=2, rollouts=3)
    earlier, rollouts = [records_of(awkward_groups(seed)) for seed in (21, 23)], records_of(groups)
    start = compute_with_trainer(pipeline, awkward_groups(21), earlier[0])
    assert not any(any(values) for values in start.entropy_grads.values())
    between = compute_with_trainer(pipeline, awkward_groups(23), earlier[1], state=start.state)
    answer = compute_with_trainer(pipeline, groups, rollouts, state=between.state)
    rows, now = all_rows(rollouts), entropies(rollouts)
    weights, usual = of.token_mean(rows, rollouts), of.usual_entropy([all_rows(step) for step in earlier])
    band = of.entropy_band(usual) if over == "tokens" else of.mean_entropy_band(usual)
    slopes = of.slopes(lambda at: 0.3 * of.total(rows, weights, at, band), now)
    assert any(any(values) for values in slopes.values())
    alike(answer.entropy_grads, slopes, [row.key for row in rows])


# What is chosen ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
def test_no_other_choice_of_as_many_rollouts_varies_more_than_that_of_down_sampling(seed: int) -> None:
    groups = random_groups(seed, 2, 5, reward=lambda rng: float(rng.random()))
    rollouts = records_of(groups)
    pipeline = a_pipeline(selectors=[{"name": "max-variance", "fraction": 0.4}])
    answer, advantages = (
        compute_with_trainer(pipeline, groups, rollouts),
        by.over_rollouts(rollouts, rewards_of(rollouts)),
    )
    of_run = {rollout.run: advantages[rollout.turns[0].key] for rollout in rollouts}
    stored = {key.partition("/")[0] for key in answer.rows}
    assert sorted(answer.rows) == sorted(row.key for r in rollouts if r.run in stored for row in r.rows)
    assert len(stored) == 4
    spread_of_kept = deviation([of_run[run] for run in stored], 0) ** 2
    assert spread_of_kept == pytest.approx(by.largest_spread(list(of_run.values()), 4))
    alike(answer.credit, spread(rollouts, advantages), answer.rows)


@pytest.mark.parametrize("seed", SEEDS)
def test_tokens_with_the_largest_advantage_times_entropy_are_those_that_weigh(seed: int) -> None:
    groups = awkward_groups(seed)
    rollouts = records_of(groups)
    answer = compute_with_trainer(
        a_pipeline(token_weights=[{"name": "token-mean"}, {"name": "top-tokens", "fraction": 0.25}]), groups, rollouts
    )
    records = {row.key: row for row in all_rows(rollouts)}
    rows = [records[key] for key in answer.rows]
    size = sum(len(row.tokens) for row in rows)
    loud = of.loudest(rows, z_over_rollouts(rollouts), ceil(0.25 * size))
    assert [[weight > 0 for weight in mine] for mine in answer.weights] == loud
    assert sum(map(sum, answer.weights)) == pytest.approx(1.0)


@pytest.mark.parametrize("seed", SEEDS)
def test_segments_are_drawn_as_many_a_task_one_of_each_rollout_first(seed: int) -> None:
    groups = awkward_groups(seed, rollouts=5)
    rollouts = records_of(groups)
    for count in (3, 8, 40):
        pipeline = a_recipe("dcpo", selectors=[{"name": "segment-sample", "rows_per_group": count}])
        drawn = Counter(compute_with_trainer(pipeline, groups, rollouts).rows)
        for group in in_groups(rollouts):
            mine = [r for r in group if r.rows]
            rows = [row.key for r in mine for row in r.rows]
            taken = {key: drawn[key] for key in rows}
            assert sum(taken.values()) == (count if rows else 0)
            of_rollout = [sum(taken[row.key] for row in r.rows) for r in mine]
            assert min(of_rollout, default=1) >= 1 or len(mine) > count
            assert max(of_rollout, default=1) == 1 or len(mine) < count
            assert all(times <= 1 for times in taken.values()) or min(taken.values()) >= 1


# What is small ----------------------------------------------------------------------------------------------------

NOTHING: Mapping[str, Sequence[RolloutGroup]] = {
    "no group": (),
    "a group without rollouts": (a_group(),),
    "all masked": tuple(group for group in awkward_groups(1) if group.key == "silent"),
}


@pytest.mark.parametrize("groups", NOTHING.values(), ids=NOTHING)
@pytest.mark.parametrize("name", CASES)
def test_where_nothing_can_be_trained_the_loss_is_nothing(name: str, groups: Sequence[RolloutGroup]) -> None:
    answer, _ = both(CASES[name], groups)
    assert answer.value == 0
    assert not any(any(values) for values in answer.logprob_grads.values())


ALONE = ("reinforce", "reinforce without a ratio", "sft", "spo", *(name for name in CASES if name.startswith("hae")))
"""What needs no others to learn from."""


@pytest.mark.parametrize("name", [name for name in CASES if name not in ALONE])
def test_one_rollout_alone_is_compared_with_nothing(name: str) -> None:
    answer, _ = both(CASES[name], [g for g in awkward_groups(1) if g.key == "alone"])
    small = {row: values for row, values in answer.credit.items() if any(values)}
    assert not small or name.startswith(("eapo", "igpo", "empg"))
    assert np.isfinite(answer.value)
