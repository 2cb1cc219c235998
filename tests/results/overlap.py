"""Count the held-out questions that also occur in training, as text and in the compact form that a planner reads.

    .venv/bin/python -m tests.results.overlap

Prints the table of docs/results/README.md. Held-out worlds share no names with training worlds, so no question text
occurs in both. The compact form writes names as `e0`, `e1`, so a question is little more than its relations, and most
combinations of relations occur in training.
"""

import sys
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from offing_trainer.config import merge_tables, parse_config
from offing_trainer.job.rollout_collector import MAX_BATCHES_PER_STEP
from offing_trainer.loop_config import LoopConfig, parse_loop_config
from offing_world.compact_notation import render_compact_question
from offing_world.tasks import WorldTask, generate_tasks
from tests.results import dcpo, eapo, hae_flow, supo
from tests.results.experiment import Size
from tests.results.training import Course

LOOP = Path(__file__).parents[2] / "deploy/loop.toml"


@dataclass(frozen=True, slots=True)
class Overlap:
    """Counts of questions."""

    held_out: int
    trained: int
    """Training questions, each drawn question counted."""
    texts: int
    """Held-out questions whose text occurs in training."""
    words: int
    """Held-out questions whose compact form occurs in training."""
    forms: int
    """Different compact forms among the held-out questions."""
    longer: int = 0
    """Held-out questions of two or more look-ups."""
    longer_words: int = 0
    """Those of them whose compact form occurs in training."""

    @property
    def share(self) -> float:
        """Share of the held-out questions whose compact form occurs in training, from 0 to 1."""
        return self.words / self.held_out

    @property
    def longer_share(self) -> float:
        """The same among the questions of two or more look-ups. 0 if there are none."""
        return self.longer_words / self.longer if self.longer else 0.0


def overlap_of(held_out: Sequence[WorldTask], trained: Iterable[WorldTask]) -> Overlap:
    texts, words, count = set[str](), set[str](), 0
    for task in trained:
        count += 1
        texts.add(task.question)
        words.add(render_compact_question(task.question))
    met = [render_compact_question(task.question) for task in held_out]
    return Overlap(
        len(held_out),
        count,
        sum(task.question in texts for task in held_out),
        sum(w in words for w in met),
        len({*met}),
        sum(task.hops > 1 for task in held_out),
        sum(task.hops > 1 and form in words for task, form in zip(held_out, met, strict=True)),
    )


def loop_overlap(config: LoopConfig) -> Overlap:
    """Yield the demonstrations and the tasks of every training step, as `closed_loop` draws them."""
    evaluate = config.evaluate
    held_out = _split(evaluate.worlds, evaluate.task_count, evaluate.hops, evaluate.seed, evaluate.compositions)
    return overlap_of(list(held_out), _loop_training(config))


def _loop_training(config: LoopConfig) -> Iterator[WorldTask]:
    start, collect = config.start, config.collect
    yield from _split(start.worlds, start.demonstration_count, start.hops, config.seed, collect.compositions)
    job = parse_config(merge_tables(config.train, {"policy": "any@1", "name": config.name}))
    for step in range(job.max_steps or 0):
        seed = config.seed * 1_000_003 + step * MAX_BATCHES_PER_STEP
        world = collect.worlds[seed % len(collect.worlds)]
        yield from generate_tasks(
            world,
            count=job.data.groups_per_step,
            hops=collect.hops,
            kinds=collect.question_kinds or None,
            seed=seed,
            compositions=collect.compositions,
        )


def _split(
    worlds: Sequence[str], count: int, hops: tuple[int, int], seed: int, compositions: str
) -> Iterator[WorldTask]:
    for nth, world in enumerate(worlds):
        share = count // len(worlds) + (nth < count % len(worlds))
        yield from generate_tasks(world, count=share, hops=hops, seed=seed, compositions=compositions)


def course_overlap(course: Course, seed: int = 0) -> Overlap:
    """Compare the questions of every training step with those of the evaluations."""
    questions = course.questions
    return overlap_of(questions.held_out(course.held_out), questions.drawn(course.steps * course.tasks, seed))


def experiments() -> dict[str, Overlap]:
    """Return the overlap by experiment, with seed 0."""
    full = Size.FULL
    return {
        "training loop": loop_overlap(parse_loop_config(tomllib.loads(LOOP.read_text("utf-8")))),
        "EAPO": course_overlap(eapo.course(next(iter(eapo.EXPERIMENT.arms)), full)),
        "DCPO": course_overlap(dcpo.course(next(iter(dcpo.EXPERIMENT.arms)), full)),
        "SUPO": course_overlap(supo.course(next(iter(supo.EXPERIMENT.arms)), full)),
        "HAE: the graph": course_overlap(hae_flow.course(next(iter(hae_flow.EXPERIMENT.arms)), full)),
    }


def table(results: dict[str, Overlap]) -> list[str]:
    head = "| experiment | training questions | held-out questions | as text | in compact form | different forms |"
    rows = [
        f"| {name} | {one.trained:,} | {one.held_out} | {one.texts} | {one.words} ({one.share:.1%}) | {one.forms} |"
        for name, one in results.items()
    ]
    return [head, "|---|---|---|---|---|---|", *rows]


if __name__ == "__main__":
    print("\n".join(table(experiments())))
    sys.exit(0)
