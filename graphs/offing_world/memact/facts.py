"""The facts of a context in a synthetic world, from tool results, notes and summaries.

The module also renders facts for notes and parses them.
"""

import re
from collections.abc import Iterable, Sequence

from offing.sdk import ToolStatus
from offing_graphs.memact.schemas import EDIT_ACTIONS, AgentInput, ContextRecord
from offing_world.lookup_rules import render_fact
from offing_world.question_solver import KnownFact, fact_from_call, find_missing_look_ups

NO_FACTS = "Nothing is known yet."
NO_VALUES = "there is none"

_FACT_PATTERN = re.compile(r"^(\w+) of (.+?): (.+)\.$", re.MULTILINE)


def list_known_facts(inputs: AgentInput) -> tuple[KnownFact, ...]:
    """Return the facts in the context, oldest first. A later fact corrects an earlier one."""
    return (*parse_facts(inputs.summary), *(fact for entry in inputs.records for fact in list_record_facts(entry)))


def list_record_facts(entry: ContextRecord) -> tuple[KnownFact, ...]:
    """Return the facts of one record."""
    if entry.action.tool in EDIT_ACTIONS:
        return parse_facts(str(entry.action.args.get("note", "")))
    facts = (fact_from_call(one.args, one.content) for one in entry.findings if one.status == ToolStatus.OK)
    return tuple(fact for fact in facts if fact)


def render_facts(known: Iterable[KnownFact]) -> str:
    """Render facts, one per line.

    Only the latest fact of each look-up counts, and facts without a result are omitted.
    """
    latest = {(k.relation, k.entity): k for k in known if k.values or k.closed}
    return "\n".join(map(render_fact, latest.values())) or NO_FACTS


def parse_facts(text: str) -> tuple[KnownFact, ...]:
    """Parse the facts in a text that `render_facts` wrote. Other text is ignored."""
    return tuple(KnownFact(r, e, _parse_values(values), True) for r, e, values in _FACT_PATTERN.findall(text))


def _parse_values(text: str) -> tuple[str, ...]:
    return () if text == NO_VALUES else tuple(text.split(", "))


def select_needed_facts(question: str, known: Sequence[KnownFact]) -> tuple[KnownFact, ...]:
    """Return the facts without which more look-ups would be needed."""
    missing, remaining = find_missing_look_ups(question, known), list(known)
    for fact in known:
        others = [k for k in remaining if k is not fact]
        if find_missing_look_ups(question, others) == missing:
            remaining = others
    return tuple(remaining)
