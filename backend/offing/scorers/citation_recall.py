"""The scorer `citation_recall`: the share of the reference evidence that the report cites."""

from collections.abc import Mapping
from typing import Any

from offing.core.scoring import Reference, citation_recall
from offing.models.engine import Meter
from offing.scorers.scorer import NoOptions, Sample, Score, Unscored, checked


class CitationRecall:
    name = "citation_recall"
    version = "1"
    asks = False
    reads_report = True

    def lacks(self, reference: Reference | None) -> str:
        if reference is None or (reference.answers and not reference.evidence):
            return "it has no reference evidence"
        return ""

    def check(self, options: Mapping[str, Any]) -> None:
        checked(self.name, NoOptions, options)

    async def score(self, sample: Sample, options: Mapping[str, Any], meter: Meter) -> Score | Unscored:
        cited = sample.report.citations if sample.report else ()
        wanted = sample.reference.evidence if sample.reference else ()
        return Score(citation_recall(cited, wanted), {"expected": len(wanted), "cited": len(cited)})
