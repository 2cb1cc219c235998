"""What experiments on memory share: look-ups that mostly fail, rooms for records, and a teacher that forgets.

How long a context has to be here. A look-up fails four times of five and is then asked again, so
that a rollout is long whatever its policy knows of tools; most of what fills its context is worth nothing, and what was
found is worth keeping.
"""

from collections.abc import Mapping, Sequence
from random import Random
from statistics import fmean
from typing import Any

from offing.sdk import Graph, RuleContext, RuleFunction
from offing_graphs.memact.context import EDIT_ACTIONS as MEMORY
from offing_graphs.memact.context import MIN_SUMMARY_TOKENS, PRUNE, ContextConfig
from offing_graphs.memact.graph import configure_graph
from offing_graphs.memact.prompts import estimate_size
from offing_graphs.memact.schemas import Act, AgentInput
from offing_graphs.memact.state import MEMORY_CARDS
from offing_graphs.shared.schemas import ToolCard
from offing_world.look_up_rules import build_args, choose_oracle_tool, find_next_look_up
from offing_world.memact.facts import list_known_facts, list_record_facts, render_facts, select_needed_facts
from offing_world.memact.rule_roles import build_answer
from offing_world.question_solver import KnownFact, find_missing_look_ups
from tests.graphs.world_runs import SPECS
from tests.results.experiment import Curve, Size
from tests.results.intervals import mean_of
from tests.results.pages import render_mean
from tests.results.questions import Questions
from tests.results.starting_policies import Imitation

QUESTIONS = Questions(hops=(2, 2), kinds=("lookup",))
OUTAGE = 0.8
"""Share of look-ups that fail."""
TURNS = 28
COMPLETION = 24
"""Tokens of one at most: an edit of ten records with a note of two facts has 23."""

WHOLE = 880
"""Room for records, in the graph's own estimate of tokens: what nine in ten rollouts get by with that use the right
tools and never remove a record. Instructions, tools and the question come on top."""
QUARTER = WHOLE // 4
SUMMARIES = 12
"""At most in a rollout; a quarter's room takes fewer in the given number of turns."""

TYPICAL = "What is the home of the teacher of Marel Hollow?"
"""A question about as long as all."""

EDITS, SPARES, NOTES, SUMS_UP, BLIND = 0.45, 0.3, 0.7, 0.3, 0.1
"""Of the forgetful teacher, as chances: that it edits in a turn; that an edit spares a record; that a needed fact which
an edit removes is noted; that a summary holds a needed fact; that it takes just any tool."""


def editing(room: int) -> Graph:
    """The graph that edits its memory, with so much room."""
    return configure_graph(f"memact-{room}", "", "", ContextConfig(_bare(edits=True) + room, 400, allows_edits=True))


def summing_up(room: int, summaries: int = SUMMARIES) -> Graph:
    """The graph that is asked for a summary when its records fill the room; 0 summaries: it ends there."""
    full = _bare(edits=False) + room
    config = ContextConfig(
        full + MIN_SUMMARY_TOKENS, 400, allows_edits=False, summarize_at_tokens=full, max_summaries=summaries
    )
    return configure_graph(f"supo-{room}-{summaries}", "", "", config)


def _bare(*, edits: bool) -> int:
    """Estimated tokens of a context without a record."""
    cards = tuple(
        ToolCard(name=t.name, description=t.description, parameters=t.args.model_json_schema()) for t in SPECS
    )
    cards = (*cards, *MEMORY_CARDS) if edits else cards
    return estimate_size(
        AgentInput(question=TYPICAL, tools=cards, max_context_tokens=9_999, allows_edits=edits, turn=1, remaining=1)
    )


def forgetful(inputs: AgentInput, context: RuleContext) -> Act:
    """Looks up what is missing, mostly with the right tool, and edits or sums up as if by the throw of a die."""
    rng, known = Random(f"{context.seed} {context.turn} {inputs.request}"), list_known_facts(inputs)
    if inputs.request == "summary":
        return Act(
            summary=render_facts([k for k in select_needed_facts(inputs.question, known) if rng.random() < SUMS_UP])
        )
    if inputs.request == "answer" or not find_missing_look_ups(inputs.question, known):
        return build_answer(inputs, known)
    if inputs.allows_edits and inputs.records and rng.random() < EDITS:
        return _erratic_edit(inputs, known, rng)
    return _look_up(inputs, known, rng, BLIND)


def careful(inputs: AgentInput, context: RuleContext) -> Act:
    """Keeps what is needed and nothing else, and uses the right tool: as good as the graph allows."""
    known = list_known_facts(inputs)
    if inputs.request == "summary":
        return Act(summary=render_facts(select_needed_facts(inputs.question, known)))
    if inputs.request == "answer" or not find_missing_look_ups(inputs.question, known):
        return build_answer(inputs, known)
    fresh = [entry for entry in inputs.records if entry.action.tool not in MEMORY]
    if inputs.allows_edits and len(fresh) >= 2:
        return _pruned([entry.id for entry in inputs.records], select_needed_facts(inputs.question, known))
    return _look_up(inputs, known, Random(0), 0.0)


def hoarding(inputs: AgentInput, context: RuleContext) -> Act:
    """As the careful one, and never removes anything."""
    return careful(inputs.model_copy(update={"allows_edits": False}), context)


RULES: Mapping[str, RuleFunction[Any, Any]] = {"forgetful": forgetful, "careful": careful, "hoarding": hoarding}


def _look_up(inputs: AgentInput, known: Sequence[KnownFact], rng: Random, blind: float) -> Act:
    need = find_next_look_up(inputs.question, known)
    tools = [tool.name for tool in inputs.tools if tool.name not in MEMORY]
    tool = rng.choice(tools) if rng.random() < blind else choose_oracle_tool(need, RuleContext(0, 0), tools)
    return Act(tool=tool, args=dict(build_args(need)))


def _erratic_edit(inputs: AgentInput, known: Sequence[KnownFact], rng: Random) -> Act:
    deleted = [entry for entry in inputs.records if rng.random() >= SPARES] or [rng.choice(inputs.records)]
    messages = {fact for entry in deleted for fact in list_record_facts(entry)}
    noted = [fact for fact in select_needed_facts(inputs.question, known) if fact in messages and rng.random() < NOTES]
    return _pruned([entry.id for entry in deleted], noted)


def _pruned(ids: Sequence[str], facts: Sequence[KnownFact]) -> Act:
    note = render_facts(facts) if facts else ""
    return Act(tool=PRUNE, args={"delete_ids": list(ids), "note": note})


def imitation(size: Size) -> Imitation:
    """Few rollouts a step: each has many segments."""
    if size is Size.MINIATURE:
        return Imitation(QUESTIONS, "forgetful", demonstrations=8, epochs=1, batch=4, turns=8)
    return Imitation(QUESTIONS, "forgetful", demonstrations=800, epochs=8, batch=4, turns=TURNS)


def ends(curves: Sequence[Curve], arms: Mapping[str, str]) -> list[str]:
    """A table of success before, after, and as the mean of all evaluations; `arms`: name to title."""
    lines = ["| success | at the start | at the end | mean of all evaluations |", "|---|---|---|---|"]
    for arm, title in arms.items():
        own = [curve.points for curve in curves if curve.arm == arm]
        for mode in ("sampled", "greedy"):
            series = [[point.figures[f"{mode}_success"] for point in points] for points in own]
            moments = ([one[0] for one in series], [one[-1] for one in series], [fmean(one) for one in series])
            cells = " | ".join(render_mean(mean_of(values), share=True) for values in moments)
            lines.append(f"| {title}, {mode} | {cells} |")
    return lines
