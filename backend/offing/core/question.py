"""What a run asks of a person, and which answers fit.

Pure: values and rules. Knows no storage, and not how a run waits.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, assert_never

from offing.core.decisions import describe_response, response_value
from offing.core.errors import InvalidInput, OffingError
from offing.core.response_form import ResponseForm, form_from_json, form_json

MOST_TEXT = 20_000
"""Code points of a question, an answer or a comment."""

MOST_CHOICES = 20

MOST_STEPS = 100
"""Steps of a plan, each of at most `MOST_TEXT` code points."""


class Unanswered(OffingError):
    """A question has no default, and nobody can be asked: the run is a rollout."""

    code = "unanswered"


class QuestionKind(StrEnum):
    ASK = "ask"
    """A question in words, with or without choices."""
    APPROVE = "approve"
    """Yes or no to something that the run is about to do."""
    REVIEW = "review"
    """A plan to approve, to edit or to comment on."""
    TOOL = "tool"
    """Yes or no to a tool call, because a rule of the tool policy says that a person decides."""
    INTERRUPT = "interrupt"
    """A value that a graph interrupted itself with; the answer is what its `interrupt` returns."""


class Verdict(StrEnum):
    """What a person says of a plan."""

    APPROVED = "approved"
    EDITED = "edited"
    """Approved as the person has rewritten it."""
    COMMENTED = "commented"
    """Not yet: the plan should be made again with the comment in mind."""


class Answerer(StrEnum):
    """Who answered."""

    PERSON = "person"
    DEFAULT = "default"
    """The question's own default: its time was over, the run was told to write, or there was nobody to ask."""


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer in one of its forms; which fields count is the question's kind."""

    text: str = ""
    """To a question or an interrupt."""
    approved: bool = False
    verdict: Verdict = Verdict.APPROVED
    steps: tuple[str, ...] = ()
    """Of the plan as it is to be followed."""
    comment: str = ""
    """A person's words beside a decision."""


@dataclass(frozen=True, slots=True)
class Asking:
    """A question before it has its place in the run."""

    kind: QuestionKind
    prompt: str
    detail: str = ""
    """What it is about at more length: arguments of a tool, a draft. Text, shown as it is."""
    choices: tuple[str, ...] = ()
    """Answers to choose from. Empty: any text."""
    steps: tuple[str, ...] = ()
    """Of the plan under review."""
    default: Answer | None = None
    """Taken where nobody answers. None: the run waits, and a rollout fails."""
    within: float | None = None
    """Seconds after which the default is taken. None: it waits for as long as it takes."""
    form: ResponseForm | None = None
    """What the answer to an interrupt must look like. None: any text, read as JSON if it is JSON."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question in its place. `number` is the seq of the step that asks it."""

    number: int
    asking: Asking
    asked_at: datetime
    due_at: datetime | None = None
    """When the default is taken. None: never."""
    answered_at: datetime | None = None
    answer: Answer | None = None
    answerer: Answerer | None = None
    answered_by: str = ""
    """Which person: how they signed in. Empty: none did."""
    interrupt: str | None = None
    """Id of the graph's own interrupt. None: asked through the run's context."""

    @property
    def open(self) -> bool:
        return self.answered_at is None


def check_asking(asking: Asking) -> Asking:
    """The question, if a person can be asked it. Raises InvalidInput, which names a field of the call in the graph."""
    if not asking.prompt.strip():
        raise InvalidInput("question", "is empty", "Say what the person should decide.")
    if len(asking.choices) > MOST_CHOICES:
        raise InvalidInput("choices", f"has more than {MOST_CHOICES}", "Offer fewer, or ask for text.")
    if any(not choice.strip() for choice in asking.choices) or len(set(asking.choices)) < len(asking.choices):
        raise InvalidInput("choices", "has an empty one or the same one twice", "Name each choice once.")
    if len(asking.steps) > MOST_STEPS:
        raise InvalidInput("plan", f"has more than {MOST_STEPS} steps", "Show a shorter plan.")
    if asking.within is not None and (asking.default is None or asking.within <= 0):
        raise InvalidInput("within", "needs a default and more than 0 seconds", "Give a default, or leave it out.")
    if asking.default is not None:
        check_answer(asking, asking.default)
    return asking


def check_answer(asking: Asking, answer: Answer) -> Answer:
    """Return the answer as it is stored, if it fits the question. Raises InvalidInput.

    An answer to a form becomes the JSON that the interrupted node reads, however it was written.
    """
    if asking.form is not None:
        return _check_response(asking.form, answer)
    if max(len(text) for text in (answer.text, answer.comment, *answer.steps, "")) > MOST_TEXT:
        raise InvalidInput("answer", f"has a text of more than {MOST_TEXT} characters", "Shorten it.")
    match asking.kind:
        case QuestionKind.ASK:
            _check_text(asking, answer)
        case QuestionKind.REVIEW:
            _check_review(answer)
        case QuestionKind.APPROVE | QuestionKind.TOOL | QuestionKind.INTERRUPT:
            pass
        case _:
            assert_never(asking.kind)
    return answer


def _check_response(form: ResponseForm, answer: Answer) -> Answer:
    try:
        text = json.dumps(response_value(form, answer.text), ensure_ascii=False, allow_nan=False)
        text.encode()
    except RecursionError:
        raise InvalidInput("text", "is nested too deeply", "Send a simpler value.") from None
    except UnicodeEncodeError:
        raise InvalidInput("text", "has half of a character", "Write the whole character, or leave it out.") from None
    except ValueError:
        raise InvalidInput("text", "has a number that is too large", "Send a smaller number.") from None
    return replace(answer, text=text)


def _check_text(asking: Asking, answer: Answer) -> None:
    if not answer.text.strip():
        raise InvalidInput("text", "is empty", "Answer the question in words.")
    if asking.choices and answer.text not in asking.choices:
        raise InvalidInput("text", "is none of the choices", f"Choose one of: {', '.join(asking.choices)}.")


def _check_review(answer: Answer) -> None:
    if answer.verdict is Verdict.COMMENTED and not answer.comment.strip():
        raise InvalidInput("comment", "is empty", "Say what the plan should take into account.")
    if answer.verdict is Verdict.EDITED and not any(step.strip() for step in answer.steps):
        raise InvalidInput("steps", "has no step", "Leave at least one step, or comment instead.")
    if len(answer.steps) > MOST_STEPS:
        raise InvalidInput("steps", f"has more than {MOST_STEPS}", "Shorten the plan.")


def value_of(answer: Answer) -> Any:
    """What an `interrupt` returns for an answer: JSON where its text is JSON, else the text itself."""
    try:
        return json.loads(answer.text)
    except (ValueError, RecursionError):
        return answer.text


def said(asking: Asking, answer: Answer) -> str:
    """An answer in a line, for a timeline."""
    if asking.form is not None:
        return describe_response(asking.form, answer.text)
    match asking.kind:
        case QuestionKind.ASK | QuestionKind.INTERRUPT:
            return answer.text or "(nothing)"
        case QuestionKind.APPROVE | QuestionKind.TOOL:
            word = "approved" if answer.approved else "denied"
            return f"{word}: {answer.comment}" if answer.comment else word
        case QuestionKind.REVIEW:
            return f"{answer.verdict}: {answer.comment}" if answer.comment else str(answer.verdict)
        case _:
            assert_never(asking.kind)


def asking_json(asking: Asking) -> dict[str, Any]:
    """A question as its step stores it."""
    default = None if asking.default is None else answer_json(asking.kind, asking.default)
    return {
        "kind": asking.kind,
        "prompt": asking.prompt,
        "detail": asking.detail,
        "choices": list(asking.choices),
        "steps": list(asking.steps),
        "default": default,
        "within": asking.within,
    } | ({} if asking.form is None else {"form": form_json(asking.form)})


def asking_of(stored: Mapping[str, Any]) -> Asking:
    default, form = stored.get("default"), stored.get("form")
    return Asking(
        QuestionKind(stored["kind"]),
        stored["prompt"],
        stored["detail"],
        tuple(stored["choices"]),
        tuple(stored["steps"]),
        None if default is None else answer_of(default),
        stored["within"],
        None if form is None else form_from_json(form),
    )


def answer_json(kind: QuestionKind, answer: Answer) -> dict[str, Any]:
    """An answer as it is stored: the fields that count for its kind."""
    match kind:
        case QuestionKind.ASK | QuestionKind.INTERRUPT:
            return {"text": answer.text}
        case QuestionKind.APPROVE | QuestionKind.TOOL:
            return {"approved": answer.approved, "comment": answer.comment}
        case QuestionKind.REVIEW:
            return {"verdict": answer.verdict, "steps": list(answer.steps), "comment": answer.comment}
        case _:
            assert_never(kind)


def answer_of(stored: Mapping[str, Any]) -> Answer:
    return Answer(
        stored.get("text", ""),
        stored.get("approved", False),
        Verdict(stored.get("verdict", Verdict.APPROVED)),
        tuple(stored.get("steps", ())),
        stored.get("comment", ""),
    )
