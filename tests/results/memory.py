"""What experiments on memory share: look-ups that mostly fail, rooms for records, and a teacher that forgets.

The only home of how long a context has to be here. A look-up fails four times of five and is then asked again, so
that a rollout is long whatever its policy knows of tools; most of what fills its context is worth nothing, and what was
found is worth keeping. Knows no algorithm.
"""

from collections.abc import Mapping, Sequence
from random import Random
from statistics import fmean
from typing import Any

from offing.sdk import Graph, Rule, Seat
from offing.world.solving import Known, needs
from offing_graphs.memact.chat import size
from offing_graphs.memact.config import TOKENS_FOR_A_SUMMARY, Config
from offing_graphs.memact.context import EDITS as MEMORY
from offing_graphs.memact.context import PRUNE
from offing_graphs.memact.facts import facts_text, known_in, needed, told_by
from offing_graphs.memact.graph import configured
from offing_graphs.memact.reading import MEMORY_CARDS
from offing_graphs.memact.rules import answering
from offing_graphs.memact.shapes import Act, AgentInput
from offing_graphs.parts.shapes import Card
from offing_graphs.parts.world import args_for, next_need, oracle_tool
from tests.graphs.world_trials import SPECS
from tests.results.experiment import Curve, Size
from tests.results.intervals import mean_of
from tests.results.pages import told
from tests.results.questions import Questions
from tests.results.taught import Lesson

QUESTIONS = Questions(hops=(2, 2), kinds=("lookup",))
OUTAGE = 0.8
"""Share of look-ups that fail."""
TURNS = 28
COMPLETION = 24
"""Tokens of one at most: an edit of ten records with a note of two facts has 23."""

WHOLE = 880
"""Room for records, in the flow's own estimate of tokens: what nine in ten rollouts get by with that use the right
tools and never remove a record. Instructions, tools and the question come on top."""
QUARTER = WHOLE // 4
SUMMARIES = 12
"""At most in a rollout; a quarter's room takes fewer in so many turns."""

TYPICAL = "What is the home of the teacher of Marel Hollow?"
"""A question about as long as all."""

EDITS, SPARES, NOTES, SUMS_UP, BLIND = 0.45, 0.3, 0.7, 0.3, 0.1
"""Of the forgetful teacher, as chances: that it edits in a turn; that an edit spares a record; that a needed fact which
an edit removes is noted; that a summary holds a needed fact; that it takes just any tool."""


def editing(room: int) -> Graph:
    """The flow that edits its memory, with so much room."""
    return configured(f"memact-{room}", "", "", Config(_bare(edits=True) + room, 400, edits=True))


def summing_up(room: int, summaries: int = SUMMARIES) -> Graph:
    """The flow that is asked for a summary when its records fill the room; 0 summaries: it ends there."""
    full = _bare(edits=False) + room
    config = Config(full + TOKENS_FOR_A_SUMMARY, 400, edits=False, full=full, summaries=summaries)
    return configured(f"supo-{room}-{summaries}", "", "", config)


def _bare(*, edits: bool) -> int:
    """Estimated tokens of a context without a record."""
    cards = tuple(Card(name=t.name, description=t.description, parameters=t.args.model_json_schema()) for t in SPECS)
    cards = (*cards, *MEMORY_CARDS) if edits else cards
    return size(AgentInput(question=TYPICAL, tools=cards, window=9_999, edits=edits, turn=1, remaining=1))


def forgetful(given: AgentInput, seat: Seat) -> Act:
    """Looks up what is missing, mostly with the right tool, and edits or sums up as if by the throw of a die."""
    rng, known = Random(f"{seat.seed} {seat.turn} {given.ask}"), known_in(given)
    if given.ask == "summary":
        return Act(summary=facts_text([k for k in needed(given.question, known) if rng.random() < SUMS_UP]))
    if given.ask == "answer" or not needs(given.question, known):
        return answering(given, known)
    if given.edits and given.records and rng.random() < EDITS:
        return _erratic_edit(given, known, rng)
    return _look_up(given, known, rng, BLIND)


def careful(given: AgentInput, seat: Seat) -> Act:
    """Keeps what is needed and nothing else, and uses the right tool: as good as the flow allows."""
    known = known_in(given)
    if given.ask == "summary":
        return Act(summary=facts_text(needed(given.question, known)))
    if given.ask == "answer" or not needs(given.question, known):
        return answering(given, known)
    fresh = [entry for entry in given.records if entry.act.tool not in MEMORY]
    if given.edits and len(fresh) >= 2:
        return _pruned([entry.id for entry in given.records], needed(given.question, known))
    return _look_up(given, known, Random(0), 0.0)


def hoarding(given: AgentInput, seat: Seat) -> Act:
    """As the careful one, and never removes anything."""
    return careful(given.model_copy(update={"edits": False}), seat)


RULES: Mapping[str, Rule[Any, Any]] = {"forgetful": forgetful, "careful": careful, "hoarding": hoarding}


def _look_up(given: AgentInput, known: Sequence[Known], rng: Random, blind: float) -> Act:
    need = next_need(given.question, known)
    tools = [tool.name for tool in given.tools if tool.name not in MEMORY]
    tool = rng.choice(tools) if rng.random() < blind else oracle_tool(need, Seat(0, 0), tools)
    return Act(tool=tool, args=dict(args_for(need)))


def _erratic_edit(given: AgentInput, known: Sequence[Known], rng: Random) -> Act:
    gone = [entry for entry in given.records if rng.random() >= SPARES] or [rng.choice(given.records)]
    told = {fact for entry in gone for fact in told_by(entry)}
    noted = [fact for fact in needed(given.question, known) if fact in told and rng.random() < NOTES]
    return _pruned([entry.id for entry in gone], noted)


def _pruned(ids: Sequence[str], facts: Sequence[Known]) -> Act:
    note = facts_text(facts) if facts else ""
    return Act(tool=PRUNE, args={"delete_ids": list(ids), "note": note})


def lesson(size: Size) -> Lesson:
    """Few rollouts a step: each has many segments."""
    if size is Size.MINIATURE:
        return Lesson(QUESTIONS, "forgetful", demonstrations=8, epochs=1, batch=4, turns=8)
    return Lesson(QUESTIONS, "forgetful", demonstrations=800, epochs=8, batch=4, turns=TURNS)


def ends(curves: Sequence[Curve], arms: Mapping[str, str]) -> list[str]:
    """A table of success before, after, and as the mean of all evaluations; `arms`: name to title."""
    lines = ["| success | at the start | at the end | mean of all evaluations |", "|---|---|---|---|"]
    for arm, title in arms.items():
        own = [curve.points for curve in curves if curve.arm == arm]
        for mode in ("sampled", "greedy"):
            series = [[point.figures[f"{mode}_success"] for point in points] for points in own]
            moments = ([one[0] for one in series], [one[-1] for one in series], [fmean(one) for one in series])
            cells = " | ".join(told(mean_of(values), share=True) for values in moments)
            lines.append(f"| {title}, {mode} | {cells} |")
    return lines
