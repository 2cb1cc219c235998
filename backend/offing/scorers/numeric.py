"""The scorer `numeric`: 1 if the answer states the accepted number within a tolerance."""

from decimal import Decimal

from pydantic import BaseModel, Field

from offing.core.scoring import Reference, find_number, numeric_match
from offing.scorers.rule_scorer import RuleScorer
from offing.scorers.scorer import ScorerResult, ScoringFailure, ScoringInput, accepted_answers, find_missing_answers


class Tolerance(BaseModel, frozen=True, extra="forbid"):
    """Maximum deviation of a number. The larger of the two tolerances applies."""

    absolute: Decimal = Field(default=Decimal(0), ge=0, allow_inf_nan=False)
    relative: Decimal = Field(default=Decimal("1e-6"), ge=0, allow_inf_nan=False)
    """As a fraction of the reference value: 0.01 is one percent."""


def find_missing_number(reference: Reference | None) -> str:
    """Return what is missing for a comparison of numbers. Empty if nothing is missing."""
    if reference is None or reference.answers is None:
        return find_missing_answers(reference)
    stated = not reference.answers or any(find_number(a) is not None for a in reference.answers)
    return "" if stated else "none of its reference answers contains exactly one number"


def score_number(scoring_input: ScoringInput, within: Tolerance) -> ScorerResult | ScoringFailure:
    value = numeric_match(
        scoring_input.answer, accepted_answers(scoring_input), absolute=within.absolute, relative=within.relative
    )
    if value is None:
        return ScoringFailure("no accepted answer of the task contains exactly one number")
    return ScorerResult(value, {"number": find_number(scoring_input.answer) is not None})


SCORER = RuleScorer("numeric", "1", score_number, find_missing_number, Tolerance)
