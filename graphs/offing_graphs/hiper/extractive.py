"""The agent without a model: same input, same answer, no I/O. The `extractive` engine only calls this.

Its subgoals are the parts of the question: it keeps one while something is left to do for it, as far as the turns last
for all of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from offing.sdk import ReportDraft, RunView, shortened
from offing_graphs.extractive import report as extractive_report
from offing_graphs.extractive.agenda import OTHER_FORMS, Agenda, Move, agenda, asked_for
from offing_graphs.extractive.analysis import analysis_of
from offing_graphs.extractive.arguments import arguments
from offing_graphs.hiper.shapes import ANSWER, GIVE_UP, Action, AgentInput, Switch, Turn
from offing_graphs.parts.shapes import Case, Exchange, Piece, Plan, Record, WriterInput

LONGEST_SUBGOAL = 400


@dataclass(frozen=True, slots=True)
class Step:
    """A move as the call that it makes, under the subgoal that it serves."""

    subgoal: str
    needed: bool
    tool: str
    args: dict[str, Any]


def agent(given: AgentInput) -> Turn:
    """The next step that is left, or the report where nothing more helps."""
    parts = asked_for(analysis_of(given).sub_questions, given.wishes)
    now = agenda(given.question, parts, given.memory, given.evidence, given.tools)
    left = [step for step in (_step(move, given) for move in now.moves) if not _taken(step, given.memory)]
    enough = not left or (now.covered and not any(step.needed for step in left))
    if given.reason or enough:
        return _ending(given, now)
    step = _chosen(left, given)
    switch = Switch.KEEP if step.subgoal == given.subgoal else Switch.SWITCH
    return Turn(switch=switch, subgoal=step.subgoal, action=Action(tool=step.tool, args=step.args))


def model_free_report(given: AgentInput, reason: str) -> ReportDraft:
    """A report of quotes, for any reason and any evidence, also none."""
    writer = WriterInput(
        question=given.question,
        earlier=given.earlier,
        wishes=given.wishes,
        analysis=analysis_of(given),
        memory=given.memory,
        evidence=given.evidence,
        reason=reason,
    )
    return extractive_report.report(writer)


def salvage(run: RunView, evidence: tuple[Piece, ...]) -> ReportDraft:
    """A report of what was retrieved, for a run that ended before its agent could write."""
    earlier = tuple(Exchange(question=q, answer=a) for q, a in run.earlier)
    case = Case(question=run.question, earlier=earlier)
    given = AgentInput(**case.model_dump(), tools=(), evidence=evidence, turn=0, remaining=0)
    return model_free_report(given, "")


def _step(move: Move, given: AgentInput) -> Step:
    """Looking for other forms of words is a subgoal of its own; all else serves the part of the question."""
    goal = move.sub_goal if move.sub_goal.startswith(OTHER_FORMS) or not move.part else move.part
    card = next(t for t in given.tools if t.name == move.tool)
    plan = Plan(justification=move.why, context=move.context, sub_goal=move.sub_goal, tool=move.tool)
    return Step(shortened(goal, LONGEST_SUBGOAL), move.needed, move.tool, arguments(plan, card, given.evidence))


def _taken(step: Step, memory: Sequence[Record]) -> bool:
    return any((r.tool, r.args, r.sub_goal) == (step.tool, step.args, step.subgoal) for r in memory)


def _chosen(left: Sequence[Step], given: AgentInput) -> Step:
    """What is needed comes first; among that, what serves the current subgoal, if the turns last for the rest."""
    needed = [step for step in left if step.needed] or left
    if len(needed) >= given.remaining:
        return needed[0]
    return next((step for step in needed if step.subgoal == given.subgoal), needed[0])


def _ending(given: AgentInput, now: Agenda) -> Turn:
    found = any(s.covered for s in now.standings)
    report = model_free_report(given, given.reason)
    return Turn(subgoal=given.subgoal, action=Action(tool=ANSWER if found else GIVE_UP, report=report))
