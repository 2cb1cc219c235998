"""ARPO's replay: a group that failed as a whole gets an earlier success in place of a failure.

The state table holds run ids. Their rows stay in the database and are passed as
`GroupSelectorInput.replay_candidates`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from pydantic import Field

from offing_trainer.batch import RolloutGroup, TrainingRollout
from offing_trainer.plugin import REPLAY_TABLE, GroupSelectorInput, Plugin, PluginKind, PluginOptions, PluginState


class SuccessReplayOptions(PluginOptions):
    max_successes_per_task: int = Field(default=8, ge=1)
    """Maximum number of successes stored per task. The oldest one is dropped first."""
    success_above: float = 0.1
    """Finalized rewards above this value are stored."""
    std_below: float = Field(default=0.05, gt=0)
    """Only groups whose rewards have a standard deviation below this value,"""
    mean_below: float = 0.2
    """and a mean below this one."""


def success_replay(
    options: SuccessReplayOptions, inputs: GroupSelectorInput
) -> tuple[Sequence[RolloutGroup], PluginState]:
    """Replace a failure in each failed group, and store new successes.

    The added rollout keeps its logprobs, policy version and reward, and counts in the group's
    statistics.
    """
    table: Mapping[str, Sequence[str]] = inputs.state.get(REPLAY_TABLE, {})
    groups = [_replace_failure(options, group, table.get(group.task, ()), inputs) for group in inputs.groups]
    return groups, {REPLAY_TABLE: _update_table(options, inputs.groups, table)}


def _replace_failure(
    options: SuccessReplayOptions, group: RolloutGroup, run_ids: Sequence[str], inputs: GroupSelectorInput
) -> RolloutGroup:
    present = {str(sample.metadata.run_id) for sample in group.rollouts}
    stored = [
        inputs.replay_candidates[run] for run in run_ids if run in inputs.replay_candidates and run not in present
    ]
    if not stored or not _has_failed(options, group):
        return group
    failing = [n for n, s in enumerate(group.rollouts) if s.metadata.reward is not None]
    index = failing[int(inputs.rng.integers(len(failing)))]
    replacement = replace(stored[int(inputs.rng.integers(len(stored)))], replayed=True)
    return replace(group, rollouts=(*group.rollouts[:index], replacement, *group.rollouts[index + 1 :]))


def _has_failed(options: SuccessReplayOptions, group: RolloutGroup) -> bool:
    rewards = [s.metadata.reward for s in group.rollouts if s.metadata.reward is not None]
    if not rewards or max(rewards) > options.success_above:
        return False
    return float(np.std(rewards)) < options.std_below and float(np.mean(rewards)) < options.mean_below


def _update_table(
    options: SuccessReplayOptions, groups: Sequence[RolloutGroup], table: Mapping[str, Sequence[str]]
) -> dict[str, list[str]]:
    updated = {task: list(runs) for task, runs in table.items()}
    for group in groups:
        entries = updated.get(group.task, [])
        new = [str(s.metadata.run_id) for s in group.rollouts if _is_success(options, s)]
        if new:
            updated[group.task] = [*entries, *(run for run in new if run not in entries)][
                -options.max_successes_per_task :
            ]
    return updated


def _is_success(options: SuccessReplayOptions, rollout: TrainingRollout) -> bool:
    reward = rollout.metadata.reward
    return not rollout.replayed and bool(rollout.rows) and reward is not None and reward > options.success_above


PLUGIN = Plugin(
    "success-replay",
    PluginKind.SELECTOR,
    "ARPO, arXiv 2505.16282, and released code: adds one stored success to a group in which all rollouts failed",
    success_replay,
    SuccessReplayOptions,
    stage="groups",
    state_tables=frozenset({REPLAY_TABLE}),
    uses_rng=True,
)
