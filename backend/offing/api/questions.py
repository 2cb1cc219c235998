"""What runs ask of people, on the wire."""

import json
from datetime import datetime
from typing import Any

from pydantic import Field

from offing.api.schemas import Wire
from offing.core.decisions import MAX_MESSAGE_CHARS
from offing.core.errors import InvalidInput
from offing.core.question import MOST_STEPS, MOST_TEXT, Answer, Answerer, Asking, QuestionKind, Verdict
from offing.core.response_form import MAX_RESPONSE_CHARS, MAX_REVIEWS, DecisionType, ResponseForm
from offing.services.questions import Asked


class AnswerOut(Wire):
    text: str = Field(description="To a question or an interrupt. Empty for the other kinds.")
    approved: bool | None = Field(description="Of an approval or a tool call. null for the other kinds.")
    verdict: Verdict | None = Field(description="Of a review. null for the other kinds.")
    steps: list[str] = Field(description="The plan as a person edited it.")
    comment: str
    answerer: Answerer
    by: str = Field(description="`key:<id>` or `page`. Empty: no person.")
    at: datetime


class ToolReviewOut(Wire):
    """A tool call that a person decides about. Its texts come from the graph."""

    name: str
    args: dict[str, Any] | None = Field(description="null: they are too long to be shown.")
    description: str = Field(description="The graph's words about the call. Empty: none.")
    decisions: list[DecisionType] = Field(description="The decisions that are allowed.")


class ResponseFormOut(Wire):
    """What the answer to an interrupt must look like: one decision for each review, or JSON that fits the schema."""

    reviews: list[ToolReviewOut] = Field(description="Tool calls to decide about. Empty: the answer is a JSON value.")
    response_schema: dict[str, Any] | None = Field(
        description="JSON schema of what the interrupted node reads. null: the graph gives none."
    )


class QuestionOut(Wire):
    """What a run asks. `number` is the seq of the step that asks it."""

    number: int
    kind: QuestionKind
    prompt: str
    detail: str = Field(description="What it is about at more length; text, shown as it is.")
    choices: list[str] = Field(description="The only answers. Empty: any text.")
    steps: list[str] = Field(description="Of the plan under review.")
    form: ResponseFormOut | None = Field(description="Of the answer to an interrupt. null: any text.")
    open: bool = Field(description="It waits for an answer.")
    asked_at: datetime
    due_at: datetime | None = Field(description="When its default is taken. null: never.")
    answer: AnswerOut | None = Field(description="null: there is none.")


class QuestionList(Wire):
    items: list[QuestionOut]


class EditedActionIn(Wire):
    """The call as it is to be made."""

    name: str = Field(default="", max_length=200, description="Empty: the tool that was asked for.")
    args: dict[str, Any] = Field(description="All arguments.")


class DecisionIn(Wire):
    """What a person decides about one tool call of a form."""

    type: DecisionType
    edited_action: EditedActionIn | None = Field(default=None, description="Required to edit a call.")
    message: str = Field(
        default="", max_length=MAX_MESSAGE_CHARS, description="Why it is rejected, or the response in its place."
    )


class AnswerIn(Wire):
    """An answer; which fields count depends on the question's kind."""

    text: str = Field(
        default="",
        max_length=MAX_RESPONSE_CHARS,
        description="To a question or an interrupt. JSON where the question has a form with a schema.",
    )
    decisions: list[DecisionIn] | None = Field(
        default=None,
        max_length=MAX_REVIEWS,
        description="To a form with reviews: one for each, in their order. null: `text` has them.",
    )
    approved: bool | None = Field(default=None, description="Required for an approval and a tool call.")
    verdict: Verdict | None = Field(default=None, description="Required for a review.")
    steps: list[str] = Field(default=[], max_length=MOST_STEPS, description="Of the edited plan.")
    comment: str = Field(default="", max_length=MOST_TEXT, description="Words beside a decision.")


def question_out(asked: Asked) -> QuestionOut:
    question, asking = asked.question, asked.question.asking
    return QuestionOut(
        number=question.number,
        kind=asking.kind,
        prompt=asking.prompt,
        detail=asking.detail,
        choices=list(asking.choices),
        steps=list(asking.steps),
        form=None if asking.form is None else _form_out(asking.form),
        open=asked.open,
        asked_at=question.asked_at,
        due_at=question.due_at,
        answer=_answer_out(asked),
    )


def _form_out(form: ResponseForm) -> ResponseFormOut:
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


def _answer_out(asked: Asked) -> AnswerOut | None:
    question = asked.question
    given, answerer, at = question.answer, question.answerer, question.answered_at
    if given is None or answerer is None or at is None:
        return None
    kind = question.asking.kind
    decides, reviews = kind in (QuestionKind.APPROVE, QuestionKind.TOOL), kind is QuestionKind.REVIEW
    return AnswerOut(
        text=given.text,
        approved=given.approved if decides else None,
        verdict=given.verdict if reviews else None,
        steps=list(given.steps),
        comment=given.comment,
        answerer=answerer,
        by=question.answered_by,
        at=at,
    )


def answer_of(wanted: AnswerIn) -> Answer:
    """The core's answer; what a kind needs and was not sent is found by `missing`."""
    text = wanted.text
    if wanted.decisions is not None:
        text = json.dumps({"decisions": [one.model_dump(mode="json") for one in wanted.decisions]})
    return Answer(
        text,
        bool(wanted.approved),
        wanted.verdict or Verdict.APPROVED,
        tuple(step for step in wanted.steps if step.strip()),
        wanted.comment,
    )


def check_decisions(asking: Asking, wanted: AnswerIn) -> None:
    """Raises InvalidInput where decisions are sent to a question that shows no tool calls, or beside a text."""
    if wanted.decisions is None:
        return
    if asking.form is None or not asking.form.reviews:
        raise InvalidInput("decisions", "The question shows no tool calls to decide about", "Answer it by `text`.")
    if wanted.text:
        raise InvalidInput("decisions", "is sent beside a text", "Send one of the two.")


def missing(asking: Asking, wanted: AnswerIn) -> str | None:
    """The field that decides this kind of question and was not sent. None: it is there."""
    match asking.kind:
        case QuestionKind.APPROVE | QuestionKind.TOOL:
            return "approved" if wanted.approved is None else None
        case QuestionKind.REVIEW:
            return "verdict" if wanted.verdict is None else None
        case QuestionKind.ASK | QuestionKind.INTERRUPT:
            return None


EXAMPLE: dict[str, Any] = {
    "number": 7,
    "kind": "review",
    "prompt": "How does undici reuse connections?",
    "detail": "",
    "choices": [],
    "steps": ["Search for connection pooling", "Read what Pool does"],
    "form": None,
    "open": True,
    "asked_at": "2026-11-21T09:00:00Z",
    "due_at": None,
    "answer": None,
}
