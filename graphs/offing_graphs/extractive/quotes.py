"""Selection of lines and passages that differ from one another, fit a prompt or match a goal."""

from collections.abc import Mapping, Sequence
from functools import lru_cache

from offing_graphs.extractive.line_scores import ScoredLine, score_lines
from offing_graphs.extractive.lines import build_pool
from offing_graphs.extractive.readability import MAX_QUOTE_CHARS
from offing_graphs.extractive.text_units import UnitKind, split_units, strip_markup
from offing_graphs.extractive.word_forms import extract_stems, extract_terms
from offing_graphs.shared.schemas import RetrievedPassage


def select_distinct(
    hits: Sequence[ScoredLine], limit: int, min_score: float, max_similarity: float = 0.6
) -> tuple[ScoredLine, ...]:
    """Select the best lines that differ from one another.

    The score of a line is reduced by its similarity to the lines selected before it.
    """
    chosen: list[ScoredLine] = []
    candidates = [h for h in hits[: limit * 8] if h.score >= min_score]
    while candidates and len(chosen) < limit:
        best = max(candidates, key=lambda h: h.score - 0.35 * _max_similarity(h, chosen))
        candidates.remove(best)
        if _max_similarity(best, chosen) < max_similarity:
            chosen.append(best)
    return tuple(chosen)


def _max_similarity(hit: ScoredLine, selected: Sequence[ScoredLine]) -> float:
    return max((_similarity(hit.line.stems.words, other.line.stems.words) for other in selected), default=0.0)


def _similarity(one: frozenset[str], other: frozenset[str]) -> float:
    union = len(one | other)
    return len(one & other) / union if union else 0.0


def find_telling_sentence(text: str, goal: str) -> str:
    """Return the sentence of a passage that shares most with a goal.

    If no sentence shares a word with it, the result is one from the beginning.
    """
    goal_terms = extract_terms(goal)
    lines = [
        strip_markup(text[u.start : u.end])
        for u in split_units(text)
        if u.kind not in {UnitKind.HEADING, UnitKind.CODE}
    ]
    if not lines:
        return strip_markup(text[:MAX_QUOTE_CHARS])
    return max(
        lines, key=lambda line: sum(t.match(extract_stems(line)) for t in goal_terms) / (4 + len(line.split())) ** 0.3
    )


def select_relevant(
    questions: Sequence[str],
    passages: Sequence[RetrievedPassage],
    max_size: int,
    sizes: Mapping[str, int],
    first_ids: frozenset[str] = frozenset(),
) -> tuple[RetrievedPassage, ...]:
    """Return the passages that best fit the questions within `max_size`, in their original order.

    `sizes` has the size of each passage by its id. Passages in `first_ids` are chosen before others.
    """
    if sum(sizes.values()) <= max_size:
        return tuple(passages)
    best = _score_passages(tuple(questions), tuple(passages))
    selected_ids: set[str] = set()
    for passage in sorted(passages, key=lambda p: (p.id not in first_ids, -best.get(p.id, 0.0))):
        if sizes[passage.id] <= max_size:
            selected_ids.add(passage.id)
            max_size -= sizes[passage.id]
    return tuple(p for p in passages if p.id in selected_ids)


@lru_cache(maxsize=16)
def _score_passages(questions: tuple[str, ...], passages: tuple[RetrievedPassage, ...]) -> Mapping[str, float]:
    """Return the best score of each passage by its id. The roles of a turn often ask for the same passages."""
    pool = build_pool(passages)
    best: dict[str, float] = {}
    for question in questions:
        for hit in score_lines(question, pool):
            best[hit.line.passage.id] = max(best.get(hit.line.passage.id, 0.0), hit.score)
    return best
