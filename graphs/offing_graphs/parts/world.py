"""Rules by which roles are answered in a made-up world: what was learned, what to look up next, with which tool.

Shared by all flows. Only `oracle_tool` knows which tool answers what; everything else follows from the question and
what tools said in the run.
"""

import json
import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from offing.sdk import DraftSection, DraftSentence, ReportDraft, Seat, shortened
from offing.world.compact import Names, values_words
from offing.world.semantics import RELATIONS
from offing.world.solving import Known, Need, answer, entities_in, known_of, needs, tools_for
from offing_graphs.parts.prompting import compact_json
from offing_graphs.parts.shapes import Record

UNKNOWN = "unknown"
"""The short answer of a run that ended before it knew enough."""


def known_from(record: Record) -> Known | None:
    """What one turn learned. None: nothing."""
    return known_of(record.args, _object(record.value))


def learned(memory: Iterable[Record]) -> tuple[Known, ...]:
    """What all turns learned, oldest first."""
    return tuple(k for k in map(known_from, memory) if k)


def next_need(question: str, known: Sequence[Known]) -> Need:
    """The look-up to make next; the question's first again where nothing is missing."""
    return next(iter(needs(question, known) or needs(question, ())))


def oracle_tool(need: Need, _seat: Seat, tools: Sequence[str]) -> str:
    """A tool that answers the need, of those that there are."""
    return next((t for t in tools_for(need.relation) if t in tools), tools_for(need.relation)[0])


def random_tool(_need: Need, seat: Seat, tools: Sequence[str]) -> str:
    """Any of the tools; the same for the same run and turn."""
    return random.Random(f"{seat.seed}:{seat.turn}").choice(tools)


TOOL_BY = {"oracle": oracle_tool, "random": random_tool}
"""How a rule of each name chooses its tool."""


def args_for(need: Need) -> dict[str, str]:
    return {"relation": need.relation, "entity": need.entity}


def args_in(text: str) -> dict[str, str]:
    """Relation and entity of a planned look-up: a JSON object, or the first of each that the text names."""
    found = _object(text)
    if isinstance(found.get("relation"), str) and isinstance(found.get("entity"), str):
        return {"relation": found["relation"], "entity": found["entity"]}
    relation = next((word for word in text.replace(":", " ").replace(",", " ").split() if word in RELATIONS), None)
    entity = next(iter(entities_in(text)), None)
    named = {"relation": relation, "entity": entity}
    return {name: value for name, value in named.items() if value}


def solved(question: str, known: Sequence[Known]) -> ReportDraft:
    """The short answer, and every look-up that gave something as a sentence."""
    said = tuple(DraftSentence(text=sentence(k)) for k in known)
    sections = (DraftSection(heading="What was looked up", sentences=said),) if said else ()
    return ReportDraft(title=shortened(question, 120), answer=answer(question, known) or UNKNOWN, sections=sections)


def sentence(known: Known) -> str:
    return f"{known.relation} of {known.entity}: {', '.join(known.values) or 'there is none'}."


def observation_words(record: Record, names: Names) -> str:
    """What a turn's tool gave, in a small planner's words."""
    if record.status != "ok":
        return "failed"
    known = known_from(record)
    return values_words(known.values, names, closed=known.closed) if known else "none"


def args_text(need: Need) -> str:
    """A need as text that `args_in` reads back."""
    return compact_json(args_for(need))


def _object(text: str) -> Mapping[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}  # pyright: ignore[reportUnknownVariableType]
