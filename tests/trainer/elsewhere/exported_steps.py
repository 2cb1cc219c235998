"""Makes what the checks beside it compare with: a small policy, steps handed over, and where our own learner gets.

.venv/bin/python -m tests.trainer.elsewhere.exported_steps FOLDER
"""

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np

from offing.core.training_rows import TrainingRow
from offing.exports.format import ExportOptions
from offing.exports.tinker import create_sink
from offing_trainer.batch import RolloutGroup, TrainingRollout
from offing_trainer.bridges.loss_spec import build_loss_spec, export_learner_settings
from offing_trainer.bridges.step_file import ExportedStep, step_path
from offing_trainer.bridges.step_rows import iter_exported_rows, prepare_step, write_step
from offing_trainer.config import TrainConfig, parse_config
from offing_trainer.learner.local_learner import LocalLearner, open_learner
from offing_trainer.pipeline import build_job_pipeline, compute_required_columns
from offing_trainer.training_step import (
    apply_view,
    build_loss,
    compute_advantages,
    compute_token_weights,
    extract_columns,
)
from tests.trainer.sampled_rollouts import rollout, served, small_policy

POLICY = "planner@1"

LEARNER = {
    "learning_rate": 1e-3,
    "minibatches": 2,
    "cpu_threads": 1,
    "device": "cpu",
    "max_grad_norm": 1.0,
    "weight_decay": 0.01,
}

KL_TERM = {"name": "kl-ref", "coefficient": 0.1}

TABLES: dict[str, dict[str, Any]] = {
    "whole": {"pipeline": {"surrogate": {"high": 0.28, "dual_clip": 3.0}, "regularizers": [KL_TERM]}},
    "decoupled": {"pipeline": {"surrogate": {"high": 0.28}, "regularizers": []}, "learner": {"mode": "decoupled"}},
    "plain": {"pipeline": {"surrogate": {"high": 0.28}, "regularizers": []}, "learner": {"weight_decay": 0.0}},
}
"""Recipes over `graph-grpo`: with everything that goes along, and with what every engine can do."""

HEATS: dict[str, Sequence[float | None]] = {"whole": (1.0, 0.7, None, 1.3), "decoupled": (0.8,), "plain": (1.0,)}


def config(name: str) -> TrainConfig:
    tables = TABLES[name]
    learner = {**LEARNER, **tables.get("learner", {})}
    return parse_config({"algorithm": "flow-grpo", "policy": POLICY, **tables, "learner": learner})


def groups(folder: Path, heats: Sequence[float | None]) -> list[RolloutGroup]:
    """Two groups of three, of one to three turns, with rewards that differ."""
    policy = served(folder)
    rows = [
        rollout(policy, n + 1, turns=1 + n % 3, heat=heats[n % len(heats)], sizes=(7 + 2 * n, 4, 5 + n))
        for n in range(6)
    ]
    rewards = (1.0, 0.0, 0.25, 0.0, 1.0, 1.0)
    samples = [_sample(row, n, reward) for n, (row, reward) in enumerate(zip(rows, rewards, strict=True))]
    return [RolloutGroup("g1", "t1", tuple(samples[:3])), RolloutGroup("g2", "t2", tuple(samples[3:]))]


def _sample(row: TrainingRow, nth: int, reward: float) -> TrainingRollout:
    group = UUID(int=1000 + nth // 3)
    episode = replace(row.metadata, run=UUID(int=nth + 1), group=group, reward=reward, outcome="answered")
    turns = replace(row.turns, policy=(POLICY,) * len(row.turns))
    # Off the policy by a little, so that ratios are not all 1.
    drift = np.random.default_rng(nth).normal(0, 0.15, len(row)).astype(np.float32) * row.loss_mask
    row = replace(row, metadata=episode, turns=turns, behavior_logprobs=row.behavior_logprobs + drift)
    return TrainingRollout(episode, (row,))


def hand(name: str, results: Sequence[RolloutGroup], folder: Path) -> None:
    request = config(name)
    pipeline, terms = build_job_pipeline(request), build_loss_spec(request, build_job_pipeline(request))
    ready = prepare_step(pipeline, request.learner, results, {}, np.random.default_rng([0, 1]))
    rows = tuple(iter_exported_rows(ready, POLICY))
    folder.mkdir(parents=True, exist_ok=True)
    write_step(
        step_path(folder, 1),
        ExportedStep(
            1, POLICY, "sha", "tok", terms, export_learner_settings(request), len(ready.optimizer_steps), rows
        ),
    )
    (folder / "end.json").write_text("{}")


def export(rows: Sequence[TrainingRow], file: Path) -> None:
    with file.open("wb") as out:
        sink = create_sink(out, ExportOptions())
        sink.write(rows)
        sink.close()


def ours(name: str, results: Sequence[RolloutGroup], policy: Path) -> dict[str, Any]:
    """The same step by our own learner, as a job takes it: losses, and log-probabilities before and after."""
    request = config(name)
    pipeline, learner = build_job_pipeline(request), open_learner(policy, request.learner)
    rng = np.random.default_rng([0, 1])
    chosen = compute_advantages(
        pipeline, apply_view(pipeline, results, {}, rng), {}, rng, learner_config=request.learner
    )
    forwarded = learner.forward(chosen.list_active_rows)
    ready = compute_token_weights(
        pipeline,
        chosen,
        extract_columns(
            chosen.batch,
            forwarded,
            compute_required_columns(pipeline, request.learner.mode).after_selection,
            chosen.active_rows,
        ),
    )
    losses, norms = list[float](), list[float]()
    for nth in range(len(ready.optimizer_steps)):
        losses.append(learner.forward_backward(ready.step_rows(nth), build_loss(pipeline, ready, nth)))
        norms.append(learner.optim_step().grad_norm)
    return {"losses": losses, "norms": norms, "before": forwarded.logprobs, "after": _logp(learner,
    chosen.list_active_rows),
            "keys": [row.key for row in chosen.list_active_rows]}  # fmt: skip


def _logp(learner: LocalLearner, rows: Sequence[TrainingRow]) -> Any:
    return learner.forward(rows).logprobs


def write_steps(folder: Path) -> None:
    policy = small_policy(folder / "policy")
    for name in TABLES:
        result = groups(policy, HEATS[name])
        hand(name, result, folder / name)
        export(
            [row for group in result for sample in group.rollouts for row in sample.rows], folder / "rows.tinker.jsonl"
        )
        np.savez(folder / f"{name}.npz", **ours(name, result, policy))


if __name__ == "__main__":
    write_steps(Path(sys.argv[1]))
