"""The scorer protocol, with its input and its result."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from pydantic import BaseModel, ValidationError

from offing.core.errors import InvalidInput
from offing.core.report import Evidence, Report
from offing.core.scoring import Reference, ReferenceEvidence
from offing.core.trajectory import Outcome
from offing.models.engine import UsageMeter
from offing.models.stored_provider import FindProvider, find_no_provider


@dataclass(frozen=True, slots=True)
class ScoringInput:
    """A finished rollout with the reference of its task.

    It is created only after the run has ended.
    """

    question: str
    outcome: Outcome
    answer: str
    """The report's short answer without markup and citations. Empty if there is none."""
    report: Report | None
    """`None` if the run has no report, or if no scorer of its group reads it."""
    reference: Reference | None
    """`None` if the task has none. The scorer's `find_missing` has accepted it."""
    seed: int = 0
    """The seed of the run."""
    retrieved: tuple[Evidence, ...] = ()
    """The passages that the run retrieved, each once, in the order of its calls and of the results of a call.

    Empty if no scorer of the group reads tool results.
    """
    calculations: tuple[str, ...] = ()
    """The results of the run's calculations and the output of its code. Empty as with `retrieved`."""
    find_provider: FindProvider = field(default=find_no_provider, repr=False, compare=False)
    """Finds the stored providers of the tenant, for scorers that ask an engine."""


@dataclass(frozen=True, slots=True)
class ScorerResult:
    """A score.

    `value` is from 0 to 1. `detail` is stored with it and must not contain text of the
    reference.
    """

    value: float
    detail: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class ScoringFailure:
    """A failure to score. It says nothing about the answer; scoring is tried again later."""

    message: str


class Scorer(Protocol):
    """A scoring method.

    If the way in which a scorer computes its value changes, its version changes.
    """

    @property
    def name(self) -> str: ...

    @property
    def version(self) -> str: ...

    @property
    def needs_engine(self) -> bool:
        """Whether the scorer calls an engine, which takes time and may cost money."""
        ...

    @property
    def reads_report(self) -> bool:
        """Whether the scorer reads the report. If false, it only reads the short answer."""
        ...

    @property
    def reads_tool_results(self) -> bool:
        """Whether the scorer reads `retrieved` or `calculations`."""
        ...

    def find_missing(self, reference: Reference | None) -> str:
        """Return what a task must have, in addition to this reference, to be scored.

        Empty if nothing is missing.
        """
        ...

    def check_options(self, options: Mapping[str, Any]) -> None:
        """Check the options. Raises `InvalidInput` if they are not valid."""
        ...

    async def score(
        self, scoring_input: ScoringInput, options: Mapping[str, Any], meter: UsageMeter
    ) -> ScorerResult | ScoringFailure:
        """Score a rollout with checked options. `meter` charges the usage of the engine."""
        ...


def find_missing_answers(reference: Reference | None) -> str:
    """Return what is missing for a scorer that compares with accepted answers.

    Empty if nothing is missing.
    """
    return "it has no reference answers" if reference is None or reference.answers is None else ""


def find_missing_evidence(reference: Reference | None) -> str:
    """Return what is missing for a scorer that compares with reference evidence.

    Empty if nothing is missing. A task that cannot be answered needs no evidence.
    """
    is_unanswerable = reference is not None and reference.answers == ()
    return "" if reference is not None and (reference.evidence or is_unanswerable) else "it has no reference evidence"


def accepted_answers(scoring_input: ScoringInput) -> tuple[str, ...]:
    """Return the reference's answers.

    Call it only if `find_missing_answers` returned an empty string.
    """
    reference = scoring_input.reference
    return (reference.answers or ()) if reference else ()


def reference_evidence(scoring_input: ScoringInput) -> tuple[ReferenceEvidence, ...]:
    """Return the reference evidence of the task. Empty if it has none."""
    return scoring_input.reference.evidence if scoring_input.reference else ()


class NoOptions(BaseModel, frozen=True, extra="forbid"):
    """Options of a scorer without options."""


def validate_options(scorer: str, options_model: type[BaseModel], options: Mapping[str, Any]) -> Any:
    """Validate the options with `options_model` and return the model.

    Raises `InvalidInput` that names the first invalid option.
    """
    try:
        return options_model.model_validate(dict(options))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        option_path = ".".join(map(str, ("scorers", scorer, *first["loc"])))
        names = ", ".join(options_model.model_fields) or "none"
        raise InvalidInput(option_path, first["msg"], f"Options of {scorer}: {names}.") from None
