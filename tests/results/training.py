"""One run of an experiment: rollouts, a step of the chain, the next version; measured on held-out questions on the way.

The only home of that loop. The chain, the update and the learner are the trainer's own (`ChainTrainee`); each version
is exported and opened as the engine does it. Knows no experiment.

    course = Course(flow, questions, {"algorithm": "eapo", "learner": {...}}, steps=40, every=5)
    points = trained_on(course, start, seed, work)

`course.tables` is what a file of a training job says, laid over the recipe that it names; `policy` is filled in here.
A rollout is known to the chain as the platform would have stored it, so any recipe's chain can be asked for.
"""

import asyncio
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any
from uuid import uuid5

from offing.core.trajectory import Outcome
from offing.storage.policy_versions import VersionRow
from offing_trainer.config import config_of, laid_over
from offing_trainer.job.reading import Read
from tests.graphs.stand_in import EPOCH, NAMES
from tests.results.drawing import Table, opened
from tests.results.experiment import Point
from tests.results.play import Flow, How, Played, Seat, facts_of, groups_of, play
from tests.results.questions import Questions

if TYPE_CHECKING:
    from offing_engine.weights import Policy
    from offing_trainer.job.trainee import ChainTrainee

THREADS = 1
"""Of torch: runs stand side by side, a core each."""


@dataclass(frozen=True, slots=True)
class Course:
    """Everything of a run but its seed and the weights that it begins with."""

    flow: Flow
    questions: Questions
    tables: Mapping[str, Any]
    """Of the training job: `algorithm`, and `chain`, `learner` where they differ from the recipe."""
    steps: int
    every: int
    """Steps between two evaluations; there is one before the first step and one after the last, too."""
    tasks: int = 16
    """Of a step."""
    group: int = 8
    """Rollouts of a task."""
    how: How = field(default_factory=How)
    """Of training; evaluations differ from it in temperature alone."""
    held_out: int = 100
    """Questions of an evaluation, each once sampled and once greedy."""


class Trained:
    """Weights that are being trained by a chain."""

    def __init__(self, start: Path, tables: Mapping[str, Any]) -> None:
        from offing_trainer.job.lineage import Policies
        from offing_trainer.job.trainee import begin

        learner = {"threads": THREADS, "device": "cpu"}
        config = config_of(laid_over({"policy": "policy@1", "learner": learner}, tables))
        self._trainee: ChainTrainee = begin(config, Policies(_version(start), None, None))
        self._state: Mapping[str, Any] = {}
        self.steps = 0

    @property
    def name(self) -> str:
        """Of the version that the weights are now."""
        return f"policy@{1 + self.steps}"

    def step(self, played: Sequence[Played], progress: float) -> Mapping[str, float]:
        """Moves the weights by these rollouts, groups by task; figures. `progress`: share of the run that is done."""
        read = Read(groups_of(played), facts_of(played), 0)
        stepped = self._trainee.step(read, self._state, self.steps + 1, progress, lambda _: None)
        self._state = stepped.state
        self.steps += 1
        return stepped.metrics

    def exported(self, folder: Path) -> Path:
        """A folder that the engine opens. Raises Conflict when it is there."""
        self._trainee.export(folder)
        return folder


def trained_on(course: Course, start: Path, seed: int, work: Path) -> tuple[Point, ...]:
    """Figures before the first step, every so many steps, and after the last. `work` is emptied before and after."""
    shutil.rmtree(work, ignore_errors=True)
    try:
        return tuple(_points(course, start, seed, work))
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _points(course: Course, start: Path, seed: int, work: Path) -> list[Point]:
    tables = laid_over({"learner": {"seed": seed}}, course.tables)
    trained, began, points = Trained(start, tables), time.monotonic(), list[Point]()
    tasks = iter(course.questions.drawn(course.steps * course.tasks, seed))
    figures: Mapping[str, float] = {}
    for step in range(course.steps + 1):
        policy = _published(trained, work)
        if step % course.every == 0 or step == course.steps:
            measured = {**evaluated(course, policy), **_training(figures)}
            points.append(Point(step, time.monotonic() - began, measured))
        if step < course.steps:
            seats = [
                Seat(task, _seed(seed, step, nth, member), member)
                for nth, task in enumerate(next(tasks) for _ in range(course.tasks))
                for member in range(course.group)
            ]
            played = asyncio.run(play(course.flow, Table(policy), seats, course.how))
            figures = trained.step(played, step / course.steps)
    return points


def evaluated(course: Course, policy: "Policy") -> dict[str, float]:
    """On held-out questions, sampled and greedy; see `shares`."""
    tasks = course.questions.held_out(course.held_out)
    found: dict[str, float] = {}
    for mode, temperature in (("sampled", 1.0), ("greedy", 0.0)):
        seats = [Seat(task, n) for n, task in enumerate(tasks)]
        how = replace(course.how, temperature=temperature)
        found |= shares(asyncio.run(play(course.flow, Table(policy), seats, how)), mode)
    return found


def shares(played: Sequence[Played], mode: str) -> dict[str, float]:
    """What came of rollouts, as figures that begin with `mode`.

    success: share of right answers · rounds: mean turns of the right ones, spare: how many of those are beyond the
    look-ups that the question takes, both absent without any · all_rounds: of all · violated, truncated: shares of
    these outcomes · prompt_tokens: mean of all prompts · longest: mean of each rollout's longest prompt · segments:
    mean rows a rollout.
    """
    right = [one for one in played if one.reward > 0]
    prompts = [count for one in played for count in one.prompts]
    found = {
        "success": len(right) / len(played),
        "all_rounds": fmean(one.turns for one in played),
        "violated": fmean(one.outcome == Outcome.VIOLATED for one in played),
        "truncated": fmean(one.outcome == Outcome.TRUNCATED for one in played),
        "segments": fmean(len(one.sample.rows) for one in played),
        "longest": fmean(max(one.prompts, default=0) for one in played),
    }
    if right:
        found["rounds"] = fmean(one.turns for one in right)
        found["spare"] = fmean(one.turns - one.task.hops for one in right)
    if prompts:
        found["prompt_tokens"] = fmean(prompts)
    return {f"{mode}_{name}": value for name, value in found.items()}


def _published(trained: Trained, work: Path) -> "Policy":
    """The weights as they are, as a version that the engine has opened; the one before is gone."""
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    return opened(trained.exported(work / "version"), trained.name)


def _training(figures: Mapping[str, float]) -> dict[str, float]:
    """Of the last step, where there was one: each as `step_NAME`."""
    return {f"step_{name}": value for name, value in figures.items()}


def _seed(seed: int, step: int, task: int, member: int) -> int:
    return ((seed * 10_000 + step) * 1_000 + task) * 1_000 + member


def _version(folder: Path) -> VersionRow:
    return VersionRow(
        id=uuid5(NAMES, str(folder)),
        name="policy",
        version=1,
        parent=None,
        kind="full",
        base_model="",
        uri=str(folder),
        sha256="",
        tokenizer_sha256="",
        template_sha256="",
        state="candidate",
        lineage={},
        evaluation={},
        created_at=EPOCH,
    )
