"""Makes what the checks beside it compare with: a small policy, steps handed over, and where our own learner gets.

.venv/bin/python -m tests.trainer.elsewhere.made FOLDER
"""

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np

from offing.core.rows import TrainRow
from offing.exports.format import Options
from offing.exports.tinker import open_sink
from offing_trainer.batch import Group, Sample
from offing_trainer.bridges.hand_over import handed_rows, ready_of, write_step
from offing_trainer.bridges.handed import Handed, step_file
from offing_trainer.bridges.terms import learner_of, terms_of
from offing_trainer.chain import chain_for, needed_columns
from offing_trainer.config import TrainConfig, config_of
from offing_trainer.learner.local import LocalLearner, open_learner
from offing_trainer.update import columns_of, loss_of, measured, prepared, viewed
from tests.trainer.sampled import rollout, served, small_policy

POLICY = "planner@1"

LEARNER = {
    "learning_rate": 1e-3,
    "minibatches": 2,
    "threads": 1,
    "device": "cpu",
    "gradient_clip": 1.0,
    "weight_decay": 0.01,
}

KEPT = {"name": "kl-ref", "coefficient": 0.1}

TABLES: dict[str, dict[str, Any]] = {
    "whole": {"chain": {"surrogate": {"high": 0.28, "dual": 3.0}, "regularise": [KEPT]}},
    "decoupled": {"chain": {"surrogate": {"high": 0.28}, "regularise": []}, "learner": {"mode": "decoupled"}},
    "plain": {"chain": {"surrogate": {"high": 0.28}, "regularise": []}, "learner": {"weight_decay": 0.0}},
}
"""Recipes over `flow-grpo`: with everything that goes along, and with what every engine can do."""

HEATS: dict[str, Sequence[float | None]] = {"whole": (1.0, 0.7, None, 1.3), "decoupled": (0.8,), "plain": (1.0,)}


def config(name: str) -> TrainConfig:
    tables = TABLES[name]
    learner = {**LEARNER, **tables.get("learner", {})}
    return config_of({"algorithm": "flow-grpo", "policy": POLICY, **tables, "learner": learner})


def groups(folder: Path, heats: Sequence[float | None]) -> list[Group]:
    """Two groups of three, of one to three turns, with rewards that differ."""
    policy = served(folder)
    rows = [
        rollout(policy, n + 1, turns=1 + n % 3, heat=heats[n % len(heats)], sizes=(7 + 2 * n, 4, 5 + n))
        for n in range(6)
    ]
    rewards = (1.0, 0.0, 0.25, 0.0, 1.0, 1.0)
    samples = [_sample(row, n, reward) for n, (row, reward) in enumerate(zip(rows, rewards, strict=True))]
    return [Group("g1", "t1", tuple(samples[:3])), Group("g2", "t2", tuple(samples[3:]))]


def _sample(row: TrainRow, nth: int, reward: float) -> Sample:
    group = UUID(int=1000 + nth // 3)
    episode = replace(row.episode, run=UUID(int=nth + 1), group=group, reward=reward, outcome="answered")
    turns = replace(row.turns, policy=(POLICY,) * len(row.turns))
    # Off the policy by a little, so that ratios are not all 1.
    drift = np.random.default_rng(nth).normal(0, 0.15, len(row)).astype(np.float32) * row.loss_mask
    row = replace(row, episode=episode, turns=turns, behaviour_logprobs=row.behaviour_logprobs + drift)
    return Sample(episode, (row,))


def hand(name: str, found: Sequence[Group], folder: Path) -> None:
    asked = config(name)
    chain, terms = chain_for(asked), terms_of(asked, chain_for(asked))
    ready = ready_of(chain, asked.learner, found, {}, np.random.default_rng([0, 1]))
    rows = tuple(handed_rows(ready, POLICY))
    folder.mkdir(parents=True, exist_ok=True)
    write_step(step_file(folder, 1), Handed(1, POLICY, "sha", "tok", terms, learner_of(asked), len(ready.steps), rows))
    (folder / "end.json").write_text("{}")


def export(rows: Sequence[TrainRow], file: Path) -> None:
    with file.open("wb") as out:
        sink = open_sink(out, Options())
        sink.write(rows)
        sink.close()


def ours(name: str, found: Sequence[Group], policy: Path) -> dict[str, Any]:
    """The same step by our own learner, as a job takes it: losses, and log-probabilities before and after."""
    asked = config(name)
    chain, learner = chain_for(asked), open_learner(policy, asked.learner)
    rng = np.random.default_rng([0, 1])
    chosen = prepared(chain, viewed(chain, found, {}, rng), {}, rng, learner=asked.learner)
    forwarded = learner.forward(chosen.live_rows)
    ready = measured(
        chain, chosen, columns_of(chosen.batch, forwarded, needed_columns(chain, asked.learner.mode).late, chosen.live)
    )
    losses, norms = list[float](), list[float]()
    for nth in range(len(ready.steps)):
        losses.append(learner.forward_backward(ready.rows_of(nth), loss_of(chain, ready, nth)))
        norms.append(learner.optim_step().grad_norm)
    return {"losses": losses, "norms": norms, "before": forwarded.logp, "after": _logp(learner, chosen.live_rows),
            "keys": [row.key for row in chosen.live_rows]}  # fmt: skip


def _logp(learner: LocalLearner, rows: Sequence[TrainRow]) -> Any:
    return learner.forward(rows).logp


def make(folder: Path) -> None:
    policy = small_policy(folder / "policy")
    for name in TABLES:
        found = groups(policy, HEATS[name])
        hand(name, found, folder / name)
        export(
            [row for group in found for sample in group.samples for row in sample.rows], folder / "rows.tinker.jsonl"
        )
        np.savez(folder / f"{name}.npz", **ours(name, found, policy))


if __name__ == "__main__":
    make(Path(sys.argv[1]))
