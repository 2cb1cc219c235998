"""How far each part of a question is answered by the passages, estimated from their words."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from offing.sdk import shorten_line
from offing_graphs.extractive.answer_types import find_required_pattern
from offing_graphs.extractive.arithmetic import find_expression
from offing_graphs.extractive.line_scores import ScoredLine, score_lines, weigh_terms
from offing_graphs.extractive.lines import LinePool, build_pool, match_in_paragraph
from offing_graphs.extractive.question import is_comparison
from offing_graphs.extractive.tool_names import CALCULATE, SEARCH_LIBRARY
from offing_graphs.extractive.word_forms import Term, extract_terms, is_unspaced
from offing_graphs.shared.schemas import Coverage, MemoryRecord, RetrievedPassage

MIN_COVERED_WEIGHT = 0.5
"""Minimum weight of a part's words that its best passages must contain together."""
MIN_SINGLE_COVERED_WEIGHT = 0.5
"""Minimum weight that one sentence must contain with its heading.

It is also the minimum weight of the telling words that one paragraph must contain.
"""
MIN_UNSPACED_COVERED_WEIGHT = 0.4
"""The same minimum for a part in a script without spaces. Its terms are pairs of characters, and another wording of
one word loses several of them.
"""
MIN_KNOWN_WEIGHT = 0.65
"""Minimum weight of a part's words that must occur in any passage."""
MIN_OWN_WEIGHT = 0.2
"""Minimum weight that the sentence itself must contain."""
MIN_NAME_SHARE = 0.5
"""Minimum share of the names and numbers of a part that one of the best paragraphs must contain."""
READ_RANK = 2
"""Search rank that is assumed for the text around a line."""


@dataclass(frozen=True, slots=True)
class PartStatus:
    """Coverage of one part of the question."""

    part: str
    hits: tuple[ScoredLine, ...]
    held_weight: float
    """Weight of the part's words that its best sentences contain together, from 0 to 1."""
    missing: tuple[str, ...]
    """Words of the part that no sentence contains, without weak words."""
    covered: bool
    unmentioned: tuple[str, ...] = ()
    """Telling words of the part that the best paragraphs contain in no form."""

    def to_coverage(self) -> Coverage:
        ids = tuple(dict.fromkeys(h.line.passage.id for h in self.hits[:3])) if self.covered else ()
        missing = f"No passage holds: {', '.join(self.missing)}." if self.missing else ""
        gap = "" if self.covered else missing or "No sentence holds enough of its words."
        return Coverage(sub_question=self.part, covered=self.covered, evidence=ids, missing=gap)


def assess_parts(
    parts: Sequence[str],
    user_messages: Sequence[str],
    passages: Sequence[RetrievedPassage],
    memory: Sequence[MemoryRecord],
) -> tuple[PartStatus, ...]:
    """Assess the coverage of every part by the passages."""
    return assess_coverage(list_parts(parts, user_messages), build_pool(passages), memory)


def assess_coverage(parts: Sequence[str], pool: LinePool, memory: Sequence[MemoryRecord]) -> tuple[PartStatus, ...]:
    """Assess the parts.

    A comparison is covered if all other parts are, even if no passage names both sides.
    """
    part_statuses = tuple(_assess_part(part, pool, memory) for part in parts)
    sides = all(s.covered for s in part_statuses if not is_comparison(s.part))
    return tuple(replace(s, covered=True) if sides and is_comparison(s.part) else s for s in part_statuses)


def list_parts(parts: Sequence[str], user_messages: Sequence[str]) -> tuple[str, ...]:
    """Return the parts of the question and the user messages that were sent during the run."""
    return tuple(dict.fromkeys((*parts, *(shorten_line(w, 300) for w in user_messages if extract_terms(w)))))


def _assess_part(part: str, pool: LinePool, memory: Sequence[MemoryRecord]) -> PartStatus:
    calculated = next((r for r in memory if r.tool == CALCULATE and r.value), None)
    if calculated and find_expression(part):
        return PartStatus(part, (), 1.0, (), covered=True)
    hits = score_lines(part, pool, find_search_ranks(part, memory))
    weights = weigh_terms(part, pool)
    best = [h for h in hits[:4] if h.own_weight >= MIN_OWN_WEIGHT]
    held = sum(w * max((pool.match(t, h.line) for h in best), default=0.0) for t, w in weights.items())
    total = sum(weights.values()) or 1.0
    absent = [t for t in weights if not t.is_weak and not pool.has_term(t)]
    known = 1 - sum(weights[t] for t in absent) / total
    together, unsaid = _measure_paragraphs(hits[:5], weights, pool)
    single = MIN_UNSPACED_COVERED_WEIGHT if is_unspaced(part) else MIN_SINGLE_COVERED_WEIGHT
    enough = held / total >= MIN_COVERED_WEIGHT and known >= MIN_KNOWN_WEIGHT and together >= single
    near = any(h.weight_with_heading >= single for h in best)
    covered = enough and near and _has_answer_type(part, best) and _has_names(part, weights, hits[:5])
    return PartStatus(part, hits, held / total, tuple(t.text for t in absent), covered, unsaid)


def _has_answer_type(part: str, best: Sequence[ScoredLine]) -> bool:
    """Return whether one of the best sentences holds the date, number or name that the part asks for."""
    required = find_required_pattern(part)
    return required is None or any(required.search(h.line.text) for h in best)


def _has_names(part: str, weights: Mapping[Term, float], best: Sequence[ScoredLine]) -> bool:
    """Return whether one of the best paragraphs holds enough of the names and numbers of the part."""
    first = part.split(" ", 1)[0]
    names = [t for t in weights if (t.text[0].isupper() and t.text != first) or t.text[0].isdigit()]
    counts = (sum(match_in_paragraph(t, h.line) > 0 for t in names) for h in best)
    return not names or any(count >= MIN_NAME_SHARE * len(names) for count in counts)


def _measure_paragraphs(
    best: Sequence[ScoredLine], weights: Mapping[Term, float], pool: LinePool
) -> tuple[float, tuple[str, ...]]:
    """Return how much of the telling words one paragraph contains with its headings, from 0 to 1.

    The second value lists the telling words that no paragraph contains.
    """
    telling = {t: w for t, w in weights.items() if not t.is_weak and not pool.is_folder_name(t)} or dict(weights)
    total = sum(telling.values()) or 1.0
    shares = [sum(w * match_in_paragraph(t, h.line) for t, w in telling.items()) / total for h in best]
    unsaid = [t.text for t in telling if not any(match_in_paragraph(t, h.line) > 0 for h in best)]
    return max(shares, default=0.0), tuple(unsaid)


def find_search_ranks(part: str, memory: Sequence[MemoryRecord]) -> dict[str, float]:
    """Return the rank of each passage in the searches for a part.

    Empty means that no search was made.
    """
    ranks: dict[str, float] = {}
    for record in memory:
        if part in record.sub_goal:
            first = 0 if record.tool == SEARCH_LIBRARY else READ_RANK
            for rank, evidence_id in enumerate(record.evidence, start=first):
                ranks.setdefault(evidence_id, rank)
    return ranks
