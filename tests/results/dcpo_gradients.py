"""Measure how the gradient of the same rollouts depends on the statistics and on the trained segments.

The starting policy plays once, the gradient of every arm of `dcpo` is computed, and nothing is trained. Two halves of
the questions show how much of a direction is random.
"""

import asyncio
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from offing_trainer.batch import Floats
from offing_trainer.config import merge_tables, parse_config
from tests.results import dcpo
from tests.results.batch_sampling import Table, opened
from tests.results.experiment import Curve, Experiment, Metric, Point, Size
from tests.results.intervals import mean_of
from tests.results.memory import COMPLETION, QUESTIONS, RULES, TURNS
from tests.results.pages import render_mean
from tests.results.rollouts import How, PlannedRollout, Played, groups_of, play
from tests.results.starting_policies import start_of

if TYPE_CHECKING:
    from offing_trainer.learner.settings import LearnerSettings

GROUP = 8
QUESTIONS_OF_A_HALF: Mapping[Size, tuple[int, ...]] = {Size.FULL: (6, 12, 24), Size.MINIATURE: (2,)}


def run(arm: str, seed: int, folder: Path, size: Size) -> Curve:
    """Run an arm. All arms of a seed use the same rollouts."""
    began, start = time.monotonic(), start_of(folder, dcpo.graph_setup(), dcpo.lesson(size), seed, RULES)
    played = _played(start, 2 * max(QUESTIONS_OF_A_HALF[size]), seed)
    points: list[Point] = []
    for count in QUESTIONS_OF_A_HALF[size]:
        halves = played[: count * GROUP], played[count * GROUP : 2 * count * GROUP]
        ours, other = ([gradient(start, one, half, seed) for half in halves] for one in (arm, "all-segments"))
        same = [alike(*pair) for pair in zip(ours, other, strict=True)]
        metrics = {"halves": alike(*ours), "same": sum(same) / 2}
        points.append(Point(count, time.monotonic() - began, metrics))
    return Curve(arm, seed, tuple(points))


def gradient(start: Path, arm: str, played: Sequence[Played], seed: int) -> Floats:
    """Return the gradient of the arm's loss over these rollouts by all weights, concatenated and not clipped."""
    from offing_trainer.learner.local_learner import open_learner
    from offing_trainer.pipeline import build_job_pipeline
    from offing_trainer.step_metrics import MetricAccumulator
    from offing_trainer.training_step import apply_view, build_loss, compute_advantages, compute_token_weights

    once = {"minibatches": 1, "epochs": 1, "device": "cpu", "cpu_threads": 1}
    tables = merge_tables(dcpo.course(arm, Size.FULL).tables, {"pipeline": {"regularizers": []}, "learner": once})
    config, rng = parse_config({"policy": "start@1", **tables}), np.random.default_rng(seed)
    pipeline = build_job_pipeline(config)
    chosen = compute_advantages(
        pipeline, apply_view(pipeline, groups_of(played), {}, rng), {}, rng, learner_config=config.learner
    )
    ready = compute_token_weights(pipeline, chosen, {})
    settings: LearnerSettings = config.learner
    learner = open_learner(start, settings)
    learner.forward_backward(ready.step_rows(0), build_loss(pipeline, ready, 0, MetricAccumulator()))
    weights = learner._network.parameters()  # pyright: ignore[reportPrivateUsage]
    return np.concatenate([w.grad.double().numpy().ravel() for w in weights if w.grad is not None] or [np.zeros(1)])


def alike(a: Floats, b: Floats) -> float:
    """Return the cosine. It is 0 if one of the vectors is zero."""
    norms = float(np.linalg.norm(a) * np.linalg.norm(b))
    return float(a @ b) / norms if norms > 0 else 0.0


def _played(start: Path, questions: int, seed: int) -> list[Played]:
    planned = [
        PlannedRollout(task, 1000 * nth + member, member)
        for nth, task in enumerate(QUESTIONS.drawn(questions, 1000 + seed))
        for member in range(GROUP)
    ]
    table = Table(opened(start, "start@1"))
    return asyncio.run(play(dcpo.graph_setup(), table, planned, How(TURNS, most=COMPLETION)))


def read(curves: Sequence[Curve]) -> list[str]:
    counts = sorted({point.step for curve in curves for point in curve.points})
    heads = [f"{GROUP * count} rollouts" for count in counts]
    lines = [f"| cosine of gradients | {' | '.join(heads)} |", "|---|" + "---|" * len(counts)]
    for arm, of in EXPERIMENT.arms.items():
        for name, what in (("halves", "two halves of the questions"), ("same", "with all segments, same rollouts")):
            results = [
                render_mean(
                    mean_of([p.figures[name] for c in curves if c.arm == arm for p in c.points if p.step == count])
                )
                for count in counts
            ]
            lines.append(f"| {of.title}: {what} | {' | '.join(results)} |")
    return lines


EXPERIMENT = Experiment(
    name="dcpo-gradients",
    title="DCPO: how the gradient depends on the statistics",
    claim="For the same rollouts, statistics over rollouts and statistics over segments give gradients with different "
    "directions.",
    setup="The starting policy of the comparison `dcpo` plays each question eight times. The loss of every arm is "
    "differentiated with respect to all weights, without a reference policy. The cosine between two halves of the "
    "questions shows how much of a direction is random. The cosine with DCPO on all segments, on the same rollouts, "
    "shows how much of it depends on the arm.",
    arms=dict(dcpo.EXPERIMENT.arms),
    figures={
        "halves": Metric("cosine between two halves' gradients"),
        "same": Metric("cosine with DCPO on all segments"),
    },
    run=run,
    read=read,
    step="questions per half",
)
