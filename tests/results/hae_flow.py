"""Compare hierarchical, grouped and flat advantages on the graph that keeps or switches subgoals.

A subgoal pays late: in a world with the option `key`, an entity's shelf decides which tool answers, and asking for it
is a turn of its own that helps only later turns under the same subgoal. The question never mentions shelves.

This module has the sizes and the reading of the curves. The run is in `training`.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

from offing.sdk import RuleContext as Chair
from offing_trainer.config import merge_tables
from offing_world.lookup_rules import list_learned_facts
from offing_world.semantics import SHELF, list_candidate_tools
from tests.results.experiment import Arm, Curve, Experiment, Metric, Size
from tests.results.intervals import paired
from tests.results.pages import render_mean
from tests.results.question_overlap import course_overlap
from tests.results.questions import Questions
from tests.results.rollouts import GraphSetup, How
from tests.results.starting_policies import Imitation, start_of
from tests.results.training import Course, trained_on

CURIOSITY = 0.5
"""Probability that the teacher of the starting policy asks for an entity's shelf that it does not know."""
SKILL = 0.8
"""Probability that the teacher selects the right tool for an entity whose shelf it knows. Otherwise it selects any."""
RULE = f"curious {CURIOSITY}, skilled {SKILL}"
"""Name of the rule that teaches the starting policies."""
QUESTIONS = Questions(hops=(1, 2), tested_hops=(1, 3), options="+key")
IMITATION = {
    Size.FULL: Imitation(QUESTIONS, RULE, demonstrations=4000, epochs=4, turns=10),
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
        "learning_rate": 1e-3,
        "betas": (0.9, 0.95),
        "minibatches": 4,
        "warmup_steps": 16,
        "critic": {"learning_rate": 2e-3},
    },
}
"""The recipe without its penalty for keeping a subgoal and without a reference policy, with rates of a small model."""
GROUPED: Mapping[str, Any] = {
    "algorithm": "flow-grpo",
    "pipeline": {
        "view": COMMON["pipeline"]["view"],
        "token_weights": [{"name": "token-mean"}],
        "surrogate": {"name": "ppo-clip", "low": 0.2, "high": 0.2, "dual_clip": 3.0},
        "regularizers": COMMON["pipeline"]["regularizers"],
    },
    "learner": {name: value for name, value in COMMON["learner"].items() if name != "critic"},
}
"""The same for advantages from groups of rollouts, which need no critic."""
GROUP = 8
FLAT: Mapping[str, Any] = {
    "pipeline": {"advantage": {"name": "turn-gae", "gamma": 1.0, "lam": 1.0}},
    "learner": {"critic": {"columns": ("value",)}},
}
RELEASED: Mapping[str, Any] = {"pipeline": {"advantage": {"name": "hae", "undecided_baseline": "release"}}}
GIGPO: Mapping[str, Any] = {"pipeline": {"advantage": {"name": "gigpo", "gamma": 0.95}}}
ARMS: Mapping[str, Mapping[str, Any]] = {
    "hierarchical": COMMON,
    "gigpo": merge_tables(GROUPED, GIGPO),
    "flat": merge_tables(COMMON, FLAT),
    "grouped": GROUPED,
    "released": merge_tables(COMMON, RELEASED),
}


def run(arm: str, seed: int, folder: Path, size: Size) -> Curve:
    chosen = course(arm, size)
    start = start_of(folder, chosen.flow, IMITATION[size], seed, {RULE: curious})
    return Curve(arm, seed, trained_on(chosen, start, seed, folder / "work" / f"hae-flow-{size}-{arm}-{seed}"))


def curious(inputs: Any, chair: Chair) -> Any:
    """A rule that switches at the right time, often asks for a shelf, and mostly uses what it says about the tool."""
    from offing_world.hiper.rule_roles import AGENT_RULES

    turn = AGENT_RULES["random"](inputs, chair)
    entity, relation = (turn.action.args.get(name, "") for name in ("entity", "relation"))
    shelves = {fact.entity: fact.values[0] for fact in list_learned_facts(inputs.memory) if fact.relation == SHELF}
    chance = Random(f"{chair.seed}:{chair.turn}:shelf").random()
    if turn.action.is_final:
        return turn
    changed: dict[str, Any] = {}
    if entity not in shelves and chance < CURIOSITY:
        changed = {"args": {"relation": SHELF, "entity": entity}}
    elif entity in shelves and chance < SKILL:
        changed = {"tool": list_candidate_tools(relation, ("key",), int(shelves[entity]))[0]}
    return turn.model_copy(update={"action": turn.action.model_copy(update=changed)})


def course(arm: str, size: Size) -> Course:
    """Return the course of an arm. Arms with critics have no groups. All have as many rollouts per step."""
    from offing_graphs.hiper import graph

    graph_setup, tables, has_groups = GraphSetup(graph, "agent"), ARMS[arm], arm in ("gigpo", "grouped")
    if size is Size.MINIATURE:
        tasks, group = (2, 2) if has_groups else (4, 1)
        return Course(graph_setup, QUESTIONS, tables, 2, 1, tasks, group, how=How(turns=4), held_out=6)
    tasks, group = (128 // GROUP, GROUP) if has_groups else (128, 1)
    how = How(turns=8)
    return Course(graph_setup, QUESTIONS, tables, 24, 4, tasks, group, how, held_out=120, tested_turns=12)


def read(curves: Sequence[Curve]) -> list[str]:
    """Return the success averaged over the whole run, which measures how fast an arm learns."""
    first, *others = EXPERIMENT.arms
    titles = " | ".join(f"{first} minus {EXPERIMENT.arms[other].title}" for other in others)
    lines = [
        f"| success on held-out questions, mean of all evaluations | {titles} |",
        f"|---|{'---|' * len(others)}",
    ]
    for mode in ("sampled", "greedy"):
        ours, *theirs = (averages(curves, arm, f"{mode}_success") for arm in EXPERIMENT.arms)
        cells = " | ".join(render_mean(paired(ours, other), signed=True) for other in theirs)
        lines.append(f"| {mode} | {cells} |")
    return lines


def averages(curves: Sequence[Curve], arm: str, metric: str) -> dict[int, float]:
    """Return the mean over the moments of a run, by seed."""
    return {c.seed: sum(p.figures[metric] for p in c.points) / len(c.points) for c in curves if c.arm == arm}


EXPERIMENT = Experiment(
    name="hae-flow",
    title="Hierarchical advantages: the graph that keeps and switches subgoals",
    claim="On the graph for which it was made, hierarchical advantage estimation learns faster and ends higher than "
    "flat generalized advantages over the same turns and than GiGPO (HiPER, arXiv 2602.16165: 95.3 % on ALFWorld, "
    "compared with 81.3 % for PPO with the same prompt and 86.7 % for GiGPO).",
    setup="The graph `hiper` on questions of one and two look-ups in worlds with the option `key`, with at most eight "
    "turns. Which tool answers a relation depends on the entity's shelf, which is a look-up of its own. A small "
    "policy with random weights first imitates 4,000 demonstrations that ask for an unknown shelf half of the time, "
    f"and select the right tool in {SKILL:.0%} of the turns in which they know the shelf. A training step has 128 "
    "rollouts, of as many questions or in groups of eight. λ is 1 at turns and 0.95 at segments, as released, and 1 "
    "for flat advantages. Critics have their own layers. No arm penalizes keeping a subgoal, there is no reference "
    "policy, and completions that could not be parsed are trained with the outcome of their rollout. Held out: 120 "
    "questions of one to three look-ups whose compositions are not trained, with at most 12 turns.",
    arms={
        "hierarchical": Arm(
            "hierarchical", "switch, subgoal and action have separate advantages, relative to three critics."
        ),
        "gigpo": Arm("GiGPO", "z-scores over the rollouts of a task, and over its turns with equal prompts."),
        "flat": Arm("flat", "all tokens of a turn have the turn's generalized advantage, relative to one critic."),
        "grouped": Arm("z-scores over rollouts", "GiGPO without the part of turns."),
        "released": Arm(
            "hierarchical as released",
            "the advantage of a turn that could not be parsed is relative to the low critic, read elsewhere.",
        ),
    },
    figures={
        "sampled_success": Metric("success, sampled", share=True),
        "greedy_success": Metric("success, greedy", share=True),
        "sampled_violated": Metric("rollouts that violated a rule", share=True),
        "sampled_all_rounds": Metric("turns per rollout"),
    },
    run=run,
    read=read,
    seeds=tuple(range(5)),
    overlap=lambda: course_overlap(course("hierarchical", Size.FULL)),
)
