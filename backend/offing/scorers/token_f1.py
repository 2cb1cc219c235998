"""The scorer `token_f1`: how much of the words an answer shares with the accepted answer that is nearest to it."""

from collections.abc import Mapping
from typing import Any

from offing.core.scoring import Reference, token_f1
from offing.models.engine import Meter
from offing.scorers.scorer import NoOptions, Sample, Score, Unscored, accepted_by, checked, no_answers


class TokenF1:
    name = "token_f1"
    version = "1"
    asks = False
    reads_report = False

    def lacks(self, reference: Reference | None) -> str:
        return no_answers(reference)

    def check(self, options: Mapping[str, Any]) -> None:
        checked(self.name, NoOptions, options)

    async def score(self, sample: Sample, options: Mapping[str, Any], meter: Meter) -> Score | Unscored:
        return Score(token_f1(sample.answer, accepted_by(sample)))
