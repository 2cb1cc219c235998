"""Shared parts of the experiments on memory: look-ups that mostly fail, limited contexts, and a forgetful teacher.

A question is a chain of two or three look-ups. A look-up fails three times out of four and is then repeated, so a
rollout is long even if its policy knows the tools. Most of its context is useless, and the facts that were found must
be kept.
"""

from collections.abc import Mapping, Sequence
from random import Random
from statistics import fmean
from typing import Any

from offing.sdk import Graph, RuleContext, RuleFunction
from offing_graphs.memact.context import MIN_SUMMARY_TOKENS, ContextConfig
from offing_graphs.memact.graph import configure_graph
from offing_graphs.memact.prompts import estimate_size
from offing_graphs.memact.schemas import EDIT_ACTIONS as MEMORY
from offing_graphs.memact.schemas import PRUNE, Act, AgentInput
from offing_graphs.memact.state import MEMORY_CARDS
from offing_graphs.shared.schemas import ToolCard
from offing_world.lookup_rules import build_args, choose_oracle_tool, find_next_look_up
from offing_world.memact.facts import list_known_facts, list_record_facts, render_facts, select_needed_facts
from offing_world.memact.rule_roles import build_answer
from offing_world.question_solver import KnownFact, find_missing_look_ups
from tests.graphs.world_runs import SPECS
from tests.results.experiment import Curve, Size
from tests.results.intervals import mean_of
from tests.results.pages import render_mean
from tests.results.questions import Questions
from tests.results.starting_policies import Imitation

QUESTIONS = Questions(hops=(2, 3), kinds=("chain",))
OUTAGE = 0.75
"""Share of look-ups that fail."""
TURNS = 36
COMPLETION = 48
"""Maximum tokens of a completion. An edit of ten records with a note of five facts has fewer."""

WHOLE = 880
"""Limit of records in tokens, by the graph's own estimate: nine in ten rollouts that use the right tools and never
remove a record stay below it. Instructions, tools and the question are not included."""
QUARTER = WHOLE // 4
SUMMARIES = 12
"""Maximum number in a rollout. With a quarter of the context, fewer are needed in the given number of turns."""

TYPICAL = "What is the home of the teacher of Marel Hollow?"
"""A question of typical length."""

EDITS, SPARES, NOTES, SUMS_UP, BLIND = 0.6, 0.3, 0.95, 0.3, 0.1
"""Probabilities of the forgetful teacher: that it edits in a turn; that an edit keeps a record; that it notes a needed
fact which an edit removes; that a summary contains a needed fact; that it selects a random tool."""


def editing(room: int) -> Graph:
    """Return the graph that edits its memory, with this limit of tokens."""
    config = ContextConfig(_bare(edits=True) + room, 400, allows_edits=True, shows_room=False)
    return configure_graph(f"memact-{room}", "", "", config)


def summing_up(room: int, summaries: int = SUMMARIES) -> Graph:
    """Return the graph that writes a summary when its records reach the limit. With 0 summaries, it ends there."""
    full = _bare(edits=False) + room
    config = ContextConfig(
        full + MIN_SUMMARY_TOKENS, 400, allows_edits=False, summarize_at_tokens=full, max_summaries=summaries
    )
    return configure_graph(f"supo-{room}-{summaries}", "", "", config)


def _bare(*, edits: bool) -> int:
    """Return the estimated tokens of a context without records."""
    cards = tuple(
        ToolCard(name=t.name, description=t.description, parameters=t.args.model_json_schema()) for t in SPECS
    )
    cards = (*cards, *MEMORY_CARDS) if edits else cards
    return estimate_size(
        AgentInput(
            question=TYPICAL,
            tools=cards,
            max_context_tokens=9_999,
            allows_edits=edits,
            shows_room=False,
            turn=1,
            remaining=1,
        )
    )


def forgetful(inputs: AgentInput, context: RuleContext) -> Act:
    """Look up what is missing, mostly with the right tool, and edit or summarize at random."""
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
    """Keep only what is needed and use the right tool: the best possible agent."""
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
    """Do the same as `careful`, but never remove a record."""
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


def imitation(size: Size, demonstrations: int) -> Imitation:
    """Use few rollouts per step, because each has many segments."""
    if size is Size.MINIATURE:
        return Imitation(QUESTIONS, "forgetful", demonstrations=8, epochs=1, batch=4, turns=8)
    return Imitation(QUESTIONS, "forgetful", demonstrations=demonstrations, epochs=6, batch=4, turns=TURNS)


def ends(curves: Sequence[Curve], arms: Mapping[str, str]) -> list[str]:
    """Return a table of success before, after, and averaged over all evaluations. `arms` maps names to titles."""
    lines = ["| success | at the start | at the end | mean of all evaluations |", "|---|---|---|---|"]
    for arm, title in arms.items():
        own = [curve.points for curve in curves if curve.arm == arm]
        for mode in ("sampled", "greedy"):
            series = [[point.figures[f"{mode}_success"] for point in points] for points in own]
            moments = ([one[0] for one in series], [one[-1] for one in series], [fmean(one) for one in series])
            cells = " | ".join(render_mean(mean_of(values), share=True) for values in moments)
            lines.append(f"| {title}, {mode} | {cells} |")
    return lines
