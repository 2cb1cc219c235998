"""Whether a draft's quotes stand in the stored text: the only way from a ReportDraft to a Report.

A quote is accepted where it is found, letter by letter or but for whitespace, quotation marks, hyphens, characters that
nobody sees and Unicode composition; what is kept is then the stored text itself. Pure: the stored text is read through
a function.
"""

import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from offing.core.blocks import without_unseen
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
from offing.core.step import shortened
from offing.core.tool import Span

TextOf = Callable[[Span], str]
"""The stored text of a span, exactly. An empty string: it is not stored any more."""

_MARKER = re.compile(r"(?<!\s)\s*\[(E\d+(?:\s*[,;]\s*E\d+)*)\]")
_ID = re.compile(r"E\d+")
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u0e00-\u0eff\u1000-\u109f]")
_WRITTEN = re.compile(r"\w")

_SAME = {
    **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032\u00b4`", "'"),
    **dict.fromkeys("\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb", '"'),
    **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"),
    "\u2026": "...",
    **{c: unicodedata.normalize("NFKC", c) for c in map(chr, range(0xFB00, 0xFB07))},
}
"""Characters that count as the same: quotation marks, hyphens and dashes, the ellipsis, Latin ligatures."""


def check(
    draft: ReportDraft,
    evidence: Mapping[str, Evidence],
    text_of: TextOf,
    reason: StopReason,
    written_by: str = "",
) -> Report:
    """The draft with each of its citations verified or rejected. A sentence stays, also when nothing supports it.

    `evidence`: what the run retrieved, by id. Anything else cannot be cited.
    """
    desk = _Desk(evidence, text_of, _quotes_in(draft))
    answer = desk.sentence(DraftSentence(text=draft.answer)) if draft.answer.strip() else None
    sections = tuple(
        Section(s.heading.strip(), tuple(desk.sentence(one) for one in s.sentences if one.text.strip()))
        for s in draft.sections
    )
    return Report(
        title=draft.title.strip(),
        status=ReportStatus.COMPLETE if reason is StopReason.ANSWERED else ReportStatus.PARTIAL,
        reason=reason.value,
        answer=answer,
        sections=tuple(s for s in sections if s.sentences),
        citations=tuple(desk.citations.values()),
        limits=draft.limits.strip(),
        written_by=written_by,
    )


def find(quote: str, text: str) -> tuple[int, int] | None:
    """Where a quote stands in a text, as code points. None: nowhere, or only in the middle of a word or a character."""
    wanted = quote.strip()
    if not _WRITTEN.search(wanted):
        return None
    return _find_exactly(wanted, text) or _find_folded(_fold(wanted), _fold(text), text)


def _find_exactly(wanted: str, text: str) -> tuple[int, int] | None:
    at = text.find(wanted)
    while at >= 0:
        if _stands_alone(text, at, at + len(wanted)):
            return at, at + len(wanted)
        at = text.find(wanted, at + 1)
    return None


def _stands_alone(text: str, start: int, end: int) -> bool:
    """Neither end is in the middle of a word, a number or a character with its marks."""
    return _is_border(text, start) and _is_border(text, end)


def _is_border(text: str, at: int) -> bool:
    if not 0 < at < len(text):
        return True
    before, after = text[at - 1], text[at]
    if unicodedata.category(after)[0] == "M" or before == "\u200d" or after == "\u200d":
        return False
    if not (before.isalnum() and after.isalnum()):
        return True
    return bool(_UNSPACED.match(before) or _UNSPACED.match(after))


@dataclass(frozen=True, slots=True)
class _Folded:
    """A text with what does not matter removed, and where each of its characters came from."""

    text: str
    starts: tuple[int, ...]
    ends: tuple[int, ...]
    first: tuple[bool, ...]
    """This character is the first of those that its origin became."""


def _fold(text: str) -> _Folded:
    found: list[tuple[str, int, int, bool]] = []
    for start, end in _clusters(text):
        folded = _folded_cluster(text, start, end)
        if folded == " " and (not found or found[-1][0] == " "):
            continue
        found += [(c, start, end, n == 0) for n, c in enumerate(folded)]
    return _Folded(
        "".join(c for c, _, _, _ in found),
        tuple(s for _, s, _, _ in found),
        tuple(e for _, _, e, _ in found),
        tuple(f for _, _, _, f in found),
    )


def _clusters(text: str) -> Iterator[tuple[int, int]]:
    """Each character with the marks that belong to it; a hyphen with the line break that it divides a word at."""
    at = 0
    while at < len(text):
        end = at + 1
        while end < len(text) and (unicodedata.category(text[end])[0] == "M" or "\u1160" <= text[end] <= "\u11ff"):
            end += 1
        if _SAME.get(text[at], text[at]) == "-" and text[end : end + 1] in {"\n", "\r"}:
            end += len(text[end:]) - len(text[end:].lstrip())
        yield at, end
        at = end


def _folded_cluster(text: str, start: int, end: int) -> str:
    cluster = without_unseen(text[start:end])
    if not cluster:
        return ""
    if cluster.isspace():
        return " "
    same = _SAME.get(cluster[0], cluster[0])
    if same == "-" and _within_word(text, start, end):
        return ""
    return "- " if same == "-" and cluster[-1].isspace() else unicodedata.normalize("NFC", same + cluster[1:])


def _within_word(text: str, start: int, end: int) -> bool:
    return text[max(0, start - 1) : start].isalpha() and text[end : end + 1].isalpha()


def _find_folded(wanted: _Folded, within: _Folded, text: str) -> tuple[int, int] | None:
    """The first place where the folded texts agree and the stored one is cut at borders."""
    needle = wanted.text.strip()
    at = within.text.find(needle) if needle else -1
    while at >= 0:
        last = at + len(needle)
        whole = within.first[at] and (last == len(within.text) or within.first[last])
        start, end = within.starts[at], within.ends[last - 1]
        if whole and _stands_alone(text, start, end):
            return start, end
        at = within.text.find(needle, at + 1)
    return None


def _quotes_in(draft: ReportDraft) -> dict[str, list[str]]:
    """The quotes that the sections take from each piece of evidence."""
    found: dict[str, list[str]] = {}
    for section in draft.sections:
        for citation in (c for sentence in section.sentences for c in sentence.citations if c.quote.strip()):
            found.setdefault(citation.evidence, []).append(citation.quote)
    return found


@dataclass(slots=True)
class _Desk:
    """Numbers sentences and citations while a draft is read from top to bottom."""

    evidence: Mapping[str, Evidence]
    text_of: TextOf
    quotes: Mapping[str, Sequence[str]]
    citations: dict[Span, Citation] = field(default_factory=dict[Span, Citation])
    count: int = 0

    def sentence(self, draft: DraftSentence) -> Sentence:
        """One sentence; markers such as [E3] in its text count as citations and are taken out of it."""
        self.count += 1
        marked = self._marked(draft)
        outcomes = [self._checked(c) for c in (*draft.citations, *marked)]
        numbers = tuple(dict.fromkeys(o.number for o in outcomes if isinstance(o, Citation)))
        rejected = tuple(dict.fromkeys(o for o in outcomes if isinstance(o, str)))
        return Sentence(f"s{self.count}", _without_markers(draft.text), numbers, rejected)

    def _marked(self, draft: DraftSentence) -> list[DraftCitation]:
        """Citations that stand as markers only; each takes the words that the sections quote from the same piece."""
        cited = {c.evidence for c in draft.citations}
        ids = dict.fromkeys(i for group in _MARKER.findall(draft.text) for i in _ID.findall(group))
        return [DraftCitation(evidence=i, quote=self._closest_quote(i, draft.text)) for i in ids if i not in cited]

    def _closest_quote(self, evidence: str, text: str) -> str:
        words = set(re.findall(r"\w+", text.lower()))
        return max(
            self.quotes.get(evidence, ()),
            key=lambda quote: len(words & set(re.findall(r"\w+", quote.lower()))) / (1 + len(quote.split())),
            default="",
        )

    def _checked(self, draft: DraftCitation) -> Citation | str:
        """The citation, or why it does not stand."""
        piece = self.evidence.get(draft.evidence.strip())
        if piece is None:
            return f"{shortened(draft.evidence, 40) or 'An unnamed source'} was not retrieved in this run."
        text = self.text_of(piece.span)
        if not text or len(text) != piece.span.end - piece.span.start:
            return f"The stored text of {piece.id} is not available."
        place = find(draft.quote, text) if draft.quote.strip() else (0, len(text))
        if place is None:
            return f"The quoted words are not in {piece.id}: \u201c{shortened(draft.quote, 120)}\u201d"
        return self._numbered(piece, text, *place)

    def _numbered(self, piece: Evidence, text: str, start: int, end: int) -> Citation:
        span = Span(piece.span.artefact, piece.span.start + start, piece.span.start + end)
        if span not in self.citations:
            number = len(self.citations) + 1
            self.citations[span] = Citation(number, span, text[start:end], piece.source, piece.title)
        return self.citations[span]


def _without_markers(text: str) -> str:
    return " ".join(_MARKER.sub("", text).split())
