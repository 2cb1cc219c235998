"""Compare hierarchical and flat advantages on the graph that keeps or switches subgoals, with learned critics.

This module has the sizes and the reading of the curves. The run is in `training`.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

from offing.sdk import RuleContext as Chair
from offing_trainer.config import merge_tables
from tests.results.experiment import Arm, Curve, Experiment, Metric, Size
from tests.results.intervals import paired
from tests.results.pages import render_mean
from tests.results.question_overlap import course_overlap
from tests.results.questions import Questions
from tests.results.rollouts import GraphSetup, How
from tests.results.starting_policies import Imitation, start_of
from tests.results.training import Course, trained_on

SKILL = 0.4
"""Probability that the teacher of the starting policy selects a right tool. Otherwise it selects any tool."""
RULE = f"skilled {SKILL}"
"""Name of the rule that teaches the starting policies."""
QUESTIONS = Questions(hops=(1, 2))
IMITATION = {
    Size.FULL: Imitation(QUESTIONS, RULE, demonstrations=1500, epochs=4),
    Size.MINIATURE: Imitation(QUESTIONS, RULE, demonstrations=16, epochs=1, batch=8, turns=4),
}
COMMON: Mapping[str, Any] = {
    "algorithm": "hae",
    "pipeline": {
        "view": {"name": "policy-turns", "include_rejected": True},
        "rewards": [{"name": "outcome"}],
        "regularizers": [{"name": "entropy", "coefficient": 0.001}],
    },
    "learner": {
        "learning_rate": 5e-4,
        "betas": (0.9, 0.95),
        "minibatches": 4,
        "warmup_steps": 16,
        "critic": {"learning_rate": 1e-3},
    },
}
"""The recipe without its penalty for keeping a subgoal and without a reference policy, with rates of a small model."""
ARMS: Mapping[str, Mapping[str, Any]] = {
    "hierarchical": {},
    "released": {"pipeline": {"advantage": {"name": "hae", "undecided_baseline": "release"}}},
    "flat": {
        "pipeline": {"advantage": {"name": "turn-gae", "gamma": 1.0, "lam": 1.0}},
        "learner": {"critic": {"columns": ("value",)}},
    },
}


def run(arm: str, seed: int, folder: Path, size: Size) -> Curve:
    chosen = course(arm, size)
    start = start_of(folder, chosen.flow, IMITATION[size], seed, {RULE: skilled})
    return Curve(arm, seed, trained_on(chosen, start, seed, folder / "work" / f"hae-flow-{size}-{arm}-{seed}"))


def skilled(inputs: Any, chair: Chair) -> Any:
    """A rule for the agent that always switches at the right time and often selects the right tool."""
    from offing_world.hiper.rule_roles import AGENT_RULES

    knows = Random(f"{chair.seed}:{chair.turn}").random() < SKILL
    return AGENT_RULES["oracle" if knows else "random"](inputs, chair)


def course(arm: str, size: Size) -> Course:
    """Return the course of an arm. There are no groups, because advantages come from critics."""
    from offing_graphs.hiper import graph

    graph_setup, tables = GraphSetup(graph, "agent"), merge_tables(COMMON, ARMS[arm])
    if size is Size.MINIATURE:
        return Course(graph_setup, QUESTIONS, tables, 2, 1, tasks=4, group=1, how=How(turns=4), held_out=4)
    return Course(graph_setup, QUESTIONS, tables, 24, 4, tasks=128, group=1, how=How(turns=6), held_out=100)


def read(curves: Sequence[Curve]) -> list[str]:
    """Return the success averaged over the whole run, which measures how fast an arm learns."""
    lines = ["| success on held-out questions, mean of all evaluations | hierarchical minus flat |", "|---|---|"]
    for mode in ("sampled", "greedy"):
        ours, flat = (averages(curves, arm, f"{mode}_success") for arm in ("hierarchical", "flat"))
        lines.append(f"| {mode} | {render_mean(paired(ours, flat), signed=True)} |")
    return lines


def averages(curves: Sequence[Curve], arm: str, metric: str) -> dict[int, float]:
    """Return the mean over the moments of a run, by seed."""
    return {c.seed: sum(p.figures[metric] for p in c.points) / len(c.points) for c in curves if c.arm == arm}


EXPERIMENT = Experiment(
    name="hae-flow",
    title="Hierarchical advantages: the graph that keeps and switches subgoals",
    claim="On the graph for which it was made, hierarchical advantage estimation learns faster and ends higher than "
    "flat generalized advantages over the same turns (HiPER, arXiv 2602.16165: 95.3 % on ALFWorld, compared with "
    "81.3 % for PPO with the same prompt).",
    setup="The graph `hiper` on questions of one and two look-ups in synthetic worlds, with at most six turns. A small "
    "policy with random weights first imitates demonstrations that select a right tool "
    f"{SKILL:.0%} of the time. A training step has 128 rollouts of as many questions. λ is 1 at turns and 0.95 at "
    "segments, as released, and 1 for flat advantages. Critics have their own layers. No arm penalizes keeping a "
    "subgoal, there is no reference policy, and completions that could not be parsed are trained with the outcome of "
    "their rollout. Held out: 100 questions of a world that is not used for training.",
    arms={
        "hierarchical": Arm(
            "hierarchical", "switch, subgoal and action have separate advantages, relative to three critics."
        ),
        "released": Arm(
            "hierarchical as released",
            "the advantage of a turn that could not be parsed is relative to the low critic, read elsewhere.",
        ),
        "flat": Arm("flat", "all tokens of a turn have the turn's generalized advantage, relative to one critic."),
    },
    figures={
        "sampled_success": Metric("success, sampled", share=True),
        "greedy_success": Metric("success, greedy", share=True),
        "sampled_violated": Metric("rollouts that violated a rule", share=True),
        "sampled_all_rounds": Metric("turns per rollout"),
    },
    run=run,
    read=read,
    overlap=lambda: course_overlap(course("hierarchical", Size.FULL)),
)
