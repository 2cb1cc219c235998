"""Convert a graph's own `interrupt(value)` to an input request, and its response to a return value."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import orjson
from langgraph.types import Interrupt

from offing.core.input_request import MAX_TEXT_CHARS, InputKind, InputPrompt, parse_interrupt_value
from offing.core.response_form import ResponseForm
from offing.kernel.human_input import draft_input_request, draft_input_response
from offing.kernel.interrupt_forms import find_response_form
from offing.kernel.journal import Journal
from offing.kernel.run_store import InputRequestAttachment, InputRequestStore, InputResponseAttachment, JournalEntry

TRUNCATION_NOTICE = "\n… (the value continues)"


async def consume_responses(store: InputRequestStore, journal: Journal, pending: Sequence[Interrupt]) -> dict[str, Any]:
    """Return the resume value of each interrupt that has a response, by interrupt id.

    New responses are recorded as steps.
    """
    if not pending:
        return {}
    requests = await store.list_interrupt_requests([interrupt.id for interrupt in pending])
    answered = [one for one in requests.values() if one.request.response is not None]
    for one in answered:
        if not one.is_consumed:
            await journal.append(
                JournalEntry(draft_input_response(one.request), InputResponseAttachment(one.request.seq))
            )
    responded = [one.request for one in answered]
    return {
        q.interrupt_id: parse_interrupt_value(q.response)
        for q in responded
        if q.interrupt_id is not None and q.response is not None
    }


async def build_new_requests(store: InputRequestStore, interrupts: Sequence[Interrupt]) -> list[JournalEntry]:
    """Return input requests for the interrupts that have none yet.

    An interrupt that is raised again is not asked twice.
    """
    existing = await store.list_interrupt_requests([interrupt.id for interrupt in interrupts])
    new = {interrupt.id: interrupt for interrupt in interrupts if interrupt.id not in existing}
    return [_build_request_entry(interrupt) for interrupt in new.values()]


def _build_request_entry(interrupt: Interrupt) -> JournalEntry:
    asking = prompt_from_interrupt(interrupt)
    return JournalEntry(draft_input_request(asking), InputRequestAttachment(asking, interrupt.id))


def prompt_from_interrupt(interrupt: Interrupt) -> InputPrompt:
    """Return the prompt of an interrupt, with a response form if there is one."""
    asking = _prompt_from_value(interrupt.value)
    form = find_response_form(interrupt.value, interrupt.response_schema)
    if form is None:
        return asking
    return replace(asking, prompt=_render_approval_question(form) or asking.prompt, response_form=form)


def _render_approval_question(form: ResponseForm) -> str:
    match form.reviews:
        case ():
            return ""
        case (review,):
            return f"May the run use {review.name}?"
        case reviews:
            return f"May the run make these {len(reviews)} tool calls?"


def _prompt_from_value(value: Any) -> InputPrompt:
    """Return the prompt for the value of an interrupt: text unchanged, any other value as JSON."""
    text = value if isinstance(value, str) else orjson.dumps(value, default=str, option=orjson.OPT_INDENT_2).decode()
    preview = text if len(text) <= MAX_TEXT_CHARS else text[:MAX_TEXT_CHARS] + TRUNCATION_NOTICE
    if isinstance(value, str):
        return InputPrompt(InputKind.INTERRUPT, preview or "The run asks whether to continue.")
    return InputPrompt(InputKind.INTERRUPT, _find_prompt_text(value) or "The run asks whether to continue.", preview)


def _find_prompt_text(value: Any) -> str:
    """Return the question in a mapping, under one of the usual keys. Empty means that there is none."""
    if not isinstance(value, Mapping):
        return ""
    candidates: list[Any] = [value.get(name) for name in ("question", "prompt", "message", "query", "instruction")]  # pyright: ignore[reportUnknownMemberType]
    return next((word for word in candidates if isinstance(word, str) and word.strip()), "")
