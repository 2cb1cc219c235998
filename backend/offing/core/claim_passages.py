"""What a checker reads: the sentences of a draft that cite something, with the text around their quotes.

The functions are pure. Passages are untrusted text.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from offing.core.citation import (
    ClaimContext,
    TextLookup,
    list_cited_ids,
    list_draft_sentences,
    verify_citations,
    widen_span,
)
from offing.core.draft_check import find_closest_words
from offing.core.quote_matching import locate_quote
from offing.core.report import Citation, DraftSentence, Evidence, Report, ReportDraft, Sentence
from offing.core.run import StopReason
from offing.core.tool import SourceSpan

SURROUNDING_CHARS = 600
"""Code points before and after a quote that are shown with it."""
MAX_PASSAGE_CHARS = 2_400
"""Maximum code points of a passage of which a sentence quotes no words that were found."""


@dataclass(frozen=True, slots=True)
class ClaimPassage:
    """A range of the text around a passage of evidence."""

    evidence: str
    title: str
    heading: str
    start: int
    """First code point of the range in the stored text."""
    text: str

    @property
    def end(self) -> int:
        return self.start + len(self.text)


@dataclass(frozen=True, slots=True)
class ClaimToJudge:
    """A sentence that cites passages whose text is available."""

    id: str
    """s1, s2 and so on, as the report numbers its sentences."""
    text: str
    passages: tuple[ClaimPassage, ...]


def list_claims(
    draft: ReportDraft, evidence: Mapping[str, Evidence], lookup_text: TextLookup, context: ClaimContext
) -> tuple[ClaimToJudge, ...]:
    """Return the sentences of a draft that a checker can judge, in order."""
    report = verify_citations(draft, evidence, lookup_text, StopReason.ANSWERED, context=context)
    claims = (
        ClaimToJudge(sentence.id, sentence.text, tuple(_list_passages(one, sentence, report, evidence, lookup_text)))
        for one, sentence in pair_sentences(draft, report)
        if sentence.is_claim
    )
    return tuple(claim for claim in claims if claim.passages)


def pair_sentences(draft: ReportDraft, report: Report) -> Iterator[tuple[DraftSentence, Sentence]]:
    """Return each sentence of a draft with that of the report that was made from it."""
    return zip(list_draft_sentences(draft), report.sentences(), strict=True)


def find_number(evidence: Evidence, numbers: Iterable[int], citations: Sequence[Citation]) -> int | None:
    """Return the first of these numbers whose citation stands in or around a passage. `None` means that none does."""
    spans = {citation.number: citation.span for citation in citations}
    return next((number for number in numbers if _stands_around(spans[number], evidence.span)), None)


def merge_passages(passages: Iterable[ClaimPassage]) -> tuple[ClaimPassage, ...]:
    """Join the ranges of a passage that overlap, so that no text is shown twice."""
    merged: list[ClaimPassage] = []
    for one in sorted(passages, key=lambda p: (int(p.evidence.lstrip("E") or 0), p.start, p.end)):
        last = merged[-1] if merged else None
        if last is not None and last.evidence == one.evidence and one.start <= last.end:
            merged[-1] = replace(last, text=last.text + one.text[last.end - one.start :])
        else:
            merged.append(one)
    return tuple(merged)


def _list_passages(
    draft: DraftSentence,
    sentence: Sentence,
    report: Report,
    evidence: Mapping[str, Evidence],
    lookup_text: TextLookup,
) -> Iterator[ClaimPassage]:
    cited = [c.span for c in report.citations if c.number in sentence.citations]
    for id in list_cited_ids(draft):
        one = evidence.get(id)
        if one is None or not lookup_text(one.span):
            continue
        spans = [span for span in cited if _stands_around(span, one.span)]
        spans = spans or [_find_span(draft, one, lookup_text(one.span))]
        yield from merge_passages(_cut_passage(one, span, lookup_text) for span in spans)


def _find_span(draft: DraftSentence, one: Evidence, text: str) -> SourceSpan:
    """Return the span of the words of a passage that are closest to the sentence, or of the start of the passage."""
    closest = find_closest_words(draft.text, text) if len(text) > MAX_PASSAGE_CHARS else text
    start, end = locate_quote(closest, text) or (0, len(text))
    end = min(end, start + MAX_PASSAGE_CHARS)
    return replace(one.span, start=one.span.start + start, end=one.span.start + end)


def _cut_passage(one: Evidence, quoted: SourceSpan, lookup_text: TextLookup) -> ClaimPassage:
    """Return a quote with the text around it, without words that are cut in two.

    The text is that of the passage. If the quote is not within it, the text around the passage belongs to it.
    """
    around = one.span if one.span.contains(quoted) else widen_span(one.span)
    text, start, end = lookup_text(around), quoted.start - around.start, quoted.end - around.start
    first, last = max(0, start - SURROUNDING_CHARS), min(len(text), end + SURROUNDING_CHARS)
    while 0 < first < start and not text[first - 1].isspace():
        first += 1
    while end < last < len(text) and not text[last].isspace():
        last -= 1
    return ClaimPassage(one.id, one.title, one.heading, around.start + first, text[first:last])


def _stands_around(span: SourceSpan, passage: SourceSpan) -> bool:
    return widen_span(passage).contains(span)
