"""Train AgentFlow's generator to write the answer and its citations, which a rule writes in the other experiments.

The rule-based planner makes the look-ups that the question needs, with right tools, and others that it does not need.
The generator reads all of them and writes an answer and the records that it cites, in the format of
`offing_world.agentflow.compact_report`. Arms differ in what samples the rollouts and how they are trained.
"""

import asyncio
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from random import Random
from statistics import fmean
from typing import TYPE_CHECKING, Any

from offing.core.trajectory import Outcome
from offing.sdk import ReportDraft, RuleContext
from offing_graphs.agentflow.schemas import PlannerInput
from offing_graphs.shared.schemas import Plan, WriterInput
from offing_trainer.config import merge_tables
from offing_world.agentflow.compact_format import plan_look_up
from offing_world.agentflow.compact_report import list_shown_records
from offing_world.agentflow.rule_roles import PLANNER_RULES
from offing_world.compact_answer import build_cited_report, render_record_fact
from offing_world.compact_notation import build_entity_index, render_compact_question, render_compact_relation
from offing_world.lookup_rules import UNKNOWN_ANSWER, fact_from_record, list_learned_facts
from offing_world.question_solver import KnownFact, LookUp
from offing_world.semantics import RELATIONS
from offing_world.tasks import WorldTask
from tests.graphs.in_memory_context import InMemoryContext
from tests.results.batch_sampling import Table, opened
from tests.results.experiment import Arm, Curve, Experiment, Metric, Point, Size
from tests.results.intervals import mean_of, paired
from tests.results.pages import render_mean
from tests.results.question_overlap import Overlap, overlap_of
from tests.results.questions import Questions
from tests.results.rollouts import GraphSetup, How, PlannedRollout, Played, play
from tests.results.starting_policies import Imitation, start_of
from tests.results.training import Trained

if TYPE_CHECKING:
    from offing_engine.weights import LoadedPolicy

DETOURS = 0.4
"""Probability that the planner looks up something that the question does not need."""
CITES = 0.5
"""Probability that the teacher of the starting policy cites a record."""
RULE = f"unknowing {CITES}"
"""Name of the teacher's rule, so that another teacher makes other starting policies."""
EXACT, PRECISION, RECALL = 0.5, 0.25, 0.25
"""Weights of the answer and of the citations in the reward. They sum to 1."""
TABLES: Mapping[str, Mapping[str, Any]] = {
    "flow-grpo": {
        "algorithm": "flow-grpo",
        "pipeline": {
            "view": {"name": "policy-turns", "include_rejected": True},
            "surrogate": {"name": "ppo-clip", "low": 0.2, "high": 0.28},
            "regularizers": [],
        },
        "learner": {"learning_rate": 4e-4, "betas": (0.9, 0.95), "minibatches": 4, "epochs": 2},
    },
    "rejection": {
        "algorithm": "sft",
        "learner": {"learning_rate": 4e-4, "betas": (0.9, 0.95), "minibatches": 4, "epochs": 2},
    },
}


@dataclass(frozen=True, slots=True)
class Plans:
    """The sizes of a run."""

    steps: int
    every: int
    tasks: int
    group: int
    held_out: int
    lesson: Imitation


QUESTIONS = Questions(hops=(1, 3), kinds=("lookup",))
TESTED = Questions(hops=(2, 3), kinds=("lookup",))
"""Questions of one relation are never held out."""
HOW = How(turns=10, most=16)
PLANS = {
    Size.FULL: Plans(80, 16, 16, 8, 100, Imitation(QUESTIONS, RULE, demonstrations=6000, epochs=4, turns=10)),
    Size.MINIATURE: Plans(
        2, 1, 2, 4, 4, Imitation(QUESTIONS, RULE, demonstrations=16, epochs=1, batch=8, rate=1e-2, turns=10)
    ),
}


def report_overlap(plan: Plans, seed: int = 0) -> Overlap:
    """Compare the questions of every training step with those of the evaluations."""
    return overlap_of(TESTED.held_out(plan.held_out), QUESTIONS.drawn(plan.steps * plan.tasks, seed))


def wandering(inputs: PlannerInput, _context: RuleContext) -> Plan:
    """Make the next look-up with a right tool, or one of a relation that the question does not name.

    The choice follows from the question and the turn, so that all rollouts of a task have the same records.
    """
    rng = Random(f"{inputs.question} {inputs.turn}")
    if (inputs.turn > 1 and rng.random() >= DETOURS) or inputs.remaining <= 4:
        return PLANNER_RULES["oracle"](inputs, RuleContext(0, inputs.turn))
    words = render_compact_question(inputs.question).split()
    others = [relation for relation in RELATIONS if render_compact_relation(relation) not in words]
    entities = build_entity_index(inputs.question, list_learned_facts(inputs.memory)).entities
    return plan_look_up(LookUp(rng.choice(others), rng.choice(entities)), rng.choice(inputs.tools).name)


def unknowing(inputs: WriterInput, context: RuleContext) -> ReportDraft:
    """Write the values of any record as the answer, and cite any records: the form without the knowledge."""
    rng = Random(f"{context.seed} {context.turn}")
    facts = [fact for record in list_shown_records(inputs) if (fact := fact_from_record(record))]
    stated = rng.choice([fact for fact in facts if fact.values] or [None])
    answer = ", ".join(stated.values) if stated else UNKNOWN_ANSWER
    return build_cited_report(inputs.question, answer, [fact for fact in facts if rng.random() < CITES])


def graph_setup() -> GraphSetup:
    from offing_graphs.agentflow import graph

    return GraphSetup(graph, "generator", rules={"planner": wandering}, scores=score)


def score(task: WorldTask, ctx: InMemoryContext, outcome: str) -> Mapping[str, float]:
    """Return the match of the short answer, the precision and recall of the citations, and the reward.

    Precision and recall are defined as those of the scorers `citation_precision` and `citation_recall`, for records in
    the place of passages. All are 0 if the completion could not be parsed, because a rule wrote the report then.
    """
    if outcome == Outcome.VIOLATED:
        return dict.fromkeys(("reward", "exact", "precision", "recall"), 0.0)
    written = ctx.report.answer.text.strip().casefold() if ctx.report.answer else ""
    exact = float(written in {answer.casefold() for answer in task.answers})
    facts = _reference_sentences(task, ctx)
    cited = [sentence.text for section in ctx.report.sections for sentence in section.sentences]
    precision = sum(text in facts for text in cited) / len(cited) if cited else 0.0
    recall = len(facts & set(cited)) / len(facts) if facts else 1.0
    reward = EXACT * exact + PRECISION * precision + RECALL * recall
    return {"reward": reward, "exact": exact, "precision": precision, "recall": recall}


def _reference_sentences(task: WorldTask, ctx: InMemoryContext) -> frozenset[str]:
    """Return the sentences of the look-ups that the reference answer rests on, among those that were made."""
    needed = {(one.relation, one.entity) for one in task.evidence}
    inputs = next(inputs for _, inputs in reversed(ctx.role_inputs) if isinstance(inputs, WriterInput))
    facts: list[KnownFact | None] = [fact_from_record(record) for record in inputs.memory]
    return frozenset(render_record_fact(f) for f in facts if f and f.values and (f.relation, f.entity) in needed)


def run(arm: str, seed: int, folder: Path, size: Size) -> Curve:
    plan = PLANS[size]
    start = start_of(folder, graph_setup(), plan.lesson, seed, {RULE: unknowing})
    work = folder / "work" / f"report-writing-{size}-{arm}-{seed}"
    shutil.rmtree(work, ignore_errors=True)
    try:
        return Curve(arm, seed, tuple(_points(arm, plan, start, seed, work)))
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _points(arm: str, plan: Plans, start: Path, seed: int, work: Path) -> Iterator[Point]:
    trained = Trained(start, merge_tables({"learner": {"seed": seed}}, TABLES[arm]))
    began, tasks = time.monotonic(), iter(QUESTIONS.drawn(plan.steps * plan.tasks, seed))
    first = opened(start, "start@1")
    for step in range(plan.steps + 1):
        policy = _published(trained, work)
        if step % plan.every == 0 or step == plan.steps:
            yield Point(step, time.monotonic() - began, evaluated(plan, policy))
        if step < plan.steps:
            speaker = first if arm == "rejection" else policy
            played = asyncio.run(play(graph_setup(), Table(speaker), _plan_rollouts(plan, tasks, seed, step), HOW))
            _train(arm, trained, played, step / plan.steps)


def _plan_rollouts(plan: Plans, tasks: Iterator[WorldTask], seed: int, step: int) -> list[PlannedRollout]:
    chosen = enumerate(islice(tasks, plan.tasks))
    base = (seed * 10_000 + step) * 1_000_000
    return [
        PlannedRollout(task, base + nth * 1_000 + member, member)
        for nth, task in chosen
        for member in range(plan.group)
    ]


def _train(arm: str, trained: Trained, played: Sequence[Played], progress: float) -> None:
    """Train a step. Without a perfect report among the rollouts, imitation has nothing to imitate."""
    if arm != "rejection" or any(one.reward >= 1.0 for one in played):
        trained.step(played, progress)


def _published(trained: Trained, work: Path) -> "LoadedPolicy":
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    return opened(trained.exported(work / "version"), trained.name)


def evaluated(plan: Plans, policy: "LoadedPolicy") -> dict[str, float]:
    """Evaluate on compositions that are never trained, sampled and greedy."""
    planned = [PlannedRollout(task, n) for n, task in enumerate(TESTED.held_out(plan.held_out))]
    results: dict[str, float] = {}
    for mode, temperature in (("sampled", 1.0), ("greedy", 0.0)):
        played = asyncio.run(play(graph_setup(), Table(policy), planned, replace(HOW, temperature=temperature)))
        for name in ("reward", "exact", "precision", "recall"):
            results[f"{mode}_{name}"] = fmean(one.scores[name] for one in played)
        results[f"{mode}_violated"] = fmean(one.outcome == Outcome.VIOLATED for one in played)
    return results


def read(curves: Sequence[Curve]) -> list[str]:
    """Return each arm against the start, and the arms against each other, with the detectable effect."""
    lines = ["| greedy, at the end | minus the start | could have been shown |", "|---|---|---|"]
    for arm, name in ((arm, name) for arm in EXPERIMENT.arms for name in ("exact", "precision", "recall", "violated")):
        ends, starts = (_values(curves, arm, f"greedy_{name}", index) for index in (-1, 0))
        lines.append(_row(f"{EXPERIMENT.arms[arm].title}, {name}", ends, starts))
    ours, theirs = (_values(curves, arm, "greedy_reward", -1) for arm in EXPERIMENT.arms)
    return [*lines, _row("Flow-GRPO minus rejection sampling, reward", ours, theirs)]


def _values(curves: Sequence[Curve], arm: str, metric: str, index: int) -> dict[int, float]:
    return {curve.seed: curve.points[index].figures[metric] for curve in curves if curve.arm == arm}


def _row(title: str, ours: Mapping[int, float], theirs: Mapping[int, float]) -> str:
    """Render a difference and the effect that as many seeds with this spread show in 80 of 100 cases."""
    difference = paired(ours, theirs)
    detectable = difference.detectable if difference else None
    effect = "-" if detectable is None else f"{detectable:.2f}"
    before = render_mean(mean_of(list(ours.values())), share=True)
    return f"| {title}: {before} | {render_mean(difference, signed=True)} | {effect} |"


EXPERIMENT = Experiment(
    name="report-writing",
    title="AgentFlow: a generator that writes the answer and its citations",
    claim="A generator that knows only the form of a report learns by Flow-GRPO which answer follows from the records "
    "and which of them state it, also for compositions that it never saw, and better than by imitating its own "
    "start's successes.",
    setup="The graph `agentflow` on chains of one to three relations in synthetic worlds; the generator writes `answer "
    "e2 m0 m3`, and nothing else writes or changes its report. A rule-based planner makes the necessary look-ups with "
    f"right tools, and first and {DETOURS:.0%} of the time later one of a relation that the question does not name, "
    "with any tool. The starting policy imitates demonstrations that answer with the values of a random record and "
    f"cite each record with probability {CITES}: they have the form and no knowledge. The reward is {EXACT} for the "
    f"right answer, and {PRECISION} each times precision and recall of the citations; what cannot be parsed is "
    "violated and has the reward 0. Training has 80 steps of 16 questions with eight rollouts each, in both arms at a "
    "learning rate of 4e-4. Held out: 100 questions of two and three relations, whose compositions are never trained, "
    "of another world (overlap in compact form: 0).",
    arms={
        "flow-grpo": Arm("Flow-GRPO", "rollouts of the current policy, advantages within the rollouts of a question."),
        "rejection": Arm(
            "rejection sampling", "as many rollouts of the start, of which those with the reward 1 are imitated."
        ),
    },
    figures={
        "greedy_reward": Metric("reward, greedy", share=True),
        "greedy_exact": Metric("right answers, greedy", share=True),
        "sampled_exact": Metric("right answers, sampled", share=True),
        "greedy_precision": Metric("citation precision, greedy", share=True),
        "greedy_recall": Metric("citation recall, greedy", share=True),
        "sampled_violated": Metric("completions that cannot be parsed, sampled", share=True),
    },
    run=run,
    read=read,
    overlap=lambda: report_overlap(PLANS[Size.FULL]),
)
