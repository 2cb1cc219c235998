"""The claims of a report: the sentences that cite something and the conclusions from them, each with a verdict.

They are computed once for all that shows a report (`analyze_claims`). The texts say who judged them, and whether
conflicts between sources were looked for.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from offing.core.citation_texts import REJECTION_TEXTS
from offing.core.conflicts import find_conflicts
from offing.core.report import ClaimCheck, ClaimVerdict, Conflict, Report, Sentence
from offing.core.report_labels.english import ENGLISH
from offing.core.report_labels.labels import ReportLabels


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence that cites something, or a conclusion."""

    sentence: Sentence
    verdict: ClaimVerdict
    citations: tuple[int, ...]
    """Numbers of the citations whose passages were judged. Empty means that all were rejected.

    Those of a conclusion are the citations of the sentences that it follows from.
    """
    reasons: tuple[str, ...]
    """Why the verdict is not `supported`, in English. Empty means that it is."""
    follows_from: tuple[Sentence, ...] = ()
    """The sentences that a conclusion follows from. Empty means that it is none."""


@dataclass(frozen=True, slots=True)
class ClaimAnalysis:
    """What is computed of the claims of a report whenever it is shown."""

    claims: tuple[Claim, ...]
    """In the order of the sentences."""
    conflicts: tuple[Conflict, ...]
    """Conflicts between sources: those that the checker listed, and then those that only rules find."""
    judged_by: str
    """Who gave the verdicts, in English. Empty means that no sentence has one."""
    conflict_search: str
    """Who looked for conflicts, in English. Empty means that no sentence cites anything."""


def analyze_claims(report: Report) -> ClaimAnalysis:
    """Return the claims and conflicts of a report. Rules compare all cited quotes, so this takes some time."""
    claims, conflicts = build_claim_table(report), list_conflicts(report)
    judged_by = describe_judges(report.check, claims, ENGLISH)
    return ClaimAnalysis(claims, conflicts, judged_by, describe_conflict_search(report, claims, conflicts, ENGLISH))


def build_claim_table(report: Report) -> tuple[Claim, ...]:
    """Return the claims of a report in the order of its sentences."""
    sentences = {sentence.id: sentence for sentence in report.sentences()}
    return tuple(
        Claim(s, s.verdict, _list_judged(s), list_marks(s), _list_premises(s, sentences))
        for s in report.sentences()
        if s.verdict is not None
    )


def _list_judged(sentence: Sentence) -> tuple[int, ...]:
    own = sentence.citations or sentence.passages
    return own if sentence.is_claim or sentence.conclusion is None else sentence.conclusion.citations


def _list_premises(sentence: Sentence, sentences: Mapping[str, Sentence]) -> tuple[Sentence, ...]:
    ids = sentence.conclusion.sentences if sentence.conclusion and not sentence.is_claim else ()
    return tuple(sentences[id] for id in ids if id in sentences)


def list_marks(sentence: Sentence, labels: ReportLabels = ENGLISH) -> tuple[str, ...]:
    """Return why a sentence is not supported, in words, or what it follows from. Empty means that it is supported."""
    if sentence.is_supported:
        return ()
    if sentence.verdict is ClaimVerdict.CONCLUSION and sentence.conclusion:
        numbers = "".join(f"[{number}]" for number in sentence.conclusion.citations)
        return (labels.conclusion_from.format(numbers=numbers),)
    return (*_list_rule_marks(sentence, labels), *_list_checker_marks(sentence, labels))


def describe_marks(sentence: Sentence, labels: ReportLabels) -> str:
    """Say what a file marks at a sentence: whether a person wrote or changed it, and why it is not supported.

    Empty means nothing.
    """
    edited = labels.edited if sentence.is_edited else ""
    return labels.semicolon.join(filter(None, (edited, " ".join(list_marks(sentence, labels)))))


def _list_rule_marks(sentence: Sentence, labels: ReportLabels) -> tuple[str, ...]:
    if sentence.rule_verdict is ClaimVerdict.SUPPORTED:
        return ()
    if sentence.citations:
        return (labels.not_quoted.format(values=labels.comma.join(sentence.unsupported_values)),)
    first = labels.passage_only if sentence.passages else labels.no_source
    return (first, *(_describe_rejection(reason, labels) for reason in sentence.rejected))


def _describe_rejection(reason: str, labels: ReportLabels) -> str:
    """Return a recorded reason in words. One that the platform did not write is left unchanged."""
    coded = REJECTION_TEXTS.find(reason)
    return labels.rejections[coded.code].format(**coded.parameters) if coded else reason


def _list_checker_marks(sentence: Sentence, labels: ReportLabels) -> tuple[str, ...]:
    """Return what the checker objects to."""
    judgment = sentence.judgment
    if judgment is None or judgment.verdict is ClaimVerdict.SUPPORTED:
        return ()
    verdict = labels.verdicts[judgment.verdict]
    objection = (
        labels.checker_objects_by.format(verdict=verdict, passage=f"[{judgment.contradiction}]")
        if judgment.contradiction
        else labels.checker_objects.format(verdict=verdict)
    )
    return (labels.because.format(objection=objection, reason=judgment.reason) if judgment.reason else objection,)


def count_verdicts(claims: Iterable[Claim]) -> dict[ClaimVerdict, int]:
    """Return the number of claims with each verdict, without verdicts that no claim has."""
    verdicts = [claim.verdict for claim in claims]
    return {verdict: count for verdict in ClaimVerdict if (count := verdicts.count(verdict))}


def list_conflicts(report: Report) -> tuple[Conflict, ...]:
    """Return the conflicts between sources: those that the checker listed, and then those that only rules find."""
    quoted = {number for sentence in report.sentences() for number in sentence.citations}
    by_rules = find_conflicts([citation for citation in report.citations if citation.number in quoted])
    known = {conflict.citations for conflict in report.conflicts}
    return (*report.conflicts, *(one for one in by_rules if one.citations not in known))


def describe_judges(check: ClaimCheck | None, claims: Sequence[Claim], labels: ReportLabels) -> str:
    """Say in words who gave the verdicts of a report. Empty means that no sentence has one."""
    if not claims:
        return ""
    if check is None:
        return labels.judged_by_rules
    if not check.judgments:
        return labels.checker_failed.format(reason=_end(check.failure, labels))
    judges = labels.judged_by_checker.format(checker=check.checked_by, count=check.judgments, claims=check.claims)
    rest = labels.others_not_judged.format(reason=_end(check.failure, labels)) if check.judgments < check.claims else ""
    unverified = labels.unverified.format(count=check.unverified) if check.unverified else ""
    return labels.between_sentences.join(filter(None, (judges, rest, unverified)))


def describe_conflict_search(
    report: Report, claims: Sequence[Claim], conflicts: Sequence[Conflict], labels: ReportLabels
) -> str:
    """Say in words who looked for conflicts between sources, and whether some were found.

    Empty means that no sentence cites anything.
    """
    if not any(claim.sentence.is_claim for claim in claims):
        return ""
    if len({citation.source_id for citation in report.cited()}) < 2:
        return labels.conflicts_one_source
    searched = _describe_searchers(report.check, labels)
    return searched if conflicts else labels.between_sentences.join((searched, labels.no_conflict))


def _describe_searchers(check: ClaimCheck | None, labels: ReportLabels) -> str:
    if check is None or not check.groups:
        return labels.conflicts_by_rules
    if check.groups == 1:
        return labels.conflicts_by_checker.format(checker=check.checked_by)
    return labels.conflicts_in_groups.format(checker=check.checked_by, groups=check.groups)


def _end(text: str, labels: ReportLabels) -> str:
    """Return a text that ends as a sentence."""
    if text.endswith(tuple(labels.full_stops)):
        return text
    return f"{text or labels.no_reason_given}{labels.full_stops[0]}"


def claims_to_json(claims: Iterable[Claim]) -> list[dict[str, Any]]:
    """Return the claims of a report as JSON."""
    return [
        {
            "sentence": claim.sentence.id,
            "text": claim.sentence.text,
            "verdict": claim.verdict.value,
            "rule_verdict": claim.sentence.rule_verdict,
            "judgment": asdict(claim.sentence.judgment) if claim.sentence.judgment else None,
            "citations": list(claim.citations),
            "unsupported_values": list(claim.sentence.unsupported_values),
            "reasons": list(claim.reasons),
            **({"follows_from": [one.id for one in claim.follows_from]} if claim.follows_from else {}),
        }
        for claim in claims
    ]


def conflicts_to_json(report: Report, conflicts: Iterable[Conflict]) -> list[dict[str, Any]]:
    """Return the conflicts between sources as JSON."""
    quotes = {citation.number: citation.quote for citation in report.citations}
    return [
        {
            "matter": one.matter,
            "found_by": one.found_by,
            "citations": list(one.citations),
            "quotes": [quotes[number] for number in one.citations],
        }
        for one in conflicts
    ]
