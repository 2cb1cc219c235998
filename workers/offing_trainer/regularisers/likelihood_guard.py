"""Holds the likelihood of what did not do badly, whose silent loss comes before a collapse: LLDS."""

from typing import Literal

import numpy as np
from pydantic import Field

from offing.core.rows import SPAN_CODES
from offing_trainer.batch import Batch, Places
from offing_trainer.seam import Loss, LossGiven, Options, Plugin, Seam
from offing_trainer.statistics import sums


class LikelihoodGuard(Options):
    gate: Literal["turns", "rows", "tokens"] = "turns"
    """Of which the likelihood must have fallen as a whole before its tokens cost."""
    answer_weight: float = Field(default=1.0, ge=0)
    """Of tokens in an answer span, against 1 of all others."""


def likelihood_guard(options: LikelihoodGuard, given: LossGiven) -> Loss:
    """sum of weight max(0, d), d = log p_old - log p, over tokens with A >= 0 whose gate's sum of d is above 0.

    The paper's coefficient is .2, and its averages are those of the weight rollout-mean.
    """
    fallen = given.columns["logp_old"] - given.logp
    of = _gates(given.batch, options.gate)
    held = sums(fallen, of, int(of.max(initial=-1)) + 1)[of] > 0
    costs = held & (fallen > 0) & (given.advantage >= 0)
    answers = given.batch.kind == SPAN_CODES["answer"]
    weight = np.where(costs, given.weight * np.where(answers, options.answer_weight, 1.0), 0.0)
    return Loss(float(weight @ fallen), -weight, figures={"fallen": float(costs.sum())})


def _gates(batch: Batch, gate: str) -> Places:
    """(P,) a turn in a row that is trained twice is two."""
    if gate == "rows":
        return batch.token_row
    if gate == "tokens":
        return np.arange(batch.tokens)
    _, of = np.unique(batch.token_turn + batch.turns * batch.token_row, return_inverse=True)
    return of


PLUGIN = Plugin(
    "lld-guard",
    Seam.REGULARISE,
    "LLDS, On GRPO Collapse in Search-R1, arXiv 2512.04220: max(0, log p_old - log p) where A >= 0",
    likelihood_guard,
    LikelihoodGuard,
    needs=frozenset({"logp_old"}),
)
