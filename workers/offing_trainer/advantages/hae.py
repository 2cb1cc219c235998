"""Hierarchical advantages: subgoals, the actions under them, and the decision to keep or switch.

Each of the three has its own advantage stream, and this module decides which token belongs to which
stream. A segment begins at a turn with a new subgoal and at the first turn of a rollout. Both are
read from the completion spans, which come from the same parse that the graph acted on.
"""

from dataclasses import replace
from typing import Literal

import numpy as np
from pydantic import Field

from offing.core.training_rows import SPAN_CODES
from offing_trainer.batch import Bits, Floats, Indices, TrainingBatch
from offing_trainer.critic import read_value_column
from offing_trainer.hierarchical_gae import (
    AdvantageStream,
    TruncationValue,
    TurnSequence,
    build_turn_sequence,
    compute_action_stream,
    compute_paper_switch_stream,
    compute_subgoal_stream,
    compute_switch_stream,
)
from offing_trainer.plugin import (
    Advantage,
    AdvantageInput,
    Columns,
    Plugin,
    PluginKind,
    PluginOptions,
    PluginState,
    empty_state,
)
from offing_trainer.turn_math import has_token, is_truncated, mark_first, select_trained_turns, standardize

SWITCH, SUBGOAL, UNCHANGED_SUBGOAL, ACTION, TEXT = (
    SPAN_CODES[kind] for kind in ("switch", "subgoal", "kept", "action", "text")
)


class HaeOptions(PluginOptions):
    gamma: float = Field(default=1.0, ge=0, le=1)
    """Discount per turn."""
    lam_turn: float = Field(default=1.0, ge=0, le=1)
    lam_segment: float = Field(default=0.95, ge=0, le=1)
    """Lambda of the returns per segment."""
    switch: Literal["release", "paper"] = "release"
    """How the advantages of switches are computed:
    `release` against a critic of the decision, `paper` by its formula. The formula is (switched -
    probability of switching) * (high value - low value of continuing).
    """
    at_truncation: TruncationValue = TruncationValue.OFF
    standardize: bool = True
    """Standardize each stream separately, over the turns of the whole batch that have its tokens."""
    value_targets: Literal["lambda", "one-step"] = "lambda"
    """Targets of the critics: `lambda` uses lambda-returns, as released; `one-step` is as in the paper."""
    undecided_baseline: Literal["turn", "release"] = "turn"
    """Baseline of a turn that has neither a switch nor a subgoal, such as a turn that could not be parsed.
    `turn` uses the critic that is read at the start of every turn. `release` uses the low critic, for
    such turns only. That critic sees only failures there, learns to predict failure, and so such turns
    get no negative advantage.
    """


def hae(options: HaeOptions, inputs: AdvantageInput) -> tuple[Advantage, PluginState]:
    batch = inputs.batch
    turns, turn_reward = select_trained_turns(batch, inputs.rewards)
    sequence = _build_sequence(options, batch, inputs.columns, turns, turn_reward)
    low, high, switch = _compute_streams(options, sequence, inputs, turns)
    masks, token = token_masks(batch), np.zeros(batch.num_tokens)
    for kind, stream in {ACTION: low, SUBGOAL: high, SWITCH: switch}.items():
        turn_advantage = _standardize_stream(
            options, batch, _scatter_to_turns(batch, turns, stream.advantage, 0.0), masks[kind], turns
        )
        token[masks[kind]] = turn_advantage[batch.token_turn[masks[kind]]]
    low = replace(low, target=np.where(_uses_low_critic(options, batch, turns), low.target, np.nan))
    targets = {"value_low": low, "value_high": high} | ({"value_switch": switch} if options.switch == "release" else {})
    return Advantage(
        token, {name: _scatter_to_turns(batch, turns, s.target, np.nan) for name, s in targets.items()}
    ), empty_state()


def token_masks(batch: TrainingBatch) -> dict[int, Bits]:
    """Return the tokens that get the advantages of each stream, (P,) by span code. No token is in two streams.

    A completion that could not be parsed counts as an action as a whole.
    """
    begins = segment_starts(batch)[batch.token_turn]
    subgoal = ((batch.span_kind == SUBGOAL) | (batch.span_kind == UNCHANGED_SUBGOAL)) & begins
    return {
        SWITCH: batch.span_kind == SWITCH,
        SUBGOAL: subgoal,
        ACTION: (batch.span_kind == ACTION) | (batch.span_kind == TEXT),
    }


def segment_starts(batch: TrainingBatch) -> Bits:
    """Return an array with the values at these turns and `fill` elsewhere, (T,)."""
    return mark_first(batch.turn_rollout) | has_token(batch, batch.span_kind == SUBGOAL)


def _build_sequence(
    options: HaeOptions, batch: TrainingBatch, columns: Columns, turns: Indices, turn_reward: Floats
) -> TurnSequence:
    owner, truncated = batch.turn_rollout[turns], is_truncated(batch)[turns]
    starts = mark_first(owner) | segment_starts(batch)[turns]
    needs_high = np.ones(len(turns), np.bool_) if options.switch == "paper" else starts
    after = np.full(len(turns), np.nan)
    if options.at_truncation is TruncationValue.NEXT_VALUE:
        after = read_value_column("value_final", columns["value_final"][owner], truncated)
    begun = columns["value_switch" if options.switch == "release" else "value_high"]
    low = np.where(_uses_low_critic(options, batch, turns), columns["value_low"][turns], begun[turns])
    high, every = columns["value_high"][turns], np.ones(len(turns), np.bool_)
    return build_turn_sequence(
        owner,
        starts,
        turn_reward,
        read_value_column("value_low", low, every),
        read_value_column("value_high", high, needs_high),
        truncated,
        after,
    )


def _uses_low_critic(options: HaeOptions, batch: TrainingBatch, turns: Indices) -> Bits:
    """Return whether the low critic is read at each of these turns."""
    decided = has_token(batch, np.isin(batch.span_kind, (SWITCH, SUBGOAL, UNCHANGED_SUBGOAL)))[turns]
    return decided | (options.undecided_baseline == "release")


def _compute_streams(
    options: HaeOptions, sequence: TurnSequence, inputs: AdvantageInput, turns: Indices
) -> tuple[AdvantageStream, AdvantageStream, AdvantageStream]:
    gamma, at_truncation, one_step = options.gamma, options.at_truncation, options.value_targets == "one-step"
    low = compute_action_stream(sequence, gamma, options.lam_turn, at_truncation, one_step=one_step)
    high = compute_subgoal_stream(sequence, gamma, options.lam_segment, at_truncation, one_step=one_step)
    if options.switch == "release":
        value = read_value_column("value_switch", inputs.columns["value_switch"][turns], np.ones(len(turns), np.bool_))
        return low, high, compute_switch_stream(sequence, gamma, at_truncation, value)
    keep_value = read_value_column(
        "value_keep", inputs.columns["value_keep"][turns], ~mark_first(sequence.rollout_index)
    )
    return low, high, compute_paper_switch_stream(sequence, keep_value, switch_probability(inputs.batch)[turns])


def switch_probability(batch: TrainingBatch) -> Floats:
    """Return the probability that the sampling policy switches at each turn, (T,).

    It is computed from the recorded logprobs of the switch tokens. A turn without a switch gets 0.
    """
    tokens = batch.span_kind == SWITCH
    probability = np.exp(np.bincount(batch.token_turn[tokens], batch.behavior_logprobs[tokens], batch.num_turns))
    switched = has_token(batch, batch.span_kind == SUBGOAL)
    return np.where(has_token(batch, tokens), np.where(switched, probability, 1.0 - probability), 0.0)


def _standardize_stream(
    options: HaeOptions, batch: TrainingBatch, advantage: Floats, tokens: Bits, turns: Indices
) -> Floats:
    """Return an array with the values at these turns and `fill` elsewhere, (T,)."""
    having = has_token(batch, tokens) & np.isin(np.arange(batch.num_turns), turns)
    return standardize(advantage, having) if options.standardize else np.where(having, advantage, 0.0)


def _scatter_to_turns(batch: TrainingBatch, turns: Indices, values: Floats, fill: float) -> Floats:
    """Return an array with the values at these turns and `fill` elsewhere, (T,)."""
    result = np.full(batch.num_turns, fill)
    result[turns] = values
    return result


def _list_optional_columns(options: HaeOptions) -> frozenset[str]:
    form = {"value_switch"} if options.switch == "release" else {"value_keep", "behavior_logprobs"}
    return frozenset(form | ({"value_final"} if options.at_truncation is TruncationValue.NEXT_VALUE else set()))


PLUGIN = Plugin(
    "hae",
    PluginKind.ADVANTAGE,
    "HiPER, arXiv 2602.16165, Theorem 4.1 and released code",
    hae,
    HaeOptions,
    needs=frozenset({"value_low", "value_high"}),
    needs_for_options=_list_optional_columns,
)
