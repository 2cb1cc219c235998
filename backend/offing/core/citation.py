"""Verification of citations, which turns a ReportDraft into a Report.

Every quote is looked up in the stored text. It is accepted if it is found exactly, or if it differs
only in whitespace, quotation marks, hyphens, invisible characters and Unicode composition. The
report then keeps the wording of the stored text. The functions are pure: they read the stored text
through a function that the caller passes.
"""

import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

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
from offing.core.step import shorten_line
from offing.core.tool import SourceSpan
from offing.core.untrusted_block import remove_invisible_chars

TextLookup = Callable[[SourceSpan], str]
"""Returns the exact stored text of a source span.

An empty string means that the text is no longer stored.
"""

_MARKER = re.compile(r"(?<!\s)\s*\[(E\d+(?:\s*[,;]\s*E\d+)*)\]")
_ID = re.compile(r"E\d+")
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u0e00-\u0eff\u1000-\u109f]")
_WORD_CHAR = re.compile(r"\w")

_EQUIVALENT_CHARS = {
    **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032\u00b4`", "'"),
    **dict.fromkeys("\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb", '"'),
    **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"),
    "\u2026": "...",
    **{c: unicodedata.normalize("NFKC", c) for c in map(chr, range(0xFB00, 0xFB07))},
}
"""Characters that count as equal: quotation marks, hyphens, dashes, ellipses and Latin ligatures."""


def verify_citations(
    draft: ReportDraft,
    evidence: Mapping[str, Evidence],
    lookup_text: TextLookup,
    stop_reason: StopReason,
    written_by: str = "",
) -> Report:
    """Verify every citation of a draft and return the report.

    A citation that cannot be verified is rejected. Its sentence stays, even if nothing supports it.
    `evidence` maps ids to the passages that the run has retrieved; nothing else can be cited.
    """
    numbering = _CitationNumbering(evidence, lookup_text, _collect_quotes(draft))
    lead = DraftSentence(text=draft.answer, citations=draft.answer_citations)
    answer = numbering.number_sentence(lead) if lead.text.strip() else None
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


def locate_quote(quote: str, text: str) -> tuple[int, int] | None:
    """Return the position of a quote in a text as a range of code points.

    `None` means that the text does not contain the quote, or only inside a word or a character.
    """
    stripped_quote = quote.strip()
    if not _WORD_CHAR.search(stripped_quote):
        return None
    return _locate_exactly(stripped_quote, text) or _locate_folded(_fold(stripped_quote), _fold(text), text)


def _locate_exactly(quote: str, text: str) -> tuple[int, int] | None:
    at = text.find(quote)
    while at >= 0:
        if _is_whole_word(text, at, at + len(quote)):
            return at, at + len(quote)
        at = text.find(quote, at + 1)
    return None


def _is_whole_word(text: str, start: int, end: int) -> bool:
    """Return whether both ends lie outside words, numbers and characters with combining marks."""
    return _is_border(text, start) and _is_border(text, end)


def _is_border(text: str, index: int) -> bool:
    if not 0 < index < len(text):
        return True
    before, after = text[index - 1], text[index]
    if unicodedata.category(after)[0] == "M" or before == "\u200d" or after == "\u200d":
        return False
    if not (before.isalnum() and after.isalnum()):
        return True
    return bool(_UNSPACED.match(before) or _UNSPACED.match(after))


@dataclass(frozen=True, slots=True)
class _FoldedText:
    """A normalized text, with the position in the original text of each of its characters."""

    text: str
    starts: tuple[int, ...]
    ends: tuple[int, ...]
    starts_cluster: tuple[bool, ...]
    """Whether the character is the first of those that its original character was folded to."""


def _fold(text: str) -> _FoldedText:
    matches: list[tuple[str, int, int, bool]] = []
    for start, end in _iter_clusters(text):
        folded = _fold_cluster(text, start, end)
        if folded == " " and (not matches or matches[-1][0] == " "):
            continue
        matches += [(c, start, end, n == 0) for n, c in enumerate(folded)]
    return _FoldedText(
        "".join(c for c, _, _, _ in matches),
        tuple(s for _, s, _, _ in matches),
        tuple(e for _, _, e, _ in matches),
        tuple(f for _, _, _, f in matches),
    )


def _iter_clusters(text: str) -> Iterator[tuple[int, int]]:
    """Yield the range of each character together with its combining marks.

    A hyphen is one range with the line break at which it divides a word.
    """
    at = 0
    while at < len(text):
        end = at + 1
        while end < len(text) and (unicodedata.category(text[end])[0] == "M" or "\u1160" <= text[end] <= "\u11ff"):
            end += 1
        if _EQUIVALENT_CHARS.get(text[at], text[at]) == "-" and text[end : end + 1] in {"\n", "\r"}:
            end += len(text[end:]) - len(text[end:].lstrip())
        yield at, end
        at = end


def _fold_cluster(text: str, start: int, end: int) -> str:
    cluster = remove_invisible_chars(text[start:end])
    if not cluster:
        return ""
    if cluster.isspace():
        return " "
    same = _EQUIVALENT_CHARS.get(cluster[0], cluster[0])
    if same == "-" and _is_within_word(text, start, end):
        return ""
    return "- " if same == "-" and cluster[-1].isspace() else unicodedata.normalize("NFC", same + cluster[1:])


def _is_within_word(text: str, start: int, end: int) -> bool:
    return text[max(0, start - 1) : start].isalpha() and text[end : end + 1].isalpha()


def _locate_folded(folded_quote: _FoldedText, folded_text: _FoldedText, text: str) -> tuple[int, int] | None:
    """Return the first match of the folded texts whose ends are word boundaries in the stored text."""
    needle = folded_quote.text.strip()
    at = folded_text.text.find(needle) if needle else -1
    while at >= 0:
        last = at + len(needle)
        whole = folded_text.starts_cluster[at] and (last == len(folded_text.text) or folded_text.starts_cluster[last])
        start, end = folded_text.starts[at], folded_text.ends[last - 1]
        if whole and _is_whole_word(text, start, end):
            return start, end
        at = folded_text.text.find(needle, at + 1)
    return None


def _collect_quotes(draft: ReportDraft) -> dict[str, list[str]]:
    """Collect the quotes that the sections take from each passage of evidence, by its id."""
    quotes: dict[str, list[str]] = {}
    for section in draft.sections:
        for citation in (c for sentence in section.sentences for c in sentence.citations if c.quote.strip()):
            quotes.setdefault(citation.evidence, []).append(citation.quote)
    return quotes


@dataclass(slots=True)
class _CitationNumbering:
    """Numbers of sentences and citations, assigned while a draft is read from top to bottom."""

    evidence: Mapping[str, Evidence]
    lookup_text: TextLookup
    quotes: Mapping[str, Sequence[str]]
    citations: dict[SourceSpan, Citation] = field(default_factory=dict[SourceSpan, Citation])
    last_number: int = 0

    def number_sentence(self, draft: DraftSentence) -> Sentence:
        """Return one sentence with its verified citations.

        Markers such as [E3] in the text count as citations and are removed from it.
        """
        self.last_number += 1
        marked = self._marker_citations(draft)
        outcomes = [self._verify_citation(c) for c in (*draft.citations, *marked)]
        numbers = tuple(dict.fromkeys(o.number for o in outcomes if isinstance(o, Citation)))
        rejected = tuple(dict.fromkeys(o for o in outcomes if isinstance(o, str)))
        return Sentence(f"s{self.last_number}", _strip_markers(draft.text), numbers, rejected, draft.layout)

    def _marker_citations(self, draft: DraftSentence) -> list[DraftCitation]:
        """Return the citations that the text contains only as markers.

        Each of them uses the closest quote that the sections take from the same evidence.
        """
        cited = {c.evidence for c in draft.citations}
        ids = dict.fromkeys(i for group in _MARKER.findall(draft.text) for i in _ID.findall(group))
        return [DraftCitation(evidence=i, quote=self._find_closest_quote(i, draft.text)) for i in ids if i not in cited]

    def _find_closest_quote(self, evidence: str, text: str) -> str:
        words = set(re.findall(r"\w+", text.lower()))
        return max(
            self.quotes.get(evidence, ()),
            key=lambda quote: len(words & set(re.findall(r"\w+", quote.lower()))) / (1 + len(quote.split())),
            default="",
        )

    def _verify_citation(self, draft: DraftCitation) -> Citation | str:
        """Return the verified citation, or the reason why it was rejected."""
        source_evidence = self.evidence.get(draft.evidence.strip())
        if source_evidence is None:
            return f"{shorten_line(draft.evidence, 40) or 'An unnamed source'} was not retrieved in this run."
        text = self.lookup_text(source_evidence.span)
        if not text or len(text) != source_evidence.span.end - source_evidence.span.start:
            return f"The stored text of {source_evidence.id} is not available."
        position = locate_quote(draft.quote, text) if draft.quote.strip() else (0, len(text))
        if position is None:
            return f"The quoted words are not in {source_evidence.id}: \u201c{shorten_line(draft.quote, 120)}\u201d"
        return self._assign_number(source_evidence, text, *position)

    def _assign_number(self, evidence: Evidence, text: str, start: int, end: int) -> Citation:
        span = SourceSpan(evidence.span.text_id, evidence.span.start + start, evidence.span.start + end)
        if span not in self.citations:
            number = len(self.citations) + 1
            self.citations[span] = Citation(number, span, text[start:end], evidence.source_id, evidence.title)
        return self.citations[span]


def _strip_markers(text: str) -> str:
    return " ".join(_MARKER.sub("", text).split())
