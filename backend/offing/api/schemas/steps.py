"""Schemas of steps."""

from datetime import datetime
from typing import Any
from uuid import UUID

from pydantic import Field

from offing.api.coded_texts import StepTextOut
from offing.api.schemas.base import ApiModel, Page
from offing.core.step import StepKind
from offing.core.step_codes import StepSummaryCode


class StepSummaryOut(ApiModel):
    """What a step says, so that a client can say it in the reader's language."""

    code: StepSummaryCode
    parameters: dict[str, bool | int | str | list[int] | list[str]] = Field(
        description="What the text of the code names. Each code has its own."
    )


class StepOut(ApiModel):
    """A step as shown in a timeline. Event streams carry these."""

    run_id: UUID
    seq: int
    kind: StepKind
    label: str
    title: str
    detail: str
    summary: StepSummaryOut | None = Field(
        description="What title and detail say in English. null: they are the words of a person, a model or a graph, "
        "and no code stands for them."
    )
    title_text: StepTextOut | None = Field(
        default=None, description="What the title of a step without a summary says. null: no code stands for it."
    )
    detail_texts: list[StepTextOut] = Field(
        default=[],
        description="What the parts of the detail of a step without a summary say. Empty: no code stands for any.",
    )
    ok: bool
    ms: int | None
    tokens: int
    turn: int
    at: datetime


class StepDetail(StepOut):
    payload: dict[str, Any]


class StepPage(Page):
    items: list[StepOut]


class FullStepPage(Page):
    items: list[StepDetail]
