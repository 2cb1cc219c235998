"""DCPO's comparison: arms differ in credit alone, and do what their names say to rollouts with edits."""

import asyncio
from pathlib import Path

import numpy as np
import pytest

from offing_engine.random_policy import create_random_policy
from offing_trainer.batch import RolloutGroup
from offing_trainer.config import merge_tables, parse_config
from offing_trainer.pipeline import build_job_pipeline
from offing_trainer.prepared_step import PreparedStep
from offing_trainer.training_step import apply_view, compute_advantages
from offing_world.compact_notation import VOCABULARY
from tests.results import dcpo, dcpo_gradients
from tests.results.batch_sampling import opened
from tests.results.experiment import Size
from tests.results.memory import QUESTIONS, RULES, TURNS
from tests.results.rollouts import How, PlannedRollout, groups_of, played
from tests.results.starting_policies import ruled

MEMBERS = 8


@pytest.fixture(scope="module")
def groups(tmp_path_factory: pytest.TempPathFactory) -> tuple[RolloutGroup, ...]:
    """Rollouts with edits, by the forgetful teacher."""
    folder: Path = tmp_path_factory.mktemp("words") / "policy"
    create_random_policy(folder, VOCABULARY)
    words = opened(folder, "words@1")
    planned = [
        PlannedRollout(task, 100 * nth + n, n) for nth, task in enumerate(QUESTIONS.held_out(4)) for n in range(MEMBERS)
    ]
    speaker = ruled(words, "forgetful", RULES)
    return groups_of(asyncio.run(played(dcpo.graph_setup(), planned, How(TURNS), speaker, words.chat_template)))


def prepare(groups: tuple[RolloutGroup, ...], arm: str) -> PreparedStep:
    config = parse_config(merge_tables({"policy": "p@1"}, dcpo.course(arm, Size.FULL).tables))
    pipeline, rng = build_job_pipeline(config), np.random.default_rng(0)
    seen = apply_view(pipeline, groups, {}, rng)
    reference = {"ref_logprobs": seen.batch.behavior_logprobs, "start_logprobs": seen.batch.behavior_logprobs}
    return compute_advantages(pipeline, seen, reference, rng, learner_config=config.learner)


def values_of_rollouts(ready: PreparedStep) -> list[set[float]]:
    """Of each rollout with tokens, its advantages."""
    owner = ready.batch.token_rollout
    return [set(np.round(ready.advantage[owner == one], 9).tolist()) for one in np.unique(owner)]


def test_arms_differ_in_the_chain_alone() -> None:
    courses = [dcpo.course(arm, Size.FULL) for arm in dcpo.ARMS]
    tables = [dict(one.tables) for one in courses]
    chains = [dict(one.pop("pipeline")) for one in tables]
    assert all(one == tables[0] for one in tables)
    for field in ("view", "rewards", "surrogate", "regularizers"):
        assert all(
            parse_config({"policy": "p@1", "algorithm": "dcpo", "pipeline": one}).pipeline.model_dump()[field]
            == parse_config({"policy": "p@1", "algorithm": "dcpo", "pipeline": chains[0]}).pipeline.model_dump()[field]
            for one in chains
        )
    assert len({(one.steps, one.tasks, one.group, one.how, one.flow.graph.name) for one in courses}) == 1


def test_every_segment_has_its_rollouts_score_however_many_there_are(groups: tuple[RolloutGroup, ...]) -> None:
    ready = prepare(groups, "all-segments")
    assert len(ready.batch.row_keys) > 2 * ready.batch.num_rollouts
    assert all(len(values) == 1 for values in values_of_rollouts(ready))
    for nth in range(ready.batch.num_groups):
        of_group = np.flatnonzero(ready.batch.rollout_group == nth)
        each = [ready.advantage[ready.batch.token_rollout == one][0] for one in of_group]
        assert abs(sum(each)) < 1e-9


def test_plain_grpo_counts_a_rollout_as_often_as_it_has_segments(groups: tuple[RolloutGroup, ...]) -> None:
    ready = prepare(groups, "grpo")
    firsts = np.unique(ready.batch.token_row, return_index=True)[1]
    by_row = np.bincount(ready.batch.rollout_group[ready.batch.row_rollout], ready.advantage[firsts])
    assert np.abs(by_row).max() < 1e-9
    ours = prepare(groups, "all-segments")
    assert ours.batch.row_keys == ready.batch.row_keys
    assert np.abs(ours.advantage - ready.advantage).max() > 0.05


def test_every_token_of_the_policy_is_trained_once_or_by_the_sample(groups: tuple[RolloutGroup, ...]) -> None:
    text = sum(int(row.loss_mask.sum()) for group in groups for sample in group.rollouts for row in sample.rows)
    assert prepare(groups, "all-segments").batch.num_tokens == prepare(groups, "grpo").batch.num_tokens == text
    assert len(prepare(groups, "dcpo").batch.row_keys) == 12 * len(groups)


@pytest.mark.parametrize("arm", dcpo.EXPERIMENT.arms)
def test_a_miniature_runs_from_start_to_end(arm: str, tmp_path: Path) -> None:
    curve = dcpo.EXPERIMENT.run(arm, 0, tmp_path, Size.MINIATURE)
    assert [point.step for point in curve.points] == [0, 1, 2]
    assert all(np.isfinite(value) for point in curve.points for value in point.figures.values())
    assert dcpo.EXPERIMENT.figures.keys() <= curve.points[-1].figures.keys()
    assert len(dcpo.EXPERIMENT.read([curve])) == 2 + 2 * len(dcpo.ARMS)


def test_gradients_of_the_same_rollouts_are_compared(tmp_path: Path) -> None:
    measured = {arm: dcpo_gradients.run(arm, 0, tmp_path, Size.MINIATURE) for arm in ("all-segments", "grpo")}
    of = {arm: curve.points[0].figures for arm, curve in measured.items()}
    itself = of["all-segments"]["same"]
    assert itself == pytest.approx(round(2 * itself) / 2), "1 for each half in which anything is to be learned"
    assert all(-1 <= value <= 1.0001 for metrics in of.values() for value in metrics.values())
    assert dcpo_gradients.read(list(measured.values()))[2:]


def test_directions_are_alike_by_their_cosine() -> None:
    a, b = np.array([1.0, 0.0]), np.array([0.0, 2.0])
    assert (dcpo_gradients.alike(a, 3 * a), dcpo_gradients.alike(a, b), dcpo_gradients.alike(a, -a)) == (1, 0, -1)
    assert dcpo_gradients.alike(a, 0 * a) == 0
