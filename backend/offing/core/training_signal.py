"""Training signals: what people said about a run, with who said it and who wrote the words."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from uuid import UUID


class SignalKind(StrEnum):
    """What a person did. Only corrected answers have rows of their own; the others refer to rows that exist."""

    REPORT_RATING = "report_rating"
    """Rated a version of the report as a whole."""
    SENTENCE_RATING = "sentence_rating"
    """Accepted (above 0) or rejected (below 0) a sentence of a version of the report."""
    ANSWER_CORRECTION = "answer_correction"
    """Gave the right answer."""
    REPORT_EDIT = "report_edit"
    """Saved a version of the report."""
    INPUT_RESPONSE = "input_response"
    """Responded to an input request: a plan review, a clarifying question, an approval."""


class TextOrigin(StrEnum):
    """Who wrote the words of a signal."""

    PERSON = "person"
    MODEL = "model"
    DOCUMENT = "document"


@dataclass(frozen=True, slots=True)
class TrainingSignal:
    """One thing that a person said about a run."""

    kind: SignalKind
    id: str
    """Id of the rating or correction, number of the report version, or seq of the input request."""
    run_id: UUID
    given_by: str
    """Name of the key or session, or engine and model of a follow-up that edited the report."""
    created_at: datetime
    report_version: int | None
    """`None` means that the signal is not about a report."""
    sentence_id: str | None
    """`None` means that the signal is not about a sentence."""
    value: float | None
    """From -1 to 1. `None` means that it is no rating, or a comment alone."""
    text: str
    """Words of the signal. Empty for edits and responses, which are read where they are stored."""
    text_origin: TextOrigin
    base_version: int | None = None
    """For an edit: the version that was edited; their difference is what the person changed."""
