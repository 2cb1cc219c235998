"""The loss of an optimizer step, which the learner computes for each micro-batch."""

from dataclasses import replace

import numpy as np

from offing_trainer.batch import Floats, Indices, TrainingBatch
from offing_trainer.critic import compute_value_loss
from offing_trainer.learner.contract import ForwardResult, LossFunction, LossGradients
from offing_trainer.pipeline import Pipeline
from offing_trainer.plugin import LossInput, PluginKind, StepStatisticsInput
from offing_trainer.prepared_step import PreparedStep, build_step_input, is_per_token
from offing_trainer.step_metrics import MetricAccumulator
from offing_trainer.turn_math import turn_indices


def build_loss(
    pipeline: Pipeline, prepared_step: PreparedStep, optimizer_step: int, accumulator: MetricAccumulator | None = None
) -> LossFunction:
    """Build the loss of an optimizer step for `learner.forward_backward(...)`.

    Its rows are `prepared_step.step_rows(optimizer_step)`. Losses and gradients add up to the same
    result for every split into micro-batches. `accumulator` receives the metrics of each micro-batch.
    """
    rows = prepared_step.optimizer_steps[optimizer_step]
    step_input = build_step_input(prepared_step, rows, prepared_step.step_states[optimizer_step])
    live = np.flatnonzero(np.isin(rows, prepared_step.active_rows))
    target_turns = _count_target_turns(prepared_step, step_input.batch)

    def loss(row_indices: Indices, result: ForwardResult) -> LossGradients:
        inputs = _build_loss_input(step_input, prepared_step.token_weights[optimizer_step], live[row_indices], result)
        gradients = _compute_gradients(pipeline, inputs, accumulator)
        if accumulator is not None:
            accumulator.add_tokens(inputs.batch, inputs.logprobs, inputs.entropy, inputs.columns)
        if not prepared_step.value_targets or not result.values:
            return gradients
        return _add_value_loss(
            prepared_step,
            gradients,
            result,
            turn_indices(step_input.batch, live[row_indices]),
            target_turns,
            accumulator,
        )

    return loss


def _build_loss_input(
    step_input: StepStatisticsInput, weight: Floats, rows: Indices, result: ForwardResult
) -> LossInput:
    tokens = step_input.batch.token_indices(rows)
    columns = {name: column[tokens] if is_per_token(name) else column for name, column in step_input.columns.items()}
    return LossInput(
        batch=step_input.batch.select_rows(rows),
        logprobs=result.logprobs,
        entropy=result.entropy,
        advantage=step_input.advantage[tokens],
        weight=weight[tokens],
        columns=columns,
        state=step_input.state,
    )


def _compute_gradients(pipeline: Pipeline, inputs: LossInput, accumulator: MetricAccumulator | None) -> LossGradients:
    value, dlogp, dentropy = 0.0, np.zeros(len(inputs.logprobs)), np.zeros(len(inputs.logprobs))
    for link in (pipeline.get_plugin(PluginKind.SURROGATE), *pipeline.filter_plugins(PluginKind.REGULARIZER)):
        term = link.apply(inputs)
        value += link.coefficient * term.value
        dlogp += link.coefficient * term.logprob_grads
        dentropy += 0.0 if term.entropy_grads is None else link.coefficient * term.entropy_grads
        if accumulator is not None:
            accumulator.add({f"loss_{link.plugin.name}": term.value, **term.metrics})
    if accumulator is not None:
        accumulator.add({"loss": value})
    return LossGradients(value, dlogp, dentropy if dentropy.any() else None)


def _count_target_turns(prepared_step: PreparedStep, batch: TrainingBatch) -> int:
    """Count the turns of a step that have a value target."""
    if not prepared_step.value_targets or not batch.num_rows:
        return 0
    turns = turn_indices(batch, np.arange(batch.num_rows))
    return int(np.any([~np.isnan(target[turns]) for target in prepared_step.value_targets.values()], axis=0).sum())


def _add_value_loss(
    prepared_step: PreparedStep,
    gradients: LossGradients,
    result: ForwardResult,
    turns: Indices,
    target_turns: int,
    accumulator: MetricAccumulator | None,
) -> LossGradients:
    """Add the value loss, a mean over the turns of the step that have a value target."""
    heads = prepared_step.value_targets.keys() & result.values.keys()
    critic = compute_value_loss(
        {head: result.values[head] for head in sorted(heads)},
        {head: prepared_step.value_targets[head][turns] for head in sorted(heads)},
        {head: prepared_step.columns[head][turns] for head in sorted(heads & prepared_step.columns.keys())},
        turn_weight=1 / max(target_turns, 1),
        clip=prepared_step.learner_config.value_clip,
        coefficients=prepared_step.learner_config.value_coefficients,
    )
    if accumulator is not None:
        accumulator.add({"loss_critic": critic.value, **critic.metrics})
    return replace(gradients, value=gradients.value + critic.value, value_grads=critic.value_grads)
