"""The scorer `citation_recall`: the fraction of the reference evidence that the report cites."""

from offing.core.scoring import citation_recall
from offing.scorers.rule_scorer import RuleScorer
from offing.scorers.scorer import NoOptions, ScorerResult, ScoringInput, find_missing_evidence, reference_evidence


def score_citation_recall(scoring_input: ScoringInput, options: NoOptions) -> ScorerResult:
    cited = scoring_input.report.cited() if scoring_input.report else ()
    evidence = reference_evidence(scoring_input)
    return ScorerResult(citation_recall(cited, evidence), {"expected": len(evidence), "cited": len(cited)})


SCORER = RuleScorer("citation_recall", "1", score_citation_recall, find_missing_evidence, reads_report=True)
