"""Who answers the agent in a made-up world: `oracle` with the right tool, `random` with any tool.

Both look up what is needed next, keep their context short by noting facts, and answer when nothing is missing.
"""

from collections.abc import Mapping

from offing.sdk import Rule, Seat
from offing.world.solving import Known, answer, needs
from offing_graphs.memact.context import EDITS, PRUNE
from offing_graphs.memact.facts import facts_text, known_in, needed
from offing_graphs.memact.shapes import Act, AgentInput
from offing_graphs.parts.world import TOOL_BY, args_for, next_need, solved

MANY = 3
"""Live records from which they are pruned into a note."""


def _rule(name: str) -> Rule[AgentInput, Act]:
    def act(given: AgentInput, seat: Seat) -> Act:
        known = known_in(given)
        if given.ask == "summary":
            return Act(summary=facts_text(needed(given.question, known)))
        if given.ask == "answer" or not needs(given.question, known):
            return answering(given, known)
        live = [entry.id for entry in given.records]
        if given.edits and len(live) >= MANY:
            note = facts_text(needed(given.question, known))
            return Act(tool=PRUNE, args={"delete_ids": live, "note": note})
        need = next_need(given.question, known)
        tools = tuple(t.name for t in given.tools if t.name not in EDITS)
        return Act(tool=TOOL_BY[name](need, seat, tools), args=dict(args_for(need)))

    return act


def answering(given: AgentInput, known: tuple[Known, ...]) -> Act:
    """What the known facts come to."""
    found = answer(given.question, known) is not None
    return Act(answer=solved(given.question, known), found=found)


RULES: Mapping[str, Rule[AgentInput, Act]] = {name: _rule(name) for name in TOOL_BY}
