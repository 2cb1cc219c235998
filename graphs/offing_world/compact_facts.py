"""Facts in the compact words of small models, such as `r1 e0 e5 | r10 e5 1 9 8 7`."""

from collections.abc import Iterable, Sequence

from offing.sdk import InvalidOutput
from offing_world.compact_notation import EntityIndex, render_compact_relation, render_compact_values
from offing_world.question_solver import KnownFact
from offing_world.semantics import RELATIONS, RELATIONS_BY_NAME

FACT_SEPARATOR = "|"
NO_FACTS_WORD = "none"
CLOSED = "closed"


def render_compact_facts(facts: Iterable[KnownFact], entity_index: EntityIndex) -> str:
    """Render facts, or the word for none. Facts of other relations than a question's are left out.

    Raises `InvalidInput` if an entity has no word.
    """
    rendered = (render_compact_fact(k, entity_index) for k in facts if k.relation in RELATIONS)
    return f" {FACT_SEPARATOR} ".join(rendered) or NO_FACTS_WORD


def render_compact_fact(fact: KnownFact, entity_index: EntityIndex) -> str:
    """Render one fact. Raises `InvalidInput` if its relation or an entity has no word."""
    values = render_compact_values(fact.values, entity_index, closed=fact.closed)
    return f"{render_compact_relation(fact.relation)} {entity_index.entity_word(fact.entity)} {values}"


def parse_compact_facts(
    words: Sequence[str], entity_index: EntityIndex, format_help: str
) -> tuple[KnownFact, ...] | InvalidOutput:
    """Parse facts of entities that have appeared. `format_help` ends the explanation of what is wrong."""
    if list(words) == [NO_FACTS_WORD]:
        return ()
    facts: list[KnownFact] = []
    for fact_words in _split_facts(words):
        fact = _parse_fact(fact_words, entity_index, format_help)
        if isinstance(fact, InvalidOutput):
            return fact
        facts.append(fact)
    return tuple(facts)


def _split_facts(words: Sequence[str]) -> Iterable[list[str]]:
    part: list[str] = []
    for word in words:
        if word == FACT_SEPARATOR:
            yield part
            part = []
        else:
            part.append(word)
    yield part


def _parse_fact(words: Sequence[str], entity_index: EntityIndex, format_help: str) -> KnownFact | InvalidOutput:
    """Parse a fact: a relation and an entity, then entities, digits or `closed`."""
    relation = _find_by_word(words[0], "r", RELATIONS) if len(words) > 2 else None
    entity = _find_by_word(words[1], "e", entity_index.entities) if relation else None
    if relation is None or entity is None:
        return InvalidOutput(
            f"A fact is a relation, an entity and what was found, not {' '.join(words)[:40]!r}. {format_help}"
        )
    value_words = words[2:]
    if list(value_words) == [CLOSED]:
        return KnownFact(relation, entity, (), True)
    if RELATIONS_BY_NAME[relation].is_numeric and all(
        len(w) == 1 and w.isascii() and w.isdecimal() for w in value_words
    ):
        return KnownFact(relation, entity, ("".join(value_words),), True)
    values = [_find_by_word(word, "e", entity_index.entities) for word in value_words]
    if None in values:
        return InvalidOutput(f"{value_words[values.index(None)][:20]!r} is no entity that has appeared. {format_help}")
    return KnownFact(relation, entity, tuple(v for v in values if v), True)


def _find_by_word(word: str, letter: str, candidates: Sequence[str]) -> str | None:
    digits = word[1:]
    if word[:1] != letter or not (digits.isascii() and digits.isdecimal()) or len(digits) > 3:
        return None
    index = int(digits)
    return candidates[index] if str(index) == digits and index < len(candidates) else None
