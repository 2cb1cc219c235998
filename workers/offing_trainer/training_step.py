"""A training step from stored groups to gradients. All functions are pure.

    viewed = apply_view(pipeline, groups, state, rng)           # rows of the view, as arrays
    step = compute_advantages(pipeline, viewed, columns, ...)   # advantages; rows of each step
    step = compute_token_weights(pipeline, step, columns)       # weight of each token
    for nth in range(len(step.optimizer_steps)):
        loss = build_loss(pipeline, step, nth, accumulator)
        learner.forward_backward(step.step_rows(nth), loss)

The caller computes the columns in between with its weights: `pipeline.compute_required_columns`
names them, and `extract_columns` arranges them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

import numpy as np

from offing.core.errors import InvalidInput
from offing.core.trajectory import Outcome
from offing_trainer import step_metrics
from offing_trainer.batch import (
    OUTCOME_CODES,
    Bits,
    Floats,
    Indices,
    RolloutGroup,
    TrainingBatch,
    TrainingRollout,
    build_training_batch,
)
from offing_trainer.config import LearnerConfig
from offing_trainer.learner.contract import ForwardResult
from offing_trainer.losses import build_loss
from offing_trainer.minibatches import split_minibatches
from offing_trainer.pipeline import Pipeline, compute_required_columns
from offing_trainer.plugin import (
    Advantage,
    AdvantageInput,
    Columns,
    GroupSelectorInput,
    PluginKind,
    PluginState,
    RewardInput,
    Rewards,
    RowSelectorInput,
    StepStatisticsInput,
    TokenWeightInput,
)
from offing_trainer.prepared_step import (
    INCOMPLETE_GROUP,
    INFRA_ERROR,
    NO_TOKENS,
    TRUNCATED,
    UNSELECTED,
    USED,
    ZERO_ADVANTAGE,
    ZERO_WEIGHT,
    PreparedStep,
    ViewedGroups,
    build_step_input,
    is_per_token,
    take_rows,
)
from offing_trainer.step_metrics import MetricAccumulator
from offing_trainer.turn_math import turn_indices


def apply_view(
    pipeline: Pipeline,
    groups: Sequence[RolloutGroup],
    state: PluginState,
    rng: np.random.Generator,
    *,
    rollout_stats: Mapping[UUID, Mapping[str, float]] | None = None,
    replay_candidates: Mapping[str, TrainingRollout] | None = None,
) -> ViewedGroups:
    """Apply the view and the selectors of groups, and build the arrays.

    Rollouts with infrastructure failures or without a score are excluded, and then groups that are too
    small for the pipeline. `rollout_stats` are by run, see `TrainingBatch.rollout_stats`;
    `replay_candidates`, see `GroupSelectorInput`. Raises MixedPoliciesError, and InvalidInput for
    statistics that the pipeline needs and that are missing.
    """
    ledger_reasons: dict[str, str] = {}
    usable = [
        group for group in (_drop_unusable(pipeline, group, ledger_reasons) for group in groups) if group.rollouts
    ]
    selected: Sequence[RolloutGroup] = pipeline.get_plugin(PluginKind.VIEW).apply(usable)
    for link in pipeline.filter_plugins(PluginKind.SELECTOR, "groups"):
        selected, changed = link.apply(GroupSelectorInput(selected, state, rng, replay_candidates or {}))
        state = {**state, **changed}
    remaining_runs = {str(s.metadata.run_id) for g in selected for s in g.rollouts}
    ledger_reasons |= {
        str(s.metadata.run_id): UNSELECTED
        for g in usable
        for s in g.rollouts
        if str(s.metadata.run_id) not in remaining_runs
    }
    rows = tuple(row for group in selected for sample in group.rollouts for row in sample.rows)
    batch = build_training_batch(selected, _collect_rollout_stats(pipeline, selected, rollout_stats or {}))
    return ViewedGroups(tuple(selected), batch, rows, state, ledger_reasons, step_metrics.group_metrics(usable))


def _drop_unusable(pipeline: Pipeline, group: RolloutGroup, ledger_reasons: dict[str, str]) -> RolloutGroup:
    """Return the group without unusable rollouts. It is empty if too few are left."""
    usable: list[TrainingRollout] = []
    for sample in group.rollouts:
        if sample.metadata.outcome == Outcome.INFRA_ERROR:
            ledger_reasons[str(sample.metadata.run_id)] = INFRA_ERROR
        elif sample.metadata.reward is None and not pipeline.allows_unscored:
            ledger_reasons[str(sample.metadata.run_id)] = UNSELECTED
        else:
            usable.append(sample)
    if len(usable) < pipeline.min_group_size:
        ledger_reasons |= {str(sample.metadata.run_id): INCOMPLETE_GROUP for sample in usable}
        usable = []
    return replace(group, rollouts=tuple(usable))


def _collect_rollout_stats(
    pipeline: Pipeline, groups: Sequence[RolloutGroup], rollout_stats: Mapping[UUID, Mapping[str, float]]
) -> dict[str, list[float]]:
    runs = [sample.metadata.run_id for group in groups for sample in group.rollouts]
    names = {name for run_stats in rollout_stats.values() for name in run_stats}
    if runs and (missing := sorted(pipeline.required_stats - names)):
        raise InvalidInput(
            "pipeline", f"it needs {missing[0]} of each rollout, which is not available", "Remove the plug-in."
        )
    return {
        name: [rollout_stats.get(run, {}).get(name, np.nan) for run in runs]
        for name in sorted(names | pipeline.required_stats)
    }


def compute_advantages(
    pipeline: Pipeline,
    viewed_groups: ViewedGroups,
    columns: Columns,
    rng: np.random.Generator,
    *,
    progress: float = 0.0,
    learner_config: LearnerConfig | None = None,
) -> PreparedStep:
    """Compute advantages and select the trained rows. `columns` are those needed before the selection."""
    config, batch = learner_config or LearnerConfig(), viewed_groups.batch
    known_columns = _add_old_logprobs(batch, columns, config)
    _check_columns_present(compute_required_columns(pipeline, config.mode).before_selection, known_columns)
    _check_recorded_columns(pipeline, batch, config)
    rewards, state = _apply_rewards(pipeline, batch, known_columns, viewed_groups.state)
    advantage_result, state = _apply_advantage(pipeline, AdvantageInput(batch, rewards, known_columns, state))
    rows, state = _apply_row_selectors(
        pipeline, RowSelectorInput(batch, rewards, advantage_result.per_token, progress, state, rng)
    )
    tokens, trained = batch.token_indices(rows), batch.select_rows(rows)
    advantage = advantage_result.per_token[tokens]
    return PreparedStep(
        batch=trained,
        rows=take_rows(viewed_groups.rows, rows),
        active_rows=np.flatnonzero(_find_active_rows(pipeline, trained, advantage, advantage_result)),
        rewards=rewards,
        advantage=advantage,
        value_targets=advantage_result.value_targets,
        optimizer_steps=split_minibatches(
            trained.row_rollout, rng, minibatches=config.minibatches, epochs=config.epochs, unit=config.minibatch_unit
        ),
        columns={name: column[tokens] if is_per_token(name) else column for name, column in known_columns.items()},
        progress=progress,
        learner_config=config,
        state=state,
        ledger_reasons={**viewed_groups.ledger_reasons, **_find_ledger_reasons(batch, trained, advantage)},
        metrics={**viewed_groups.metrics, **step_metrics.advantage_metrics(trained, rewards, advantage)},
    )


def _add_old_logprobs(batch: TrainingBatch, columns: Columns, learner_config: LearnerConfig) -> Columns:
    return {**columns, "old_logprobs": batch.behavior_logprobs} if learner_config.mode == "bypass" else columns


def _apply_rewards(
    pipeline: Pipeline, batch: TrainingBatch, columns: Columns, state: PluginState
) -> tuple[Rewards, PluginState]:
    rewards = Rewards(batch.reward, np.zeros(batch.num_turns))
    for link in pipeline.filter_plugins(PluginKind.REWARD):
        rewards, changed = link.apply(RewardInput(batch, rewards, columns, state))
        state = {**state, **changed}
    return rewards, state


def _apply_advantage(pipeline: Pipeline, inputs: AdvantageInput) -> tuple[Advantage, PluginState]:
    advantages, changed = pipeline.get_plugin(PluginKind.ADVANTAGE).apply(inputs)
    for link in pipeline.filter_plugins(PluginKind.ADVANTAGE_MODIFIER):
        advantages = replace(advantages, per_token=link.apply(inputs, advantages.per_token))
    return advantages, {**inputs.state, **changed}


def _apply_row_selectors(pipeline: Pipeline, inputs: RowSelectorInput) -> tuple[Indices, PluginState]:
    """Apply the selectors of rows, each to the rows that the one before left."""
    rows = np.arange(inputs.batch.num_rows)
    state = inputs.state
    for link in pipeline.filter_plugins(PluginKind.SELECTOR, "rows"):
        selected_batch, token_advantage = (
            inputs.batch.select_rows(rows),
            inputs.advantage[inputs.batch.token_indices(rows)],
        )
        chosen, changed = link.apply(replace(inputs, batch=selected_batch, advantage=token_advantage, state=state))
        rows, state = rows[chosen], {**state, **changed}
    return rows, state


def _find_active_rows(pipeline: Pipeline, batch: TrainingBatch, advantage: Floats, token_advantage: Advantage) -> Bits:
    """Return whether each row has to be forwarded.

    These are the rows with an advantage, or all rows if something else than the surrogate uses them.
    """
    watched = any(link.plugin.step_statistics for link in pipeline.plugins)
    if pipeline.filter_plugins(PluginKind.REGULARIZER) or token_advantage.value_targets or watched:
        return np.ones(batch.num_rows, np.bool_)
    return np.bincount(batch.token_row[advantage != 0], minlength=batch.num_rows) > 0


def _find_ledger_reasons(batch: TrainingBatch, trained: TrainingBatch, advantage: Floats) -> dict[str, str]:
    """Return the ledger reasons of rollouts. Replayed rollouts already have one from their first use."""
    had_rows = np.bincount(batch.row_rollout, minlength=batch.num_rollouts) > 0
    has_rows = np.bincount(trained.row_rollout, minlength=batch.num_rollouts) > 0
    has_advantage = np.bincount(trained.token_rollout[advantage != 0], minlength=batch.num_rollouts) > 0
    is_truncated = batch.outcome == OUTCOME_CODES[Outcome.TRUNCATED.value]
    reasons = np.select(
        [~had_rows, has_advantage, has_rows, is_truncated], [NO_TOKENS, USED, ZERO_ADVANTAGE, TRUNCATED], UNSELECTED
    )
    reasons_by_run = zip(batch.run_ids, reasons.tolist(), batch.replayed.tolist(), strict=True)
    return {run: reason for run, reason, replayed in reasons_by_run if not replayed}


def compute_token_weights(pipeline: Pipeline, prepared_step: PreparedStep, columns: Columns) -> PreparedStep:
    """Compute the weight of each token. `columns` are those of the active rows, after the selection."""
    known_columns = {
        **prepared_step.columns,
        **{name: _expand_to_all_rows(prepared_step, name, column) for name, column in columns.items()},
    }
    needed = compute_required_columns(pipeline, prepared_step.learner_config.mode)
    _check_columns_present(needed.before_selection | needed.after_selection, known_columns)
    result = replace(prepared_step, columns=known_columns)
    state, step_states, weights = prepared_step.state, list[PluginState](), list[Floats]()
    for rows in prepared_step.optimizer_steps:
        step_input = build_step_input(result, rows, state)
        for link in (*pipeline.filter_plugins(PluginKind.SURROGATE), *pipeline.filter_plugins(PluginKind.REGULARIZER)):
            if link.plugin.step_statistics:
                state = {**state, **link.plugin.step_statistics(link.options, replace(step_input, state=state))}
        step_states.append(state)
        weights.append(_apply_token_weights(pipeline, step_input))
    ledger_reasons = {
        **prepared_step.ledger_reasons,
        **dict.fromkeys(_list_zero_weight_rollouts(prepared_step, weights), ZERO_WEIGHT),
    }
    return replace(
        result, token_weights=tuple(weights), step_states=tuple(step_states), state=state, ledger_reasons=ledger_reasons
    )


def _list_zero_weight_rollouts(prepared_step: PreparedStep, weights: Sequence[Floats]) -> list[str]:
    """List rollouts with an advantage whose tokens all have weight 0."""
    batch, counted = prepared_step.batch, np.zeros(prepared_step.batch.num_rollouts, np.bool_)
    for rows, weight in zip(prepared_step.optimizer_steps, weights, strict=True):
        tokens = batch.token_indices(rows)
        counted[batch.token_rollout[tokens[(weight > 0) & (prepared_step.advantage[tokens] != 0)]]] = True
    return [
        run
        for nth, run in enumerate(batch.run_ids)
        if prepared_step.ledger_reasons.get(run) == USED and not counted[nth]
    ]


def _expand_to_all_rows(prepared_step: PreparedStep, name: str, column: Floats) -> Floats:
    """Expand a column of the active rows to all rows.

    The other rows get their recorded logprobs, as if the policy had not changed.
    """
    if not is_per_token(name) or len(prepared_step.active_rows) == prepared_step.batch.num_rows:
        return column
    wide = prepared_step.batch.behavior_logprobs.copy()
    wide[prepared_step.batch.token_indices(prepared_step.active_rows)] = column
    return wide


def _apply_token_weights(pipeline: Pipeline, inputs: StepStatisticsInput) -> Floats:
    weight = np.ones(inputs.batch.num_tokens)
    for link in pipeline.filter_plugins(PluginKind.TOKEN_WEIGHT):
        weight = weight * link.apply(TokenWeightInput(inputs.batch, inputs.advantage, inputs.columns, inputs.progress))
    return weight


def extract_columns(
    batch: TrainingBatch, result: ForwardResult, names: frozenset[str], row_indices: Indices | None = None
) -> Columns:
    """Return the columns of one forward pass: logprobs of its tokens, and the critic's values.

    `row_indices` are the forwarded rows of the batch. `None` means all rows in order.
    """
    turns = turn_indices(batch, np.arange(batch.num_rows) if row_indices is None else row_indices)
    columns_by_name: dict[str, Floats] = {name: result.logprobs for name in names if name.endswith("_logprobs")}
    for name in names & result.values.keys():
        columns_by_name[name] = np.full(batch.num_turns, np.nan)
        columns_by_name[name][turns] = result.values[name]
    return columns_by_name


def _check_columns_present(required: frozenset[str], columns: Mapping[str, Any]) -> None:
    if missing := sorted(required - columns.keys()):
        raise InvalidInput("columns", f"{missing[0]} is required but was not computed", "See compute_required_columns.")


def _check_recorded_columns(pipeline: Pipeline, batch: TrainingBatch, learner_config: LearnerConfig) -> None:
    anchored = learner_config.mode == "bypass" and pipeline.needs_column("old_logprobs")
    needed = {
        "behavior_logprobs": anchored or pipeline.needs_column("behavior_logprobs"),
        "entropy": pipeline.needs_column("entropy"),
    }
    for name, column in (("behavior_logprobs", batch.behavior_logprobs), ("entropy", batch.entropy)):
        if needed[name] and np.isnan(column).any():
            rows = len(np.unique(batch.token_row[np.isnan(column)]))
            raise InvalidInput(
                "pipeline",
                f"it needs the recorded {name}, which {rows} rows do not have",
                "Use other rollouts or plug-ins.",
            )


__all__ = [
    "USED",
    "MetricAccumulator",
    "PreparedStep",
    "ViewedGroups",
    "apply_view",
    "build_loss",
    "compute_advantages",
    "compute_token_weights",
    "extract_columns",
    "is_per_token",
]
