"""The scorer `retrieval_recall`: the fraction of the reference evidence that the run retrieved."""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, Field

from offing.core.ranking_metrics import retrieval_recall
from offing.core.scoring import Reference
from offing.models.engine import UsageMeter
from offing.scorers.scorer import (
    ScorerResult,
    ScoringFailure,
    ScoringInput,
    find_missing_evidence,
    reference_evidence,
    validate_options,
)


class RecallDepth(BaseModel, frozen=True, extra="forbid"):
    depth: int | None = Field(default=None, ge=1)
    """Number of passages that count, in the order of retrieval. `None` means all."""


class RetrievalRecall:
    name = "retrieval_recall"
    version = "1"
    needs_engine = False
    reads_report = False
    reads_tool_results = True

    def find_missing(self, reference: Reference | None) -> str:
        return find_missing_evidence(reference)

    def check_options(self, options: Mapping[str, Any]) -> None:
        validate_options(self.name, RecallDepth, options)

    async def score(
        self, scoring_input: ScoringInput, options: Mapping[str, Any], meter: UsageMeter
    ) -> ScorerResult | ScoringFailure:
        within: RecallDepth = validate_options(self.name, RecallDepth, options)
        evidence, retrieved = reference_evidence(scoring_input), scoring_input.retrieved
        value = retrieval_recall(retrieved, evidence, within.depth)
        return ScorerResult(value, {"expected": len(evidence), "retrieved": len(retrieved)})


SCORER = RetrievalRecall()
