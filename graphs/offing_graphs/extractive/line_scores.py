"""Scores of lines for a question, which all model-free roles share.

A line scores by the words that it shares with the question. Its heading, title, folder and
neighbors and the rank of its passage in the search also contribute.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

from offing_graphs.extractive.answer_types import find_answer_pattern, is_definition_question, is_list_question
from offing_graphs.extractive.lines import LinePool, PassageLine
from offing_graphs.extractive.readability import rate_readability
from offing_graphs.extractive.synonyms import find_synonyms
from offing_graphs.extractive.text_units import UnitKind
from offing_graphs.extractive.word_forms import (
    Stems,
    Term,
    add_related_stems,
    drop_border_pairs,
    extract_stems,
    extract_terms,
    list_stems,
)

HEADING_FACTOR = 0.75
"""Factor for a word that occurs in the heading and not in the sentence."""
TITLE_FACTOR = 0.6
"""Factor for a word that occurs in the title of the source."""
PARAGRAPH_FACTOR = 0.6
"""Factor for a word that occurs in the rest of the paragraph."""
NEIGHBOR_FACTOR = 0.4
"""Factor for a word that occurs in neighboring lines."""
SOURCE_FACTOR = 0.3
"""Factor for a word that occurs in any other retrieved passage of the source."""
SCOPE_FACTOR = 0.6
"""Factor for a word that restricts the sources, such as the name of a product in brackets."""
FOLDER_FACTOR = 0.3
"""Factor for a word that is the name of a folder."""
OTHER_FOLDER_FACTOR = 0.62
"""Factor for a line outside of the folder that the question names."""

_SCOPE_PATTERN = re.compile(r"(?:\bin |\()([\w.-]+)\)?[?.]?$", re.IGNORECASE)
_HEADING_WORDS = extract_stems(
    "about api basic basics chapter class command event function guide interface introduction method module new object "
    "option options overview page parameter parameters property reference section the type what how"
).words


@dataclass(frozen=True, slots=True)
class ScoredLine:
    """A line with its score for one question."""

    line: PassageLine
    score: float
    """Score from 0 to about 1.3. A line with every word of the question scores 1."""
    own_weight: float
    """Weight of the question's words that the line contains, from 0 to 1."""
    weight_with_heading: float
    """Weight of the question's words that the line contains with its heading and title, from 0 to 1."""
    subject_weight: float
    """Weight of the question's words that the heading and title contain, from 0 to 1."""


@dataclass(frozen=True, slots=True)
class QuestionTerms:
    """The terms of a question, prepared for scoring lines."""

    asks_what_it_is: bool
    weights: Mapping[Term, float]
    total: float
    pairs: frozenset[tuple[str, str]]
    joined_words: frozenset[str]
    """Neighboring words joined to one word, as in an identifier."""
    answer_pattern: re.Pattern[str] | None
    asks_for_list: bool
    """Whether the question asks for several things, which lists and tables contain."""
    ranks: Mapping[str, float]
    pool: LinePool
    folder_texts: frozenset[str]
    """Ids of the texts in the folder that the question names. Empty means that it names none."""


def score_lines(question: str, pool: LinePool, ranks: Mapping[str, float] | None = None) -> tuple[ScoredLine, ...]:
    """Return the lines that share a word with the question, best first.

    `ranks` is the rank of each passage in the search.
    """
    question_terms = _build_question_terms(question, pool, ranks or {})
    hits = [
        hit for line in pool.lines if line.unit.kind is not UnitKind.CODE and (hit := _score_line(line, question_terms))
    ]
    return tuple(sorted(hits, key=lambda h: (-h.score, h.line.span[0], h.line.span[1])))


def weigh_terms(question: str, pool: LinePool) -> dict[Term, float]:
    """Return the weight of each term of a question."""
    scope = extract_stems(" ".join(_SCOPE_PATTERN.findall(question))).words
    question_terms = [
        replace(add_related_stems(t, pool.vocabulary), synonym_stems=find_synonyms(t.stem))
        for t in drop_border_pairs(extract_terms(question), pool.vocabulary)
    ]
    shelves = {t for t in question_terms if pool.is_folder_name(t)}
    if len(shelves) == len(question_terms):
        shelves.clear()
    return {
        t: pool.weigh(t) * (FOLDER_FACTOR if t in shelves else SCOPE_FACTOR if t.stem in scope else 1.0)
        for t in question_terms
    }


def _build_question_terms(question: str, pool: LinePool, ranks: Mapping[str, float]) -> QuestionTerms:
    weights = weigh_terms(question, pool)
    words = [term.text.replace("-", "").replace("_", "") for term in weights]
    return QuestionTerms(
        asks_what_it_is=is_definition_question(question),
        weights=weights,
        total=sum(weights.values()) or 1.0,
        pairs=frozenset(pairwise(list_stems(question))),
        joined_words=frozenset(stem for a, b in pairwise(words) for stem in extract_stems(a + b).words),
        answer_pattern=find_answer_pattern(question),
        asks_for_list=is_list_question(question),
        ranks=ranks,
        pool=pool,
        folder_texts=find_named_folders(tuple(weights), pool),
    )


def find_named_folders(question_terms: tuple[Term, ...], pool: LinePool) -> frozenset[str]:
    """Return the ids of the texts in the folders that the terms name.

    Empty means that they name none.
    """
    names = [t for t in question_terms if pool.is_folder_name(t)]
    return frozenset(a for a, shelf in pool.folders.items() if any(t.match(shelf) >= 0.9 for t in names))


def _score_line(line: PassageLine, question: QuestionTerms) -> ScoredLine | None:
    own = sum(weight * _match_paragraph(term, line) for term, weight in question.weights.items())
    if own == 0:
        return None
    headed = sum(w * question.pool.match(t, line) for t, w in question.weights.items())
    if question.asks_what_it_is and line.is_first_prose and _measure_heading_overlap(line, question) == 1:
        own = max(own, 0.85 * headed)  # the first prose under a heading explains its subject without naming it
    subject = sum(w * max(t.match(line.heading), t.match(line.title)) for t, w in question.weights.items())
    source = question.pool.sources.get(line.passage.text_id, Stems())
    context = sum(w * _match_context(t, line, source) for t, w in question.weights.items())
    score = (0.6 * own + 0.4 * context) / question.total + _compute_bonus(line, question)
    return ScoredLine(
        line,
        score * _compute_source_factor(line, source, question) * rate_readability(line),
        own / question.total,
        headed / question.total,
        subject / question.total,
    )


def _match_paragraph(term: Term, line: PassageLine) -> float:
    """Return how well a line matches a term.

    Words in the rest of its paragraph count a little less.
    """
    return max(term.match(line.stems), PARAGRAPH_FACTOR * term.match(line.block_stems))


def _compute_source_factor(line: PassageLine, source: Stems, question: QuestionTerms) -> float:
    """Return a factor below 1 if the source lacks a part of the question or is in another folder."""
    elsewhere = sum(w * (1 - max(t.match(source), question.pool.match(t, line))) for t, w in question.weights.items())
    factor = 1 - 0.35 * elsewhere / question.total
    if question.folder_texts and line.passage.text_id not in question.folder_texts:
        factor *= OTHER_FOLDER_FACTOR
    return factor * (0.9 if question.asks_what_it_is and _measure_heading_overlap(line, question) == 0 else 1.0)


def _compute_bonus(line: PassageLine, question: QuestionTerms) -> float:
    """Return the bonus for adjacent words, the kind of answer, the heading and the search rank."""
    bonus = 0.1 * len(question.pairs & set(pairwise(line.stem_sequence))) / max(len(question.pairs), 1)
    if question.asks_what_it_is and line.is_first_prose and _measure_heading_overlap(line, question) == 1:
        bonus += 0.12
    if question.joined_words & line.stems.words:
        bonus += 0.16 if question.joined_words & extract_stems(" ".join(line.text.split()[:2])).words else 0.08
    if question.asks_for_list and line.unit.kind in {UnitKind.ITEM, UnitKind.ROW}:
        bonus += 0.06
    if question.answer_pattern and question.answer_pattern.search(line.text):
        bonus += 0.06
    if line.passage.id in question.ranks:
        bonus += 0.16 / (1 + 0.5 * question.ranks[line.passage.id])
    return bonus + (0.2 if line.is_first_prose else 0.1) * _measure_heading_overlap(line, question)


def _measure_heading_overlap(line: PassageLine, question: QuestionTerms) -> float:
    """Return the fraction of the heading's words, without common ones, that the question asks for."""
    words = (line.heading.words or line.title.words) - _HEADING_WORDS
    held = sum(any(t.stem == w or w in t.parts for t in question.weights if not t.is_weak) for w in words)
    return held / len(words) if words else 0.0


def _match_context(term: Term, line: PassageLine, source: Stems) -> float:
    return max(
        SOURCE_FACTOR * term.match(source),
        term.match(line.stems),
        HEADING_FACTOR * term.match(line.heading),
        TITLE_FACTOR * term.match(line.title),
        NEIGHBOR_FACTOR * term.match(line.neighbor_stems),
    )
