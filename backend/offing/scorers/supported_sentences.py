"""The scorer `supported_sentences`: the fraction of the report's sentences that are supported by their quotes."""

from offing.scorers.rule_scorer import RuleScorer, need_nothing
from offing.scorers.scorer import NoOptions, ScorerResult, ScoringInput


def score_sentences(scoring_input: ScoringInput, options: NoOptions) -> ScorerResult:
    sentences = scoring_input.report.sentences() if scoring_input.report else ()
    supported = sum(sentence.is_supported for sentence in sentences)
    value = supported / len(sentences) if sentences else 0.0
    return ScorerResult(value, {"sentences": len(sentences), "supported": supported})


SCORER = RuleScorer("supported_sentences", "2", score_sentences, need_nothing, reads_report=True)
