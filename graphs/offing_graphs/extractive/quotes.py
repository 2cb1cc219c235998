"""Choosing among measured lines and passages: those that say different things, that fit a prompt, that tell most."""

from collections.abc import Sequence

from offing_graphs.extractive.form import LONGEST_QUOTE
from offing_graphs.extractive.lines import pool_of
from offing_graphs.extractive.measure import Hit, measure
from offing_graphs.extractive.split import Kind, plain, units
from offing_graphs.extractive.words import stems, terms
from offing_graphs.parts.shapes import Piece


def distinct(hits: Sequence[Hit], most: int, least_score: float, sameness: float = 0.6) -> tuple[Hit, ...]:
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
    return max((_alike(hit.line.stems.words, other.line.stems.words) for other in chosen), default=0.0)


def _alike(one: frozenset[str], other: frozenset[str]) -> float:
    union = len(one | other)
    return len(one & other) / union if union else 0.0


def telling_sentence(text: str, goal: str) -> str:
    """The sentence of a passage that shares most with a goal; its beginning, where none shares anything."""
    asked = terms(goal)
    lines = [plain(text[u.start : u.end]) for u in units(text) if u.kind not in {Kind.HEADING, Kind.CODE}]
    if not lines:
        return plain(text[:LONGEST_QUOTE])
    return max(lines, key=lambda line: sum(t.within(stems(line)) for t in asked) / (4 + len(line.split())) ** 0.3)


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
