"""The scorer `exact_match`:

1 if the answer equals an accepted answer, ignoring case, punctuation and articles.
"""

from offing.core.scoring import exact_match
from offing.scorers.rule_scorer import RuleScorer
from offing.scorers.scorer import NoOptions, ScorerResult, ScoringInput, accepted_answers, find_missing_answers


def score_exact_match(scoring_input: ScoringInput, options: NoOptions) -> ScorerResult:
    return ScorerResult(exact_match(scoring_input.answer, accepted_answers(scoring_input)))


SCORER = RuleScorer("exact_match", "1", score_exact_match, find_missing_answers)
