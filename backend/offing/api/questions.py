"""What runs ask of people, on the wire."""

from datetime import datetime
from typing import Any

from pydantic import Field

from offing.api.schemas import Wire
from offing.core.question import MOST_STEPS, MOST_TEXT, Answer, Answerer, Asking, QuestionKind, Verdict
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


class QuestionOut(Wire):
    """What a run asks. `number` is the seq of the step that asks it."""

    number: int
    kind: QuestionKind
    prompt: str
    detail: str = Field(description="What it is about at more length; text, shown as it is.")
    choices: list[str] = Field(description="The only answers. Empty: any text.")
    steps: list[str] = Field(description="Of the plan under review.")
    open: bool = Field(description="It waits for an answer.")
    asked_at: datetime
    due_at: datetime | None = Field(description="When its default is taken. null: never.")
    answer: AnswerOut | None = Field(description="null: there is none.")


class QuestionList(Wire):
    items: list[QuestionOut]


class AnswerIn(Wire):
    """An answer; which fields count depends on the question's kind."""

    text: str = Field(default="", max_length=MOST_TEXT, description="To a question or an interrupt.")
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
        open=asked.open,
        asked_at=question.asked_at,
        due_at=question.due_at,
        answer=_answer_out(asked),
    )


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
    return Answer(
        wanted.text,
        bool(wanted.approved),
        wanted.verdict or Verdict.APPROVED,
        tuple(step for step in wanted.steps if step.strip()),
        wanted.comment,
    )


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
    "open": True,
    "asked_at": "2026-11-21T09:00:00Z",
    "due_at": None,
    "answer": None,
}
