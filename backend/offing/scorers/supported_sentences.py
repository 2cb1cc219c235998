"""The scorer `supported_sentences`: the fraction of the report's sentences that have a verified citation."""

from collections.abc import Mapping
from typing import Any

from offing.core.scoring import Reference
from offing.models.engine import UsageMeter
from offing.scorers.scorer import NoOptions, ScorerResult, ScoringFailure, ScoringInput, validate_options


class SupportedSentences:
    name = "supported_sentences"
    version = "1"
    needs_engine = False
    reads_report = True
    reads_tool_results = False

    def find_missing(self, reference: Reference | None) -> str:
        return ""

    def check_options(self, options: Mapping[str, Any]) -> None:
        validate_options(self.name, NoOptions, options)

    async def score(
        self, scoring_input: ScoringInput, options: Mapping[str, Any], meter: UsageMeter
    ) -> ScorerResult | ScoringFailure:
        sentences = scoring_input.report.sentences() if scoring_input.report else ()
        supported = sum(sentence.is_supported for sentence in sentences)
        value = supported / len(sentences) if sentences else 0.0
        return ScorerResult(value, {"sentences": len(sentences), "supported": supported})


SCORER = SupportedSentences()
