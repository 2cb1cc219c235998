"""Rule-based researchers: `oracle` and `random` for worlds, `steady` for any number of turns.

In a synthetic world the rule chooses only the tool. The look-up follows from the question
and the known facts. The small planner's `compact` format leaves everything else to these
rules, too.
"""

import re
from collections.abc import Mapping, Sequence

from offing.sdk import ReportDraft, RuleContext, RuleFunction, shorten_line
from offing_graphs.extractive.arguments import EXPRESSION_NAMES, QUERY_NAMES
from offing_graphs.iterresearch.schemas import Call, Round, TurnPhase, Workspace, build_output
from offing_graphs.shared.schemas import ToolCard
from offing_world.lookup_rules import (
    TOOL_CHOOSERS,
    UNKNOWN_ANSWER,
    build_args,
    build_solution_report,
    find_next_look_up,
)
from offing_world.question_solver import KnownFact, LookUp, extract_entities, fact_from_call
from offing_world.semantics import RELATIONS

KNOWN, NONE = "Known so far:", "none"
_FACT_PATTERN = re.compile(r"- (\w+) of (.+?): (.+)")
STEADY_REPORT_LINES = 12


def list_known_facts(inputs: Workspace) -> tuple[KnownFact, ...]:
    """Return the facts in the report, corrected by the last result."""
    facts = {
        (k.relation, k.entity): k
        for k in (*parse_report_facts(inputs.report), *list_new_facts(inputs))
        if k.values or k.closed
    }
    return tuple(facts.values())


def build_look_up_turn(inputs: Workspace, look_up: LookUp, tool: str) -> Round:
    """Build the output that keeps all known facts and makes a look-up with a tool."""
    return build_look_up_output(inputs, list_known_facts(inputs), look_up, tool)


def build_look_up_output(inputs: Workspace, facts: Sequence[KnownFact], look_up: LookUp, tool: str) -> Round:
    """Build the output that keeps these facts in its report and makes a look-up with a tool."""
    sought = f"the {look_up.relation} of {look_up.entity}"
    return build_output(
        inputs.phase,
        think=f"What is missing is {sought}.",
        report=f"{_render_facts(facts)}\nNext: {sought}.",
        action=Call(tool=tool, args=build_args(look_up)),
    )


def build_answer_turn(inputs: Workspace) -> Round:
    """Build the output that answers from the known facts, whether or not they are sufficient."""
    known = list_known_facts(inputs)
    return build_answer_output(inputs, known, build_solution_report(inputs.question, known))


def build_answer_output(inputs: Workspace, facts: Sequence[KnownFact], draft: ReportDraft) -> Round:
    """Build the output that keeps these facts in its report and ends the work with an answer."""
    enough = draft.answer != UNKNOWN_ANSWER
    think = "Nothing is missing." if enough else "It is not known."
    return build_output(inputs.phase, think=think, report=_render_facts(facts), answer=draft, answered=enough)


def is_solved(inputs: Workspace) -> bool:
    """Return whether the known facts are sufficient for an answer."""
    return build_solution_report(inputs.question, list_known_facts(inputs)).answer != UNKNOWN_ANSWER


def _build_world_rule(name: str) -> RuleFunction[Workspace, Round]:
    def rule(inputs: Workspace, context: RuleContext) -> Round:
        if inputs.phase is TurnPhase.FINAL or (inputs.phase is TurnPhase.MIDDLE and is_solved(inputs)):
            return build_answer_turn(inputs)
        need = find_next_look_up(inputs.question, list_known_facts(inputs))
        return build_look_up_turn(inputs, need, TOOL_CHOOSERS[name](need, context, tuple(t.name for t in inputs.tools)))

    return rule


def call_until_final(inputs: Workspace, context: RuleContext) -> Round:
    """Call a tool in every turn until an answer is required.

    The report always has the same length.
    """
    report = "\n".join(
        f"Round {context.turn:06d}, line {n:02d}: what was known before still holds."
        for n in range(STEADY_REPORT_LINES)
    )
    if inputs.phase is TurnPhase.FINAL:
        draft = ReportDraft(title=shorten_line(inputs.question, 120), answer=f"{context.turn} rounds.", sections=())
        return build_output(inputs.phase, think="It is over.", report=report, answer=draft)
    return build_output(inputs.phase, think="On and on.", report=report, action=_build_cheap_call(inputs, context.turn))


def _build_cheap_call(inputs: Workspace, turn: int) -> Call:
    """Build a cheap call of an available tool: a calculation, a look-up or a search."""
    args = {card.name: _build_cheap_args(card, inputs.question, turn) for card in inputs.tools}
    cheapest = min(args, key=lambda name: ("expression" not in args[name], "relation" not in args[name]))
    return Call(tool=cheapest, args=args[cheapest])


def _build_cheap_args(card: ToolCard, question: str, turn: int) -> dict[str, str]:
    names: Mapping[str, object] = card.parameters.get("properties", {})
    if name := next((n for n in EXPRESSION_NAMES if n in names), ""):
        return {name: f"{turn} + 1"}
    if "relation" in names:
        return {
            "relation": RELATIONS[turn % len(RELATIONS)],
            "entity": next(iter(extract_entities(question)), "Nobody"),
        }
    name = next((n for n in QUERY_NAMES if n in names), "")
    return {name: shorten_line(question, 400)} if name else {}


def list_new_facts(inputs: Workspace) -> tuple[KnownFact, ...]:
    """Return the facts of the last result. Empty means that it holds none."""
    if inputs.action is None or inputs.result is None or inputs.result.message:
        return ()
    fact = fact_from_call(inputs.action.args, inputs.result.content)
    return (fact,) if fact else ()


def parse_report_facts(report: str) -> tuple[KnownFact, ...]:
    """Return the facts that a report states. Other lines are ignored."""
    facts = (m for line in report.split("\n") if (m := _FACT_PATTERN.fullmatch(line)))
    return tuple(KnownFact(m[1], m[2], () if m[3] == NONE else tuple(m[3].split(", ")), m[3] == NONE) for m in facts)


def _render_facts(known: Sequence[KnownFact]) -> str:
    lines = [f"- {k.relation} of {k.entity}: {', '.join(k.values) or NONE}" for k in known]
    return "\n".join([KNOWN, *(lines or ["nothing yet"])])


RULES_BY_NAME: Mapping[str, RuleFunction[Workspace, Round]] = {
    **{name: _build_world_rule(name) for name in TOOL_CHOOSERS},
    "steady": call_until_final,
}
