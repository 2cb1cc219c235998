"""Every recipe raises the reward of a policy that is nothing but a table of logits, over a whole course of steps."""

from typing import Any

import numpy as np
import pytest

from offing_trainer.batch import Floats, RolloutGroup, TrainingRollout
from offing_trainer.config import TrainConfig, parse_config
from offing_trainer.learner.contract import ForwardResult
from offing_trainer.pipeline import build_job_pipeline
from offing_trainer.training_step import apply_view, build_loss, compute_advantages, compute_token_weights
from tests.trainer.builders import a_group, a_sample

CHOICES, RIGHT, MAX_TURNS = 4, 2, 3
"""A turn is one token. The right one ends the rollout with a reward; `MAX_TURNS` turns end it without."""


def log_softmax(logits: Floats) -> Floats:
    return logits - logits.max() - np.log(np.exp(logits - logits.max()).sum())


def rolled_out(logits: Floats, rng: np.random.Generator, run: int) -> TrainingRollout:
    chosen: list[int] = []
    while len(chosen) < MAX_TURNS and RIGHT not in chosen:
        chosen.append(int(rng.choice(CHOICES, p=np.exp(log_softmax(logits)))))
    won = chosen[-1] == RIGHT
    logprobs = log_softmax(logits)[chosen].tolist()
    rounds = [(1,)] * len(chosen)
    sample = a_sample(float(won), rounds, run=run, outcome="answered" if won else "done", policy="table@1")
    rows = [
        type(row)(**{**fields(row), "token_ids": at(row, 1, token), "behavior_logprobs": at(row, 0, logprob)})
        for row, token, logprob in zip(sample.rows, chosen, logprobs, strict=True)
    ]
    return TrainingRollout(sample.metadata, tuple(rows))


def fields(row: Any) -> dict[str, Any]:
    return {name: getattr(row, name) for name in row.__dataclass_fields__}


def at(row: Any, elsewhere: float, value: float) -> Any:
    dtype = np.int32 if elsewhere else np.float32
    return np.where(row.loss_mask, value, elsewhere).astype(dtype)


def forwarded(logits: Floats, ids: Any) -> ForwardResult:
    logp = log_softmax(logits)
    entropy = -float(np.exp(logp) @ logp)
    return ForwardResult(logp[ids], np.full(len(ids), entropy))


def a_step_of(config: TrainConfig, logits: Floats, step: int, rate: float) -> tuple[Floats, float]:
    """Logits after a step of plain gradient descent, and the share of rollouts that had won before it."""
    pipeline, rng = build_job_pipeline(config), np.random.default_rng(step)
    groups: list[RolloutGroup] = [
        a_group(*(rolled_out(logits, rng, 8 * nth + member) for member in range(8)), key=f"g{nth}") for nth in range(4)
    ]
    seen = apply_view(pipeline, groups, {}, rng)
    chosen = compute_advantages(pipeline, seen, {}, rng, learner_config=config.learner)
    live = chosen.batch.select_rows(chosen.active_rows)
    anchor = forwarded(logits, live.token_ids).logprobs
    columns = {"old_logprobs": anchor} if config.learner.mode == "decoupled" else {}
    ready = compute_token_weights(
        pipeline, chosen, {**columns, "ref_logprobs": log_softmax(np.zeros(CHOICES))[live.token_ids]}
    )
    for nth in range(len(ready.optimizer_steps)):
        rows = np.arange(len(ready.step_rows(nth)))
        ids = np.array([row.token_ids[row.loss_mask][0] for row in ready.step_rows(nth)], np.int64)
        slopes = build_loss(pipeline, ready, nth)(rows, forwarded(logits, ids)).logprob_grads
        chosen_ones = np.eye(CHOICES)[ids]
        logits = logits - rate * slopes @ (chosen_ones - np.exp(log_softmax(logits)))
    return logits, ready.metrics["success_rate"]


@pytest.mark.parametrize(
    ("name", "rate"),
    [
        ("flow-grpo", 2.0), ("flow-grpo-released", 2.0), ("grpo", 2.0), ("gspo", 2.0), ("reinforce", 4.0),
        ("sft", 3.0), ("eapo", 1.0), ("dcpo", 1.0), ("supo", 1.0),
    ],
)  # fmt: skip
def test_a_recipe_raises_the_reward(name: str, rate: float) -> None:
    config = parse_config({"policy": "table@1", "algorithm": name, "learner": {"minibatches": 2}})
    logits, won = np.zeros(CHOICES), list[float]()
    for step in range(25):
        logits, share = a_step_of(config, logits, step, rate)
        won.append(share)
    assert won[0] < 0.8
    assert np.exp(log_softmax(logits))[RIGHT] > 0.6 > 1 / CHOICES
    assert np.mean(won[-5:]) > 0.9
