"""The scorer `citation_recall`: the fraction of the reference evidence that the report cites."""

from collections.abc import Mapping
from typing import Any

from offing.core.scoring import Reference, citation_recall
from offing.models.engine import UsageMeter
from offing.scorers.scorer import (
    NoOptions,
    ScorerResult,
    ScoringFailure,
    ScoringInput,
    find_missing_evidence,
    validate_options,
)


class CitationRecall:
    name = "citation_recall"
    version = "1"
    needs_engine = False
    reads_report = True
    reads_tool_results = False

    def find_missing(self, reference: Reference | None) -> str:
        return find_missing_evidence(reference)

    def check_options(self, options: Mapping[str, Any]) -> None:
        validate_options(self.name, NoOptions, options)

    async def score(
        self, scoring_input: ScoringInput, options: Mapping[str, Any], meter: UsageMeter
    ) -> ScorerResult | ScoringFailure:
        cited = scoring_input.report.citations if scoring_input.report else ()
        reference_evidence = scoring_input.reference.evidence if scoring_input.reference else ()
        return ScorerResult(
            citation_recall(cited, reference_evidence), {"expected": len(reference_evidence), "cited": len(cited)}
        )


SCORER = CitationRecall()
