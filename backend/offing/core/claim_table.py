"""The claims of a report: the sentences that cite something and the conclusions from them, each with a verdict.

They are computed once for all that shows a report (`analyze_claims`). The texts say who judged them, and whether
conflicts between sources were looked for.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from offing.core.conflicts import find_conflicts
from offing.core.report import ClaimCheck, ClaimVerdict, Conflict, Report, Sentence

NO_SOURCE = "no source"
PASSAGE_ONLY = "passage only, no words quoted"
NOT_QUOTED = "not in the quotes"
EDITED = "edited by a person"
CONCLUSION = "conclusion"

VERDICT_TEXTS = {
    ClaimVerdict.SUPPORTED: "supported",
    ClaimVerdict.PARTLY: "partly supported",
    ClaimVerdict.CONTRADICTED: "contradicted",
    ClaimVerdict.NOT_FOUND: "not found",
    ClaimVerdict.CONCLUSION: "conclusion",
}


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
    """Why the verdict is not `supported`. Empty means that it is."""
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
    """Who gave the verdicts, in words. Empty means that no sentence has one."""
    conflict_search: str
    """Who looked for conflicts, in words. Empty means that no sentence cites anything."""


def analyze_claims(report: Report) -> ClaimAnalysis:
    """Return the claims and conflicts of a report. Rules compare all cited quotes, so this takes some time."""
    claims, conflicts = build_claim_table(report), list_conflicts(report)
    searched = _describe_conflict_search(report, conflicts) if any(c.sentence.is_claim for c in claims) else ""
    return ClaimAnalysis(claims, conflicts, _describe_judges(report.check) if claims else "", searched)


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


def list_marks(sentence: Sentence) -> tuple[str, ...]:
    """Return why a sentence is not supported, in words, or what it follows from. Empty means that it is supported."""
    if sentence.is_supported:
        return ()
    if sentence.verdict is ClaimVerdict.CONCLUSION and sentence.conclusion:
        return (f"{CONCLUSION} from {''.join(f'[{number}]' for number in sentence.conclusion.citations)}",)
    return (*_list_rule_marks(sentence), *_list_checker_marks(sentence))


def list_printed_marks(sentence: Sentence) -> tuple[str, ...]:
    """Return the marks of a sentence in a file: whether a person wrote or changed it, and why it is not supported."""
    marks = list_marks(sentence)
    edited = (f"{EDITED};" if marks else EDITED,) if sentence.is_edited else ()
    return (*edited, *marks)


def _list_rule_marks(sentence: Sentence) -> tuple[str, ...]:
    if sentence.rule_verdict is ClaimVerdict.SUPPORTED:
        return ()
    if sentence.citations:
        return (f"{NOT_QUOTED}: {', '.join(sentence.unsupported_values)}",)
    first = PASSAGE_ONLY if sentence.passages else NO_SOURCE
    return (first, *sentence.rejected)


def _list_checker_marks(sentence: Sentence) -> tuple[str, ...]:
    """Return what the checker objects to."""
    judgment = sentence.judgment
    if judgment is None or judgment.verdict is ClaimVerdict.SUPPORTED:
        return ()
    by = f" by [{judgment.contradiction}]" if judgment.contradiction else ""
    reason = f": {judgment.reason}" if judgment.reason else ""
    return (f"checker: {VERDICT_TEXTS[judgment.verdict]}{by}{reason}",)


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


def _describe_judges(check: ClaimCheck | None) -> str:
    """Say in words who gave the verdicts of a report."""
    if check is None:
        return "The verdicts are given by rules, which compare each sentence with its quotes."
    if not check.judgments:
        return f"The verdicts are given by rules alone. The checker judged no sentence: {_end(check.failure)}"
    judges = f"The verdicts are given by rules and by {check.checked_by}, which judged {check.judgments} of "
    judges += f"{check.claims} sentences."
    rest = f"It did not judge the others: {_end(check.failure)}" if check.judgments < check.claims else ""
    return " ".join(filter(None, (judges, rest, _describe_unverified(check))))


def _describe_conflict_search(report: Report, conflicts: Sequence[Conflict]) -> str:
    """Say in words who looked for conflicts between sources, and whether some were found."""
    if len({citation.source_id for citation in report.cited()}) < 2:
        return "Conflicts between sources were not looked for, because fewer than two sources are cited."
    check, rules = report.check, "rules, which find two quotes that say the same with another number or date"
    if check is None or not check.groups:
        searched = f"Conflicts between sources were looked for only by {rules}."
    else:
        within = f" within each of {check.groups} groups of sentences" if check.groups > 1 else ""
        searched = f"Conflicts between sources were looked for by {check.checked_by}{within}, and by {rules}."
    return searched if conflicts else f"{searched} None was found."


def _describe_unverified(check: ClaimCheck) -> str:
    if not check.unverified:
        return ""
    return f"Contradictions or conflicts that it named in words that no passage contains: {check.unverified}."


def _end(text: str) -> str:
    """Return a text that ends as a sentence."""
    return text if text.endswith((".", "!", "?")) else f"{text or 'it gave no reason'}."


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
