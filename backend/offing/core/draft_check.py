"""Check of a draft before it becomes a report: its problems, each with what the text says instead. Pure functions."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from offing.core.citation import (
    ClaimContext,
    TextLookup,
    list_cited_ids,
    list_draft_sentences,
    verify_citations,
)
from offing.core.claim_support import ClaimSupport, find_unsupported_numbers
from offing.core.quote_matching import FoldedText, fold_text, locate_quote
from offing.core.report import DraftCitation, DraftSentence, Evidence, Layout, Report, ReportDraft, Sentence
from offing.core.run import StopReason

MIN_SIMILARITY = 0.4
"""Minimum fraction of the words of a rejected quote that the closest words of the text contain."""
EXCERPT_CHARS = 160
"""Code points around a number, date or name that is shown where it stands in the text."""
MAX_QUOTE_WORDS = 80
"""Maximum words of a rejected quote that are compared."""


@dataclass(frozen=True, slots=True)
class DraftProblem:
    """One problem of a sentence. Words in `excerpt` come from a document and are untrusted."""

    message: str
    evidence: str = ""
    """Id of the passage whose text is shown. Empty means none."""
    excerpt: str = ""
    """What the text says: the words closest to a rejected quote, or those around a number. Empty means none."""
    values: tuple[str, ...] = ()
    """Numbers, dates and names that nothing supports. Empty means that the problem is another one."""


@dataclass(frozen=True, slots=True)
class ProblemSentence:
    """A sentence of a draft that has problems."""

    id: str
    """s1, s2 and so on, as the report numbers its sentences."""
    text: str
    citations: tuple[DraftCitation, ...]
    problems: tuple[DraftProblem, ...]


@dataclass(frozen=True, slots=True)
class DraftCheck:
    """The result of checking a draft."""

    problems: tuple[ProblemSentence, ...]
    """Sentences that the report would mark. Those that cite nothing are included only for new numbers."""
    evidence: tuple[Evidence, ...]
    """The passages that these sentences cite, in the order of their ids."""


def check_draft(
    draft: ReportDraft, evidence: Mapping[str, Evidence], lookup_text: TextLookup, context: ClaimContext
) -> DraftCheck:
    """Check a draft as `verify_citations` does, and say what to correct."""
    report = verify_citations(draft, evidence, lookup_text, StopReason.ANSWERED, context=context)
    pairs = tuple(zip(list_draft_sentences(draft), report.sentences(), strict=True))
    finder = _TextFinder(evidence, lookup_text, _collect_known(report, context))
    problems = tuple(
        ProblemSentence(sentence.id, sentence.text, one.citations, sentence_problems)
        for one, sentence in pairs
        if (sentence_problems := tuple(_list_problems(one, sentence, finder)))
    )
    ids = {id for one, s in pairs if any(p.id == s.id for p in problems) for id in list_cited_ids(one)}
    return DraftCheck(problems, tuple(e for id, e in evidence.items() if id in ids))


def find_closest_words(quote: str, text: str) -> str:
    """Return the words of a text that are most similar to a quote. Empty if none are similar."""
    quoted = Counter(_split_words(quote)[:MAX_QUOTE_WORDS])
    words = list(re.finditer(r"\S+", text))
    size = min(quoted.total(), len(words))
    best, best_score = 0, 0
    for first in range(len(words) - size + 1) if size else ():
        score = (
            quoted & Counter(w for match in words[first : first + size] for w in _split_words(match.group()))
        ).total()
        if score > best_score:
            best, best_score = first, score
    if not size or best_score < MIN_SIMILARITY * quoted.total():
        return ""
    return text[words[best].start() : words[best + size - 1].end()]


@dataclass(frozen=True, slots=True)
class _TextFinder:
    """Looks up what the stored text says around the passages of evidence."""

    evidence: Mapping[str, Evidence]
    lookup_text: TextLookup
    known: ClaimSupport
    """What a sentence that cites nothing may repeat."""
    _folded: dict[str, FoldedText] = field(default_factory=dict[str, FoldedText])

    def read_passage(self, id: str) -> str:
        """Return the text of a passage without its neighbors, because the writer is told that the passage says it."""
        one = self.evidence.get(id)
        return "" if one is None else self.lookup_text(one.span)

    def find_quote(self, quote: str) -> str:
        """Return the id of the first passage that contains a quote. Empty if none does."""
        return next((id for id in self.evidence if quote.strip() and self._contains(id, quote)), "")

    def _contains(self, id: str, quote: str) -> bool:
        text = self.evidence[id].text
        folded = self._folded.get(id) or self._folded.setdefault(id, fold_text(text))
        return locate_quote(quote, text, folded) is not None


def _collect_known(report: Report, context: ClaimContext) -> ClaimSupport:
    """Collect the quotes of the whole report, its supported sentences, the question and the calculations."""
    quoted = {number for sentence in report.sentences() for number in sentence.citations}
    quotes = (citation.quote for citation in report.citations if citation.number in quoted)
    supported = (sentence.text for sentence in report.sentences() if sentence.citations and sentence.is_supported)
    return ClaimSupport((*quotes, *supported, context.question), calculations=context.calculations)


def _list_problems(draft: DraftSentence, sentence: Sentence, finder: _TextFinder) -> Iterable[DraftProblem]:
    if sentence.layout is Layout.HEADER:
        return
    if not sentence.is_claim:
        if values := find_unsupported_numbers(sentence.text, finder.known):
            yield DraftProblem(f"It states {', '.join(values)} and cites nothing.", values=values)
        return
    if sentence.rejected:
        yield from _describe_rejections(draft, sentence, finder)
    if sentence.passages and not sentence.citations:
        ids = ", ".join(id for id in list_cited_ids(draft) if id in finder.evidence)
        yield DraftProblem(f"It cites {ids} without words quoted from there.")
    for value in sentence.unsupported_values:
        yield _describe_value(value, list_cited_ids(draft), finder)


def _describe_rejections(draft: DraftSentence, sentence: Sentence, finder: _TextFinder) -> Iterable[DraftProblem]:
    described: set[str] = set()
    for citation in draft.citations:
        id = citation.evidence.strip()
        reason = next((r for r in sentence.rejected if r not in described and _is_about(r, citation)), "")
        if not reason:
            continue
        described.add(reason)
        if (other := finder.find_quote(citation.quote)) and other != id:
            yield DraftProblem(f"{reason} The words stand in {other}.", other)
        else:
            yield DraftProblem(reason, id, find_closest_words(citation.quote, finder.read_passage(id)))
    yield from (DraftProblem(reason) for reason in sentence.rejected if reason not in described)


def _is_about(reason: str, citation: DraftCitation) -> bool:
    quote = " ".join(citation.quote.split())[:60]
    return reason.startswith(citation.evidence.strip()) or (bool(quote) and quote in reason)


def _describe_value(value: str, ids: Iterable[str], finder: _TextFinder) -> DraftProblem:
    message = f"{value} is in none of the words quoted, and no calculation of this run gives it."
    for id in ids:
        text = finder.read_passage(id)
        if position := locate_quote(value, text):
            start, end = max(0, position[0] - EXCERPT_CHARS // 2), position[1] + EXCERPT_CHARS // 2
            return DraftProblem(message, id, text[start:end].strip(), (value,))
    return DraftProblem(message, values=(value,))


def _split_words(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold())
