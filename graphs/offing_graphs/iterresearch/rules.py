"""Who answers the researcher by rules: `oracle` and `random` in a made-up world, `steady` for any number of rounds.

In a world the only choice is the tool; what has to be looked up follows from the question and from what is known. The
small planner's `compact` form leaves everything but that choice to these rules, too.
"""

import re
from collections.abc import Mapping

from offing.sdk import ReportDraft, Rule, Seat, shortened
from offing.world.semantics import RELATIONS
from offing.world.solving import Known, Need, entities_in, known_of
from offing_graphs.extractive.arguments import QUERY, SUM
from offing_graphs.iterresearch.shapes import Call, Round, Stage, Workspace, round_of
from offing_graphs.parts.shapes import Card
from offing_graphs.parts.world import TOOL_BY, UNKNOWN, args_for, next_need, solved

KNOWN, NONE = "Known so far:", "none"
_FACT = re.compile(r"- (\w+) of (.+?): (.+)")
STEADY_LINES = 12


def known_in(given: Workspace) -> tuple[Known, ...]:
    """What the report holds, corrected by what just came back."""
    facts = {(k.relation, k.entity): k for k in (*_reported(given.report), *_learned(given)) if k.values or k.closed}
    return tuple(facts.values())


def looking_up(given: Workspace, need: Need, tool: str) -> Round:
    """The round that asks a tool for one thing."""
    sought = f"the {need.relation} of {need.entity}"
    report = f"{_told(known_in(given))}\nNext: {sought}."
    return round_of(
        given.stage, think=f"What is missing is {sought}.", report=report, action=Call(tool=tool, args=args_for(need))
    )


def answering(given: Workspace) -> Round:
    """The round that answers with what is known, enough or not."""
    known = known_in(given)
    draft = solved(given.question, known)
    enough = draft.answer != UNKNOWN
    think = "Nothing is missing." if enough else "It is not known."
    return round_of(given.stage, think=think, report=_told(known), answer=draft, answered=enough)


def solves(given: Workspace) -> bool:
    """What is known is enough for an answer."""
    return solved(given.question, known_in(given)).answer != UNKNOWN


def _in_a_world(name: str) -> Rule[Workspace, Round]:
    def rule(given: Workspace, seat: Seat) -> Round:
        if given.stage is Stage.FINAL or (given.stage is Stage.MIDDLE and solves(given)):
            return answering(given)
        need = next_need(given.question, known_in(given))
        return looking_up(given, need, TOOL_BY[name](need, seat, tuple(t.name for t in given.tools)))

    return rule


def steady(given: Workspace, seat: Seat) -> Round:
    """Calls a tool round after round until it must answer, with a report that is always of the same length."""
    report = "\n".join(
        f"Round {seat.turn:06d}, line {n:02d}: what was known before still holds." for n in range(STEADY_LINES)
    )
    if given.stage is Stage.FINAL:
        draft = ReportDraft(title=shortened(given.question, 120), answer=f"{seat.turn} rounds.", sections=())
        return round_of(given.stage, think="It is over.", report=report, answer=draft)
    return round_of(given.stage, think="On and on.", report=report, action=_some_call(given, seat.turn))


def _some_call(given: Workspace, turn: int) -> Call:
    """A cheap call of a tool that there is: a sum, a look-up or a search."""
    args = {card.name: _some_args(card, given.question, turn) for card in given.tools}
    cheapest = min(args, key=lambda name: ("expression" not in args[name], "relation" not in args[name]))
    return Call(tool=cheapest, args=args[cheapest])


def _some_args(card: Card, question: str, turn: int) -> dict[str, str]:
    names: Mapping[str, object] = card.parameters.get("properties", {})
    if name := next((n for n in SUM if n in names), ""):
        return {name: f"{turn} + 1"}
    if "relation" in names:
        return {"relation": RELATIONS[turn % len(RELATIONS)], "entity": next(iter(entities_in(question)), "Nobody")}
    name = next((n for n in QUERY if n in names), "")
    return {name: shortened(question, 400)} if name else {}


def _learned(given: Workspace) -> tuple[Known, ...]:
    """What just came back. Empty: nothing that can be known."""
    if given.action is None or given.result is None or given.result.message:
        return ()
    fact = known_of(given.action.args, given.result.content)
    return (fact,) if fact else ()


def _reported(report: str) -> tuple[Known, ...]:
    facts = (m for line in report.split("\n") if (m := _FACT.fullmatch(line)))
    return tuple(Known(m[1], m[2], () if m[3] == NONE else tuple(m[3].split(", ")), m[3] == NONE) for m in facts)


def _told(known: tuple[Known, ...]) -> str:
    lines = [f"- {k.relation} of {k.entity}: {', '.join(k.values) or NONE}" for k in known]
    return "\n".join([KNOWN, *(lines or ["nothing yet"])])


RULES: Mapping[str, Rule[Workspace, Round]] = {**{name: _in_a_world(name) for name in TOOL_BY}, "steady": steady}
