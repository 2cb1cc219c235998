"""Compare SUPO with a quarter of the context to GRPO with the whole context, on the graph that summarizes.

This module has the arms and sizes. Graph, limits and teacher are in `memory`, and the run is in `training`.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from offing_trainer.config import merge_tables
from tests.results.experiment import Arm, Curve, Experiment, Metric, Size
from tests.results.memory import (
    COMPLETION,
    OUTAGE,
    QUARTER,
    QUESTIONS,
    RULES,
    TURNS,
    WHOLE,
    ends,
    imitation,
    summing_up,
)
from tests.results.question_overlap import course_overlap
from tests.results.rollouts import GraphSetup, How
from tests.results.starting_policies import start_of
from tests.results.training import Course, trained_on

DEMONSTRATIONS = 1600
"""Demonstrations that a starting policy imitates."""
COMMON: Mapping[str, Any] = {
    "algorithm": "supo",
    "pipeline": {"view": {"include_rejected": True}},
    "learner": {"learning_rate": 1e-3, "betas": (0.9, 0.95), "minibatches": 4, "epochs": 2},
}
"""Completions that could not be parsed are trained as well. Learning rates are those of a small model."""
ROWS: Mapping[str, Any] = {
    "selectors": [],
    "advantage": {"name": "group-z", "unit": "rows"},
    "token_weights": [{"name": "row-mean"}],
}
ARMS: Mapping[str, Mapping[str, Any]] = {
    "supo": {},
    "whole-room": {"pipeline": {"selectors": []}},
    "grpo": {"pipeline": ROWS},
    "unmasked": {"pipeline": {"selectors": []}},
}


def graph_setup(arm: str) -> GraphSetup:
    """Return the graph of an arm. In the whole context there are no summaries.

    A rollout that exceeds it ends with a last call for an answer, which is a segment of its own.
    """
    graph = summing_up(WHOLE, 0) if arm == "whole-room" else summing_up(QUARTER)
    return GraphSetup(graph, "agent", outage=OUTAGE)


def course(arm: str, size: Size) -> Course:
    where, tables = graph_setup(arm), merge_tables(COMMON, ARMS[arm])
    if size is Size.MINIATURE:
        return Course(where, QUESTIONS, tables, 2, 1, tasks=2, group=4, how=How(8, most=COMPLETION), held_out=4)
    return Course(where, QUESTIONS, tables, 24, 4, tasks=12, group=8, how=How(TURNS, most=COMPLETION), held_out=80)


def run(arm: str, seed: int, folder: Path, size: Size) -> Curve:
    start = start_of(folder, graph_setup(arm), imitation(size, DEMONSTRATIONS), seed, RULES)
    return Curve(arm, seed, trained_on(course(arm, size), start, seed, folder / "work" / f"supo-{size}-{arm}-{seed}"))


def read(curves: Sequence[Curve]) -> list[str]:
    return ends(curves, {name: arm.title for name, arm in EXPERIMENT.arms.items()})


EXPERIMENT = Experiment(
    name="supo",
    title="SUPO: an agent that summarizes its full context, with a quarter of the space",
    claim="With summaries that are trained with the rest of the rollout, an agent with a fraction of the context does "
    "at least as well as plain GRPO with the whole context, and it does not if truncated rollouts are not masked "
    "(arXiv 2510.06727).",
    setup="The graph `supo` on chains of two and three look-ups in synthetic worlds. Three of four look-ups fail and "
    f"are repeated, so nine of ten rollouts with the right tools need space for at most {WHOLE} tokens of records. "
    f"This is the whole context. A quarter is {QUARTER}, and a context that fills it is replaced by the agent's own "
    f"summary. The starting policies imitate {DEMONSTRATIONS:,} demonstrations of a teacher that nearly always selects "
    "the right tool and includes a fact that it needs in a summary three times out of ten. The arm with the whole "
    "context has a separate starting policy, which has never seen a summary. A training step has 12 questions with "
    f"eight rollouts each and at most {TURNS} turns. Held out: 80 chains of two and three look-ups whose "
    "compositions are not trained, in a world that is not used for training.",
    arms={
        "supo": Arm(
            "SUPO, a quarter", "statistics over rollouts; summaries are trained; truncated rollouts are masked."
        ),
        "whole-room": Arm("GRPO, whole context", "no summaries; nothing is masked."),
        "grpo": Arm(
            "GRPO on segments, a quarter", "statistics over segments, each a separate sample; nothing is masked."
        ),
        "unmasked": Arm("SUPO without the mask", "as SUPO, with truncated rollouts trained as well."),
    },
    figures={
        "sampled_success": Metric("success, sampled", share=True),
        "greedy_success": Metric("success, greedy", share=True),
        "sampled_truncated": Metric("truncated rollouts", share=True),
        "sampled_violated": Metric("rollouts that violated a rule", share=True),
        "sampled_all_rounds": Metric("turns per rollout"),
        "sampled_segments": Metric("segments per rollout"),
        "sampled_prompt_tokens": Metric("tokens per prompt"),
        "sampled_longest": Metric("tokens of a rollout's longest prompt"),
    },
    run=run,
    read=read,
    seeds=tuple(range(5)),
    overlap=lambda: course_overlap(course("supo", Size.FULL)),
)
