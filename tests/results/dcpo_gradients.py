"""How much the gradient of the same rollouts depends on whose statistics and which segments are taken.

The only home of this measurement: the start plays once, every arm of `dcpo` says in which direction to move, and
nothing is trained. Two halves of the questions show how much of a direction is chance.
"""

import asyncio
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from offing_trainer.batch import Floats
from offing_trainer.config import config_of, laid_over
from tests.results import dcpo
from tests.results.drawing import Table, opened
from tests.results.experiment import Curve, Experiment, Figure, Point, Size
from tests.results.intervals import mean_of
from tests.results.memory import COMPLETION, QUESTIONS, RULES, TURNS, lesson
from tests.results.pages import told
from tests.results.play import How, Played, Seat, groups_of, play
from tests.results.taught import start_of

if TYPE_CHECKING:
    from offing_trainer.learner.settings import Settings

GROUP = 8
QUESTIONS_OF_A_HALF: Mapping[Size, tuple[int, ...]] = {Size.FULL: (6, 12, 24), Size.MINIATURE: (2,)}


def run(arm: str, seed: int, folder: Path, size: Size) -> Curve:
    """All arms of a seed see the same rollouts."""
    began, start = time.monotonic(), start_of(folder, dcpo.flow(), lesson(size), seed, RULES)
    played = _played(start, 2 * max(QUESTIONS_OF_A_HALF[size]), seed)
    points: list[Point] = []
    for count in QUESTIONS_OF_A_HALF[size]:
        halves = played[: count * GROUP], played[count * GROUP : 2 * count * GROUP]
        ours, other = ([gradient(start, one, half, seed) for half in halves] for one in (arm, "all-segments"))
        same = [alike(*pair) for pair in zip(ours, other, strict=True)]
        figures = {"halves": alike(*ours), "same": sum(same) / 2}
        points.append(Point(count, time.monotonic() - began, figures))
    return Curve(arm, seed, tuple(points))


def gradient(start: Path, arm: str, played: Sequence[Played], seed: int) -> Floats:
    """Of the arm's loss over these rollouts by all weights, end to end, before anything is clipped."""
    from offing_trainer.chain import chain_for
    from offing_trainer.figures import Tally
    from offing_trainer.learner.local import open_learner
    from offing_trainer.update import loss_of, measured, prepared, viewed

    once = {"minibatches": 1, "epochs": 1, "device": "cpu", "threads": 1}
    tables = laid_over(dcpo.course(arm, Size.FULL).tables, {"chain": {"regularise": []}, "learner": once})
    config, rng = config_of({"policy": "start@1", **tables}), np.random.default_rng(seed)
    chain = chain_for(config)
    chosen = prepared(chain, viewed(chain, groups_of(played), {}, rng), {}, rng, learner=config.learner)
    ready = measured(chain, chosen, {})
    settings: Settings = config.learner
    learner = open_learner(start, settings)
    learner.forward_backward(ready.rows_of(0), loss_of(chain, ready, 0, Tally()))
    weights = learner._network.parameters()  # pyright: ignore[reportPrivateUsage]
    return np.concatenate([w.grad.double().numpy().ravel() for w in weights if w.grad is not None] or [np.zeros(1)])


def alike(a: Floats, b: Floats) -> float:
    """Cosine; 0 where one of them is nothing."""
    norms = float(np.linalg.norm(a) * np.linalg.norm(b))
    return float(a @ b) / norms if norms > 0 else 0.0


def _played(start: Path, questions: int, seed: int) -> list[Played]:
    seats = [
        Seat(task, 1000 * nth + member, member)
        for nth, task in enumerate(QUESTIONS.drawn(questions, 1000 + seed))
        for member in range(GROUP)
    ]
    table = Table(opened(start, "start@1"))
    return asyncio.run(play(dcpo.flow(), table, seats, How(TURNS, most=COMPLETION)))


def read(curves: Sequence[Curve]) -> list[str]:
    counts = sorted({point.step for curve in curves for point in curve.points})
    heads = [f"{GROUP * count} rollouts" for count in counts]
    lines = [f"| cosine of gradients | {' | '.join(heads)} |", "|---|" + "---|" * len(counts)]
    for arm, of in EXPERIMENT.arms.items():
        for name, what in (("halves", "two halves of the questions"), ("same", "with all segments, same rollouts")):
            found = [
                told(mean_of([p.figures[name] for c in curves if c.arm == arm for p in c.points if p.step == count]))
                for count in counts
            ]
            lines.append(f"| {of.title}: {what} | {' | '.join(found)} |")
    return lines


EXPERIMENT = Experiment(
    name="dcpo-gradients",
    title="DCPO: how much of a gradient is whose statistics",
    claim="Statistics over rollouts and statistics over segments send the same rollouts into different directions.",
    setup="The start of the comparison `dcpo` plays questions eight times each; every arm's loss is differentiated by "
    "all weights, without a reference. The cosine between two halves of the questions says how much of a direction is "
    "chance; the one with DCPO on all segments, on the same rollouts, how much depends on the arm.",
    arms=dict(dcpo.EXPERIMENT.arms),
    figures={
        "halves": Figure("cosine of two halves' gradients"),
        "same": Figure("cosine with DCPO on all segments"),
    },
    run=run,
    read=read,
    step="questions of a half",
)
