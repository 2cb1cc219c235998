"""How well each line fits a question: the model-free roles' only measure.

A line is measured by the words that it shares with the question, with help from the heading, title and folder that it
stands under, from its neighbours, and from the search's own order. Knows neither turns nor reports.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

from offing_graphs.extractive.form import readable
from offing_graphs.extractive.kin import like
from offing_graphs.extractive.lines import Line, Pool
from offing_graphs.extractive.split import Kind
from offing_graphs.extractive.wants import asks_for_list, asks_what_it_is, wanted
from offing_graphs.extractive.words import Stems, Term, sequence, stems, terms, with_kin

UNDER_HEADING = 0.75
"""What a word counts that stands in the heading and not in the sentence."""
IN_TITLE = 0.6
"""The same for the source's title."""
BESIDE = 0.6
"""The same for the rest of its paragraph."""
NEARBY = 0.4
"""The same for the neighbours."""
IN_SOURCE = 0.3
"""The same for any other retrieved passage of the source."""
SCOPE = 0.6
"""Factor for a word that says where to look, such as a product's name in brackets."""
SHELF = 0.3
"""Factor for a word that is the name of a folder."""
ELSEWHERE = 0.62
"""Factor for a line from another folder than the one that the question names."""

_SCOPE = re.compile(r"(?:\bin |\()([\w.-]+)\)?[?.]?$", re.IGNORECASE)
_HEADING_WORDS = stems(
    "about api basic basics chapter class command event function guide interface introduction method module new object "
    "option options overview page parameter parameters property reference section the type what how"
).words


@dataclass(frozen=True, slots=True)
class Hit:
    """A line with what it is worth for one question."""

    line: Line
    score: float
    """0 to about 1.3; 1: it holds every word of the question."""
    share: float
    """Weight of the question's words that it holds itself, 0 to 1."""
    with_heading: float
    """The same with the heading and title it stands under."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A question, ready to measure lines by."""

    about: bool
    weights: Mapping[Term, float]
    total: float
    pairs: frozenset[tuple[str, str]]
    joined: frozenset[str]
    """Neighbouring words written as one, as an identifier would have them."""
    wants: re.Pattern[str] | None
    lists: bool
    """It asks for several things, which lists and tables hold."""
    ranks: Mapping[str, float]
    pool: Pool
    shelves: frozenset[str]
    """Texts in the folder that the question names. Empty: it names none."""


def measure(question: str, pool: Pool, ranks: Mapping[str, float] | None = None) -> tuple[Hit, ...]:
    """Lines that share a word with the question, best first. `ranks`: place of a passage in the search's own order."""
    asked = _asked(question, pool, ranks or {})
    hits = [hit for line in pool.lines if line.unit.kind is not Kind.CODE and (hit := _hit(line, asked))]
    return tuple(sorted(hits, key=lambda h: (-h.score, h.line.span[0], h.line.span[1])))


def weights_of(question: str, pool: Pool) -> dict[Term, float]:
    """What each word of a question counts."""
    scope = stems(" ".join(_SCOPE.findall(question))).words
    asked = [replace(with_kin(t, pool.vocabulary), like=like(t.whole)) for t in terms(question)]
    shelves = {t for t in asked if pool.names_a_shelf(t)}
    if len(shelves) == len(asked):
        shelves.clear()
    return {t: pool.weight(t) * (SHELF if t in shelves else SCOPE if t.whole in scope else 1.0) for t in asked}


def _asked(question: str, pool: Pool, ranks: Mapping[str, float]) -> Asked:
    weights = weights_of(question, pool)
    words = [term.shown.replace("-", "").replace("_", "") for term in weights]
    return Asked(
        about=asks_what_it_is(question),
        weights=weights,
        total=sum(weights.values()) or 1.0,
        pairs=frozenset(pairwise(sequence(question))),
        joined=frozenset(stem for a, b in pairwise(words) for stem in stems(a + b).words),
        wants=wanted(question),
        lists=asks_for_list(question),
        ranks=ranks,
        pool=pool,
        shelves=named_shelves(tuple(weights), pool),
    )


def named_shelves(asked: tuple[Term, ...], pool: Pool) -> frozenset[str]:
    """Texts in the folders that these words name. Empty: they name none."""
    names = [t for t in asked if pool.names_a_shelf(t)]
    return frozenset(a for a, shelf in pool.shelves.items() if any(t.within(shelf) >= 0.9 for t in names))


def _hit(line: Line, asked: Asked) -> Hit | None:
    own = sum(weight * _within(term, line) for term, weight in asked.weights.items())
    if own == 0:
        return None
    headed = sum(w * asked.pool.held(t, line) for t, w in asked.weights.items())
    if asked.about and line.leads and _is_about(line, asked) == 1:
        own = max(own, 0.85 * headed)  # under its own name a thing is explained without it
    source = asked.pool.sources.get(line.piece.artefact, Stems())
    context = sum(w * _in_context(t, line, source) for t, w in asked.weights.items())
    score = (0.6 * own + 0.4 * context) / asked.total + _bonus(line, asked)
    return Hit(line, score * _placed(line, source, asked) * readable(line), own / asked.total, headed / asked.total)


def _within(term: Term, line: Line) -> float:
    """A line is quoted with the rest of its paragraph, which counts a little less."""
    return max(term.within(line.stems), BESIDE * term.within(line.block))


def _placed(line: Line, source: Stems, asked: Asked) -> float:
    """Less than 1 for a line whose source never speaks of a part of what was asked, or is in another folder."""
    elsewhere = sum(w * (1 - max(t.within(source), asked.pool.held(t, line))) for t, w in asked.weights.items())
    factor = 1 - 0.35 * elsewhere / asked.total
    if asked.shelves and line.piece.artefact not in asked.shelves:
        factor *= ELSEWHERE
    return factor * (0.9 if asked.about and _is_about(line, asked) == 0 else 1.0)


def _bonus(line: Line, asked: Asked) -> float:
    """For words together as asked, for the kind of answer that is wanted, for headings, for the search's order."""
    bonus = 0.1 * len(asked.pairs & set(pairwise(line.order))) / max(len(asked.pairs), 1)
    if asked.about and line.leads and _is_about(line, asked) == 1:
        bonus += 0.12
    if asked.joined & line.stems.words:
        bonus += 0.16 if asked.joined & stems(" ".join(line.text.split()[:2])).words else 0.08
    if asked.lists and line.unit.kind in {Kind.ITEM, Kind.ROW}:
        bonus += 0.06
    if asked.wants and asked.wants.search(line.text):
        bonus += 0.06
    if line.piece.id in asked.ranks:
        bonus += 0.16 / (1 + 0.5 * asked.ranks[line.piece.id])
    return bonus + (0.2 if line.leads else 0.1) * _is_about(line, asked)


def _is_about(line: Line, asked: Asked) -> float:
    """How much of the heading, without its little words, was asked for; 0 to 1."""
    words = (line.heading.words or line.title.words) - _HEADING_WORDS
    held = sum(any(t.whole == w or w in t.parts for t in asked.weights if not t.weak) for w in words)
    return held / len(words) if words else 0.0


def _in_context(term: Term, line: Line, source: Stems) -> float:
    return max(
        IN_SOURCE * term.within(source),
        term.within(line.stems),
        UNDER_HEADING * term.within(line.heading),
        IN_TITLE * term.within(line.title),
        NEARBY * term.within(line.around),
    )
