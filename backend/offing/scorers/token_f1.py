"""The scorer `token_f1`.

It is the F1 of the words shared by the answer and the most similar accepted answer.
"""

from offing.core.scoring import token_f1
from offing.scorers.rule_scorer import RuleScorer
from offing.scorers.scorer import NoOptions, ScorerResult, ScoringInput, accepted_answers, find_missing_answers


def score_token_f1(scoring_input: ScoringInput, options: NoOptions) -> ScorerResult:
    return ScorerResult(token_f1(scoring_input.answer, accepted_answers(scoring_input)))


SCORER = RuleScorer("token_f1", "1", score_token_f1, find_missing_answers)
