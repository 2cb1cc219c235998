"""The seven seams of training, and what a plug-in is given and gives at each.

The only home of these shapes. A plug-in is one pure function with a declaration: arrays in, arrays out; randomness
only from the generator that it is given, memory only through `state`, which is stored after every step, so that a step
can be done again from the store alone. Order of a step: view, select (groups), reward, advantage, select (rows),
weight, surrogate, regularise.

    loss = sum over tokens of weight * surrogate + sum over regularisers of coefficient * term

Nothing else averages: every averaging rule is a weight.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict

from offing_trainer.batch import Batch, Floats, Group, Places, Sample

State = Mapping[str, Any]
"""Named tables of plain JSON values; what a plug-in gives back replaces the tables of the same names."""

Columns = Mapping[str, Floats]
"""Arrays that an engine or the learner computed, by name; see `COLUMNS`."""

REPLAY = "replay"
"""Table of the ids of runs that may be trained again, a list by task: `GroupsGiven.earlier` holds their samples."""

COLUMNS: Mapping[str, str] = {
    "logp_old": "(P,) under the weights that a step begins with: the anchor of the clip; in bypass form, behaviour",
    "logp_start": "(P,) under the weights that a step begins with, also in bypass form",
    "logp_ref": "(P,) under the reference policy",
    "reference_logp": "(T,) mean log-probability of the reference answer's tokens after each turn's observation; NaN: "
    "no turn of the policy followed",
    "reference_start": "(R,) the same before the first turn",
    "value_high": "(T,) critic before the turn, over subgoals",
    "value_low": "(T,) critic after the subgoal is written",
    "value_term": "(T,) critic for KEEP or SWITCH",
    "value_kept": "(T,) value_low with the subgoal before, for the paper's form of the switch stream",
    "value": "(T,) critic before the turn, for flat turn GAE",
    "value_after": "(R,) critic after the last observation of a rollout that a limit cut off; NaN: it was not. No job "
    "computes it: no turn of the policy followed that observation, so that it is in no stored row",
}


class Seam(StrEnum):
    """Where a plug-in goes in."""

    VIEW = "view"
    REWARD = "reward"
    SELECT = "select"
    ADVANTAGE = "advantage"
    MODIFIER = "modifier"
    """Part of the advantage seam: changes what the base advantage gave."""
    WEIGHT = "weight"
    SURROGATE = "surrogate"
    REGULARISE = "regularise"


SINGLE = frozenset({Seam.VIEW, Seam.ADVANTAGE, Seam.SURROGATE})
"""Seams that a chain fills exactly once; the others stack."""


class Claim(StrEnum):
    """What only one plug-in of a chain may do."""

    COST = "cost"
    """Makes cost or length part of the reward; twice would count it twice."""
    ENTROPY_USE = "entropy_use"
    """Damps or amplifies by entropy; two would pull against each other."""
    TOOL_PULL = "tool_pull"
    """Rewards more or fewer tool calls."""
    CLIP_BOUNDS = "clip_bounds"
    """Moves the bounds of the clip."""
    ENTROPY_CONTROL = "entropy_control"
    """Holds the policy's entropy."""
    TURN_REWARD = "turn_reward"
    """Gives every turn its reward."""


class Options(BaseModel):
    """Base of a plug-in's options: unknown names and values of a wrong kind are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


@dataclass(frozen=True, slots=True, eq=False)
class Rewards:
    """What is paid for."""

    rollout: Floats
    """(R,) for the rollout as a whole, at its end."""
    turn: Floats
    """(T,) for each turn, beside that. 0: nothing."""
    by_turn: bool = False
    """The turns hold all of it, the end included; `rollout` is then only to be looked at."""


@dataclass(frozen=True, slots=True, eq=False)
class RewardGiven:
    batch: Batch
    rewards: Rewards
    """As the plug-ins before gave it; first: the settled reward of each rollout, nothing for turns."""
    columns: Columns
    state: State


@dataclass(frozen=True, slots=True, eq=False)
class GroupsGiven:
    """For `select` at stage groups, before there are arrays."""

    groups: Sequence[Group]
    state: State
    rng: np.random.Generator
    earlier: Mapping[str, Sample] = field(default_factory=dict[str, Sample])
    """By run id: the stored samples that the table `REPLAY` names for the tasks of these groups; those that are gone
    are not here."""


@dataclass(frozen=True, slots=True, eq=False)
class AdvantageGiven:
    batch: Batch
    rewards: Rewards
    columns: Columns
    state: State


@dataclass(frozen=True, slots=True, eq=False)
class Advantage:
    """What each token is credited with, and what critics should have said."""

    token: Floats
    """(P,)"""
    targets: Mapping[str, Floats] = field(default_factory=dict[str, Floats])
    """(T,) by column name; NaN: that critic is not asked at this turn."""


@dataclass(frozen=True, slots=True, eq=False)
class RowsGiven:
    """For `select` at stage rows: which rows are trained, and how often."""

    batch: Batch
    rewards: Rewards
    advantage: Floats
    """(P,)"""
    progress: float
    """Of the training, 0 to 1."""
    state: State
    rng: np.random.Generator


@dataclass(frozen=True, slots=True, eq=False)
class WeightGiven:
    """For the rows of one optimiser step together, however they are cut for memory."""

    batch: Batch
    advantage: Floats
    """(P,)"""
    columns: Columns
    progress: float


@dataclass(frozen=True, slots=True, eq=False)
class SurveyGiven:
    """For what a surrogate or regulariser must know of an optimiser step's rows before they are cut into parts."""

    batch: Batch
    advantage: Floats
    """(P,)"""
    columns: Columns
    progress: float
    """Of the training, 0 to 1."""
    state: State


@dataclass(frozen=True, slots=True, eq=False)
class LossGiven:
    """For some rows of a step. Rows are always whole, so that a ratio over a turn or a row sees all its tokens."""

    batch: Batch
    logp: Floats
    """(P,) under the weights being trained."""
    entropy: Floats
    """(P,) nats, under the weights being trained."""
    advantage: Floats
    """(P,)"""
    weight: Floats
    """(P,) at least 0; of the whole step: nothing is left to divide by."""
    columns: Columns
    state: State
    """After every survey of the step."""


@dataclass(frozen=True, slots=True, eq=False)
class Loss:
    """A sum to be made smaller, and its derivatives; what is not there does not depend on it."""

    value: float
    dlogp: Floats
    """(P,) of `value` by the log-probability of each token."""
    dentropy: Floats | None = None
    """(P,) of `value` by the entropy at each token. None: 0 everywhere."""
    figures: Mapping[str, float] = field(default_factory=dict[str, float])
    """Sums to show, such as `clipped`: added up over the parts of a step."""


Apply = Callable[..., Any]
"""By seam, after the options:
view        (groups: Sequence[Group]) -> Sequence[Group]
reward      (RewardGiven) -> tuple[Rewards, State]
select      stage groups: (GroupsGiven) -> tuple[Sequence[Group], State]
            stage rows: (RowsGiven) -> tuple[Places, State], a row's index as often as it is to be trained
advantage   (AdvantageGiven) -> tuple[Advantage, State]
modifier    (AdvantageGiven, token: Floats) -> Floats
weight      (WeightGiven) -> Floats (P,), a factor; factors of a chain are multiplied
surrogate   (LossGiven) -> Loss; 0 where advantage or weight is 0, so that rows where all are need no forward pass
regularise  (LossGiven) -> Loss, before its coefficient, which is the chain's
survey      (SurveyGiven) -> State, once an optimiser step; of surrogates and regularisers that have one
"""


@dataclass(frozen=True, slots=True)
class Plugin:
    """One plug-in with its declaration. A new one is one file and one entry point of the group `offing.training`."""

    name: str
    seam: Seam
    source: str
    """Paper and equation, or who defined it."""
    apply: Apply
    """First argument: the options. The others: see `Apply`."""
    options: type[Options] = Options
    stage: str = ""
    """For select: groups or rows."""
    needs: frozenset[str] = frozenset()
    """`COLUMNS`; `behaviour` or `entropy` where tokens must have them as sampled; `facts.NAME` of `Batch.facts`."""
    also_needs: Callable[[Any], frozenset[str]] | None = None
    """What it needs besides with the options given."""
    survey: Apply | None = None
    """For a surrogate or regulariser that must see a whole step, see `Apply`; what it gives is in `LossGiven.state`."""
    unscored: bool = False
    """As a base advantage: rollouts that nobody scored may be trained on too."""
    smallest_group: int = 1
    """Rollouts a group needs at least for it to make sense."""
    state: frozenset[str] = frozenset()
    """Tables that it reads or writes."""
    claims: frozenset[Claim] = frozenset()
    conflicts: Mapping[str, str] = field(default_factory=dict[str, str])
    """Other plug-ins that cannot be in the same chain, with the reason."""
    draws: bool = False
    """Whether it draws from the generator."""


def no_state() -> State:
    """For plug-ins that keep nothing."""
    return {}


__all__ = [
    "COLUMNS",
    "REPLAY",
    "SINGLE",
    "Advantage",
    "AdvantageGiven",
    "Apply",
    "Claim",
    "Columns",
    "GroupsGiven",
    "Loss",
    "LossGiven",
    "Options",
    "Places",
    "Plugin",
    "RewardGiven",
    "Rewards",
    "RowsGiven",
    "Seam",
    "State",
    "SurveyGiven",
    "WeightGiven",
    "no_state",
]
