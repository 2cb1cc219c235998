"""SUPO's comparison: the same start and sizes, and arms that mask and score what their names say."""

import asyncio
from pathlib import Path

import numpy as np
import pytest

from offing.core.trajectory import Outcome
from offing_engine.random_policy import create_random_policy
from offing_engine.weights import LoadedPolicy
from offing_trainer.batch import OUTCOME_CODES, RolloutGroup
from offing_trainer.config import merge_tables, parse_config
from offing_trainer.pipeline import build_job_pipeline
from offing_trainer.prepared_step import PreparedStep
from offing_trainer.training_step import apply_view, compute_advantages
from offing_world.compact_notation import VOCABULARY
from tests.results import supo
from tests.results.batch_sampling import opened
from tests.results.experiment import Size
from tests.results.memory import QUESTIONS, RULES, TURNS
from tests.results.rollouts import How, PlannedRollout, groups_of, played
from tests.results.starting_policies import ruled

MEMBERS = 8


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> LoadedPolicy:
    folder: Path = tmp_path_factory.mktemp("words") / "policy"
    create_random_policy(folder, VOCABULARY)
    return opened(folder, "words@1")


def rollouts(words: LoadedPolicy, arm: str) -> tuple[RolloutGroup, ...]:
    planned = [
        PlannedRollout(task, 100 * nth + n, n) for nth, task in enumerate(QUESTIONS.held_out(3)) for n in range(MEMBERS)
    ]
    speaker = ruled(words, "forgetful", RULES)
    return groups_of(asyncio.run(played(supo.graph_setup(arm), planned, How(TURNS), speaker, words.chat_template)))


def prepare(groups: tuple[RolloutGroup, ...], arm: str) -> PreparedStep:
    config = parse_config(merge_tables({"policy": "p@1"}, supo.course(arm, Size.FULL).tables))
    pipeline, rng = build_job_pipeline(config), np.random.default_rng(0)
    return compute_advantages(pipeline, apply_view(pipeline, groups, {}, rng), {}, rng, learner_config=config.learner)


def cut_off(ready: PreparedStep) -> set[int]:
    return set(np.flatnonzero(ready.batch.outcome == OUTCOME_CODES[Outcome.TRUNCATED.value]).tolist())


def test_a_summary_closes_the_segment_that_it_tells_of_and_is_trained(words: LoadedPolicy) -> None:
    rows = [row for group in rollouts(words, "supo") for sample in group.rollouts for row in sample.rows]
    boundaries = {row.segment_info.boundary_reason for row in rows}
    assert boundaries == {"root", "fork", "compaction"}
    forks = [row for row in rows if row.segment_info.boundary_reason == "fork"]
    assert all(row.loss_mask.any() for row in forks)


def test_in_the_whole_context_a_rollout_is_one_segment_before_its_last_answer(words: LoadedPolicy) -> None:
    groups = rollouts(words, "whole-room")
    segments = [
        [row.segment_info.boundary_reason for row in sample.rows] for group in groups for sample in group.rollouts
    ]
    assert ["root"] in segments
    assert all(reasons in (["root"], ["root", "workspace_reset"]) for reasons in segments)


def test_cut_off_rollouts_are_masked_and_still_count_in_the_statistics(words: LoadedPolicy) -> None:
    groups = rollouts(words, "supo")
    masked, unmasked = prepare(groups, "supo"), prepare(groups, "unmasked")
    assert cut_off(masked)
    assert not cut_off(masked) & set(masked.batch.row_rollout.tolist())
    assert cut_off(unmasked) <= set(unmasked.batch.row_rollout.tolist())
    stored = np.isin(unmasked.batch.token_rollout, sorted(cut_off(unmasked)), invert=True)
    assert masked.advantage == pytest.approx(unmasked.advantage[stored])


def test_plain_grpo_scores_segments_and_masks_nothing(words: LoadedPolicy) -> None:
    groups = rollouts(words, "grpo")
    plain, ours = prepare(groups, "grpo"), prepare(groups, "unmasked")
    assert plain.batch.row_keys == ours.batch.row_keys
    assert np.abs(plain.advantage - ours.advantage).max() > 0.05


def test_all_arms_have_the_same_sizes() -> None:
    courses = [supo.course(arm, Size.FULL) for arm in supo.ARMS]
    assert len({(one.steps, one.tasks, one.group, one.how, one.questions) for one in courses}) == 1
    assert all(one.tables["learner"] == courses[0].tables["learner"] for one in courses)
    assert {arm for arm in supo.ARMS if supo.graph_setup(arm).graph.name != supo.graph_setup("supo").graph.name} == {
        "whole-room"
    }


@pytest.mark.parametrize("arm", supo.EXPERIMENT.arms)
def test_a_miniature_runs_from_start_to_end(arm: str, tmp_path: Path) -> None:
    curve = supo.EXPERIMENT.run(arm, 0, tmp_path, Size.MINIATURE)
    assert [point.step for point in curve.points] == [0, 1, 2]
    assert all(np.isfinite(value) for point in curve.points for value in point.figures.values())
    assert supo.EXPERIMENT.figures.keys() <= curve.points[-1].figures.keys()
    assert len(supo.EXPERIMENT.read([curve])) == 2 + 2 * len(supo.ARMS)
