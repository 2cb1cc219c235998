"""One run of an experiment: rollouts, a training step, the next version, and evaluations on held-out questions.

The pipeline, the update and the learner are the trainer's (`PipelineTrainer`). Each version is exported and opened as
by the engine.

    course = Course(graph, questions, {"algorithm": "eapo", "learner": {...}}, steps=40, every=5)
    points = trained_on(course, start, seed, work)

`course.tables` has the content of a job file and is merged into the recipe that it names; `policy` is filled in here.
The pipeline gets rollouts as the platform would have stored them, so the pipeline of any recipe can be used.
"""

import asyncio
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any
from uuid import uuid5

from offing.core.trajectory import Outcome
from offing.storage.policy_versions import PolicyVersionRow
from offing_trainer.config import merge_tables, parse_config
from offing_trainer.job.group_loader import LoadedGroups
from offing_world.tasks import WorldTask
from tests.graphs.in_memory_context import EPOCH, NAMES
from tests.results.batch_sampling import Table, opened
from tests.results.experiment import Point
from tests.results.questions import Questions
from tests.results.rollouts import GraphSetup, How, PlannedRollout, Played, facts_of, groups_of, play

if TYPE_CHECKING:
    from offing_engine.weights import LoadedPolicy
    from offing_trainer.job.pipeline_trainer import PipelineTrainer

THREADS = 1
"""Threads of torch. Runs execute in parallel, one core each."""


@dataclass(frozen=True, slots=True)
class Course:
    """The configuration of a run, without its seed and starting weights."""

    flow: GraphSetup
    questions: Questions
    tables: Mapping[str, Any]
    """Tables of the training job: `algorithm`, and entries of `pipeline` and `learner` that differ from the recipe."""
    steps: int
    every: int
    """Steps between two evaluations. There is also one before the first step and one after the last."""
    tasks: int = 16
    """Tasks per step."""
    group: int = 8
    """Rollouts per task."""
    how: How = field(default_factory=How)
    """Settings of training rollouts. Evaluations differ only in temperature."""
    held_out: int = 100
    """Questions per evaluation, each used once sampled and once greedy."""
    tested_turns: int | None = None
    """Maximum turns of a run in evaluations. `None` means that of training."""
    binding: Callable[[WorldTask], int] | None = None
    """Returns the maximum turns of a task under a budget that binds. `None` evaluates without one alone."""
    trains_bound: bool = False
    """Whether training rollouts have the budget that binds, too."""


class Trained:
    """Weights that a pipeline trains."""

    def __init__(self, start: Path, tables: Mapping[str, Any]) -> None:
        from offing_trainer.job.lineage import JobPolicies
        from offing_trainer.job.pipeline_trainer import open_trainer

        learner = {"cpu_threads": THREADS, "device": "cpu"}
        config = parse_config(merge_tables({"policy": "policy@1", "learner": learner}, tables))
        self._trainee: PipelineTrainer = open_trainer(config, JobPolicies(_version(start), None, None))
        self._state: Mapping[str, Any] = {}
        self.steps = 0

    @property
    def name(self) -> str:
        """Name of the current version of the weights."""
        return f"policy@{1 + self.steps}"

    def step(self, played: Sequence[Played], progress: float) -> Mapping[str, float]:
        """Train on these rollouts, grouped by task, and return metrics. `progress` is the finished part of the run."""
        read = LoadedGroups(groups_of(played), facts_of(played), 0)
        stepped = self._trainee.train_step(read, self._state, self.steps + 1, progress, lambda _: None)
        self._state = stepped.state
        self.steps += 1
        return stepped.metrics

    def exported(self, folder: Path) -> Path:
        """Export the weights to a folder that the engine opens. Raises Conflict if it exists."""
        self._trainee.export_policy(folder)
        return folder


def trained_on(course: Course, start: Path, seed: int, work: Path) -> tuple[Point, ...]:
    """Return metrics before the first step, every few steps, and after the last. `work` is emptied before and after."""
    shutil.rmtree(work, ignore_errors=True)
    try:
        return tuple(_points(course, start, seed, work))
    finally:
        shutil.rmtree(work, ignore_errors=True)


def imitated_on(course: Course, start: Path, seed: int, work: Path) -> tuple[Point, ...]:
    """Return metrics before and after rejection sampling: fine-tuning on the successes of the starting policy.

    It collects as many rollouts as the course does in training. `course.tables` are those of the fine-tuning. `work` is
    emptied before and after.
    """
    shutil.rmtree(work, ignore_errors=True)
    try:
        began = time.monotonic()
        trained = Trained(start, merge_tables({"learner": {"seed": seed}}, course.tables))
        first = Point(0, 0.0, evaluated(course, _published(trained, work)))
        metrics = trained.step(list(_collect_successes(course, start, seed, work)), 0.0)
        last = {**evaluated(course, _published(trained, work)), **_training(metrics)}
        return (first, Point(course.steps, time.monotonic() - began, last))
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _collect_successes(course: Course, start: Path, seed: int, work: Path) -> Iterator[Played]:
    """Yield the successful ones among as many rollouts of the starting policy as training collects."""
    table = Table(_published(Trained(start, merge_tables({"learner": {"seed": seed}}, course.tables)), work))
    for planned in _planned(course, seed):
        yield from (one for one in asyncio.run(play(course.flow, table, planned, course.how)) if one.reward > 0)


def _planned(course: Course, seed: int) -> Iterator[list[PlannedRollout]]:
    """Yield the rollouts of each training step."""
    tasks = iter(course.questions.drawn(course.steps * course.tasks, seed))
    for step in range(course.steps):
        yield [
            PlannedRollout(task, _seed(seed, step, nth, member), member, _training_turns(course, task))
            for nth, task in enumerate(next(tasks) for _ in range(course.tasks))
            for member in range(course.group)
        ]


def _training_turns(course: Course, task: WorldTask) -> int | None:
    return course.binding(task) if course.binding is not None and course.trains_bound else None


def _points(course: Course, start: Path, seed: int, work: Path) -> list[Point]:
    tables = merge_tables({"learner": {"seed": seed}}, course.tables)
    trained, began, points = Trained(start, tables), time.monotonic(), list[Point]()
    planned = _planned(course, seed)
    metrics: Mapping[str, float] = {}
    for step in range(course.steps + 1):
        policy = _published(trained, work)
        if step % course.every == 0 or step == course.steps:
            measured = {**evaluated(course, policy), **_training(metrics)}
            points.append(Point(step, time.monotonic() - began, measured))
        if step < course.steps:
            played = asyncio.run(play(course.flow, Table(policy), next(planned), course.how))
            metrics = trained.step(played, step / course.steps)
    return points


def evaluated(course: Course, policy: "LoadedPolicy") -> dict[str, float]:
    """Evaluate on held-out questions, sampled and greedy; see `shares`."""
    tasks = course.questions.held_out(course.held_out)
    results: dict[str, float] = {}
    for mode, temperature in (("sampled", 1.0), ("greedy", 0.0)):
        planned = [PlannedRollout(task, n) for n, task in enumerate(tasks)]
        how = replace(course.how, temperature=temperature, turns=course.tested_turns or course.how.turns)
        played = asyncio.run(play(course.flow, Table(policy), planned, how))
        results |= shares(played, mode) | by_hops(played, mode)
        if course.binding is not None:
            bound = [replace(one, turns=course.binding(one.task)) for one in planned]
            results |= by_hops(asyncio.run(play(course.flow, Table(policy), bound, how)), f"bound_{mode}")
    return results


def by_hops(played: Sequence[Played], mode: str) -> dict[str, float]:
    """Return the share of correct answers and the means of the other scores by the number of look-ups of the question.

    The names are `MODE_success_HOPS` and `MODE_SCORE_HOPS`, and `MODE_success` for all questions.
    """
    results = {f"{mode}_success": fmean(float(one.reward > 0) for one in played)}
    for hops in sorted({one.task.hops for one in played}):
        own = [one for one in played if one.task.hops == hops]
        results[f"{mode}_success_{hops}"] = fmean(float(one.reward > 0) for one in own)
        for name in (name for name in own[0].scores if name != "reward"):
            results[f"{mode}_{name}_{hops}"] = fmean(one.scores[name] for one in own)
    return results


def shares(played: Sequence[Played], mode: str) -> dict[str, float]:
    """Return metrics of rollouts, with names that start with `mode`.

    success: share of correct answers · rounds: mean turns of the correct ones, spare: how many of these exceed the
    look-ups that the question takes, both absent if there are none · all_rounds: turns of all · violated, truncated:
    shares of these outcomes · prompt_tokens: mean of all prompts · longest: mean of each rollout's longest prompt ·
    segments: mean rows per rollout.
    """
    right = [one for one in played if one.reward > 0]
    prompts = [count for one in played for count in one.prompts]
    results = {
        "success": len(right) / len(played),
        "all_rounds": fmean(one.turns for one in played),
        "violated": fmean(one.outcome == Outcome.VIOLATED for one in played),
        "truncated": fmean(one.outcome == Outcome.TRUNCATED for one in played),
        "segments": fmean(len(one.sample.rows) for one in played),
        "longest": fmean(max(one.prompts, default=0) for one in played),
    }
    if right:
        results["rounds"] = fmean(one.turns for one in right)
        results["spare"] = fmean(one.turns - one.task.hops for one in right)
    if prompts:
        results["prompt_tokens"] = fmean(prompts)
    return {f"{mode}_{name}": value for name, value in results.items()}


def _published(trained: Trained, work: Path) -> "LoadedPolicy":
    """Open the current weights as a version of the engine. The previous version is deleted."""
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    return opened(trained.exported(work / "version"), trained.name)


def _training(metrics: Mapping[str, float]) -> dict[str, float]:
    """Return the metrics of the last step, if there was one, each as `step_NAME`."""
    return {f"step_{name}": value for name, value in metrics.items()}


def _seed(seed: int, step: int, task: int, member: int) -> int:
    return ((seed * 10_000 + step) * 1_000 + task) * 1_000 + member


def _version(folder: Path) -> PolicyVersionRow:
    return PolicyVersionRow(
        id=uuid5(NAMES, str(folder)),
        name="policy",
        version=1,
        parent_id=None,
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
