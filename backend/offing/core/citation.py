"""Verification of citations, which turns a ReportDraft into a Report.

Every quote is looked up in the stored text, see `core.quote_matching`. The report then keeps the wording of the stored
text. The functions are pure: they read the stored text through a function that the caller passes.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from uuid import UUID

from offing.core.citation_texts import REJECTION_TEXTS
from offing.core.claim_support import ClaimSupport, find_unsupported_values
from offing.core.quote_matching import locate_quote
from offing.core.report import (
    Citation,
    DraftCitation,
    DraftSentence,
    Evidence,
    Report,
    ReportDraft,
    ReportStatus,
    Section,
    Sentence,
)
from offing.core.run import StopReason
from offing.core.shared_terms import shares_terms
from offing.core.step import shorten_line
from offing.core.table_scale import read_table_values
from offing.core.tool import SourceSpan
from offing.core.written_names import shares_language

TextLookup = Callable[[SourceSpan], str]
"""Returns the exact stored text of a source span.

It is shorter if the text ends before the span does, and empty if the text is no longer stored.
"""

MAX_NEIGHBOR_CHARS = 2_000
"""Code points before and after a passage of evidence in which a quote may stand, too."""

_MARKER = re.compile(r"(?<!\s)\s*\[(E\d+(?:\s*[,;]\s*E\d+)*)\]")
_ID = re.compile(r"E\d+")
_QUOTED = re.compile(r"[\u201c\"\u00ab]([^\u201c\u201d\"\u00ab\u00bb]{12,})[\u201d\"\u00bb]")
"""Words in quotation marks that are long enough not to occur in any text."""
_HEADING = re.compile(r"^#{1,6}\s+(.+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class ClaimContext:
    """What may support a sentence beside its quotes."""

    question: str = ""
    """Names in the question of the run need no quote."""
    calculations: tuple[str, ...] = ()
    """Results of the run's calculations."""


NO_CONTEXT = ClaimContext()


def verify_citations(
    draft: ReportDraft,
    evidence: Mapping[str, Evidence],
    lookup_text: TextLookup,
    stop_reason: StopReason,
    written_by: str = "",
    context: ClaimContext = NO_CONTEXT,
) -> Report:
    """Verify every citation of a draft and return the report.

    A citation that cannot be verified is rejected. Its sentence stays, even if nothing supports it.
    `evidence` maps ids to the passages that the run has retrieved; nothing else can be cited.
    """
    numbering = _CitationNumbering(evidence, lookup_text, _collect_quotes(draft), context)
    lead = _build_lead(draft)
    answer = numbering.number_sentence(lead, is_answer=True) if lead is not None else None
    sections = tuple(
        Section(s.heading.strip(), tuple(numbering.number_sentence(one) for one in s.sentences if one.text.strip()))
        for s in draft.sections
    )
    return Report(
        title=draft.title.strip(),
        status=ReportStatus.COMPLETE if stop_reason is StopReason.ANSWERED else ReportStatus.PARTIAL,
        stop_reason=stop_reason.value,
        answer=answer,
        sections=tuple(s for s in sections if s.sentences),
        citations=tuple(numbering.citations.values()),
        limits=draft.limits.strip(),
        written_by=written_by,
    )


def list_draft_sentences(draft: ReportDraft) -> tuple[DraftSentence, ...]:
    """Return the sentences of a draft in the order in which the report numbers them: s1, s2 and so on."""
    lead = _build_lead(draft)
    head = () if lead is None else (lead,)
    return (*head, *(s for section in draft.sections for s in section.sentences if s.text.strip()))


def _build_lead(draft: ReportDraft) -> DraftSentence | None:
    """Return the short answer as a sentence. `None` means that there is none."""
    if not draft.answer.strip():
        return None
    return DraftSentence(text=draft.answer, citations=draft.answer_citations)


def list_cited_ids(sentence: DraftSentence) -> tuple[str, ...]:
    """Return the evidence ids that a sentence cites, in its citations and in markers such as [E3]."""
    marked = (id for group in _MARKER.findall(sentence.text) for id in _ID.findall(group))
    return tuple(dict.fromkeys((*(c.evidence.strip() for c in sentence.citations), *marked)))


def widen_span(span: SourceSpan) -> SourceSpan:
    """Return the span in which the quotes of a passage may stand. It may end after the text does."""
    return replace(span, start=max(0, span.start - MAX_NEIGHBOR_CHARS), end=span.end + MAX_NEIGHBOR_CHARS)


def _collect_quotes(draft: ReportDraft) -> dict[str, list[str]]:
    """Collect the quotes that the sections take from each passage of evidence, by its id."""
    quotes: dict[str, list[str]] = {}
    for section in draft.sections:
        for citation in (c for sentence in section.sentences for c in sentence.citations if c.quote.strip()):
            quotes.setdefault(citation.evidence, []).append(citation.quote)
    return quotes


@dataclass(frozen=True, slots=True)
class LocatedCitation:
    """A citation that was not rejected."""

    evidence: Evidence
    span: SourceSpan
    text: str
    """Stored text of the span."""
    titles: tuple[str, ...]
    """Titles, headings and names that the cited document has there."""
    is_quote: bool = True
    """`False` means that the citation only names the passage."""


@dataclass(slots=True)
class _CitationNumbering:
    """Numbers of sentences and citations, assigned while a draft is read from top to bottom."""

    evidence: Mapping[str, Evidence]
    lookup_text: TextLookup
    quotes: Mapping[str, Sequence[str]]
    context: ClaimContext
    citations: dict[SourceSpan, Citation] = field(default_factory=dict[SourceSpan, Citation])
    last_number: int = 0

    def number_sentence(self, draft: DraftSentence, *, is_answer: bool = False) -> Sentence:
        """Return one sentence with its verified citations.

        Markers such as [E3] in the text count as citations and are removed from it. A short answer is also supported
        by the quotes of all sections, because it has none of its own.
        """
        self.last_number += 1
        text, marked = _strip_markers(draft.text), self._list_marked_quotes(draft)
        first = [DraftCitation(evidence=id, quote=quotes[0] if quotes else "") for id, quotes in marked]
        outcomes = [self._locate_citation(c) for c in (*draft.citations, *first)]
        located = [o for o in outcomes if isinstance(o, LocatedCitation)]
        more = [*((id, quotes[1:]) for id, quotes in marked), *(self.quotes.items() if is_answer else ())]
        further = [DraftCitation(evidence=id, quote=quote) for id, quotes in more for quote in quotes]
        quoted = self._add_quotes(text, [one for one in located if one.is_quote], further)
        numbers = tuple(dict.fromkeys(map(self._assign_number, quoted)))
        named = dict.fromkeys(self._assign_number(one) for one in located if not one.is_quote)
        return Sentence(
            f"s{self.last_number}",
            text,
            numbers,
            tuple(dict.fromkeys(o for o in outcomes if isinstance(o, str))),
            tuple(number for number in named if number not in numbers),
            self._find_unsupported(text, quoted) if quoted else (),
            draft.layout,
        )

    def _list_marked_quotes(self, draft: DraftSentence) -> list[tuple[str, list[str]]]:
        """Return the evidence that the text contains only as markers, with the quotes that the sections take from it.

        The closest quote comes first. A quote that speaks of something else is left out. If the sections take none,
        these are the words that the text itself has in quotation marks.
        """
        cited = {c.evidence for c in draft.citations}
        ids = dict.fromkeys(i for group in _MARKER.findall(draft.text) for i in _ID.findall(group))
        words = set(re.findall(r"\w+", draft.text.lower()))

        def measure(quote: str) -> float:
            return len(words & set(re.findall(r"\w+", quote.lower()))) / (1 + len(quote.split()))

        quotes = {i: sorted(self.quotes.get(i, ()), key=measure, reverse=True) for i in ids if i not in cited}
        return [
            (i, self._select_fitting(i, draft.text, listed) if listed else self._find_own_quotes(i, draft.text))
            for i, listed in quotes.items()
        ]

    def _select_fitting(self, evidence: str, text: str, quotes: list[str]) -> list[str]:
        """Return the quotes that speak of what a text speaks of, or all if it is in another language than its passage.

        The sections take quotes for their own sentences. One of them does not support a short answer just because both
        are of the same passage.
        """
        known = self.evidence.get(evidence)
        if known is None or not shares_language(_strip_markers(text), (known.text,)):
            return quotes
        return [quote for quote in quotes if shares_terms(_strip_markers(text), quote)]

    def _find_own_quotes(self, evidence: str, text: str) -> list[str]:
        """Return the words that a sentence has in quotation marks and that stand in a passage of evidence."""
        own = [DraftCitation(evidence=evidence, quote=quote) for quote in _QUOTED.findall(text)]
        return [c.quote for c in own if isinstance(self._locate_citation(c), LocatedCitation)]

    def _add_quotes(
        self, text: str, quoted: list[LocatedCitation], further: Sequence[DraftCitation]
    ) -> list[LocatedCitation]:
        """Return the quotes of a sentence, with those further ones that state what the others do not."""
        missing = self._find_unsupported(text, quoted) if quoted else ()
        for citation in further:
            if not missing:
                break
            one = self._locate_citation(citation)
            if isinstance(one, LocatedCitation) and len(left := self._find_unsupported(text, [*quoted, one])) < len(
                missing
            ):
                quoted, missing = [*quoted, one], left
        return quoted

    def _find_unsupported(self, text: str, quoted: Sequence[LocatedCitation]) -> tuple[str, ...]:
        return find_unsupported(text, quoted, self.context)

    def _locate_citation(self, draft: DraftCitation) -> LocatedCitation | str:
        return locate_citation(draft, self.evidence, self.lookup_text)

    def _assign_number(self, one: LocatedCitation) -> int:
        if one.span not in self.citations:
            number = len(self.citations) + 1
            source_id, title = one.evidence.source_id, one.evidence.title
            self.citations[one.span] = Citation(number, one.span, one.text, source_id, title)
        return self.citations[one.span].number


def find_unsupported(text: str, quoted: Sequence[LocatedCitation], context: ClaimContext) -> tuple[str, ...]:
    """Return the numbers, dates and names of a sentence that neither its quotes nor the context state."""
    titles = tuple(dict.fromkeys(title for one in quoted for title in one.titles if title))
    quotes = tuple(one.text for one in quoted)
    support = ClaimSupport(quotes, titles, context.calculations, context.question, _read_table_values(quoted))
    return find_unsupported_values(text, support)


def list_titles(evidence: Evidence, text: str) -> tuple[str, ...]:
    """Return the titles, headings and names that a document has at a passage with this text."""
    return (evidence.title, evidence.heading, evidence.name, *_HEADING.findall(text))


def locate_citation(
    draft: DraftCitation, evidence_by_id: Mapping[str, Evidence], lookup_text: TextLookup
) -> LocatedCitation | str:
    """Return the citation with its span, or the reason why it was rejected."""
    evidence = evidence_by_id.get(draft.evidence.strip())
    if evidence is None:
        named = shorten_line(draft.evidence, 40)
        code = "source_not_retrieved" if named else "source_unnamed"
        return REJECTION_TEXTS.render(code, evidence=named)
    text, span = lookup_text(evidence.span), evidence.span
    if not text or len(text) != span.end - span.start:
        return REJECTION_TEXTS.render("text_missing", evidence=evidence.id)
    titles = list_titles(evidence, text)
    if not draft.quote.strip():
        return LocatedCitation(evidence, span, text, titles, is_quote=False)
    if position := locate_quote(draft.quote, text):
        return _build_located(evidence, span.start, text, position, titles)
    around = widen_span(span)
    window = lookup_text(around)
    if position := _locate_nearest(draft.quote, window, span.start - around.start):
        heading_above = _HEADING.findall(window[: position[0]])[-1:]
        return _build_located(evidence, around.start, window, position, (*titles, *heading_above))
    return REJECTION_TEXTS.render("quote_not_found", evidence=evidence.id, quote=shorten_line(draft.quote, 120))


def _read_table_values(quoted: Sequence[LocatedCitation]) -> frozenset[Decimal]:
    """Return the numbers of quotes in full, where a quote or title of the same source gives their scale."""
    texts: dict[UUID, list[str]] = {}
    for one in quoted:
        texts.setdefault(one.evidence.source_id, []).extend((one.text, *one.titles))
    return frozenset(value for listed in texts.values() for value in read_table_values(listed))


def _build_located(
    evidence: Evidence, offset: int, text: str, position: tuple[int, int], titles: tuple[str, ...]
) -> LocatedCitation:
    start, end = position
    span = SourceSpan(evidence.span.text_id, offset + start, offset + end)
    return LocatedCitation(evidence, span, text[start:end], titles)


def _locate_nearest(quote: str, window: str, passage_start: int) -> tuple[int, int] | None:
    """Return the position of a quote in the text around a passage: from the passage on, or else before it."""
    if position := locate_quote(quote, window[passage_start:]):
        return passage_start + position[0], passage_start + position[1]
    return locate_quote(quote, window)


def _strip_markers(text: str) -> str:
    return " ".join(_MARKER.sub("", text).split())
