"""The scorer `number_agreement`: the fraction of the numbers in cited sentences that their quotes or calculations have.

A report without a cited sentence has the value 0, and one whose cited sentences contain no number has the value 1.
"""

from collections.abc import Mapping
from typing import Any

from offing.core.number_agreement import compare_numbers
from offing.core.scoring import Reference
from offing.models.engine import UsageMeter
from offing.scorers.scorer import NoOptions, ScorerResult, ScoringFailure, ScoringInput, validate_options


class NumbersAgree:
    name = "number_agreement"
    version = "1"
    needs_engine = False
    reads_report = True
    reads_tool_results = True

    def find_missing(self, reference: Reference | None) -> str:
        return ""

    def check_options(self, options: Mapping[str, Any]) -> None:
        validate_options(self.name, NoOptions, options)

    async def score(
        self, scoring_input: ScoringInput, options: Mapping[str, Any], meter: UsageMeter
    ) -> ScorerResult | ScoringFailure:
        if scoring_input.report is None:
            return ScorerResult(0.0, {"numbers": 0, "agreeing": 0})
        compared = compare_numbers(scoring_input.report, scoring_input.calculations)
        return ScorerResult(compared.value, {"numbers": compared.number_count, "agreeing": compared.agreeing_count})


SCORER = NumbersAgree()
