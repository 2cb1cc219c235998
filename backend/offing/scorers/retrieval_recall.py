"""The scorer `retrieval_recall`: the fraction of the reference evidence that the run retrieved."""

from pydantic import BaseModel, Field

from offing.core.ranking_metrics import retrieval_recall
from offing.scorers.rule_scorer import RuleScorer
from offing.scorers.scorer import ScorerResult, ScoringInput, find_missing_evidence, reference_evidence


class RecallDepth(BaseModel, frozen=True, extra="forbid"):
    depth: int | None = Field(default=None, ge=1)
    """Number of passages that count, in the order of retrieval. `None` means all."""


def score_recall(scoring_input: ScoringInput, within: RecallDepth) -> ScorerResult:
    evidence, retrieved = reference_evidence(scoring_input), scoring_input.retrieved
    value = retrieval_recall(retrieved, evidence, within.depth)
    return ScorerResult(value, {"expected": len(evidence), "retrieved": len(retrieved)})


SCORER = RuleScorer("retrieval_recall", "1", score_recall, find_missing_evidence, RecallDepth, reads_tool_results=True)
