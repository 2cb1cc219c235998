"""The scorer `retrieval_ndcg`: nDCG of the documents of the reference evidence, in the order of their retrieval."""

from pydantic import BaseModel, Field

from offing.core.ranking_metrics import retrieval_ndcg
from offing.scorers.rule_scorer import RuleScorer
from offing.scorers.scorer import ScorerResult, ScoringInput, find_missing_evidence, reference_evidence


class RankingDepth(BaseModel, frozen=True, extra="forbid"):
    depth: int = Field(default=10, ge=1)
    """Number of documents that count, in the order of retrieval."""


def score_ranking(scoring_input: ScoringInput, within: RankingDepth) -> ScorerResult:
    evidence, retrieved = reference_evidence(scoring_input), scoring_input.retrieved
    documents = len({passage.source_id for passage in retrieved})
    value = retrieval_ndcg(retrieved, evidence, within.depth)
    return ScorerResult(value, {"expected": len(evidence), "documents": documents})


SCORER = RuleScorer("retrieval_ndcg", "1", score_ranking, find_missing_evidence, RankingDepth, reads_tool_results=True)
