"""The scorer `exact_match`: 1 for an accepted answer, but for case, punctuation and articles."""

from collections.abc import Mapping
from typing import Any

from offing.core.scoring import Reference, exact_match
from offing.models.engine import Meter
from offing.scorers.scorer import NoOptions, Sample, Score, Unscored, accepted_by, checked, no_answers


class ExactMatch:
    name = "exact_match"
    version = "1"
    asks = False
    reads_report = False

    def lacks(self, reference: Reference | None) -> str:
        return no_answers(reference)

    def check(self, options: Mapping[str, Any]) -> None:
        checked(self.name, NoOptions, options)

    async def score(self, sample: Sample, options: Mapping[str, Any], meter: Meter) -> Score | Unscored:
        return Score(exact_match(sample.answer, accepted_by(sample)))
