"""The averaging rules: what share of a step's loss each token is.

Shares are of what is trained in the step, so that they sum to 1 whatever was left out of it, masked rows included;
where a rule's unit is a sum, the units' shares do.
"""

from typing import Annotated

import numpy as np
from pydantic import Field

from offing_trainer.batch import Batch, Floats
from offing_trainer.seam import Options, Plugin, Seam, WeightGiven
from offing_trainer.statistics import counts, reciprocal


class RowSum(Options):
    length: Annotated[float, Field(gt=0)] | None = None
    """Divide each row's sum by this, the same for all rows. None: by nothing."""
    averaged: bool = True
    """Mean over rows; else their sum."""


def token_mean(options: Options, given: WeightGiven) -> Floats:
    """1 / tokens of the step."""
    return np.full(given.batch.tokens, 1 / max(given.batch.tokens, 1))


def row_mean(options: Options, given: WeightGiven) -> Floats:
    """Mean over rows of the mean over their tokens."""
    return _row_share(given.batch) * _of_row(given.batch)


def row_sum(options: RowSum, given: WeightGiven) -> Floats:
    """Mean over rows of the sum over their tokens; with a fixed length, Dr. GRPO's."""
    share = _row_share(given.batch) if options.averaged else 1.0
    return np.full(given.batch.tokens, share / (options.length or 1.0))


def rollout_mean(options: Options, given: WeightGiven) -> Floats:
    """Mean over rollouts of the mean over their tokens."""
    each = counts(given.batch.token_rollout, given.batch.rollouts)
    return reciprocal(each)[given.batch.token_rollout] / max(int((each > 0).sum()), 1)


def rollout_turn_token(options: Options, given: WeightGiven) -> Floats:
    """1 / (Q G T_i |a|): every group counts alike, in it every rollout, then every turn, then every token."""
    batch = given.batch
    share, each = _turn_share(batch), counts(batch.token_turn, batch.turns)
    return (share * reciprocal(each))[batch.token_turn] * _filled(share, each > 0)


def segment_sum(options: Options, given: WeightGiven) -> Floats:
    """1 / (Q |G| |y|): each rollout counts as often as it has segments; DCPO's sum of surrogates."""
    batch = given.batch
    share = _rollout_share(batch)
    there = counts(batch.token_rollout, batch.rollouts) > 0
    had = counts(batch.turn_rollout[batch.turn_tokens > 0], batch.rollouts) > 0
    filled = share[had].sum() / share[there].sum() if there.any() else 0.0
    return (share[batch.row_rollout] * _of_rows(batch))[batch.token_row] * filled


def _row_share(batch: Batch) -> float:
    return 1 / max(int((counts(batch.token_row, batch.rows) > 0).sum()), 1)


def _of_rows(batch: Batch) -> Floats:
    return reciprocal(counts(batch.token_row, batch.rows))


def _of_row(batch: Batch) -> Floats:
    return _of_rows(batch)[batch.token_row]


def _rollout_share(batch: Batch) -> Floats:
    """(R,) 1 / (Q G): rollouts without a token count in G too."""
    return reciprocal(counts(batch.rollout_group, batch.groups))[batch.rollout_group] / max(batch.groups, 1)


def _turn_share(batch: Batch) -> Floats:
    """(T,) 1 / (Q G T_i); 0 for a turn that is context alone."""
    trained = batch.turn_tokens > 0
    turns = counts(batch.turn_rollout[trained], batch.rollouts)
    return np.where(trained, (_rollout_share(batch) * reciprocal(turns))[batch.turn_rollout], 0.0)


def _filled(share: Floats, there: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> float:
    """What a step makes up for of the shares that were dealt to other steps or left out."""
    found = share[there].sum()
    return float(share.sum() / found) if found > 0 else 0.0


PLUGINS = (
    Plugin("token-mean", Seam.WEIGHT, "DAPO, arXiv 2503.14476, and SUPO: 1 / tokens", token_mean),
    Plugin("row-mean", Seam.WEIGHT, "GRPO, arXiv 2402.03300: 1 / rows, 1 / tokens of the row", row_mean),
    Plugin("row-sum", Seam.WEIGHT, "Dr. GRPO, arXiv 2503.20783: 1 / rows", row_sum, RowSum),
    Plugin("rollout-mean", Seam.WEIGHT, "Agent Lightning 1.0: 1 / rollouts, 1 / tokens of the rollout", rollout_mean),
    Plugin(
        "rollout-turn-token",
        Seam.WEIGHT,
        "AgentFlow (Flow-GRPO), arXiv 2510.05592: 1 / (Q G T_i |a|)",
        rollout_turn_token,
    ),
    Plugin("segment-sum", Seam.WEIGHT, "MemAct (DCPO), arXiv 2510.12635: 1 / (Q |G| |y|)", segment_sum),
)
