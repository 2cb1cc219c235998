"""What a context in a made-up world tells: from tools' values, notes and summaries, and how a note tells it."""

import re
from collections.abc import Iterable, Sequence

from offing.world.solving import Known, known_of, needs
from offing_graphs.memact.context import EDITS
from offing_graphs.memact.shapes import AgentInput, Entry
from offing_graphs.parts.world import sentence

NOTHING = "Nothing is known yet."
NONE = "there is none"

_FACT = re.compile(r"^(\w+) of (.+?): (.+)\.$", re.MULTILINE)


def known_in(given: AgentInput) -> tuple[Known, ...]:
    """The facts that the context holds, oldest first; a later one corrects an earlier one."""
    return (*facts_in(given.summary), *(fact for entry in given.records for fact in told_by(entry)))


def told_by(entry: Entry) -> tuple[Known, ...]:
    """The facts of one record."""
    if entry.act.tool in EDITS:
        return facts_in(str(entry.act.args.get("note", "")))
    fact = known_of(entry.found.args, entry.found.content) if entry.found and entry.ok else None
    return (fact,) if fact else ()


def facts_text(known: Iterable[Known]) -> str:
    """Facts a line each, the latest word on each look-up; what gave nothing is left out."""
    latest = {(k.relation, k.entity): k for k in known if k.values or k.closed}
    return "\n".join(map(sentence, latest.values())) or NOTHING


def facts_in(text: str) -> tuple[Known, ...]:
    """Facts of a text as `facts_text` writes it. All else in it is no fact."""
    return tuple(Known(r, e, _values(said), True) for r, e, said in _FACT.findall(text))


def _values(said: str) -> tuple[str, ...]:
    return () if said == NONE else tuple(said.split(", "))


def needed(question: str, known: Sequence[Known]) -> tuple[Known, ...]:
    """Those facts without which something else would have to be looked up."""
    missing, kept = needs(question, known), list(known)
    for fact in known:
        others = [k for k in kept if k is not fact]
        if needs(question, others) == missing:
            kept = others
    return tuple(kept)
