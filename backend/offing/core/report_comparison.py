"""Comparison of two versions of a report.

Sections are matched by their headings, then by the sentences that they share. Sentences of matched sections are
matched by their text, then by similarity. Nothing that a model claims about its changes is used.
"""

import re
from collections import Counter
from collections.abc import Callable, Sequence

from offing.core.report import Report, Section, Sentence
from offing.core.report_changes import ChangeKind, ReportChanges, SectionChange, SentenceChange
from offing.core.tool import SourceSpan

MIN_SENTENCE_SIMILARITY = 0.55
"""Minimum similarity, 0 to 1, of a sentence that counts as a changed form of another."""
MIN_SHARED_SENTENCES = 0.5
"""Minimum fraction of shared sentences of a section that counts as a renamed form of another."""

_Sources = frozenset[SourceSpan]


def compare_reports(old: Report, new: Report) -> ReportChanges:
    """Return the differences of the new version from the old one."""
    old_sources, new_sources = _build_source_lookup(old), _build_source_lookup(new)
    pairs = _match_sections(old.sections, new.sections)
    changed = [
        _compare_sections(old.sections[before] if before is not None else None, section, old_sources, new_sources)
        for section, before in zip(new.sections, pairs, strict=True)
    ]
    removed = [s for n, s in enumerate(old.sections) if n not in pairs]
    return ReportChanges(
        answer=_compare_answers(old.answer, new.answer, old_sources, new_sources),
        sections=(
            *(change for change in changed if change is not None),
            *(SectionChange(ChangeKind.REMOVED, section.heading) for section in removed),
        ),
        kept_sections=sum(change is None for change in changed),
        title_before="" if _normalize(old.title) == _normalize(new.title) else old.title,
    )


def _build_source_lookup(report: Report) -> Callable[[Sentence], _Sources]:
    spans = {citation.number: citation.span for citation in report.citations}
    return lambda sentence: frozenset(
        spans[number] for number in (*sentence.citations, *sentence.passages) if number in spans
    )


def _match_sections(old: Sequence[Section], new: Sequence[Section]) -> list[int | None]:
    """Return for each new section the position of the old section that it continues."""
    free = dict(enumerate(old))
    pairs: list[int | None] = [None] * len(new)
    for at, section in enumerate(new):
        same = [n for n, s in free.items() if _normalize(s.heading) == _normalize(section.heading)]
        if same:
            pairs[at] = max(same, key=lambda n: (_shared_fraction(free[n], section), -n))
            del free[pairs[at] or 0]
    for at, section in enumerate(new):
        shared = {n: _shared_fraction(s, section) for n, s in free.items()} if pairs[at] is None else {}
        best = max(shared, key=lambda n: (shared[n], -n), default=None)
        if best is not None and shared[best] >= MIN_SHARED_SENTENCES:
            pairs[at] = best
            del free[best]
    return pairs


def _shared_fraction(one: Section, other: Section) -> float:
    """Return the fraction of the sentences of the smaller section that are in the other one, too."""
    texts, others = ({_normalize(s.text) for s in section.sentences} for section in (one, other))
    return len(texts & others) / max(1, min(len(texts), len(others)))


def _compare_sections(
    old: Section | None,
    new: Section,
    old_sources: Callable[[Sentence], _Sources],
    new_sources: Callable[[Sentence], _Sources],
) -> SectionChange | None:
    """Return the change of a section. `None` means that it is the same."""
    if old is None:
        added = tuple(SentenceChange(ChangeKind.ADDED, s.text) for s in new.sentences)
        return SectionChange(ChangeKind.ADDED, new.heading, sentences=added)
    before = "" if _normalize(old.heading) == _normalize(new.heading) else old.heading
    sentences = _compare_sentences(old.sentences, new.sentences, old_sources, new_sources)
    if not sentences and not before:
        return None
    return SectionChange(ChangeKind.CHANGED, new.heading, before, sentences)


def _compare_answers(
    old: Sentence | None,
    new: Sentence | None,
    old_sources: Callable[[Sentence], _Sources],
    new_sources: Callable[[Sentence], _Sources],
) -> tuple[SentenceChange, ...]:
    """Compare the short answers. A report has at most one, so another text is always a change of it."""
    if old is None or new is None or _is_same(old, new, old_sources, new_sources):
        return _compare_sentences([old] if old else [], [new] if new else [], old_sources, new_sources)
    return (SentenceChange(ChangeKind.CHANGED, new.text, old.text),)


def _compare_sentences(
    old: Sequence[Sentence],
    new: Sequence[Sentence],
    old_sources: Callable[[Sentence], _Sources],
    new_sources: Callable[[Sentence], _Sources],
) -> tuple[SentenceChange, ...]:
    pairs = _match_sentences(old, new)
    changes: list[SentenceChange] = []
    for sentence, at in zip(new, pairs, strict=True):
        if at is None:
            changes.append(SentenceChange(ChangeKind.ADDED, sentence.text))
        elif not _is_same(old[at], sentence, old_sources, new_sources):
            changes.append(SentenceChange(ChangeKind.CHANGED, sentence.text, old[at].text))
    removed = [SentenceChange(ChangeKind.REMOVED, s.text) for n, s in enumerate(old) if n not in pairs]
    return (*changes, *removed)


def _is_same(
    old: Sentence,
    new: Sentence,
    old_sources: Callable[[Sentence], _Sources],
    new_sources: Callable[[Sentence], _Sources],
) -> bool:
    return _normalize(old.text) == _normalize(new.text) and old_sources(old) == new_sources(new)


def _match_sentences(old: Sequence[Sentence], new: Sequence[Sentence]) -> list[int | None]:
    """Return for each new sentence the position of the old sentence that it repeats or changes."""
    free = dict(enumerate(old))
    pairs: list[int | None] = [None] * len(new)
    for at, sentence in enumerate(new):
        same = next((n for n, s in free.items() if _normalize(s.text) == _normalize(sentence.text)), None)
        if same is not None:
            pairs[at] = same
            del free[same]
    open_ones = [at for at, before in enumerate(pairs) if before is None]
    scores = [(_compute_similarity(s.text, new[at].text), -at, -n) for at in open_ones for n, s in free.items()]
    for score, minus_at, minus_n in sorted(scores, reverse=True):
        if score >= MIN_SENTENCE_SIMILARITY and pairs[-minus_at] is None and -minus_n in free:
            pairs[-minus_at] = -minus_n
            del free[-minus_n]
    return pairs


def _compute_similarity(one: str, other: str) -> float:
    """Return the Dice coefficient of the letter pairs of two texts, from 0 to 1. It needs no words."""
    pairs, others = _count_letter_pairs(one), _count_letter_pairs(other)
    return 2 * (pairs & others).total() / max(1, pairs.total() + others.total())


def _count_letter_pairs(text: str) -> Counter[str]:
    letters = _normalize(text)
    return Counter(letters[n : n + 2] for n in range(len(letters) - 1))


def _normalize(text: str) -> str:
    return " ".join(re.sub(r"[^\w%€$£+<>=./-]+", " ", text.casefold()).split()).strip(" .")
