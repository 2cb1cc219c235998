"""A smaller advantage for the outputs that a graph rejected, and for nothing else."""

import numpy as np
from pydantic import Field

from offing.core.trajectory import BoundaryReason
from offing_trainer.batch import Floats
from offing_trainer.plugin import AdvantageInput, Plugin, PluginKind, PluginOptions


class InvalidActionPenaltyOptions(PluginOptions):
    penalty: float = Field(default=0.1, ge=0, allow_inf_nan=False)
    """What is subtracted from the advantage of every token of a rejected output. `0` turns the penalty off."""


def invalid_action_penalty(
    options: InvalidActionPenaltyOptions, inputs: AdvantageInput, token_advantage: Floats
) -> Floats:
    """Compute A' = A - penalty for the tokens of rejected outputs.

    The other turns of the rollout and the other rollouts of the group keep their advantages. The view must include
    rejected outputs.
    """
    is_rejected = np.array([why == BoundaryReason.REJECTED for why in inputs.batch.row_boundary_reasons], np.bool_)
    return token_advantage - options.penalty * is_rejected[inputs.batch.token_row]


PLUGIN = Plugin(
    "invalid-action-penalty",
    PluginKind.ADVANTAGE_MODIFIER,
    "verl-agent's invalid action penalty, on advantages instead of rewards: A - penalty for a rejected output",
    invalid_action_penalty,
    InvalidActionPenaltyOptions,
    needs_rejected=True,
)
