"""Parts of prompts that all flows share: the task, its tools, passages, and the rule that keeps outside text data.

A part that says the same as in the turn before is the same string, so that it is stored once. Text from documents and
tools stands in blocks of data, see `offing.core.blocks`.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace

from offing.sdk import DATA_RULE, Message, shortened
from offing.sdk import data_block as data
from offing_graphs.extractive.quotes import most_relevant
from offing_graphs.parts.shapes import Analysis, Card, Case, Piece

WISHES = 10
"""Latest messages from people that are shown."""


def prompt_of(system: str, parts: Iterable[str]) -> tuple[Message, ...]:
    return Message("system", (system, DATA_RULE)), Message("user", tuple(p for p in parts if p))


def in_form(messages: tuple[Message, ...], rules: str) -> tuple[Message, ...]:
    """The prompt with the rules of a form that is not JSON."""
    last = messages[-1]
    asked = f"Answer in exactly this form, with nothing before or after it:\n{rules}"
    return *messages[:-1], replace(last, parts=(*last.parts, asked))


def task(given: Case) -> tuple[str, ...]:
    earlier = tuple(f"Asked earlier: {e.question}\nAnswered: {data(e.answer)}" for e in given.earlier)
    wishes = tuple(f"A person wrote during the run: {wish}" for wish in given.wishes[-WISHES:])
    return (*earlier, f"The question:\n{given.question}", *wishes)


def analysed(analysis: Analysis) -> str:
    return "The analysis:\n" + compact_json(analysis.model_dump(mode="json"))


def tool_cards(tools: Iterable[Card]) -> tuple[str, ...]:
    return tuple(map(_tool_card, tools))


def _tool_card(card: Card) -> str:
    """What a stranger wrote about his tool says what the tool is, and is as little to be obeyed as what it returns."""
    about = f"{card.description}\nArguments: {compact_json(card.parameters)}"
    return f"Tool {card.name}:\n{data(about)}" if card.foreign else f"Tool {card.name}: {about}"


def passages(question: str, analysis: Analysis, evidence: Sequence[Piece], limit: int) -> tuple[str, ...]:
    chosen = most_relevant((question, *analysis.sub_questions), evidence, limit)
    return tuple(map(passage, chosen))


def passage(piece: Piece) -> str:
    head = f"Passage {piece.id} (source {piece.source}, text {piece.artefact}, {piece.start} to {piece.end})"
    place = f"{piece.title} \u203a {piece.heading}" if piece.heading else piece.title
    return head + "\n" + data(shortened(place) + "\n" + piece.text)


def compact_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)
