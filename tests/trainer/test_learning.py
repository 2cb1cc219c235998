"""Every recipe raises the reward of a policy that is nothing but a table of logits, over a whole course of steps."""

from typing import Any

import numpy as np
import pytest

from offing_trainer.batch import Floats, Group, Sample
from offing_trainer.chain import chain_for
from offing_trainer.config import TrainConfig, config_of
from offing_trainer.learner.contract import Forwarded
from offing_trainer.update import loss_of, measured, prepared, viewed
from tests.trainer.builders import a_group, a_sample

CHOICES, RIGHT, MOST = 4, 2, 3
"""A turn is one token; the right one ends the rollout with a reward, and a limit ends it after so many turns."""


def log_softmax(logits: Floats) -> Floats:
    return logits - logits.max() - np.log(np.exp(logits - logits.max()).sum())


def rolled_out(logits: Floats, rng: np.random.Generator, run: int) -> Sample:
    chosen: list[int] = []
    while len(chosen) < MOST and RIGHT not in chosen:
        chosen.append(int(rng.choice(CHOICES, p=np.exp(log_softmax(logits)))))
    won = chosen[-1] == RIGHT
    logprobs = log_softmax(logits)[chosen].tolist()
    rounds = [(1,)] * len(chosen)
    sample = a_sample(float(won), rounds, run=run, outcome="answered" if won else "done", policy="table@1")
    rows = [
        type(row)(**{**fields(row), "token_ids": at(row, 1, token), "behaviour_logprobs": at(row, 0, logprob)})
        for row, token, logprob in zip(sample.rows, chosen, logprobs, strict=True)
    ]
    return Sample(sample.episode, tuple(rows))


def fields(row: Any) -> dict[str, Any]:
    return {name: getattr(row, name) for name in row.__dataclass_fields__}


def at(row: Any, elsewhere: float, value: float) -> Any:
    dtype = np.int32 if elsewhere else np.float32
    return np.where(row.loss_mask, value, elsewhere).astype(dtype)


def forwarded(logits: Floats, ids: Any) -> Forwarded:
    logp = log_softmax(logits)
    entropy = -float(np.exp(logp) @ logp)
    return Forwarded(logp[ids], np.full(len(ids), entropy))


def a_step_of(config: TrainConfig, logits: Floats, step: int, rate: float) -> tuple[Floats, float]:
    """Logits after a step of plain gradient descent, and the share of rollouts that had won before it."""
    chain, rng = chain_for(config), np.random.default_rng(step)
    groups: list[Group] = [
        a_group(*(rolled_out(logits, rng, 8 * nth + member) for member in range(8)), key=f"g{nth}") for nth in range(4)
    ]
    seen = viewed(chain, groups, {}, rng)
    chosen = prepared(chain, seen, {}, rng, learner=config.learner)
    live = chosen.batch.only(chosen.live)
    anchor = forwarded(logits, live.token_id).logp
    columns = {"logp_old": anchor} if config.learner.mode == "decoupled" else {}
    ready = measured(chain, chosen, {**columns, "logp_ref": log_softmax(np.zeros(CHOICES))[live.token_id]})
    for nth in range(len(ready.steps)):
        rows = np.arange(len(ready.rows_of(nth)))
        ids = np.array([row.token_ids[row.loss_mask][0] for row in ready.rows_of(nth)], np.int64)
        slopes = loss_of(chain, ready, nth)(rows, forwarded(logits, ids)).dlogp
        chosen_ones = np.eye(CHOICES)[ids]
        logits = logits - rate * slopes @ (chosen_ones - np.exp(log_softmax(logits)))
    return logits, ready.figures["success"]


@pytest.mark.parametrize(
    ("name", "rate"),
    [
        ("flow-grpo", 2.0), ("flow-grpo-released", 2.0), ("grpo", 2.0), ("gspo", 2.0), ("reinforce", 4.0),
        ("sft", 3.0), ("eapo", 1.0), ("dcpo", 1.0), ("supo", 1.0),
    ],
)  # fmt: skip
def test_a_recipe_learns(name: str, rate: float) -> None:
    config = config_of({"policy": "table@1", "algorithm": name, "learner": {"minibatches": 2}})
    logits, won = np.zeros(CHOICES), list[float]()
    for step in range(25):
        logits, share = a_step_of(config, logits, step, rate)
        won.append(share)
    assert won[0] < 0.8
    assert np.exp(log_softmax(logits))[RIGHT] > 0.6 > 1 / CHOICES
    assert np.mean(won[-5:]) > 0.9
