"""Plug-ins of the training pipeline: their kinds, inputs and results.

A plug-in is a pure function with a declaration. It gets and returns arrays. Randomness comes only
from the given generator, and memory only from `state`, which is stored after every step. A step can
therefore be repeated from the database alone. The order of a step is: view, selectors of groups,
rewards, advantage, selectors of rows, token weights, surrogate, regularizers.

    loss = sum over tokens of weight * surrogate + sum over regularizers of coefficient * term

Only token weights average: each averaging rule is one.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict

from offing_trainer.batch import Floats, Indices, RolloutGroup, TrainingBatch, TrainingRollout

PluginState = Mapping[str, Any]
"""Named tables of plain JSON values. A returned table replaces the table of the same name."""

Columns = Mapping[str, Floats]
"""Arrays by name that an engine or the learner computed. See `COLUMNS`."""

REPLAY_TABLE = "replay"
"""Name of the table of runs that may be replayed: a list of run ids by task.
`GroupSelectorInput.replay_candidates` holds their rollouts.
"""

COLUMNS: Mapping[str, str] = {
    "old_logprobs": "(P,) under the weights at the start of the step: the anchor of the clip; in bypass mode, equal to "
    "behavior_logprobs",
    "start_logprobs": "(P,) under the weights at the start of the step, also in bypass mode",
    "ref_logprobs": "(P,) under the reference policy",
    "answer_logprob": "(T,) mean logprob of the reference answer's tokens after each turn's observation; NaN means "
    "that no turn of the policy followed",
    "initial_answer_logprob": "(R,) the same before the first turn",
    "value_high": "(T,) critic before the turn, over subgoals",
    "value_low": "(T,) critic after the subgoal is written",
    "value_switch": "(T,) critic for KEEP or SWITCH",
    "value_keep": "(T,) value_low with the previous subgoal, for the paper's variant of the switch stream",
    "value": "(T,) critic before the turn, for flat turn GAE",
    "value_final": "(R,) critic after the last observation of a rollout that a limit cut off; NaN means that no limit "
    "did. No job computes it, because that observation is in no stored row: no turn of the policy followed it",
}


class PluginKind(StrEnum):
    """The kinds of plug-ins."""

    VIEW = "view"
    REWARD = "reward"
    SELECTOR = "selector"
    ADVANTAGE = "advantage"
    ADVANTAGE_MODIFIER = "advantage_modifier"
    """Changes the result of the base advantage."""
    TOKEN_WEIGHT = "token_weight"
    SURROGATE = "surrogate"
    REGULARIZER = "regularizer"


SINGLE_KINDS = frozenset({PluginKind.VIEW, PluginKind.ADVANTAGE, PluginKind.SURROGATE})
"""Kinds of which a pipeline has exactly one plug-in. It may have any number of the others."""


class PluginTrait(StrEnum):
    """Properties that at most one plug-in of a pipeline may have."""

    COST = "cost"
    """Makes cost or length part of the reward. Two such plug-ins would count it twice."""
    ENTROPY_MODULATION = "entropy_modulation"
    """Scales advantages by entropy. Two such plug-ins would work against each other."""
    TOOL_CALL_REWARD = "tool_call_reward"
    """Rewards more or fewer tool calls."""
    CLIP_BOUNDS = "clip_bounds"
    """Adapts the bounds of the clip."""
    ENTROPY_CONTROL = "entropy_control"
    """Keeps the policy's entropy in a range."""
    TURN_REWARD = "turn_reward"
    """Sets the reward of every turn."""


class PluginOptions(BaseModel):
    """Base class of a plug-in's options. Unknown names and values of the wrong type are rejected."""

    model_config = ConfigDict(extra="forbid", frozen=True)


@dataclass(frozen=True, slots=True, eq=False)
class Rewards:
    """Rewards of rollouts and turns."""

    rollout: Floats
    """Rewards for whole rollouts at their end, (R,)."""
    turn: Floats
    """Additional rewards of turns, (T,). `0` means no reward."""
    by_turn: bool = False
    """Whether the turns include all rewards, also the final one. `rollout` is then only informative."""


@dataclass(frozen=True, slots=True, eq=False)
class RewardInput:
    batch: TrainingBatch
    rewards: Rewards
    """Result of the plug-ins before this one. The first one gets the finalized rewards, and 0 for turns."""
    columns: Columns
    state: PluginState


@dataclass(frozen=True, slots=True, eq=False)
class GroupSelectorInput:
    """Input of a selector at stage `groups`, before arrays are built."""

    groups: Sequence[RolloutGroup]
    state: PluginState
    rng: np.random.Generator
    replay_candidates: Mapping[str, TrainingRollout] = field(default_factory=dict[str, TrainingRollout])
    """Stored rollouts by run id, as the table `REPLAY_TABLE` lists them for the tasks of these groups.
    Deleted runs are missing.
    """


@dataclass(frozen=True, slots=True, eq=False)
class AdvantageInput:
    batch: TrainingBatch
    rewards: Rewards
    columns: Columns
    state: PluginState


@dataclass(frozen=True, slots=True, eq=False)
class Advantage:
    """Advantages of tokens, and value targets of critics."""

    per_token: Floats
    """Token advantages, (P,)."""
    value_targets: Mapping[str, Floats] = field(default_factory=dict[str, Floats])
    """Value targets by column name, (T,). NaN means that the turn has no target."""


@dataclass(frozen=True, slots=True, eq=False)
class RowSelectorInput:
    """Input of a selector at stage `rows`, which decides which rows are trained and how often."""

    batch: TrainingBatch
    rewards: Rewards
    advantage: Floats
    """Token advantages, (P,)."""
    progress: float
    """Progress of the training from 0 to 1."""
    state: PluginState
    rng: np.random.Generator


@dataclass(frozen=True, slots=True, eq=False)
class TokenWeightInput:
    """Input of a token weight: all rows of one optimizer step, independent of micro-batches."""

    batch: TrainingBatch
    advantage: Floats
    """Token advantages, (P,)."""
    columns: Columns
    progress: float


@dataclass(frozen=True, slots=True, eq=False)
class StepStatisticsInput:
    """Input for what a surrogate or regularizer needs to know about all rows of an optimizer step."""

    batch: TrainingBatch
    advantage: Floats
    """Token advantages, (P,)."""
    columns: Columns
    progress: float
    """Progress of the training from 0 to 1."""
    state: PluginState


@dataclass(frozen=True, slots=True, eq=False)
class LossInput:
    """Input of a surrogate or regularizer: some rows of a step.

    Rows are always complete, so that a ratio over a turn or a row includes all of its tokens.
    """

    batch: TrainingBatch
    logprobs: Floats
    """Logprobs under the trained weights, (P,)."""
    entropy: Floats
    """Entropies under the trained weights, (P,), in nats."""
    advantage: Floats
    """Token advantages, (P,)."""
    weight: Floats
    """Token weights for the whole step, (P,), at least 0. The loss is not divided further."""
    columns: Columns
    state: PluginState
    """State after all `step_statistics` of the step."""


@dataclass(frozen=True, slots=True, eq=False)
class LossTerm:
    """A term of the loss, with its gradients."""

    value: float
    logprob_grads: Floats
    """Gradient by the logprob of each token, (P,)."""
    entropy_grads: Floats | None = None
    """Gradient by the entropy at each token, (P,). `None` means 0 everywhere."""
    metrics: Mapping[str, float] = field(default_factory=dict[str, float])
    """Sums for display, such as `clip_low`, which are added over the micro-batches of a step."""


PluginFunction = Callable[..., Any]
"""Signatures by kind, after the options:

    view                (groups: Sequence[RolloutGroup]) -> Sequence[RolloutGroup]
    reward              (RewardInput) -> tuple[Rewards, PluginState]
    selector            stage groups: (GroupSelectorInput)
                            -> tuple[Sequence[RolloutGroup], PluginState]
                        stage rows: (RowSelectorInput) -> tuple[Indices, PluginState];
                            a row's index appears as often as the row is trained
    advantage           (AdvantageInput) -> tuple[Advantage, PluginState]
    advantage_modifier  (AdvantageInput, token_advantage: Floats) -> Floats
    token_weight        (TokenWeightInput) -> Floats (P,), a factor; all factors are multiplied
    surrogate           (LossInput) -> LossTerm; 0 where advantage or weight is 0, so that
                            rows where all are 0 need no forward pass
    regularizer         (LossInput) -> LossTerm, before its coefficient, which the pipeline has
    step_statistics     (StepStatisticsInput) -> PluginState, once per optimizer step, for
                            surrogates and regularizers that have it
"""


@dataclass(frozen=True, slots=True)
class Plugin:
    """A plug-in with its declaration.

    A new plug-in needs one module and one entry point in the group `offing.training`, which has its key as name.
    """

    name: str
    kind: PluginKind
    source: str
    """Paper and equation, or who defined it."""
    apply: PluginFunction
    """The function. Its first argument is the options. See `PluginFunction` for the others."""
    options: type[PluginOptions] = PluginOptions
    stage: str = ""
    """For a selector: `groups` or `rows`."""
    needs: frozenset[str] = frozenset()
    """Columns that it requires, from `COLUMNS`.
    `behavior_logprobs` or `entropy` if tokens must have recorded ones; `rollout_stats.NAME` for
    statistics of `TrainingBatch.rollout_stats`.
    """
    needs_for_options: Callable[[Any], frozenset[str]] | None = None
    """Returns further required columns for the given options."""
    step_statistics: PluginFunction | None = None
    """For a surrogate or regularizer that needs a whole step.
    See `PluginFunction`. Its result is in `LossInput.state`.
    """
    allows_unscored: bool = False
    """For a base advantage: whether rollouts without a score may be trained."""
    min_group_size: int = 1
    """Minimum number of rollouts in a group."""
    state_tables: frozenset[str] = frozenset()
    """Names of the state tables that it reads or writes."""
    traits: frozenset[PluginTrait] = frozenset()
    conflicts: Mapping[str, str] = field(default_factory=dict[str, str])
    """Plug-ins that cannot be in the same pipeline, with the reason."""
    needs_rejected: bool = False
    """Whether it has no effect if the view leaves out rejected completions. See the option `include_rejected`."""
    uses_rng: bool = False
    """Whether it uses the random generator."""

    @property
    def key(self) -> str:
        """The name of its entry point, such as `advantage.group-z`. See `plugin_key`."""
        return plugin_key(self.kind, self.name)


def plugin_key(kind: PluginKind, name: str) -> str:
    """Return the key of the plug-in with this kind and name."""
    return f"{kind}.{name}"


def empty_state() -> PluginState:
    """Return the state of plug-ins that store nothing."""
    return {}


__all__ = [
    "COLUMNS",
    "REPLAY_TABLE",
    "SINGLE_KINDS",
    "Advantage",
    "AdvantageInput",
    "Columns",
    "GroupSelectorInput",
    "Indices",
    "LossInput",
    "LossTerm",
    "Plugin",
    "PluginFunction",
    "PluginKind",
    "PluginOptions",
    "PluginState",
    "PluginTrait",
    "RewardInput",
    "Rewards",
    "RowSelectorInput",
    "StepStatisticsInput",
    "TokenWeightInput",
    "empty_state",
    "plugin_key",
]
