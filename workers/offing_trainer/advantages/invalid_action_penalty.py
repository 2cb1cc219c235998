"""A smaller advantage for rejected completions, and for nothing else."""

import numpy as np
from pydantic import Field

from offing.core.trajectory import BoundaryReason
from offing_trainer.batch import Floats
from offing_trainer.plugin import AdvantageInput, Plugin, PluginKind, PluginOptions


class InvalidActionPenaltyOptions(PluginOptions):
    penalty: float = Field(default=0.1, ge=0, allow_inf_nan=False)
    """What is subtracted from the advantage of every token of a rejected completion. `0` turns the penalty off."""


def invalid_action_penalty(
    options: InvalidActionPenaltyOptions, inputs: AdvantageInput, token_advantage: Floats
) -> Floats:
    """Compute A' = A - penalty for the tokens of completions that no role could use.

    The other turns of the rollout and the other rollouts of the group keep their advantages. A rollout that violated a
    rule in another way, such as with an output that was accepted first, has no such completion.
    """
    is_rejected = np.array([why == BoundaryReason.REJECTED for why in inputs.batch.row_boundary_reasons], np.bool_)
    return token_advantage - options.penalty * is_rejected[inputs.batch.token_row]


PLUGIN = Plugin(
    "invalid-action-penalty",
    PluginKind.ADVANTAGE_MODIFIER,
    "verl-agent's invalid action penalty, on advantages instead of rewards: A - penalty for a rejected completion",
    invalid_action_penalty,
    InvalidActionPenaltyOptions,
    needs_rejected=True,
)
