"""Who answers the agent in a made-up world: `oracle` and `random`, which differ in the tool that they take.

A subgoal is one relation, of whatever entities it is needed: looking up three births is one segment of three turns.
"""

from collections.abc import Mapping

from offing.sdk import Rule, Seat
from offing.world.solving import Need, needs
from offing_graphs.hiper.forms import LOOKS_UP
from offing_graphs.hiper.shapes import ANSWER, Action, AgentInput, Switch, Turn
from offing_graphs.parts.world import TOOL_BY, args_for, learned, solved


def _agent(name: str) -> Rule[AgentInput, Turn]:
    def turn(given: AgentInput, seat: Seat) -> Turn:
        known = learned(given.memory)
        missing = needs(given.question, known)
        if given.reason or not missing:
            return Turn(subgoal=given.subgoal, action=Action(tool=ANSWER, report=solved(given.question, known)))
        tool = TOOL_BY[name](missing[0], seat, tuple(t.name for t in given.tools))
        return _look_up(missing[0], tool, given.subgoal)

    return turn


def _look_up(need: Need, tool: str, current: str) -> Turn:
    goal = LOOKS_UP + need.relation
    switch = Switch.KEEP if goal == current else Switch.SWITCH
    return Turn(switch=switch, subgoal=goal, action=Action(tool=tool, args=dict(args_for(need))))


AGENT: Mapping[str, Rule[AgentInput, Turn]] = {name: _agent(name) for name in TOOL_BY}
