"""Input requests: what a run asks of a person, and which responses are valid.

These are pure values and rules, without storage.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, assert_never

from offing.core.errors import InvalidInput, OffingError
from offing.core.response_form import ResponseForm, form_from_json, form_to_json
from offing.core.review_responses import describe_response, parse_response

MAX_TEXT_CHARS = 20_000
"""Maximum number of code points of a prompt, a response or a comment."""

MAX_CHOICES = 20

MAX_PLAN_STEPS = 100
"""Maximum number of steps of a plan, each of at most `MAX_TEXT_CHARS` code points."""


class NoResponderError(OffingError):
    """An input request has no default, and no person can respond because the run is a rollout."""

    code = "no_responder"


class InputKind(StrEnum):
    FREE_TEXT = "free_text"
    """A question in words, with or without choices."""
    APPROVAL = "approval"
    """Approval of something that the run is about to do."""
    PLAN_REVIEW = "plan_review"
    """A plan to approve, edit or comment on."""
    TOOL = "tool"
    """Approval of a tool call, because a rule of the tool policy requires it."""
    INTERRUPT = "interrupt"
    """A value that a graph interrupted itself with. The response is the return value of its `interrupt`."""


class ReviewDecision(StrEnum):
    """Decision of a person about a plan."""

    APPROVED = "approved"
    EDITED = "edited"
    """Approved with the person's changes."""
    COMMENTED = "commented"
    """Not approved. The plan should be made again with the comment in mind."""


class Responder(StrEnum):
    """Who responded to an input request."""

    PERSON = "person"
    DEFAULT = "default"
    """The default was taken.

    The request timed out, the run was requested to finish, or no person was available.
    """


@dataclass(frozen=True, slots=True)
class InputResponse:
    """A response to an input request. The kind of the request determines which fields are used."""

    text: str = ""
    """Response to a question in words or to an interrupt."""
    approved: bool = False
    decision: ReviewDecision = ReviewDecision.APPROVED
    steps: tuple[str, ...] = ()
    """Steps of the plan to follow."""
    comment: str = ""
    """The person's comment on a decision."""


@dataclass(frozen=True, slots=True)
class InputPrompt:
    """Content of an input request, before it is recorded."""

    kind: InputKind
    prompt: str
    detail: str = ""
    """Details, such as arguments of a tool or a draft. Shown as plain text."""
    choices: tuple[str, ...] = ()
    """Allowed responses. Empty means any text."""
    steps: tuple[str, ...] = ()
    """Steps of the plan under review."""
    default: InputResponse | None = None
    """Response if no person responds in time. `None` means that the run waits, and that a rollout fails."""
    timeout_seconds: float | None = None
    """Seconds after which the default is taken. `None` means that the run waits without a limit."""
    response_form: ResponseForm | None = None
    """Required form of the response to an interrupt.

    `None` means any text, which is parsed as JSON if possible.
    """


@dataclass(frozen=True, slots=True)
class InputRequest:
    """A recorded input request. `seq` is the number of the step that made it."""

    seq: int
    input_prompt: InputPrompt
    requested_at: datetime
    default_at: datetime | None = None
    """Time at which the default is taken. `None` means never."""
    responded_at: datetime | None = None
    response: InputResponse | None = None
    responder: Responder | None = None
    responded_by: str = ""
    """Sign-in of the person who responded. Empty means that no person did."""
    interrupt_id: str | None = None
    """Id of the graph's own interrupt. `None` means that the request was made through the run's context."""

    @property
    def is_pending(self) -> bool:
        return self.responded_at is None


def check_prompt(input_prompt: InputPrompt) -> InputPrompt:
    """Return the input prompt if it is valid.

    Raises InvalidInput, which names the parameter of the call in the graph.
    """
    if not input_prompt.prompt.strip():
        raise InvalidInput("question", "is empty", "Write what the person should decide.")
    if len(input_prompt.choices) > MAX_CHOICES:
        raise InvalidInput(
            "choices", f"has more than {MAX_CHOICES} choices", "Use fewer choices, or ask for free text."
        )
    if any(not choice.strip() for choice in input_prompt.choices) or len(set(input_prompt.choices)) < len(
        input_prompt.choices
    ):
        raise InvalidInput("choices", "has an empty choice or the same choice twice", "Give each choice once.")
    if len(input_prompt.steps) > MAX_PLAN_STEPS:
        raise InvalidInput("plan", f"has more than {MAX_PLAN_STEPS} steps", "Use a shorter plan.")
    if input_prompt.timeout_seconds is not None and (input_prompt.default is None or input_prompt.timeout_seconds <= 0):
        raise InvalidInput(
            "timeout_seconds",
            "needs a default and must be greater than 0",
            "Give a default, or leave timeout_seconds out.",
        )
    if input_prompt.default is not None:
        check_response(input_prompt, input_prompt.default)
    return input_prompt


def check_response(input_prompt: InputPrompt, response: InputResponse) -> InputResponse:
    """Return the response in its stored form if it is valid for the input prompt.

    A response to a form becomes the JSON that the interrupted node reads, however it was written.
    Raises InvalidInput.
    """
    if input_prompt.response_form is not None:
        return _check_form_response(input_prompt.response_form, response)
    if max(len(text) for text in (response.text, response.comment, *response.steps, "")) > MAX_TEXT_CHARS:
        raise InvalidInput("answer", f"has a text of more than {MAX_TEXT_CHARS} characters", "Shorten it.")
    match input_prompt.kind:
        case InputKind.FREE_TEXT:
            _check_text(input_prompt, response)
        case InputKind.PLAN_REVIEW:
            _check_plan_review(response)
        case InputKind.APPROVAL | InputKind.TOOL | InputKind.INTERRUPT:
            pass
        case _:
            assert_never(input_prompt.kind)
    return response


def _check_form_response(response_form: ResponseForm, response: InputResponse) -> InputResponse:
    try:
        text = json.dumps(parse_response(response_form, response.text), ensure_ascii=False, allow_nan=False)
        text.encode()
    except RecursionError:
        raise InvalidInput("text", "is nested too deeply", "Send a simpler value.") from None
    except UnicodeEncodeError:
        raise InvalidInput(
            "text", "contains half of a surrogate pair", "Send the complete character, or leave it out."
        ) from None
    except ValueError:
        raise InvalidInput("text", "contains a number that is too large", "Send a smaller number.") from None
    return replace(response, text=text)


def _check_text(input_prompt: InputPrompt, response: InputResponse) -> None:
    if not response.text.strip():
        raise InvalidInput("text", "is empty", "Write a response.")
    if input_prompt.choices and response.text not in input_prompt.choices:
        raise InvalidInput("text", "is not one of the choices", f"Choose one of: {', '.join(input_prompt.choices)}.")


def _check_plan_review(response: InputResponse) -> None:
    if response.decision is ReviewDecision.COMMENTED and not response.comment.strip():
        raise InvalidInput("comment", "is empty", "Write what the plan should take into account.")
    if response.decision is ReviewDecision.EDITED and not any(step.strip() for step in response.steps):
        raise InvalidInput("steps", "has no steps", "Keep at least one step, or comment instead.")
    if len(response.steps) > MAX_PLAN_STEPS:
        raise InvalidInput("steps", f"has more than {MAX_PLAN_STEPS} steps", "Shorten the plan.")


def parse_interrupt_value(response: InputResponse) -> Any:
    """Return the value that `interrupt` returns for a response: JSON if its text is JSON, else the text."""
    try:
        return json.loads(response.text)
    except (ValueError, RecursionError):
        return response.text


def summarize_response(input_prompt: InputPrompt, response: InputResponse) -> str:
    """Summarize a response in one line for the timeline."""
    if input_prompt.response_form is not None:
        return describe_response(input_prompt.response_form, response.text)
    match input_prompt.kind:
        case InputKind.FREE_TEXT | InputKind.INTERRUPT:
            return response.text or "(nothing)"
        case InputKind.APPROVAL | InputKind.TOOL:
            word = "approved" if response.approved else "denied"
            return f"{word}: {response.comment}" if response.comment else word
        case InputKind.PLAN_REVIEW:
            return f"{response.decision}: {response.comment}" if response.comment else str(response.decision)
        case _:
            assert_never(input_prompt.kind)


def prompt_to_json(input_prompt: InputPrompt) -> dict[str, Any]:
    """Return an input prompt as its step stores it."""
    default = None if input_prompt.default is None else response_to_json(input_prompt.kind, input_prompt.default)
    return {
        "kind": input_prompt.kind,
        "prompt": input_prompt.prompt,
        "detail": input_prompt.detail,
        "choices": list(input_prompt.choices),
        "steps": list(input_prompt.steps),
        "default": default,
        "timeout_seconds": input_prompt.timeout_seconds,
    } | ({} if input_prompt.response_form is None else {"response_form": form_to_json(input_prompt.response_form)})


def prompt_from_json(stored: Mapping[str, Any]) -> InputPrompt:
    default, form = stored.get("default"), stored.get("response_form")
    return InputPrompt(
        InputKind(stored["kind"]),
        stored["prompt"],
        stored["detail"],
        tuple(stored["choices"]),
        tuple(stored["steps"]),
        None if default is None else response_from_json(default),
        stored["timeout_seconds"],
        None if form is None else form_from_json(form),
    )


def response_to_json(kind: InputKind, response: InputResponse) -> dict[str, Any]:
    """Return the stored form of a response, with the fields that its kind uses."""
    match kind:
        case InputKind.FREE_TEXT | InputKind.INTERRUPT:
            return {"text": response.text}
        case InputKind.APPROVAL | InputKind.TOOL:
            return {"approved": response.approved, "comment": response.comment}
        case InputKind.PLAN_REVIEW:
            return {"decision": response.decision, "steps": list(response.steps), "comment": response.comment}
        case _:
            assert_never(kind)


def response_from_json(stored: Mapping[str, Any]) -> InputResponse:
    return InputResponse(
        stored.get("text", ""),
        stored.get("approved", False),
        ReviewDecision(stored.get("decision", ReviewDecision.APPROVED)),
        tuple(stored.get("steps", ())),
        stored.get("comment", ""),
    )
