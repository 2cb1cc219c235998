"""Which sentences of which passages fit a question, and how well: the model-free roles' only measure.

A sentence is measured by the rare words that it shares with the question, with help from the heading and title that it
stands under. Knows neither turns nor reports.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from offing_graphs.agentflow.extractive_split import Kind, Unit, linked_share, plain, units
from offing_graphs.agentflow.extractive_words import Term, sequence, stems, terms
from offing_graphs.agentflow.shapes import Piece

UNDER_HEADING = 0.6
"""What a word counts that stands in the heading and not in the sentence."""
IN_TITLE = 0.5
"""The same for the source's title."""
NEARBY = 0.3
"""The same for the rest of the passage."""
WEAK = 0.3
"""Weight of a word that says little."""
LEAST_POOL = 40
"""Sentences that a pool counts as having at least, so that few passages do not make every word common."""
LONGEST_QUOTE = 420
"""Code points of a quote; longer sentences are cut at a clause."""

_DANGLING = re.compile(
    r"(?:this|that|these|those|it|they|he|she|such|its|their|here|however|also|otherwise|therefore)\b", re.I
)
_CLAUSE = re.compile(r"[;:,.)\u2014](?=\s)")


@dataclass(frozen=True, slots=True)
class Line:
    """A unit of a passage, ready to be measured."""

    piece: Piece
    unit: Unit
    text: str
    """As a reader sees it."""
    stems: frozenset[str]
    order: tuple[str, ...]
    heading: frozenset[str]
    title: frozenset[str]
    around: frozenset[str]

    @property
    def span(self) -> tuple[str, int, int]:
        return self.piece.artefact, self.piece.start + self.unit.start, self.piece.start + self.unit.end


@dataclass(frozen=True, slots=True)
class Hit:
    """A line with what it is worth for one question."""

    line: Line
    score: float
    """0 to a little over 1; 1: it holds every word of the question."""
    share: float
    """Weight of the question's words that it holds itself, 0 to 1."""
    with_heading: float
    """The same with the heading and title it stands under."""


@dataclass(frozen=True, slots=True)
class Pool:
    """All lines of some passages, each stretch of text once, with how common each word is among them."""

    lines: tuple[Line, ...]
    counts: Counter[str] = field(default_factory=Counter[str])

    def weight(self, term: Term) -> float:
        """Higher for a word that few lines hold; full for one that none holds."""
        total = max(len(self.lines), LEAST_POOL)
        held = self.counts[term.whole] or (min(self.counts[p] for p in term.parts) if term.parts else 0)
        return math.log(1 + (total - held + 0.5) / (held + 0.5)) * (WEAK if term.weak else 1.0)


def pool_of(pieces: Iterable[Piece]) -> Pool:
    """The lines of these passages; where passages overlap, a line counts once."""
    lines: list[Line] = []
    seen: set[tuple[str, int, int]] = set()
    for piece in pieces:
        for line in _lines_of(piece):
            if line.span not in seen and not _is_part_of(line.span, seen):
                seen.add(line.span)
                lines.append(line)
    counts = Counter(stem for line in lines for stem in line.stems)
    return Pool(tuple(lines), counts)


def _is_part_of(span: tuple[str, int, int], seen: set[tuple[str, int, int]]) -> bool:
    """A window that begins in mid-sentence gives a line whose end is known already."""
    return any(a == span[0] and s <= span[1] and span[2] <= e for a, s, e in seen)


def _lines_of(piece: Piece) -> tuple[Line, ...]:
    heading = _last_heading(piece)
    title, around = stems(piece.title), stems(piece.text)
    found: list[Line] = []
    for unit in units(piece.text):
        if unit.kind is Kind.HEADING:
            heading = stems(piece.text[unit.start : unit.end])
            continue
        stretch = piece.text[unit.start : unit.end]
        text = stretch if unit.kind is Kind.CODE else plain(stretch)
        found.append(Line(piece, unit, text, stems(text), sequence(text), heading, title, around))
    return tuple(found)


def _last_heading(piece: Piece) -> frozenset[str]:
    return stems(piece.heading)


def measure(question: str, pool: Pool, ranks: dict[str, int] | None = None) -> tuple[Hit, ...]:
    """Lines that share a word with the question, best first. `ranks`: place of a passage in the search's own order."""
    asked = terms(question)
    weights = {term: pool.weight(term) for term in asked}
    total = sum(weights.values()) or 1.0
    order = sequence(question)
    pairs = set(pairwise(order))
    wants = _wants(question)
    hits = [
        hit
        for line in pool.lines
        if line.unit.kind is not Kind.CODE and (hit := _hit(line, weights, total, pairs, wants, ranks or {}))
    ]
    return tuple(sorted(hits, key=lambda h: (-h.score, h.line.span[0], h.line.span[1])))


def _hit(
    line: Line,
    weights: dict[Term, float],
    total: float,
    pairs: set[tuple[str, str]],
    wants: re.Pattern[str] | None,
    ranks: dict[str, int],
) -> Hit | None:
    own = sum(weight * term.within(line.stems) for term, weight in weights.items())
    if own == 0:
        return None
    headed = sum(
        w * max(t.within(line.stems), t.within(line.heading), t.within(line.title)) for t, w in weights.items()
    )
    context = sum(w * _in_context(t, line) for t, w in weights.items())
    together = len(pairs & set(pairwise(line.order))) / max(len(pairs), 1)
    score = (0.65 * own + 0.35 * context) / total + 0.12 * together
    if wants and wants.search(line.text):
        score += 0.06
    if line.piece.id in ranks:
        score += 0.08 / (1 + ranks[line.piece.id])
    return Hit(line, score * _readable(line), own / total, headed / total)


def _in_context(term: Term, line: Line) -> float:
    return max(
        term.within(line.stems),
        UNDER_HEADING * term.within(line.heading),
        IN_TITLE * term.within(line.title),
        NEARBY * term.within(line.around),
    )


def _readable(line: Line) -> float:
    """How well a line stands alone, as a factor."""
    factor = 1.0
    words = len(line.text.split())
    if words < 5:
        factor *= 0.55
    if len(line.text) > LONGEST_QUOTE:
        factor *= 0.85
    if line.text.endswith("?"):
        factor *= 0.6
    if line.text.endswith(":"):
        factor *= 0.8
    if is_dangling(line.text):
        factor *= 0.88
    if linked_share(line.piece.text[line.unit.start : line.unit.end]) > 0.7:
        factor *= 0.35
    return factor


def is_dangling(text: str) -> bool:
    """It begins with a word that leans on the sentence before."""
    return bool(_DANGLING.match(text))


_WANTED: tuple[tuple[str, str], ...] = (
    (r"\bwhy\b|\breasons?\b", r"\b(?:because|since|so that|in order to|due to|reason|avoid|prevent|therefore)\b"),
    (r"\bwhen\b|\bwhat year\b|\bsince\b", r"\b(?:when|before|after|once|until|if|since|\d{4}|v?\d+\.\d+)\b"),
    (
        r"\bhow (?:many|much|long|large|often|big|fast)\b|\bdefaults?\b|\blimit\b|\btimeout\b",
        r"\d|\bdefault\b|\bnone\b|\bnull\b",
    ),
    (r"\bhow\b", r"\b(?:by|use|using|call|set|pass|create|register|add|must|should|can be|via|through)\b"),
    (r"\bwhat (?:is|are)\b|\bdefine\b|\bmeaning\b", r"\b(?:is|are|means?|refers? to|represents?|provides?|called)\b"),
    (r"\bwho\b", r"\b(?:by|author|maintain|team|lead|founder)"),
    (
        r"\b(?:difference|differ|versus|vs|compare[ds]?)\b",
        r"\b(?:unlike|whereas|while|instead|than|but|however|only|both)\b",
    ),
    (r"^(?:is|are|does|do|can|should|will|must)\b", r"\b(?:not|never|only|always|must|can|cannot|does|supports?)\b"),
)
"""What a question of a kind is often answered with."""


def _wants(question: str) -> re.Pattern[str] | None:
    lowered = question.lower().strip()
    answer = next((answer for asked, answer in _WANTED if re.search(asked, lowered)), None)
    return re.compile(answer, re.IGNORECASE) if answer else None


def distinct(hits: Sequence[Hit], most: int, least_score: float, sameness: float = 0.65) -> tuple[Hit, ...]:
    """The best hits that say different things: each is weighed against what it repeats of those before it."""
    chosen: list[Hit] = []
    candidates = [h for h in hits[: most * 8] if h.score >= least_score]
    while candidates and len(chosen) < most:
        best = max(candidates, key=lambda h: h.score - 0.35 * _most_alike(h, chosen))
        candidates.remove(best)
        if _most_alike(best, chosen) < sameness:
            chosen.append(best)
    return tuple(chosen)


def _most_alike(hit: Hit, chosen: Sequence[Hit]) -> float:
    return max((_alike(hit.line.stems, other.line.stems) for other in chosen), default=0.0)


def _alike(one: frozenset[str], other: frozenset[str]) -> float:
    union = len(one | other)
    return len(one & other) / union if union else 0.0


def telling_sentence(text: str, goal: str) -> str:
    """The sentence of a passage that shares most with a goal; its beginning, where none shares anything."""
    asked = stems(goal)
    lines = [plain(text[u.start : u.end]) for u in units(text) if u.kind not in {Kind.HEADING, Kind.CODE}]
    if not lines:
        return plain(text[:LONGEST_QUOTE])
    return max(lines, key=lambda line: len(asked & stems(line)) / (4 + len(line.split())) ** 0.3)


def most_relevant(questions: Sequence[str], pieces: Sequence[Piece], limit: int) -> tuple[Piece, ...]:
    """Passages that fit these questions best within a number of code points, in the order in which they were found."""
    pool = pool_of(pieces)
    best: dict[str, float] = {}
    for question in questions:
        for hit in measure(question, pool):
            best[hit.line.piece.id] = max(best.get(hit.line.piece.id, 0.0), hit.score)
    kept: set[str] = set()
    for piece in sorted(pieces, key=lambda p: -best.get(p.id, 0.0)):
        if len(piece.text) <= limit:
            kept.add(piece.id)
            limit -= len(piece.text)
    return tuple(p for p in pieces if p.id in kept)


def cut_short(text: str) -> int:
    """Where a quote of this text ends: its length, or the last clause border within the longest quote."""
    if len(text) <= LONGEST_QUOTE:
        return len(text)
    borders = [m.end() for m in _CLAUSE.finditer(text, LONGEST_QUOTE // 2, LONGEST_QUOTE)]
    return (
        borders[-1]
        if borders
        else (text.rfind(" ", 0, LONGEST_QUOTE) if " " in text[:LONGEST_QUOTE] else LONGEST_QUOTE)
    )
