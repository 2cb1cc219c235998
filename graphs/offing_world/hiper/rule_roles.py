"""Rule-based agents for synthetic worlds: `oracle` and `random`, which differ in the choice of a tool.

A subgoal is one relation of any entity. Looking up three births is one segment of three
turns.
"""

from collections.abc import Mapping

from offing.sdk import RuleContext, RuleFunction
from offing_graphs.hiper.schemas import ANSWER, Action, AgentInput, Switch, Turn
from offing_world.hiper.compact_format import LOOK_UP_PREFIX
from offing_world.lookup_rules import TOOL_CHOOSERS, build_args, build_solution_report, list_learned_facts
from offing_world.question_solver import LookUp, find_missing_look_ups


def _build_agent_rule(name: str) -> RuleFunction[AgentInput, Turn]:
    def turn(inputs: AgentInput, context: RuleContext) -> Turn:
        known = list_learned_facts(inputs.memory)
        missing = find_missing_look_ups(inputs.question, known)
        if inputs.reason or not missing:
            return Turn(
                subgoal=inputs.subgoal, action=Action(tool=ANSWER, report=build_solution_report(inputs.question, known))
            )
        tool = TOOL_CHOOSERS[name](missing[0], context, tuple(t.name for t in inputs.tools))
        return _build_look_up_turn(missing[0], tool, inputs.subgoal)

    return turn


def _build_look_up_turn(look_up: LookUp, tool: str, current: str) -> Turn:
    goal = LOOK_UP_PREFIX + look_up.relation
    switch = Switch.KEEP if goal == current else Switch.SWITCH
    return Turn(switch=switch, subgoal=goal, action=Action(tool=tool, args=dict(build_args(look_up))))


AGENT_RULES: Mapping[str, RuleFunction[AgentInput, Turn]] = {name: _build_agent_rule(name) for name in TOOL_CHOOSERS}
