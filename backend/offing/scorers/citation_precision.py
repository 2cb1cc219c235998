"""The scorer `citation_precision`: the fraction of the report's citations that cite reference evidence."""

from collections.abc import Mapping
from typing import Any

from offing.core.scoring import Reference, citation_precision
from offing.models.engine import UsageMeter
from offing.scorers.scorer import (
    NoOptions,
    ScorerResult,
    ScoringFailure,
    ScoringInput,
    find_missing_evidence,
    reference_evidence,
    validate_options,
)


class CitationPrecision:
    name = "citation_precision"
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
        evidence = reference_evidence(scoring_input)
        return ScorerResult(citation_precision(cited, evidence), {"expected": len(evidence), "cited": len(cited)})


SCORER = CitationPrecision()
