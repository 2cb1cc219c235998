"""The claims of a report: the sentences that cite something, each with a verdict and the passages judged."""

from dataclasses import dataclass
from typing import Any

from offing.core.report import ClaimVerdict, Report, Sentence

NO_SOURCE = "no source"
PASSAGE_ONLY = "passage only, no words quoted"
NOT_QUOTED = "not in the quotes"

VERDICT_TEXTS = {
    ClaimVerdict.SUPPORTED: "supported",
    ClaimVerdict.PARTLY: "partly supported",
    ClaimVerdict.CONTRADICTED: "contradicted",
    ClaimVerdict.NOT_FOUND: "not found",
}


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence that cites something."""

    sentence: Sentence
    verdict: ClaimVerdict
    citations: tuple[int, ...]
    """Numbers of the citations whose passages were judged. Empty means that all were rejected."""
    reasons: tuple[str, ...]
    """Why the verdict is not `supported`. Empty means that it is."""


def build_claim_table(report: Report) -> tuple[Claim, ...]:
    """Return the claims of a report in the order of its sentences."""
    return tuple(
        Claim(s, s.verdict, s.citations or s.passages, () if s.is_supported else list_marks(s))
        for s in report.sentences()
        if s.verdict is not None
    )


def list_marks(sentence: Sentence) -> tuple[str, ...]:
    """Return why a sentence is not supported, in words. Empty means that it is supported."""
    if sentence.is_supported:
        return ()
    if sentence.citations:
        return (f"{NOT_QUOTED}: {', '.join(sentence.unsupported_values)}",)
    first = PASSAGE_ONLY if sentence.passages else NO_SOURCE
    return (first, *sentence.rejected)


def count_verdicts(report: Report) -> dict[ClaimVerdict, int]:
    """Return the number of claims with each verdict, without verdicts that no claim has."""
    verdicts = [claim.verdict for claim in build_claim_table(report)]
    return {verdict: count for verdict in ClaimVerdict if (count := verdicts.count(verdict))}


def claims_to_json(report: Report) -> list[dict[str, Any]]:
    """Return the claims of a report as JSON."""
    return [
        {
            "sentence": claim.sentence.id,
            "verdict": claim.verdict.value,
            "citations": list(claim.citations),
            "unsupported_values": list(claim.sentence.unsupported_values),
            "reasons": list(claim.reasons),
        }
        for claim in build_claim_table(report)
    ]
