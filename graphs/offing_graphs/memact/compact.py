"""The agent's compact form for small planners in a made-up world: a few words an action, records by their place.

`t3 r1 e0` looks something up, `prune m0 m1 write r1 e0 e5` removes records and notes facts, `answer` ends the work:
what the known facts come to is worked out by rule. Entities are numbered in the order in which the context names them,
so that a new segment numbers them anew.
"""

from collections.abc import Iterable, Sequence
from itertools import takewhile

from offing.sdk import Form, Message, SpanKind, TextSpan, Unusable
from offing.world.compact import (
    MOST_RECORDS,
    Names,
    call_words,
    names_of,
    question_words,
    read_call,
    relation_word,
    values_words,
)
from offing.world.semantics import BY_NAME, RELATIONS
from offing.world.solving import Known
from offing_graphs.memact.context import EDITS, PRUNE, WRITE
from offing_graphs.memact.facts import facts_in, facts_text, known_in, told_by
from offing_graphs.memact.rules import answering
from offing_graphs.memact.shapes import Act, AgentInput, Entry

ANSWER, SUMMARY, NOTHING, DONE, FAILED, NONE, CLOSED = "answer", "summary", "none", "known", "failed", "none", "closed"
AND = "|"
KINDS = {ANSWER: SpanKind.ANSWER, SUMMARY: SpanKind.SUMMARY, PRUNE: SpanKind.MEMORY_EDIT, WRITE: SpanKind.MEMORY_EDIT}
HELP = "Write a look-up such as t0 r0 e0, prune m0, write r0 e0 e1, summary r0 e0 e1, or answer."


def render(given: AgentInput) -> tuple[Message, ...]:
    """The question, then each action and what it gave. Messages from people have no words here."""
    names = _names(given)
    summed = (f"{SUMMARY} {_facts_words(facts_in(given.summary), names)}",) if given.summary else ()
    messages = [Message("user", (" ".join((question_words(given.question), *summed)),))]
    for entry in given.records:
        seq = entry.seq if entry.fresh else 0
        messages.append(Message("assistant", (_repeated(entry, given),), seq))
        messages.append(Message("user", (_observation(entry, names),)))
    last = messages[-1]
    asked = "" if given.ask == "action" else f" {given.ask}"
    return (*messages[:-1], Message(last.role, (last.text + asked,), last.turn))


def write(act: Act, given: AgentInput) -> str:
    """Raises InvalidInput for an act about something that has no word."""
    names = _names(given)
    if act.answer:
        return ANSWER
    if act.summary:
        return f"{SUMMARY} {_facts_words(facts_in(act.summary), names)}"
    if act.tool not in EDITS:
        return call_words(act.tool, str(act.args.get("relation")), str(act.args.get("entity")), names)
    facts = facts_in(str(act.args.get("note", "")))
    noted = f"{WRITE} {_facts_words(facts, names)}" if facts or act.tool == WRITE else ""
    if act.tool == WRITE:
        return noted
    places = {entry.id: f"m{n}" for n, entry in enumerate(given.records)}
    named = [places.get(str(id), str(id)) for id in act.args.get("delete_ids", ())]
    return " ".join([PRUNE, *named, noted]).strip()


def parse(text: str, given: AgentInput) -> Act | Unusable:
    """Reads exactly one action."""
    act = _read(text, given)
    if isinstance(act, Unusable) or write(act, given) == text:
        return act
    return act.model_copy(update={"written": text})


def _read(text: str, given: AgentInput) -> Act | Unusable:
    words = text.split()
    first, rest = (words[0], words[1:]) if words else ("", [])
    if first == ANSWER and not rest:
        return answering(given, known_in(given))
    if first == SUMMARY:
        facts = _read_facts(rest, _names(given))
        return facts if isinstance(facts, Unusable) else Act(summary=facts_text(facts))
    if first in EDITS:
        return _read_edit(words, given)
    call = read_call(text, _names(given))
    return Unusable(f"{call.problem} {HELP}") if isinstance(call, Unusable) else Act(tool=call.tool, args=call.args)


def spans(text: str) -> tuple[TextSpan, ...]:
    """The whole completion, as what its first word makes it."""
    said = text.strip()
    if not said:
        return ()
    start = text.index(said)
    return (TextSpan(KINDS.get(said.split()[0], SpanKind.ACTION), start, start + len(said)),)


def _repeated(entry: Entry, given: AgentInput) -> str:
    """What the agent said, in today's words. Of an edit in an earlier segment, whose records are gone, the note."""
    act = entry.act
    if entry.fresh:
        return act.written or write(act, given)
    if act.tool == PRUNE and entry.ok:
        act = Act(tool=WRITE, args={"note": act.args.get("note", "")})
    return write(act, given)


def _names(given: AgentInput) -> Names:
    """Entities in the order in which the context names them."""
    names = names_of(given.question, facts_in(given.summary))
    for entry in given.records:
        asked = entry.act.args.get("entity") if entry.act.tool not in EDITS else None
        names = names.adding([str(asked)] if asked else [])
        names = names.adding(e for fact in told_by(entry) for e in (fact.entity, *fact.values))
    return names


def _observation(entry: Entry, names: Names) -> str:
    if entry.found is None:
        return DONE if entry.ok else FAILED
    if not entry.ok:
        return FAILED
    told = told_by(entry)
    return values_words(told[0].values, names, closed=told[0].closed) if told else NONE


def _facts_words(facts: Sequence[Known], names: Names) -> str:
    """`r1 e0 e5 | r10 e5 1 9 8 7`."""
    said = (
        f"{relation_word(k.relation)} {names.word(k.entity)} {values_words(k.values, names, closed=k.closed)}"
        for k in facts
        if k.relation in RELATIONS
    )
    return f" {AND} ".join(said) or NOTHING


def _read_edit(words: Sequence[str], given: AgentInput) -> Act | Unusable:
    pruned = list(takewhile(lambda w: w != WRITE, words[1:])) if words[0] == PRUNE else []
    rest = words[1 + len(pruned) :] if words[0] == PRUNE else words
    facts: tuple[Known, ...] | Unusable = ()
    if rest:
        facts = _read_facts(rest[1:], _names(given))
    if isinstance(facts, Unusable):
        return facts
    note = facts_text(facts) if rest else ""
    if words[0] == WRITE:
        return Act(tool=WRITE, args={"note": note})
    wrong = next((w for w in pruned if _place(w) < 0), "")
    if wrong or not pruned:
        return Unusable(f"{wrong[:20]!r} is no record; name records m0, m1 … after prune. {HELP}")
    return Act(tool=PRUNE, args={"delete_ids": [_id(w, given.records) for w in pruned], "note": note})


def _id(word: str, records: Sequence[Entry]) -> str:
    """The record's id. A word for a place where no record is stays as it is, and matches nothing."""
    place = _place(word)
    return records[place].id if place < len(records) else word


def _place(word: str) -> int:
    """The number in `m3`. -1: this is no record's word."""
    digits = word[1:]
    plain = word[:1] == "m" and digits.isascii() and digits.isdecimal() and len(digits) < 4
    return int(digits) if plain and str(int(digits)) == digits and int(digits) < MOST_RECORDS else -1


def _read_facts(words: Sequence[str], names: Names) -> tuple[Known, ...] | Unusable:
    if list(words) == [NOTHING]:
        return ()
    found: list[Known] = []
    for said in _split(words):
        fact = _read_fact(said, names)
        if isinstance(fact, Unusable):
            return fact
        found.append(fact)
    return tuple(found)


def _split(words: Sequence[str]) -> Iterable[list[str]]:
    part: list[str] = []
    for word in words:
        if word == AND:
            yield part
            part = []
        else:
            part.append(word)
    yield part


def _read_fact(words: Sequence[str], names: Names) -> Known | Unusable:
    """A relation's and an entity's word, then entities, digits, or `closed`."""
    relation = _indexed(words[0], "r", RELATIONS) if len(words) > 2 else None
    entity = _indexed(words[1], "e", names.entities) if relation else None
    if relation is None or entity is None:
        return Unusable(f"A fact is a relation, an entity and what was found, not {' '.join(words)[:40]!r}. {HELP}")
    said = words[2:]
    if list(said) == [CLOSED]:
        return Known(relation, entity, (), True)
    if BY_NAME[relation].numeric and all(len(w) == 1 and w.isascii() and w.isdecimal() for w in said):
        return Known(relation, entity, ("".join(said),), True)
    values = [_indexed(word, "e", names.entities) for word in said]
    if None in values:
        return Unusable(f"{said[values.index(None)][:20]!r} is no entity that has appeared. {HELP}")
    return Known(relation, entity, tuple(v for v in values if v), True)


def _indexed(word: str, letter: str, among: Sequence[str]) -> str | None:
    digits = word[1:]
    if word[:1] != letter or not (digits.isascii() and digits.isdecimal()) or len(digits) > 3:
        return None
    index = int(digits)
    return among[index] if str(index) == digits and index < len(among) else None


FORM = Form("compact", render, parse, spans, write)
