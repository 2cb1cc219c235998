"""SUPO's comparison: the same start and sizes, and arms that mask and score what their names say."""

import asyncio
from pathlib import Path

import numpy as np
import pytest

from offing.core.trajectory import Outcome
from offing.world.compact import VOCABULARY
from offing_engine.small import new_policy
from offing_engine.weights import Policy
from offing_trainer.batch import OUTCOMES, Group
from offing_trainer.chain import chain_for
from offing_trainer.config import config_of, laid_over
from offing_trainer.step import Prepared
from offing_trainer.update import prepared, viewed
from tests.results import supo
from tests.results.drawing import opened
from tests.results.experiment import Size
from tests.results.memory import QUESTIONS, RULES, TURNS
from tests.results.play import How, Seat, groups_of, played
from tests.results.taught import ruled

MEMBERS = 8


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> Policy:
    folder: Path = tmp_path_factory.mktemp("words") / "policy"
    new_policy(folder, VOCABULARY)
    return opened(folder, "words@1")


def rollouts(words: Policy, arm: str) -> tuple[Group, ...]:
    seats = [Seat(task, 100 * nth + n, n) for nth, task in enumerate(QUESTIONS.held_out(3)) for n in range(MEMBERS)]
    speaker = ruled(words, "forgetful", RULES)
    return groups_of(asyncio.run(played(supo.flow(arm), seats, How(TURNS), speaker, words.renderer)))


def credited(groups: tuple[Group, ...], arm: str) -> Prepared:
    config = config_of(laid_over({"policy": "p@1"}, supo.course(arm, Size.FULL).tables))
    chain, rng = chain_for(config), np.random.default_rng(0)
    return prepared(chain, viewed(chain, groups, {}, rng), {}, rng, learner=config.learner)


def cut_off(ready: Prepared) -> set[int]:
    return set(np.flatnonzero(ready.batch.outcome == OUTCOMES[Outcome.TRUNCATED.value]).tolist())


def test_a_summary_closes_the_segment_that_it_tells_of_and_is_trained(words: Policy) -> None:
    rows = [row for group in rollouts(words, "supo") for sample in group.samples for row in sample.rows]
    fractures = {row.head.fracture for row in rows}
    assert fractures == {"root", "fork", "compaction"}
    forks = [row for row in rows if row.head.fracture == "fork"]
    assert all(row.loss_mask.any() for row in forks)


def test_in_the_whole_room_a_rollout_is_one_segment(words: Policy) -> None:
    groups = rollouts(words, "whole-room")
    assert {len(sample.rows) for group in groups for sample in group.samples} == {1}


def test_cut_off_rollouts_are_masked_and_still_count_in_the_statistics(words: Policy) -> None:
    groups = rollouts(words, "supo")
    masked, unmasked = credited(groups, "supo"), credited(groups, "unmasked")
    assert cut_off(masked)
    assert not cut_off(masked) & set(masked.batch.row_rollout.tolist())
    assert cut_off(unmasked) <= set(unmasked.batch.row_rollout.tolist())
    kept = np.isin(unmasked.batch.token_rollout, sorted(cut_off(unmasked)), invert=True)
    assert masked.advantage == pytest.approx(unmasked.advantage[kept])


def test_plain_grpo_scores_segments_and_masks_nothing(words: Policy) -> None:
    groups = rollouts(words, "grpo")
    plain, ours = credited(groups, "grpo"), credited(groups, "unmasked")
    assert plain.batch.row == ours.batch.row
    assert np.abs(plain.advantage - ours.advantage).max() > 0.05


def test_all_arms_have_the_same_sizes() -> None:
    courses = [supo.course(arm, Size.FULL) for arm in supo.ARMS]
    assert len({(one.steps, one.tasks, one.group, one.how, one.questions) for one in courses}) == 1
    assert all(one.tables["learner"] == courses[0].tables["learner"] for one in courses)
    assert {arm for arm in supo.ARMS if supo.flow(arm).graph.name != supo.flow("supo").graph.name} == {"whole-room"}


@pytest.mark.parametrize("arm", supo.EXPERIMENT.arms)
def test_a_miniature_runs_from_start_to_end(arm: str, tmp_path: Path) -> None:
    curve = supo.EXPERIMENT.run(arm, 0, tmp_path, Size.MINIATURE)
    assert [point.step for point in curve.points] == [0, 1, 2]
    assert all(np.isfinite(value) for point in curve.points for value in point.figures.values())
    assert supo.EXPERIMENT.figures.keys() <= curve.points[-1].figures.keys()
    assert len(supo.EXPERIMENT.read([curve])) == 2 + 2 * len(supo.ARMS)
