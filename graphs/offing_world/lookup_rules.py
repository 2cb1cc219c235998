"""Rules for roles in a synthetic world: facts learned, the next look-up and the choice of a tool.

All graphs share them. Only `choose_oracle_tool` knows which tool answers a relation.
Everything else follows from the question and the tool results of the run.
"""

import json
import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from offing.sdk import DraftSection, DraftSentence, ReportDraft, RuleContext, shorten_line
from offing_graphs.shared.prompt_parts import render_json
from offing_graphs.shared.schemas import MemoryRecord
from offing_world.compact_notation import EntityIndex, render_compact_values
from offing_world.question_solver import (
    KnownFact,
    LookUp,
    extract_entities,
    fact_from_call,
    find_answer,
    find_missing_look_ups,
    list_tools_of_relation,
)
from offing_world.semantics import RELATIONS

UNKNOWN_ANSWER = "unknown"
"""The short answer of a run that ended before it knew enough facts."""


def fact_from_record(record: MemoryRecord) -> KnownFact | None:
    """Return the fact that one turn learned. `None` means that it learned none."""
    return fact_from_call(record.args, _parse_object(record.value))


def list_record_facts(record: MemoryRecord) -> tuple[KnownFact, ...]:
    """Return the fact that a call reported, which an answer may cite. Empty means that it failed or reported none."""
    fact = fact_from_record(record) if record.status == "ok" else None
    return () if fact is None else (fact,)


def list_learned_facts(memory: Iterable[MemoryRecord]) -> tuple[KnownFact, ...]:
    """Return the facts that all turns learned, oldest first."""
    return tuple(k for k in map(fact_from_record, memory) if k)


def find_next_look_up(question: str, known: Sequence[KnownFact]) -> LookUp:
    """Return the next look-up, or the question's first look-up if nothing is missing."""
    return next(iter(find_missing_look_ups(question, known) or find_missing_look_ups(question, ())))


def choose_oracle_tool(look_up: LookUp, _context: RuleContext, tools: Sequence[str]) -> str:
    """Return an available tool that answers the look-up."""
    return next(
        (t for t in list_tools_of_relation(look_up.relation) if t in tools), list_tools_of_relation(look_up.relation)[0]
    )


def choose_random_tool(_look_up: LookUp, context: RuleContext, tools: Sequence[str]) -> str:
    """Return any of the tools. The choice is the same for the same run and turn."""
    return random.Random(f"{context.seed}:{context.turn}").choice(tools)


TOOL_CHOOSERS = {"oracle": choose_oracle_tool, "random": choose_random_tool}
"""Functions that choose the tool, by the name of the rule."""


def build_args(look_up: LookUp) -> dict[str, str]:
    return {"relation": look_up.relation, "entity": look_up.entity}


def parse_args(text: str) -> dict[str, str]:
    """Parse the relation and entity of a planned look-up.

    The text is a JSON object, or the first relation and the first entity in the text are taken.
    """
    args = _parse_object(text)
    if isinstance(args.get("relation"), str) and isinstance(args.get("entity"), str):
        return {"relation": args["relation"], "entity": args["entity"]}
    relation = next((word for word in text.replace(":", " ").replace(",", " ").split() if word in RELATIONS), None)
    entity = next(iter(extract_entities(text)), None)
    named = {"relation": relation, "entity": entity}
    return {name: value for name, value in named.items() if value}


def build_solution_report(question: str, known: Sequence[KnownFact]) -> ReportDraft:
    """Build a report of the short answer, with one sentence per known fact."""
    sentences = tuple(DraftSentence(text=render_fact(k)) for k in known)
    sections = (DraftSection(heading="What was looked up", sentences=sentences),) if sentences else ()
    return ReportDraft(
        title=shorten_line(question, 120), answer=find_answer(question, known) or UNKNOWN_ANSWER, sections=sections
    )


def render_fact(fact: KnownFact) -> str:
    return f"{fact.relation} of {fact.entity}: {', '.join(fact.values) or 'there is none'}."


def render_compact_observation(record: MemoryRecord, entity_index: EntityIndex) -> str:
    """Render the tool result of a turn in compact words."""
    if record.status != "ok":
        return "failed"
    known = fact_from_record(record)
    return render_compact_values(known.values, entity_index, closed=known.closed) if known else "none"


def render_args(look_up: LookUp) -> str:
    """Render a look-up as text that `parse_args` can parse."""
    return render_json(build_args(look_up))


def _parse_object(text: str) -> Mapping[str, Any]:
    try:
        value = json.loads(text)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}  # pyright: ignore[reportUnknownVariableType]
