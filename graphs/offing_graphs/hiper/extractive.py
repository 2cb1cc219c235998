"""The agent without a model, as pure functions.

The `extractive` engine calls only these functions. The subgoals are the parts
of the question. The agent keeps a subgoal while actions remain for it and enough turns are
left for the other parts.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from offing.sdk import shorten_line
from offing_graphs.extractive.agenda import OTHER_FORMS_PREFIX, Agenda, CandidateAction, build_agenda
from offing_graphs.extractive.analysis import analyze_task
from offing_graphs.extractive.arguments import build_arguments
from offing_graphs.extractive.coverage import list_parts
from offing_graphs.hiper.schemas import ANSWER, GIVE_UP, Action, AgentInput, Switch, Turn
from offing_graphs.shared.report import build_quote_report
from offing_graphs.shared.schemas import MemoryRecord

MAX_SUBGOAL_CHARS = 400


@dataclass(frozen=True, slots=True)
class PlannedAction:
    """A candidate action as a tool call, with the subgoal that it serves."""

    subgoal: str
    needed: bool
    tool: str
    args: dict[str, Any]


def choose_turn(inputs: AgentInput) -> Turn:
    """Choose the next action, or write the report if no action would help."""
    parts = list_parts(analyze_task(inputs).sub_questions, inputs.user_messages)
    agenda = build_agenda(inputs.question, parts, inputs.memory, inputs.evidence, inputs.tools)
    left = [
        step for step in (_plan_action(move, inputs) for move in agenda.actions) if not _is_taken(step, inputs.memory)
    ]
    enough = not left or (agenda.is_covered and not any(step.needed for step in left))
    if inputs.reason or enough:
        return _build_final_turn(inputs, agenda)
    step = _choose_action(left, inputs)
    switch = Switch.KEEP if step.subgoal == inputs.subgoal else Switch.SWITCH
    return Turn(switch=switch, subgoal=step.subgoal, action=Action(tool=step.tool, args=step.args))


def _plan_action(candidate: CandidateAction, inputs: AgentInput) -> PlannedAction:
    """Build the tool call of a candidate action.

    Searching for other word forms is a separate subgoal. Every other action serves a part of
    the question.
    """
    goal = (
        candidate.sub_goal
        if candidate.sub_goal.startswith(OTHER_FORMS_PREFIX) or not candidate.part
        else candidate.part
    )
    card = next(t for t in inputs.tools if t.name == candidate.tool)
    args = build_arguments(candidate.to_plan(), card, inputs.evidence)
    return PlannedAction(shorten_line(goal, MAX_SUBGOAL_CHARS), candidate.needed, candidate.tool, args)


def _is_taken(action: PlannedAction, memory: Sequence[MemoryRecord]) -> bool:
    return any((r.tool, r.args, r.sub_goal) == (action.tool, action.args, action.subgoal) for r in memory)


def _choose_action(remaining_actions: Sequence[PlannedAction], inputs: AgentInput) -> PlannedAction:
    """Choose an action. Required actions come first.

    Among them, actions for the current subgoal come first if enough turns are left for all of
    them.
    """
    needed = [step for step in remaining_actions if step.needed] or remaining_actions
    if len(needed) >= inputs.remaining:
        return needed[0]
    return next((step for step in needed if step.subgoal == inputs.subgoal), needed[0])


def _build_final_turn(inputs: AgentInput, agenda: Agenda) -> Turn:
    report = build_quote_report(inputs, inputs.evidence, inputs.memory, inputs.reason)
    tool = ANSWER if agenda.is_answered else GIVE_UP
    return Turn(subgoal=inputs.subgoal, action=Action(tool=tool, report=report))
