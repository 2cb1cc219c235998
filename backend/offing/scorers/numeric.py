"""The scorer `numeric`: 1 for an answer that states the accepted number within a tolerance."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from pydantic import BaseModel, Field

from offing.core.scoring import Reference, number_in, numeric
from offing.models.engine import Meter
from offing.scorers.scorer import Sample, Score, Unscored, accepted_by, checked, no_answers


class Tolerance(BaseModel, frozen=True, extra="forbid"):
    """How far a number may be off; the wider of the two counts."""

    absolute: Decimal = Field(default=Decimal(0), ge=0, allow_inf_nan=False)
    relative: Decimal = Field(default=Decimal("1e-6"), ge=0, allow_inf_nan=False)
    """Of the reference's size: 0.01 is one in a hundred."""


class Numeric:
    name = "numeric"
    version = "1"
    asks = False
    reads_report = False

    def lacks(self, reference: Reference | None) -> str:
        if reference is None:
            return no_answers(reference)
        stated = not reference.answers or any(number_in(a) is not None for a in reference.answers)
        return "" if stated else "none of its reference answers states one number"

    def check(self, options: Mapping[str, Any]) -> None:
        checked(self.name, Tolerance, options)

    async def score(self, sample: Sample, options: Mapping[str, Any], meter: Meter) -> Score | Unscored:
        within: Tolerance = checked(self.name, Tolerance, options)
        value = numeric(sample.answer, accepted_by(sample), absolute=within.absolute, relative=within.relative)
        if value is None:
            return Unscored("no accepted answer of the task states one number")
        return Score(value, {"number": number_in(sample.answer) is not None})
