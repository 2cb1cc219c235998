"""Rule-based agents for synthetic worlds: `oracle` uses a right tool, `random` any tool.

Both make the next look-up, keep their context short by noting facts, and answer if nothing
is missing.
"""

from collections.abc import Mapping

from offing.sdk import RuleContext, RuleFunction
from offing_graphs.memact.schemas import EDIT_ACTIONS, PRUNE, Act, AgentInput
from offing_world.lookup_rules import TOOL_CHOOSERS, build_args, build_solution_report, find_next_look_up
from offing_world.memact.facts import list_known_facts, render_facts, select_needed_facts
from offing_world.question_solver import KnownFact, find_answer, find_missing_look_ups

MIN_RECORDS_TO_PRUNE = 3
"""Minimum number of records that are pruned into a note."""


def _build_rule(name: str) -> RuleFunction[AgentInput, Act]:
    def act(inputs: AgentInput, context: RuleContext) -> Act:
        known = list_known_facts(inputs)
        if inputs.request == "summary":
            return Act(summary=render_facts(select_needed_facts(inputs.question, known)))
        if inputs.request == "answer" or not find_missing_look_ups(inputs.question, known):
            return build_answer(inputs, known)
        live = [entry.id for entry in inputs.records]
        if inputs.allows_edits and len(live) >= MIN_RECORDS_TO_PRUNE:
            note = render_facts(select_needed_facts(inputs.question, known))
            return Act(tool=PRUNE, args={"delete_ids": live, "note": note})
        need = find_next_look_up(inputs.question, known)
        tools = tuple(t.name for t in inputs.tools if t.name not in EDIT_ACTIONS)
        return Act(tool=TOOL_CHOOSERS[name](need, context, tools), args=dict(build_args(need)))

    return act


def build_answer(inputs: AgentInput, known: tuple[KnownFact, ...]) -> Act:
    """Build the answer that follows from the known facts."""
    is_answered = find_answer(inputs.question, known) is not None
    return Act(answer=build_solution_report(inputs.question, known), found=is_answered)


RULES_BY_NAME: Mapping[str, RuleFunction[AgentInput, Act]] = {name: _build_rule(name) for name in TOOL_CHOOSERS}
