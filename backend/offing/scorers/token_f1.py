"""The scorer `token_f1`.

It is the F1 of the words shared by the answer and the most similar accepted answer.
"""

from collections.abc import Mapping
from typing import Any

from offing.core.scoring import Reference, token_f1
from offing.models.engine import UsageMeter
from offing.scorers.scorer import (
    NoOptions,
    ScorerResult,
    ScoringFailure,
    ScoringInput,
    accepted_answers,
    find_missing_answers,
    validate_options,
)


class TokenF1:
    name = "token_f1"
    version = "1"
    needs_engine = False
    reads_report = False
    reads_tool_results = False

    def find_missing(self, reference: Reference | None) -> str:
        return find_missing_answers(reference)

    def check_options(self, options: Mapping[str, Any]) -> None:
        validate_options(self.name, NoOptions, options)

    async def score(
        self, scoring_input: ScoringInput, options: Mapping[str, Any], meter: UsageMeter
    ) -> ScorerResult | ScoringFailure:
        return ScorerResult(token_f1(scoring_input.answer, accepted_answers(scoring_input)))


SCORER = TokenF1()
