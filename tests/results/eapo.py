"""Measure the effect of EAPO's discount by turns on the length and the rate of successful rollouts of IterResearch.

The starting policy knows most tools and often looks up a known fact again before it continues. Success alone does not
discourage that, because looking up a fact twice does no harm. A discount discourages it, and so does training under the
budget of turns that binds in the evaluation.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from random import Random
from statistics import fmean
from typing import Any

from offing.sdk import RuleContext as Chair
from offing_world.question_solver import LookUp
from offing_world.tasks import WorldTask
from tests.results.experiment import Arm, Curve, Experiment, Metric, Size
from tests.results.question_overlap import course_overlap
from tests.results.questions import Questions
from tests.results.rollouts import GraphSetup, How
from tests.results.starting_policies import Imitation, start_of
from tests.results.training import Course, trained_on

SKILL = 0.7
"""Probability that the teacher of the starting policy selects a right tool. Otherwise it selects any tool."""
AGAIN = 0.4
"""Probability that it looks up a known fact again."""
RULE = f"dithering {SKILL} {AGAIN}"
"""Name of the rule, so that another teacher makes other starting policies."""

GAMMAS: Mapping[str, float] = {"eapo": 0.9, "as-published": 0.995, "no-discount": 1.0, "bound": 1.0}
SPARE = 1
"""Turns of a budget that binds, beyond one for each look-up and one for the answer."""

ARMS: Mapping[str, Arm] = {
    "eapo": Arm("EAPO, gamma 0.9", "The reward of a turn is the outcome times 0.9 to the power of the turns after it."),
    "as-published": Arm("EAPO, gamma 0.995", "The same with the published discount, for rollouts of dozens of turns."),
    "no-discount": Arm("without discount", "The same with gamma 1: the reward of every turn is the outcome."),
    "bound": Arm("trained under the budget", "No discount, but rollouts of training have the budget that binds."),
}

NEAR = 0.03
"""Maximum difference of success that counts as equal."""

QUESTIONS = Questions(hops=(1, 3), tested_hops=(1, 6))

SETUP = """\
The graph `iterresearch` with the role `researcher` in its compact format; questions in synthetic worlds that take one
to three look-ups; at most 12 turns per rollout; 16 tasks with 8 rollouts each per training step. Evaluation: held-out
compositions of one to six look-ups, with 12 turns, and again under a budget that binds: one turn for each look-up,
one for the answer, and one to spare. Spare turns are the turns beyond the look-ups that a question takes. The
starting policy imitates a teacher that selects a right tool seven times out of ten and, four times out of ten, looks
up again what it knows. The recipe is `eapo` with two changes in all arms: the surrogate is `ppo-clip` with 0.2 and
0.28, because with GSPO's published bounds of about 1e-4 a model of this size learns nothing in so few steps; and
completions that could not be parsed are trained with a reward of 0, because weights this small otherwise drift
towards them. Gamma is 0.9 because a rollout has 2 to 8 turns here, over which the published 0.995 reduces the reward
by at most 4 %. The published value is measured as well."""


def graph_setup() -> GraphSetup:
    from offing_graphs.iterresearch import graph

    return GraphSetup(graph, "researcher")


def dithering(inputs: Any, chair: Chair) -> Any:
    """A rule for the researcher, described in the module docstring."""
    from offing_graphs.iterresearch.schemas import TurnPhase
    from offing_world.iterresearch.rule_roles import build_answer_turn, build_look_up_turn, is_solved, list_known_facts
    from offing_world.lookup_rules import choose_oracle_tool, choose_random_tool, find_next_look_up

    rng, known = Random(f"{chair.seed}:{chair.turn}"), list_known_facts(inputs)
    if inputs.phase is TurnPhase.FINAL:
        return build_answer_turn(inputs)
    tools = tuple(card.name for card in inputs.tools)
    if known and rng.random() < AGAIN:
        fact = rng.choice(known)
        need = LookUp(fact.relation, fact.entity)
        return build_look_up_turn(inputs, need, choose_oracle_tool(need, chair, tools))
    if inputs.phase is TurnPhase.MIDDLE and is_solved(inputs):
        return build_answer_turn(inputs)
    need, choose = (
        find_next_look_up(inputs.question, known),
        choose_oracle_tool if rng.random() < SKILL else choose_random_tool,
    )
    return build_look_up_turn(inputs, need, choose(need, chair, tools))


def imitation(size: Size) -> Imitation:
    if size is Size.MINIATURE:
        return Imitation(QUESTIONS, RULE, demonstrations=240, batch=16, rate=1e-2, turns=4)
    return Imitation(QUESTIONS, RULE, demonstrations=2000, epochs=4, turns=12)


def course(arm: str, size: Size) -> Course:
    """Return the course of an arm. Arms differ in gamma, or in the budget of training rollouts."""
    tables = {
        "algorithm": "eapo",
        "pipeline": {
            "view": {"include_rejected": True},
            "rewards": [{"name": "geometric", "gamma": GAMMAS[arm]}],
            "surrogate": {"name": "ppo-clip", "low": 0.2, "high": 0.28},
        },
        "learner": {"learning_rate": 5e-4, "minibatches": 4, "betas": (0.9, 0.95)},
    }
    if size is Size.MINIATURE:
        small = Course(graph_setup(), QUESTIONS, tables, 2, 1, tasks=2, group=4, how=How(turns=4), held_out=6)
        return replace(small, binding=count_binding_turns, trains_bound=arm == "bound")
    return Course(
        graph_setup(),
        QUESTIONS,
        tables,
        steps=40,
        every=10,
        tasks=16,
        group=8,
        how=How(turns=12),
        held_out=180,
        binding=count_binding_turns,
        trains_bound=arm == "bound",
    )


def count_binding_turns(task: WorldTask) -> int:
    """Return the maximum turns of a task under the budget that binds."""
    return task.hops + 1 + SPARE


def run(arm: str, seed: int, folder: Path, size: Size) -> Curve:
    start = start_of(folder, graph_setup(), imitation(size), seed, {RULE: dithering})
    return Curve(arm, seed, trained_on(course(arm, size), start, seed, folder / "eapo" / f"{arm}-{seed}"))


def read(curves: Sequence[Curve]) -> Sequence[str]:
    """Return the results at the end of each run, and comparisons at equal success."""
    known = [arm for arm in GAMMAS if any(curve.arm == arm for curve in curves)]
    paired = [_equal(curves, arm) for arm in known if arm != "no-discount"]
    return [*(_at_the_end(curves, arm) for arm in known), *paired]


def _at_the_end(curves: Sequence[Curve], arm: str) -> str:
    last = [curve.points[-1].figures for curve in curves if curve.arm == arm]
    success, rounds, spare = (_listed(last, f"sampled_{name}") for name in ("success", "rounds", "spare"))
    turns = f"turns of successful rollouts {rounds}, of which spare {spare}"
    return f"- {ARMS[arm].title}, at the end: success {success}; {turns}."


def _listed(points: Sequence[Mapping[str, float]], name: str) -> str:
    return ", ".join(f"{point[name]:.2f}" if name in point else "-" for point in points)


def _equal(curves: Sequence[Curve], arm: str) -> str:
    """Compare the spare turns of two arms between evaluations of one seed whose success differs by at most `NEAR`."""
    gaps = [gap for curve in curves if curve.arm == arm for gap in _gaps(curve, curves)]
    if not gaps:
        return f"- {ARMS[arm].title}: no evaluation came within {NEAR:.2f} of the success without discount."
    fewer = sum(gap < 0 for gap in gaps)
    return (
        f"- {ARMS[arm].title}, compared with evaluations without discount of the same seed whose success differs by at "
        f"most {NEAR:.2f}: {fmean(gaps):+.2f} spare turns on average, fewer in {fewer} of {len(gaps)} pairs."
    )


def _gaps(curve: Curve, curves: Sequence[Curve]) -> list[float]:
    """Return the differences. The first evaluation, which the arms share, is left out."""
    other = next((c for c in curves if c.arm == "no-discount" and c.seed == curve.seed), None)
    pairs = product(curve.points[1:], other.points[1:] if other else ())
    both = [(one.figures, two.figures) for one, two in pairs]
    return [
        one["sampled_spare"] - two["sampled_spare"]
        for one, two in both
        if "sampled_spare" in one
        and "sampled_spare" in two
        and abs(one["sampled_success"] - two["sampled_success"]) <= NEAR
    ]


EXPERIMENT = Experiment(
    name="eapo",
    title="EAPO, with and without the discount",
    claim="A geometric discount by turns makes successful rollouts shorter at equal success, so that more questions "
    "are answered under a budget of turns that binds.",
    arms=ARMS,
    figures={
        "bound_sampled_success": Metric("success under the budget that binds, sampled", share=True),
        "bound_greedy_success": Metric("success under the budget that binds, greedy", share=True),
        "sampled_spare": Metric("spare turns of successful rollouts"),
        "sampled_rounds": Metric("turns of successful rollouts"),
        "sampled_success": Metric("success, sampled", share=True),
        "greedy_success": Metric("success, greedy", share=True),
        "greedy_spare": Metric("spare turns, greedy"),
    },
    run=run,
    read=read,
    seeds=tuple(range(5)),
    overlap=lambda: course_overlap(course("eapo", Size.FULL)),
    setup=SETUP,
)
