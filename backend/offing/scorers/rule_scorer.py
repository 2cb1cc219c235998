"""A scorer that computes its value by a rule, without an engine."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from offing.core.scoring import Reference
from offing.models.engine import UsageMeter
from offing.scorers.scorer import NoOptions, ScorerResult, ScoringFailure, ScoringInput, validate_options


def need_nothing(reference: Reference | None) -> str:
    """Return that nothing is missing: the scorer does not read the reference."""
    return ""


@dataclass(frozen=True, slots=True)
class RuleScorer:
    """A scorer whose value is the result of a function."""

    name: str
    version: str
    compute: Callable[[ScoringInput, Any], ScorerResult | ScoringFailure]
    """Returns the score for a rollout and the options, which are an instance of `options_model`."""
    find_missing: Callable[[Reference | None], str]
    """Returns what a task must have, in addition to this reference, to be scored. Empty if nothing is missing."""
    options_model: type[BaseModel] = NoOptions
    reads_report: bool = False
    reads_tool_results: bool = False

    @property
    def needs_engine(self) -> bool:
        return False

    def check_options(self, options: Mapping[str, Any]) -> None:
        validate_options(self.name, self.options_model, options)

    async def score(
        self, scoring_input: ScoringInput, options: Mapping[str, Any], meter: UsageMeter
    ) -> ScorerResult | ScoringFailure:
        return self.compute(scoring_input, validate_options(self.name, self.options_model, options))
