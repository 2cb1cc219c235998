"""Codes of English texts in responses, beside the texts, so that a client can say them in the reader's language."""

from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, TypeVar

from pydantic import BaseModel, Field

from offing.core.citation_texts import REJECTION_TEXTS
from offing.core.coded_text import CodedText, TextCatalog
from offing.core.offer_texts import OFFER_TEXTS
from offing.core.position_texts import POSITION_TEXTS
from offing.core.problem_texts import PROBLEM_TEXTS
from offing.core.run_texts import RUN_TEXTS
from offing.core.step_texts import STEP_DETAILS, STEP_TITLES, TEXT

PARAMETERS = "What the text names, by the names in the template of its code."
TEXTS = "What fields of this object say in English, by their names. A field without a code is not among them."

if TYPE_CHECKING:
    # The codes are the keys of the catalogs, which a type checker cannot read.
    RunTextCode = str
    ProblemTextCode = str
    OfferTextCode = str
    StepTextCode = str
    RejectionTextCode = str
    PositionTextCode = str
else:
    RunTextCode = StrEnum("RunTextCode", {code: code for code in RUN_TEXTS.templates})
    ProblemTextCode = StrEnum("ProblemTextCode", {code: code for code in PROBLEM_TEXTS.templates})
    OfferTextCode = StrEnum("OfferTextCode", {code: code for code in OFFER_TEXTS.templates})
    StepTextCode = StrEnum(
        "StepTextCode", {code: code for code in [TEXT, *STEP_TITLES.templates, *STEP_DETAILS.templates]}
    )
    RejectionTextCode = StrEnum("RejectionTextCode", {code: code for code in REJECTION_TEXTS.templates})
    PositionTextCode = StrEnum("PositionTextCode", {code: code for code in POSITION_TEXTS.templates})


class CodedTextOut(BaseModel):
    """A code, which each kind of text adds, and what the text names."""

    parameters: dict[str, str] = Field(description=PARAMETERS)


class RunTextOut(CodedTextOut):
    """What a text about a run, its report or its input requests says."""

    code: RunTextCode


class ProblemTextOut(CodedTextOut):
    """What the text of a problem says."""

    code: ProblemTextCode


class OfferTextOut(CodedTextOut):
    """What the text about a graph, an engine or a search engine says."""

    code: OfferTextCode


class StepTextOut(CodedTextOut):
    """What the title of a step, or a part of its detail, says. `text` stands for a part without a code."""

    code: StepTextCode


class RejectionTextOut(CodedTextOut):
    """Why a citation of a sentence was rejected."""

    code: RejectionTextCode


class PositionTextOut(CodedTextOut):
    """A part of where in its source a citation is."""

    code: PositionTextCode


Shape = TypeVar("Shape", bound=CodedTextOut)


def serialize_run_texts(**texts: str | None) -> dict[str, RunTextOut]:
    """Return the codes of texts by the names of their fields."""
    return _serialize_fields(RUN_TEXTS, RunTextOut, texts)


def serialize_problem_texts(**texts: str | None) -> dict[str, ProblemTextOut]:
    """Return the codes of texts by the names of their fields."""
    return _serialize_fields(PROBLEM_TEXTS, ProblemTextOut, texts)


def serialize_offer_texts(**texts: str | None) -> dict[str, OfferTextOut]:
    """Return the codes of texts by the names of their fields."""
    return _serialize_fields(OFFER_TEXTS, OfferTextOut, texts)


def serialize_step_text(coded: CodedText) -> StepTextOut:
    return _serialize(StepTextOut, coded)


def serialize_rejection_text(text: str) -> RejectionTextOut | None:
    """Return what a reason says. `None` means that the platform did not write it."""
    coded = REJECTION_TEXTS.find(text)
    return None if coded is None else _serialize(RejectionTextOut, coded)


def serialize_position_part(coded: CodedText) -> PositionTextOut:
    return _serialize(PositionTextOut, coded)


def _serialize_fields(catalog: TextCatalog, shape: type[Shape], texts: Mapping[str, str | None]) -> dict[str, Shape]:
    return {name: _serialize(shape, one) for name, one in catalog.find_fields(**texts).items()}


def _serialize(shape: type[Shape], coded: CodedText) -> Shape:
    return shape.model_validate({"code": coded.code, "parameters": dict(coded.parameters)})
