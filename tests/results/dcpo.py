"""DCPO on the graph that edits its memory, in a quarter of the room: what statistics over rollouts are worth there.

This comparison's arms and sizes; graph, room and teacher are in `memory`, how a run goes in `training`.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from offing_trainer.config import merge_tables
from tests.results.experiment import Arm, Curve, Experiment, Metric, Size
from tests.results.memory import COMPLETION, OUTAGE, QUARTER, QUESTIONS, RULES, TURNS, WHOLE, editing, ends, imitation
from tests.results.rollouts import GraphSetup, How
from tests.results.starting_policies import start_of
from tests.results.training import Course, trained_on

COMMON: Mapping[str, Any] = {
    "algorithm": "dcpo",
    "pipeline": {"view": {"include_rejected": True}},
    "learner": {
        "learning_rate": 1e-3,
        "betas": (0.9, 0.95),
        "minibatches": 4,
        "epochs": 2,
        "minibatch_unit": "rollouts",
    },
}
"""What no role could read is trained, too; rates are those of a small model."""
ALL: Mapping[str, Any] = {"selectors": []}
ROWS: Mapping[str, Any] = {"advantage": {"name": "group-z", "unit": "rows"}}
ARMS: Mapping[str, Mapping[str, Any]] = {
    "dcpo": {},
    "all-segments": {"pipeline": ALL},
    "grpo": {"pipeline": {**ALL, **ROWS, "token_weights": [{"name": "row-mean"}]}},
}


def graph_setup() -> GraphSetup:
    return GraphSetup(editing(QUARTER), "agent", outage=OUTAGE)


def course(arm: str, size: Size) -> Course:
    """Arms differ in credit and in which segments are trained; all are paid 1, -0.1 and 0 as DCPO is."""
    tables = merge_tables(COMMON, ARMS[arm])
    if size is Size.MINIATURE:
        return Course(graph_setup(), QUESTIONS, tables, 2, 1, tasks=2, group=4, how=How(6, most=COMPLETION), held_out=4)
    return Course(
        graph_setup(), QUESTIONS, tables, 24, 4, tasks=12, group=8, how=How(TURNS, most=COMPLETION), held_out=80
    )


def run(arm: str, seed: int, folder: Path, size: Size) -> Curve:
    start = start_of(folder, graph_setup(), imitation(size), seed, RULES)
    return Curve(arm, seed, trained_on(course(arm, size), start, seed, folder / "work" / f"dcpo-{size}-{arm}-{seed}"))


def read(curves: Sequence[Curve]) -> list[str]:
    return ends(curves, {name: arm.title for name, arm in EXPERIMENT.arms.items()})


EXPERIMENT = Experiment(
    name="dcpo",
    title="DCPO: an agent that edits its own memory, in a quarter of the room",
    claim="Where edits of the memory fracture a rollout, statistics over rollouts and segments that begin at edits "
    "teach better than to treat every segment as a sample of its own (MemAct, arXiv 2510.12635).",
    setup="The `memact` flow on questions of two look-ups in made-up worlds. Four of five look-ups fail and are asked "
    f"again, so that an agent that never edits its memory needs room for {WHOLE} tokens of records in nine "
    f"rollouts of ten; it has {QUARTER}, and a rollout that outgrows them ends there. The start imitates a teacher"
    " that knows the tools nearly always, edits at random, and often forgets what it needs. A step is 12 "
    "questions with eight rollouts each; right is paid 1, a violated or cut-off rollout -0.1, in all arms. Held "
    "out: 80 questions of a world that nobody trains on.",
    arms={
        "dcpo": Arm("DCPO", "statistics over rollouts, 12 segments of a question's rollouts, surrogates summed."),
        "all-segments": Arm("DCPO, all segments", "as DCPO, with every segment trained instead of 12 of a question."),
        "grpo": Arm("GRPO on segments", "statistics over segments, all of them trained, each as a sample of its own."),
    },
    figures={
        "sampled_success": Metric("success, sampled", share=True),
        "greedy_success": Metric("success, greedy", share=True),
        "sampled_violated": Metric("rollouts that broke a rule", share=True),
        "sampled_truncated": Metric("rollouts cut off", share=True),
        "sampled_all_rounds": Metric("turns a rollout"),
        "sampled_segments": Metric("segments a rollout"),
        "sampled_longest": Metric("tokens of a rollout's longest prompt"),
    },
    run=run,
    read=read,
)
