"""What a scorer is, what it is given, and what it gives back. Knows no particular scorer."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from pydantic import BaseModel, ValidationError

from offing.core.errors import InvalidInput
from offing.core.report import Report
from offing.core.scoring import Reference
from offing.core.trajectory import Outcome
from offing.models.engine import Meter


@dataclass(frozen=True, slots=True)
class Sample:
    """A finished rollout beside what its task's reference says. Made only after the run has ended."""

    question: str
    outcome: Outcome
    answer: str
    """The report's short answer without markup and citations. Empty: there is none."""
    report: Report | None
    """None: the run left none, or no scorer of its group reads it."""
    reference: Reference | None
    """Such that the scorer lacks nothing in it. None: the task has none."""
    seed: int = 0
    """The run's."""


@dataclass(frozen=True, slots=True)
class Score:
    """`value` 0 to 1. `detail` is kept with it and holds no text of the reference."""

    value: float
    detail: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class Unscored:
    """No value, which says nothing about the answer. It is tried again later."""

    message: str


class Scorer(Protocol):
    """A way to score. Another way to compute the same name's value has another version."""

    @property
    def name(self) -> str: ...

    @property
    def version(self) -> str: ...

    @property
    def asks(self) -> bool:
        """True: it asks an engine, which takes time and may cost money."""
        ...

    @property
    def reads_report(self) -> bool:
        """False: the short answer is all that it reads."""
        ...

    def lacks(self, reference: Reference | None) -> str:
        """What a task must have beside this reference, in words, so that it can score it. Empty: nothing."""
        ...

    def check(self, options: Mapping[str, Any]) -> None:
        """Raises InvalidInput for options that it cannot work with."""
        ...

    async def score(self, sample: Sample, options: Mapping[str, Any], meter: Meter) -> Score | Unscored:
        """Of options that were checked. `meter`: money for what it asks."""
        ...


def no_answers(reference: Reference | None) -> str:
    """What a scorer that compares with accepted answers lacks."""
    return "it has no reference answers" if reference is None else ""


def accepted_by(sample: Sample) -> tuple[str, ...]:
    """The reference's answers, where `no_answers` has found that there is a reference."""
    return sample.reference.answers if sample.reference else ()


class NoOptions(BaseModel, frozen=True, extra="forbid"):
    """Of a scorer that takes none."""


def checked(scorer: str, model: type[BaseModel], options: Mapping[str, Any]) -> Any:
    """The options as a value of `model`. Raises InvalidInput that names the first unusable one."""
    try:
        return model.model_validate(dict(options))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, ("scorers", scorer, *first["loc"])))
        known = ", ".join(model.model_fields) or "none"
        raise InvalidInput(place, first["msg"], f"Options of {scorer}: {known}.") from None
