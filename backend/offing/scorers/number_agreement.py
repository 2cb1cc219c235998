"""The scorer `number_agreement`: the fraction of the numbers in cited sentences that their quotes or calculations have.

A report without a cited sentence has the value 0, and one whose cited sentences contain no number has the value 1.
"""

from offing.core.number_agreement import compare_numbers
from offing.scorers.rule_scorer import RuleScorer, need_nothing
from offing.scorers.scorer import NoOptions, ScorerResult, ScoringInput


def score_numbers(scoring_input: ScoringInput, options: NoOptions) -> ScorerResult:
    if scoring_input.report is None:
        return ScorerResult(0.0, {"numbers": 0, "agreeing": 0})
    compared = compare_numbers(scoring_input.report, scoring_input.calculations)
    return ScorerResult(compared.value, {"numbers": compared.number_count, "agreeing": compared.agreeing_count})


SCORER = RuleScorer("number_agreement", "2", score_numbers, need_nothing, reads_report=True, reads_tool_results=True)
