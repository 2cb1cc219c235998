"""LLDS: prevents the likelihood of good tokens from falling, which precedes a collapse."""

from typing import Literal

import numpy as np
from pydantic import Field

from offing.core.training_rows import SPAN_CODES
from offing_trainer.batch import Indices, TrainingBatch
from offing_trainer.grouped_statistics import sum_by_index
from offing_trainer.plugin import LossInput, LossTerm, Plugin, PluginKind, PluginOptions


class LikelihoodGuardOptions(PluginOptions):
    gate: Literal["turns", "rows", "tokens"] = "turns"
    """The unit whose total likelihood must have fallen before its tokens are penalized."""
    answer_weight: float = Field(default=1.0, ge=0)
    """Weight of tokens in an answer span. All other tokens have weight 1."""


def likelihood_guard(options: LikelihoodGuardOptions, inputs: LossInput) -> LossTerm:
    """Compute the sum of weight max(0, d), where d = log p_old - log p.

    It is over tokens with A >= 0 whose unit has a positive sum of d. The paper's coefficient is .2, and
    its averages are those of the token weight rollout-mean.
    """
    decrease = inputs.columns["old_logprobs"] - inputs.logprobs
    of = _gate_index(inputs.batch, options.gate)
    gate_is_open = sum_by_index(decrease, of, int(of.max(initial=-1)) + 1)[of] > 0
    costs = gate_is_open & (decrease > 0) & (inputs.advantage >= 0)
    answers = inputs.batch.span_kind == SPAN_CODES["answer"]
    weight = np.where(costs, inputs.weight * np.where(answers, options.answer_weight, 1.0), 0.0)
    return LossTerm(float(weight @ decrease), -weight, metrics={"tokens_less_likely": float(costs.sum())})


def _gate_index(batch: TrainingBatch, gate: str) -> Indices:
    """Return the index of each token's unit, (P,). A turn in a row that is trained twice counts twice."""
    if gate == "rows":
        return batch.token_row
    if gate == "tokens":
        return np.arange(batch.num_tokens)
    _, of = np.unique(batch.token_turn + batch.num_turns * batch.token_row, return_inverse=True)
    return of


PLUGIN = Plugin(
    "lld-guard",
    PluginKind.REGULARIZER,
    "LLDS, On GRPO Collapse in Search-R1, arXiv 2512.04220: max(0, log p_old - log p) where A >= 0",
    likelihood_guard,
    LikelihoodGuardOptions,
    needs=frozenset({"old_logprobs"}),
)
