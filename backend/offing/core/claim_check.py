"""The answers of a checker become part of a report: every word that it quotes is looked up in the stored text.

A checker judges the sentences that cite something, and lists where sources disagree. Its answers come from a model that
has read untrusted text. They can lower the verdict of a sentence and never raise it. The functions are pure.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from pydantic import BaseModel

from offing.core.citation import LocatedCitation, TextLookup, list_cited_ids, locate_citation
from offing.core.claim_passages import find_number, pair_sentences
from offing.core.report import (
    Citation,
    ClaimCheck,
    ClaimJudgment,
    ClaimVerdict,
    Conflict,
    DraftCitation,
    Evidence,
    Report,
    ReportDraft,
    Section,
    Sentence,
)
from offing.core.step import shorten_line
from offing.core.tool import SourceSpan

MIN_QUOTE_CHARS = 8
"""Minimum code points of words that contradict or disagree. Shorter ones could stand anywhere."""
MAX_REASON_CHARS = 240
OTHER_PASSAGES = "It judged passages that the sentences do not cite."
UNNAMED_MATTER = "They do not say the same."
"""The matter of a conflict for which the checker names none."""


class DraftJudgment(BaseModel, frozen=True, extra="forbid"):
    """What a checker said of a sentence. Nothing in it is verified yet."""

    sentence: str
    """Number of the sentence, such as s4."""
    verdict: ClaimVerdict
    evidence: str = ""
    """Id of the passage that was judged. Empty means the only one that the sentence cites."""
    reason: str = ""
    quote: str = ""
    """Words of the passage that contradict the sentence. Empty means none."""


class DraftConflict(BaseModel, frozen=True, extra="forbid"):
    """Two passages that disagree, as a checker lists them."""

    matter: str
    """What they disagree about."""
    first: DraftCitation
    second: DraftCitation


class DraftClaimCheck(BaseModel, frozen=True, extra="forbid"):
    """The answers of a checker to a draft."""

    claims: int
    """Sentences that it was to judge."""
    judgments: tuple[DraftJudgment, ...] = ()
    conflicts: tuple[DraftConflict, ...] = ()
    replies: tuple[int, ...] = ()
    """Step numbers of its answers."""
    failure: str = ""
    """Why it did not judge all sentences. Empty means that nothing failed."""


def apply_claim_check(
    report: Report,
    draft: ReportDraft,
    check: DraftClaimCheck,
    evidence: Mapping[str, Evidence],
    lookup_text: TextLookup,
    checked_by: str,
) -> Report:
    """Return the report of a draft with the judgments and conflicts whose words were found.

    `checked_by` is the model of the checker. Further quotes get the numbers after those of the report.
    """
    verifier = _Verifier(evidence, lookup_text, list(report.citations))
    cited = {sentence.id: (sentence, list_cited_ids(one)) for one, sentence in pair_sentences(draft, report)}
    judgments: dict[str, ClaimJudgment] = {}
    for one in check.judgments:
        sentence, ids = cited.get(one.sentence, (None, ()))
        if sentence is not None and (judgment := verifier.verify_judgment(one, sentence, ids)) is not None:
            judgments.setdefault(sentence.id, judgment)
    conflicts = tuple(dict.fromkeys(c for c in map(verifier.verify_conflict, check.conflicts) if c is not None))
    outcome = ClaimCheck(
        claims=check.claims,
        judgments=len(judgments),
        checked_by=checked_by,
        groups=len(check.replies),
        failure=check.failure or (OTHER_PASSAGES if len(judgments) < check.claims else ""),
        unverified=verifier.unverified,
    )
    return replace(
        _add_judgments(report, judgments), citations=tuple(verifier.citations), check=outcome, conflicts=conflicts
    )


def _add_judgments(report: Report, judgments: Mapping[str, ClaimJudgment]) -> Report:
    def add(sentence: Sentence) -> Sentence:
        return replace(sentence, judgment=judgments.get(sentence.id))

    sections = tuple(Section(s.heading, tuple(map(add, s.sentences))) for s in report.sections)
    return replace(report, answer=report.answer and add(report.answer), sections=sections)


@dataclass(slots=True)
class _Verifier:
    """Looks up the words of a checker, and numbers them after the citations of the report."""

    evidence: Mapping[str, Evidence]
    lookup_text: TextLookup
    citations: list[Citation]
    unverified: int = 0
    numbers: dict[SourceSpan, int] = field(default_factory=dict[SourceSpan, int])

    def __post_init__(self) -> None:
        self.numbers = {citation.span: citation.number for citation in self.citations}

    def verify_judgment(
        self, draft: DraftJudgment, sentence: Sentence, cited_ids: Iterable[str]
    ) -> ClaimJudgment | None:
        """Return a judgment. `None` means that it is about a passage that the sentence does not cite."""
        ids = [id for id in cited_ids if id in self.evidence]
        id = draft.evidence.strip() or (ids[0] if len(ids) == 1 else "")
        if not sentence.is_claim or id not in ids:
            return None
        reason = shorten_line(draft.reason, MAX_REASON_CHARS)
        passage = find_number(self.evidence[id], (*sentence.citations, *sentence.passages), self.citations)
        if draft.verdict is not ClaimVerdict.CONTRADICTED:
            return ClaimJudgment(draft.verdict, reason, passage)
        located = self._locate(DraftCitation(evidence=id, quote=draft.quote))
        if located is None:
            self.unverified += 1
            return ClaimJudgment(ClaimVerdict.PARTLY, reason, passage)
        number = self._assign_number(located)
        return ClaimJudgment(ClaimVerdict.CONTRADICTED, reason, number if passage is None else passage, number)

    def verify_conflict(self, draft: DraftConflict) -> Conflict | None:
        """Return a conflict between two sources. `None` means that its words were not found, or are of one source."""
        first, second = self._locate(draft.first), self._locate(draft.second)
        if first is None or second is None:
            self.unverified += 1
            return None
        if first.evidence.source_id == second.evidence.source_id:
            return None
        numbers = self._assign_number(first), self._assign_number(second)
        matter = shorten_line(draft.matter, MAX_REASON_CHARS) or UNNAMED_MATTER
        return Conflict(matter, (min(numbers), max(numbers)))

    def _locate(self, citation: DraftCitation) -> LocatedCitation | None:
        if len(citation.quote.strip()) < MIN_QUOTE_CHARS:
            return None
        located = locate_citation(citation, self.evidence, self.lookup_text)
        return located if isinstance(located, LocatedCitation) else None

    def _assign_number(self, one: LocatedCitation) -> int:
        if one.span not in self.numbers:
            number = self.numbers[one.span] = len(self.citations) + 1
            source_id, title = one.evidence.source_id, one.evidence.title
            self.citations.append(Citation(number, one.span, one.text, source_id, title))
        return self.numbers[one.span]
