"""The scorer `citation_precision`: the fraction of the report's citations that cite reference evidence."""

from offing.core.scoring import citation_precision
from offing.scorers.rule_scorer import RuleScorer
from offing.scorers.scorer import NoOptions, ScorerResult, ScoringInput, find_missing_evidence, reference_evidence


def score_citation_precision(scoring_input: ScoringInput, options: NoOptions) -> ScorerResult:
    cited = scoring_input.report.cited() if scoring_input.report else ()
    evidence = reference_evidence(scoring_input)
    return ScorerResult(citation_precision(cited, evidence), {"expected": len(evidence), "cited": len(cited)})


SCORER = RuleScorer("citation_precision", "1", score_citation_precision, find_missing_evidence, reads_report=True)
