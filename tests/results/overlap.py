"""Count the held-out questions that also occur in training, as text and in the compact form that a planner reads.

    .venv/bin/python -m tests.results.overlap

Prints the table of docs/results/README.md. Held-out worlds share no names with training worlds, so no question text
occurs in both. The compact form writes names as `e0`, `e1`, so a question is little more than its relations. Unless a
run splits its questions by composition, most combinations of relations occur in training. Longer questions are those of
two or more look-ups: a question of one look-up has one relation and always occurs.
"""

import sys
from collections.abc import Iterator, Sequence

from offing_trainer.config import merge_tables, parse_config
from offing_trainer.job.rollout_collector import MAX_BATCHES_PER_STEP
from offing_trainer.loop_config import LoopConfig, parse_loop_config
from offing_world.tasks import WorldTask, generate_tasks
from tests.results import dcpo, eapo, hae_flow, report_writing, supo, unseen
from tests.results.experiment import Size
from tests.results.loop_tables import EXPERIMENTS, load_tables
from tests.results.question_overlap import Overlap, course_overlap, overlap_of


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


def experiments() -> dict[str, Overlap]:
    """Return the overlap by experiment, with seed 0."""
    full = Size.FULL
    return {
        **{name: loop_overlap(parse_loop_config(load_tables(split))) for split, name in EXPERIMENTS.items()},
        "unseen compositions": course_overlap(unseen.course("flow-grpo", full)),
        "EAPO": course_overlap(eapo.course(next(iter(eapo.EXPERIMENT.arms)), full)),
        "DCPO": course_overlap(dcpo.course(next(iter(dcpo.EXPERIMENT.arms)), full)),
        "SUPO": course_overlap(supo.course(next(iter(supo.EXPERIMENT.arms)), full)),
        "HAE: the graph": course_overlap(hae_flow.course(next(iter(hae_flow.EXPERIMENT.arms)), full)),
        "report writing": report_writing.report_overlap(report_writing.PLANS[full]),
    }


def table(results: dict[str, Overlap]) -> list[str]:
    heads = ("training questions", "held-out questions", "as text", "longer ones in compact form", "different forms")
    rows = [
        f"| {name} | {one.trained:,} | {one.held_out} | {one.texts} | {one.longer_words} of {one.longer} "
        f"| {one.forms} |"
        for name, one in results.items()
    ]
    return [f"| experiment | {' | '.join(heads)} |", "|---|---|---|---|---|---|", *rows]


if __name__ == "__main__":
    print("\n".join(table(experiments())))
    sys.exit(0)
