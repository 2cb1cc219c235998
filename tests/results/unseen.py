"""Does a trained planner answer compositions and lengths that it never saw?

The planner is trained on questions of one to three look-ups, without a fifth of the compositions, and evaluated on
those compositions with one to six look-ups. Which of two tools answers depends on the entity (the option `referral`),
so a table of relations and tools that is counted from rollouts fails: `tests.results.baselines` has what it reaches on
such questions.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

from offing.sdk import RuleContext as Chair
from offing_graphs.shared.schemas import MemoryRecord
from offing_world.compact_notation import build_entity_index
from offing_world.lookup_rules import build_args, list_learned_facts
from offing_world.question_solver import LookUp, find_missing_look_ups
from offing_world.semantics import RELATIONS
from offing_world.tasks import WorldTask
from tests.graphs.in_memory_context import InMemoryContext
from tests.graphs.world_runs import is_right
from tests.results.experiment import Arm, Curve, Experiment, Metric, Size
from tests.results.intervals import mean_of, paired
from tests.results.pages import render_mean
from tests.results.question_overlap import course_overlap
from tests.results.questions import Questions
from tests.results.rollouts import GraphSetup, How
from tests.results.starting_policies import Imitation, start_of
from tests.results.training import Course, imitated_on, trained_on

QUESTIONS = Questions(hops=(1, 3), tested_hops=(1, 6), options="+referral")
LESSON = Questions(hops=(1, 5), options="+referral")
"""Questions of the demonstrations: trained compositions, of up to two look-ups more than in training."""
STUMBLES = 0.1
"""Probability that the teacher looks up anything. Without it, a policy that once made a needless look-up is lost."""
RULE = f"stumbling {STUMBLES}"
"""Name of the teacher's rule, so that another teacher makes other starting policies."""
TRAINED_HOPS, TESTED_HOPS = 3, 6
RL: Mapping[str, Any] = {
    "algorithm": "flow-grpo",
    "pipeline": {
        "view": {"name": "policy-turns", "include_rejected": True},
        "surrogate": {"name": "ppo-clip", "low": 0.2, "high": 0.28},
        "regularizers": [],
    },
    "learner": {"learning_rate": 4e-4, "betas": (0.9, 0.95), "minibatches": 4, "epochs": 2},
}
SFT: Mapping[str, Any] = {"algorithm": "sft", "learner": {"learning_rate": 1e-3, "epochs": 3, "minibatches": 64}}
"""Imitation of successful rollouts, with the rates of `make loop`."""
ARMS: Mapping[str, Mapping[str, Any]] = {
    "flow-grpo": RL,
    "rejection": SFT,
}


def graph_setup() -> GraphSetup:
    from offing_graphs.agentflow import graph

    return GraphSetup(graph, "planner", scores=score)


def score(task: WorldTask, ctx: InMemoryContext, _outcome: str) -> Mapping[str, float]:
    """Return the reward, and the shares of the calls that looked up what was needed, and that repeated an earlier one.

    Both shares are 0 if no call was made.
    """
    records = _list_records(ctx)
    needed, repeated = 0, 0
    for n, record in enumerate(records):
        missing = find_missing_look_ups(task.question, list_learned_facts(records[:n]))
        needed += record.args in [build_args(look_up) for look_up in missing]
        repeated += any((record.tool, record.args) == (earlier.tool, earlier.args) for earlier in records[:n])
    count = max(1, len(records))
    return {"reward": float(is_right(task, ctx)), "needed": needed / count, "repeated": repeated / count}


def _list_records(ctx: InMemoryContext) -> Sequence[MemoryRecord]:
    """Return the records that the verifier read last: of all calls, or of all but the last if that ended the run."""
    return next((inputs.memory for role, inputs in reversed(ctx.role_inputs) if role == "verifier"), ())


def stumbling(inputs: Any, chair: Chair) -> Any:
    """A rule for the planner: the look-up that is needed, and seldom another one, always with a random tool."""
    from offing_world.agentflow.compact_format import plan_look_up
    from offing_world.agentflow.rule_roles import PLANNER_RULES

    rng = Random(f"{chair.seed}:{chair.turn}:stumble")
    if rng.random() >= STUMBLES:
        return PLANNER_RULES["random"](inputs, chair)
    index = build_entity_index(inputs.question, list_learned_facts(inputs.memory))
    need = LookUp(rng.choice(RELATIONS), rng.choice(index.entities))
    return plan_look_up(need, rng.choice([tool.name for tool in inputs.tools]))


def lesson(size: Size) -> Imitation:
    """Return how starting policies are made."""
    if size is Size.MINIATURE:
        return Imitation(LESSON, RULE, demonstrations=16, epochs=1, batch=8, turns=4)
    return Imitation(LESSON, RULE, demonstrations=9000, epochs=4, turns=12)


def course(arm: str, size: Size) -> Course:
    if size is Size.MINIATURE:
        return Course(graph_setup(), QUESTIONS, ARMS[arm], 2, 1, tasks=2, group=4, how=How(turns=4), held_out=6)
    return Course(
        graph_setup(),
        QUESTIONS,
        ARMS[arm],
        steps=160,
        every=40,
        tasks=32,
        group=8,
        how=How(turns=8),
        held_out=240,
        tested_turns=14,
    )


def run(arm: str, seed: int, folder: Path, size: Size) -> Curve:
    chosen, work = course(arm, size), folder / "work" / f"unseen-{size}-{arm}-{seed}"
    start = start_of(folder, chosen.flow, lesson(size), seed, {RULE: stumbling})
    if arm == "rejection":
        return Curve(arm, seed, imitated_on(chosen, start, seed, work))
    return Curve(arm, seed, trained_on(chosen, start, seed, work))


def read(curves: Sequence[Curve]) -> list[str]:
    """Return success by number of look-ups, sampled and greedy, and the gains over the start."""
    return [*_tables("sampled", curves), "", *_tables("greedy", curves)]


def _tables(mode: str, curves: Sequence[Curve]) -> list[str]:
    numbers = range(1, TESTED_HOPS + 1)
    lines = [
        f"| {mode} success on held-out compositions | {' | '.join(f'{n} look-ups' for n in numbers)} |",
        f"|---|{'---|' * TESTED_HOPS}",
        _row("start", curves, 0, next(iter(ARMS)), mode),
        *(_row(arm.title, curves, -1, name, mode) for name, arm in EXPERIMENT.arms.items()),
        "",
        f"| {mode} gain over the start | trained compositions of 1 | unseen compositions of 2 to 3 | "
        "unseen lengths, 4 to 6 |",
        "|---|---|---|---|",
    ]
    parts = ((1, 1), (2, TRAINED_HOPS), (TRAINED_HOPS + 1, TESTED_HOPS))
    for name, arm in EXPERIMENT.arms.items():
        gains = (
            paired(_mean_success(curves, name, -1, mode, *part), _mean_success(curves, name, 0, mode, *part))
            for part in parts
        )
        lines.append(f"| {arm.title} | {' | '.join(render_mean(gain, signed=True) for gain in gains)} |")
    return lines


def _row(title: str, curves: Sequence[Curve], point: int, arm: str, mode: str) -> str:
    means = (mean_of(list(_mean_success(curves, arm, point, mode, n, n).values())) for n in range(1, TESTED_HOPS + 1))
    return f"| {title} | {' | '.join(render_mean(mean, share=True) for mean in means)} |"


def _mean_success(curves: Sequence[Curve], arm: str, point: int, mode: str, least: int, most: int) -> dict[int, float]:
    """Return the mean success over numbers of look-ups, by seed. `mode` is `sampled` or `greedy`."""
    names = [f"{mode}_success_{n}" for n in range(least, most + 1)]
    own = {curve.seed: curve.points[point].figures for curve in curves if curve.arm == arm}
    return {seed: sum(f[name] for name in names) / len(names) for seed, f in own.items()}


EXPERIMENT = Experiment(
    name="unseen",
    title="Compositions and lengths that were never trained",
    claim="A planner trained by Flow-GRPO on questions of one to three look-ups answers held-out compositions, also of "
    "four to six look-ups, more often than its starting policy, than imitation of its start's own successes with as "
    "many rollouts, and than counting.",
    setup="The graph `agentflow` with the role `planner` in its compact format, in worlds with the option `referral`: "
    "two tools share each relation, and which of them answers depends on the entity, so the planner must try the other "
    "one after an empty answer. The starting policy imitates the look-up that is needed, and now and then any other, "
    "with a random tool, on trained compositions of one to five look-ups, so it knows the grammar and no tool. "
    "Training: one to three look-ups, at most 8 turns, 160 steps of 32 tasks with 8 rollouts, so 40,960 rollouts in "
    "every arm. Evaluation: held-out compositions in a world without shared names, 40 questions for each number of "
    "look-ups from one to six, at most 14 turns.",
    arms={
        "flow-grpo": Arm("Flow-GRPO", "z-scores over the rollouts of a task; all turns share the outcome."),
        "rejection": Arm(
            "rejection sampling", "fine-tuning on the successes among as many rollouts of the starting policy."
        ),
    },
    figures={
        "greedy_success": Metric("success, greedy", share=True),
        "sampled_success": Metric("success, sampled", share=True),
        "sampled_violated": Metric("rollouts that violated a rule", share=True),
        "greedy_all_rounds": Metric("turns per rollout, greedy"),
    },
    run=run,
    read=read,
    overlap=lambda: course_overlap(course("flow-grpo", Size.FULL)),
    seeds=tuple(range(3)),
)
