"""Compare DCPO with other statistics on the graph that edits its memory, with a quarter of the context.

This module has the arms and sizes. Graph, limits and teacher are in `memory`, and the run is in `training`.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from offing_trainer.config import merge_tables
from tests.results.experiment import Arm, Curve, Experiment, Metric, Size
from tests.results.memory import COMPLETION, OUTAGE, QUARTER, QUESTIONS, RULES, TURNS, WHOLE, editing, ends, imitation
from tests.results.question_overlap import course_overlap
from tests.results.rollouts import GraphSetup, How
from tests.results.starting_policies import Imitation, start_of
from tests.results.training import Course, trained_on

COMMON: Mapping[str, Any] = {
    "algorithm": "dcpo",
    "pipeline": {"view": {"include_rejected": True}},
    "learner": {
        "learning_rate": 3e-4,
        "betas": (0.9, 0.95),
        "minibatches": 4,
        "epochs": 2,
        "minibatch_unit": "rollouts",
    },
}
"""Completions that could not be parsed are trained as well. With a learning rate of 1e-3, sampled success falls."""
DEMONSTRATIONS = 3200
"""Demonstrations that the starting policy imitates. With half of them, it answers one question in twenty, and the arm
that was tried then only learned to give up early."""
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
    """Return the course of an arm. Arms differ in advantages and trained segments. All have DCPO's rewards."""
    tables = merge_tables(COMMON, ARMS[arm])
    if size is Size.MINIATURE:
        return Course(graph_setup(), QUESTIONS, tables, 2, 1, tasks=2, group=4, how=How(6, most=COMPLETION), held_out=4)
    return Course(
        graph_setup(), QUESTIONS, tables, 24, 4, tasks=12, group=8, how=How(TURNS, most=COMPLETION), held_out=80
    )


def lesson(size: Size) -> Imitation:
    """Return the SFT configuration of the starting policy, which all arms and `dcpo_gradients` share."""
    return imitation(size, DEMONSTRATIONS)


def run(arm: str, seed: int, folder: Path, size: Size) -> Curve:
    start = start_of(folder, graph_setup(), lesson(size), seed, RULES)
    return Curve(arm, seed, trained_on(course(arm, size), start, seed, folder / "work" / f"dcpo-{size}-{arm}-{seed}"))


def read(curves: Sequence[Curve]) -> list[str]:
    return ends(curves, {name: arm.title for name, arm in EXPERIMENT.arms.items()})


EXPERIMENT = Experiment(
    name="dcpo",
    title="DCPO: an agent that edits its own memory, with a quarter of the context",
    claim="If edits of the memory split a rollout into segments, statistics over rollouts with segments that begin at "
    "edits train better than treating every segment as a separate sample (MemAct, arXiv 2510.12635).",
    setup="The graph `memact` on chains of two and three look-ups in synthetic worlds. Three of four look-ups fail and "
    "are repeated, so in nine of ten rollouts an agent that never edits its memory needs space for at most "
    f"{WHOLE} tokens of records. It has {QUARTER}, and a rollout that exceeds this limit ends. The starting policy "
    f"imitates {DEMONSTRATIONS:,} demonstrations of a teacher that nearly always selects the right tool, edits at "
    "random, and sometimes loses facts that it needs. A training step has 12 questions with eight rollouts each; the "
    "learning rate is 3e-4. In all arms, the reward is 1 for a correct answer and -0.1 for a violated or truncated "
    "rollout. Held out: 80 chains of two and three look-ups whose compositions are not trained, in a world that is "
    "not used for training.",
    arms={
        "dcpo": Arm("DCPO", "statistics over rollouts; 12 segments per question are trained; surrogates are summed."),
        "all-segments": Arm("DCPO, all segments", "as DCPO, but all segments are trained instead of 12 per question."),
        "grpo": Arm(
            "GRPO on segments", "statistics over segments; all segments are trained, each as a separate sample."
        ),
    },
    figures={
        "sampled_success": Metric("success, sampled", share=True),
        "greedy_success": Metric("success, greedy", share=True),
        "sampled_violated": Metric("rollouts that violated a rule", share=True),
        "sampled_truncated": Metric("truncated rollouts", share=True),
        "sampled_all_rounds": Metric("turns per rollout"),
        "sampled_segments": Metric("segments per rollout"),
        "sampled_longest": Metric("tokens of a rollout's longest prompt"),
    },
    run=run,
    read=read,
    seeds=tuple(range(5)),
    overlap=lambda: course_overlap(course("dcpo", Size.FULL)),
)
