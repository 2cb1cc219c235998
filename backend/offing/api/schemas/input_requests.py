"""API schemas of input requests and input responses, and their serializers."""

import json
from datetime import datetime
from typing import Any

from pydantic import Field

from offing.api.coded_texts import TEXTS, RunTextOut, serialize_run_texts
from offing.api.schemas.base import ApiModel
from offing.core.errors import InvalidInput
from offing.core.input_request import (
    MAX_PLAN_STEPS,
    MAX_TEXT_CHARS,
    InputKind,
    InputPrompt,
    InputResponse,
    Responder,
    ReviewDecision,
)
from offing.core.response_form import MAX_RESPONSE_CHARS, MAX_REVIEWS, ResponseForm, ToolReviewDecisionType
from offing.core.review_responses import MAX_MESSAGE_CHARS
from offing.services.input_requests import InputRequestStatus


class InputResponseOut(ApiModel):
    text: str = Field(description="Response to a free-text request or an interrupt. Empty for other kinds.")
    approved: bool | None = Field(description="Response to an approval or a tool call. null for other kinds.")
    decision: ReviewDecision | None = Field(description="Response to a plan review. null for other kinds.")
    steps: list[str] = Field(description="The plan as a person edited it.")
    comment: str
    responder: Responder
    responded_by: str = Field(description="`key:<id>` or `web_ui`. Empty: no person.")
    responded_at: datetime


class ToolReviewOut(ApiModel):
    """A tool call that a person decides about. Its texts come from the graph."""

    name: str
    args: dict[str, Any] | None = Field(description="null: the arguments are too long to be shown.")
    description: str = Field(description="Description of the call by the graph. Empty: none.")
    decisions: list[ToolReviewDecisionType] = Field(description="The decisions that are allowed.")


class ResponseFormOut(ApiModel):
    """The required shape of the response to an interrupt: one decision for each review, or JSON that fits the
    schema.
    """

    reviews: list[ToolReviewOut] = Field(description="Tool calls to decide about. Empty: the answer is a JSON value.")
    response_schema: dict[str, Any] | None = Field(
        description="JSON schema of the response that the interrupted node expects. null: the graph declares none."
    )


class InputRequestOut(ApiModel):
    """What a run asks a person. `number` is the seq of the step with the request."""

    number: int
    kind: InputKind
    prompt: str
    detail: str = Field(description="Details of the request, to be shown unchanged.")
    choices: list[str] = Field(description="The allowed responses. Empty: any text.")
    steps: list[str] = Field(description="The plan under review.")
    response_form: ResponseFormOut | None = Field(
        description="Required shape of the response to an interrupt. null: any text."
    )
    pending: bool = Field(description="Whether the request waits for a response.")
    requested_at: datetime
    default_at: datetime | None = Field(description="When the default is used. null: never.")
    response: InputResponseOut | None = Field(description="null: there is no response yet.")
    texts: dict[str, RunTextOut] = Field(default={}, description=f"{TEXTS} Fields: prompt, detail.")


class InputRequestList(ApiModel):
    items: list[InputRequestOut]


class EditedActionIn(ApiModel):
    """The tool call with the arguments that a person changed."""

    name: str = Field(default="", max_length=200, description="Empty: the requested tool.")
    args: dict[str, Any] = Field(description="All arguments.")


class DecisionIn(ApiModel):
    """A person's decision about one tool call of a response form."""

    type: ToolReviewDecisionType
    edited_action: EditedActionIn | None = Field(default=None, description="Required to edit a call.")
    message: str = Field(
        default="",
        max_length=MAX_MESSAGE_CHARS,
        description="Why the call is rejected, or the response in place of its result.",
    )


class InputResponseIn(ApiModel):
    """A response to an input request. Which fields count depends on the kind of the request."""

    text: str = Field(
        default="",
        max_length=MAX_RESPONSE_CHARS,
        description="Response to a free-text request or an interrupt. JSON if the response form has a schema.",
    )
    decisions: list[DecisionIn] | None = Field(
        default=None,
        max_length=MAX_REVIEWS,
        description="For a response form with reviews: one decision per review, in order. null: `text` contains the "
        "decisions.",
    )
    approved: bool | None = Field(default=None, description="Required for an approval and a tool call.")
    decision: ReviewDecision | None = Field(default=None, description="Required for a review.")
    steps: list[str] = Field(default=[], max_length=MAX_PLAN_STEPS, description="The edited plan.")
    comment: str = Field(default="", max_length=MAX_TEXT_CHARS, description="Comment on a decision.")


def serialize_input_request(status: InputRequestStatus) -> InputRequestOut:
    question, asking = status.request, status.request.input_prompt
    return InputRequestOut(
        number=question.seq,
        kind=asking.kind,
        prompt=asking.prompt,
        detail=asking.detail,
        choices=list(asking.choices),
        steps=list(asking.steps),
        response_form=None if asking.response_form is None else serialize_form(asking.response_form),
        pending=status.pending,
        requested_at=question.requested_at,
        default_at=question.default_at,
        response=_serialize_response(status),
        texts=serialize_run_texts(prompt=asking.prompt, detail=asking.detail),
    )


def serialize_form(form: ResponseForm) -> ResponseFormOut:
    reviews = [
        ToolReviewOut(
            name=review.name,
            args=None if review.args is None else dict(review.args),
            description=review.description,
            decisions=list(review.decisions),
        )
        for review in form.reviews
    ]
    return ResponseFormOut(reviews=reviews, response_schema=None if form.schema is None else dict(form.schema))


def _serialize_response(status: InputRequestStatus) -> InputResponseOut | None:
    question = status.request
    response, answerer, at = question.response, question.responder, question.responded_at
    if response is None or answerer is None or at is None:
        return None
    kind = question.input_prompt.kind
    decides, reviews = kind in (InputKind.APPROVAL, InputKind.TOOL), kind is InputKind.PLAN_REVIEW
    return InputResponseOut(
        text=response.text,
        approved=response.approved if decides else None,
        decision=response.decision if reviews else None,
        steps=list(response.steps),
        comment=response.comment,
        responder=answerer,
        responded_by=question.responded_by,
        responded_at=at,
    )


def build_input_response(body: InputResponseIn) -> InputResponse:
    """Return the core's input response.

    `find_missing_field` reports fields that a kind needs and the body lacks.
    """
    text = body.text
    if body.decisions is not None:
        text = json.dumps({"decisions": [one.model_dump(mode="json") for one in body.decisions]})
    return InputResponse(
        text,
        bool(body.approved),
        body.decision or ReviewDecision.APPROVED,
        tuple(step for step in body.steps if step.strip()),
        body.comment,
    )


def check_decisions(prompt: InputPrompt, body: InputResponseIn) -> None:
    """Raise InvalidInput if decisions are sent together with a text, or to an input request without tool calls."""
    if body.decisions is None:
        return
    if prompt.response_form is None or not prompt.response_form.reviews:
        raise InvalidInput("decisions", "the input request has no tool calls to decide about", "Respond with `text`.")
    if body.text:
        raise InvalidInput("decisions", "cannot be combined with `text`", "Send one of the two.")


def find_missing_field(prompt: InputPrompt, body: InputResponseIn) -> str | None:
    """Return the required field of this kind of input request that was not sent, or `None` if none is missing."""
    match prompt.kind:
        case InputKind.APPROVAL | InputKind.TOOL:
            return "approved" if body.approved is None else None
        case InputKind.PLAN_REVIEW:
            return "decision" if body.decision is None else None
        case InputKind.FREE_TEXT | InputKind.INTERRUPT:
            return None


INPUT_REQUEST_EXAMPLE: dict[str, Any] = {
    "number": 7,
    "kind": "plan_review",
    "prompt": "How does undici reuse connections?",
    "detail": "",
    "choices": [],
    "steps": ["Search for connection pooling", "Read what Pool does"],
    "response_form": None,
    "pending": True,
    "requested_at": "2026-11-21T09:00:00Z",
    "default_at": None,
    "response": None,
}
