"""The scorer `retrieval_ndcg`: nDCG of the documents of the reference evidence, in the order of their retrieval."""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, Field

from offing.core.ranking_metrics import retrieval_ndcg
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


class RankingDepth(BaseModel, frozen=True, extra="forbid"):
    depth: int = Field(default=10, ge=1)
    """Number of documents that count, in the order of retrieval."""


class RetrievalNdcg:
    name = "retrieval_ndcg"
    version = "1"
    needs_engine = False
    reads_report = False
    reads_tool_results = True

    def find_missing(self, reference: Reference | None) -> str:
        return find_missing_evidence(reference)

    def check_options(self, options: Mapping[str, Any]) -> None:
        validate_options(self.name, RankingDepth, options)

    async def score(
        self, scoring_input: ScoringInput, options: Mapping[str, Any], meter: UsageMeter
    ) -> ScorerResult | ScoringFailure:
        within: RankingDepth = validate_options(self.name, RankingDepth, options)
        evidence, retrieved = reference_evidence(scoring_input), scoring_input.retrieved
        documents = len({passage.source_id for passage in retrieved})
        value = retrieval_ndcg(retrieved, evidence, within.depth)
        return ScorerResult(value, {"expected": len(evidence), "documents": documents})


SCORER = RetrievalNdcg()
