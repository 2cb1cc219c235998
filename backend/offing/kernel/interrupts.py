"""A graph's own `interrupt(value)` as an input request, and the response as what that call returns."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import orjson
from langgraph.types import Interrupt

from offing.core.question import MOST_TEXT, Asking, QuestionKind, value_of
from offing.core.response_form import ResponseForm
from offing.kernel.human_input import request_step, response_step
from offing.kernel.interrupt_forms import form_of
from offing.kernel.journal import Journal
from offing.kernel.store import Entry, InputRequestRecord, InputRequestStore, ResponseRecord

CUT = "\n… (the value goes on)"


async def resume_values(store: InputRequestStore, journal: Journal, pending: Sequence[Interrupt]) -> dict[str, Any]:
    """Return the value for each interrupt that has a response, by its id. Responses that are new go on record."""
    if not pending:
        return {}
    known = await store.interrupt_requests([interrupt.id for interrupt in pending])
    answered = [one for one in known.values() if one.request.answer is not None]
    for one in answered:
        if not one.consumed:
            await journal.append(Entry(response_step(one.request), ResponseRecord(one.request.number)))
    found = [one.request for one in answered]
    return {q.interrupt: value_of(q.answer) for q in found if q.interrupt is not None and q.answer is not None}


async def new_requests(store: InputRequestStore, raised: Sequence[Interrupt]) -> list[Entry]:
    """Return the input requests of interrupts for which none is stored. One that is raised again is not asked twice."""
    known = await store.interrupt_requests([interrupt.id for interrupt in raised])
    new = {interrupt.id: interrupt for interrupt in raised if interrupt.id not in known}
    return [_entry(interrupt) for interrupt in new.values()]


def _entry(interrupt: Interrupt) -> Entry:
    asking = asking_of(interrupt)
    return Entry(request_step(asking), InputRequestRecord(asking, interrupt.id))


def asking_of(interrupt: Interrupt) -> Asking:
    """Return the input request that an interrupt becomes, with the form of its response where it has one."""
    asking = _asking_of_value(interrupt.value)
    form = form_of(interrupt.value, interrupt.response_schema)
    if form is None:
        return asking
    return replace(asking, prompt=_prompt(form) or asking.prompt, form=form)


def _prompt(form: ResponseForm) -> str:
    match form.reviews:
        case ():
            return ""
        case (review,):
            return f"May the run use {review.name}?"
        case reviews:
            return f"May the run make these {len(reviews)} tool calls?"


def _asking_of_value(value: Any) -> Asking:
    """A value that a graph interrupted itself with, for people: text as it is, anything else as JSON."""
    text = value if isinstance(value, str) else orjson.dumps(value, default=str, option=orjson.OPT_INDENT_2).decode()
    shown = text if len(text) <= MOST_TEXT else text[:MOST_TEXT] + CUT
    if isinstance(value, str):
        return Asking(QuestionKind.INTERRUPT, shown or "The run asks to go on.")
    return Asking(QuestionKind.INTERRUPT, _question_in(value) or "The run asks to go on.", shown)


def _question_in(value: Any) -> str:
    """The words of a mapping that carries its question under one of the usual names. Empty: it has none."""
    if not isinstance(value, Mapping):
        return ""
    found: list[Any] = [value.get(name) for name in ("question", "prompt", "message", "query", "instruction")]  # pyright: ignore[reportUnknownMemberType]
    return next((word for word in found if isinstance(word, str) and word.strip()), "")
