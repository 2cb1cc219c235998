"""Parts of prompts that all graphs share: the task, its tools and passages.

A part that is unchanged since the previous turn is the same string, so that it is stored
once. Text from documents and tools stands in untrusted blocks, see
`offing.core.untrusted_block`.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from offing.sdk import UNTRUSTED_BLOCK_RULE, Message, shorten_line, wrap_untrusted
from offing_graphs.extractive.quotes import select_relevant
from offing_graphs.shared.prompt_room import TASK_FRACTION, TOOLS_FRACTION, Allowance, compute_share
from offing_graphs.shared.schemas import Analysis, RetrievedPassage, TaskContext, ToolCard, build_part_id
from offing_graphs.shared.token_estimate import estimate_tokens

MAX_USER_MESSAGES = 10
"""Maximum number of user messages that are shown. The latest are kept."""
MAX_SHORT_DESCRIPTION_CHARS = 160
"""Maximum number of characters of a tool's description where the window is small."""
MAX_OMITTED_IDS = 24
"""Maximum number of passages that are named among those that are not shown."""
SHORT_TOOLS_NOTICE = "The descriptions of the tools are shortened, for lack of room."
OUTLINE_RULE = (
    "A person has set the parts of the question during the run. Work on them in this order, and on no others. Do not "
    "stop while a part that must be answered is open:"
)
MUST_ANSWER = " (must be answered)"
NAMED_SCHEMAS = frozenset({"properties", "$defs"})
"""Keywords of a JSON schema whose keys are names, not keywords."""


def build_prompt(system: str, parts: Iterable[str], omitted_passages: int = 0) -> tuple[Message, ...]:
    """Return the prompt of a role. `omitted_passages` is the number of passages that it says it does not show."""
    filled = tuple(part for part in parts if part)
    return Message("system", (system, UNTRUSTED_BLOCK_RULE)), Message("user", filled, omitted_passages=omitted_passages)


def add_format_rules(messages: tuple[Message, ...], format_rules: str) -> tuple[Message, ...]:
    """Add the rules of a prompt format other than JSON to the prompt."""
    last = messages[-1]
    instruction = f"Answer in exactly this form, with nothing before or after it:\n{format_rules}"
    return *messages[:-1], replace(last, parts=(*last.parts, instruction))


def render_task(inputs: TaskContext) -> tuple[str, ...]:
    """Render the question, with what fits of earlier questions and user messages. The latest are kept."""
    exchanges = [f"Asked earlier: {e.question}\nAnswered: {wrap_untrusted(e.answer)}" for e in inputs.earlier]
    messages = [f"A person wrote during the run: {message}" for message in inputs.user_messages]
    max_tokens = compute_share(inputs.context_tokens, TASK_FRACTION)
    return (
        *_take_latest(exchanges, len(exchanges), max_tokens, "earlier questions of this thread"),
        f"The question:\n{inputs.question}",
        *((inputs.clarification,) if inputs.clarification else ()),
        *_take_latest(messages, MAX_USER_MESSAGES, max_tokens, "earlier messages"),
        *_render_outline(inputs),
    )


def _render_outline(inputs: TaskContext) -> tuple[str, ...]:
    """Render the parts of the question that a person has set. Nothing is rendered if nobody has."""
    if not inputs.plan:
        return ()
    lines = [
        f"{number}. {part.text}{MUST_ANSWER if part.must_answer else ''}" for number, part in enumerate(inputs.plan, 1)
    ]
    return ("\n".join((OUTLINE_RULE, *lines)),)


def _take_latest(texts: Sequence[str], max_count: int, max_tokens: int | None, name: str) -> tuple[str, ...]:
    """Return the latest texts that fit, always the last one, after the number of those that do not."""
    latest = texts[len(texts) - min(max_count, len(texts)) :]
    while max_tokens is not None and len(latest) > 1 and estimate_tokens(*latest) > max_tokens:
        latest = latest[1:]
    omitted = len(texts) - len(latest)
    return (*((f"{omitted} {name} are not shown, for lack of room.",) if omitted else ()), *latest)


def render_analysis(analysis: Analysis, *, shows_ids: bool = False) -> str:
    """Render an analysis. `shows_ids` names each sub-question by its id, for roles that refer to it."""
    fields = analysis.model_dump(mode="json")
    if shows_ids:
        fields["sub_questions"] = {build_part_id(n): part for n, part in enumerate(analysis.sub_questions, 1)}
    return "The analysis:\n" + render_json(fields)


def render_tool_cards(tools: Iterable[ToolCard], context_tokens: int | None = None) -> tuple[str, ...]:
    """Render the tools, in a short form if the window of the model is too small for the full one."""
    cards = tuple(tools)
    rendered = tuple(map(_render_tool_card, cards))
    max_tokens = compute_share(context_tokens, TOOLS_FRACTION)
    if max_tokens is None or estimate_tokens(*rendered) <= max_tokens:
        return rendered
    return (*(_render_tool_card(_shorten_card(card)) for card in cards), SHORT_TOOLS_NOTICE)


def _render_tool_card(card: ToolCard) -> str:
    """Render a tool card.

    Third-party text about a tool is untrusted, like the results of the tool.
    """
    about = f"{card.description}\nArguments: {render_json(card.parameters)}"
    return f"Tool {card.name}:\n{wrap_untrusted(about)}" if card.third_party else f"Tool {card.name}: {about}"


def _shorten_card(card: ToolCard) -> ToolCard:
    return card.model_copy(
        update={
            "description": shorten_line(card.description, MAX_SHORT_DESCRIPTION_CHARS),
            "parameters": _drop_annotations(card.parameters),
        }
    )


def _drop_annotations(schema: Any) -> Any:
    """Return a JSON schema without titles and descriptions. Properties of these names are kept."""
    if isinstance(schema, list):
        return [_drop_annotations(one) for one in cast("list[Any]", schema)]
    if not isinstance(schema, dict):
        return schema
    plain: dict[str, Any] = {}
    for key, value in cast("dict[str, Any]", schema).items():
        if key in NAMED_SCHEMAS and isinstance(value, dict):
            plain[key] = {name: _drop_annotations(one) for name, one in cast("dict[str, Any]", value).items()}
        elif key not in {"title", "description"}:
            plain[key] = _drop_annotations(value)
    return plain


@dataclass(frozen=True, slots=True)
class ShownPassages:
    """The passages of a prompt."""

    parts: tuple[str, ...]
    """The shown passages, followed by a sentence about those that are not shown."""
    omitted: int = 0
    """Number of retrieved passages that are not shown."""


def render_passages(
    questions: Sequence[str],
    passages: Sequence[RetrievedPassage],
    allowance: Allowance,
    left_out: int = 0,
    first_ids: Iterable[str] = (),
) -> ShownPassages:
    """Render the passages that best fit the questions, and say how many others were retrieved.

    `left_out` is the number of retrieved passages that are not in `passages`. Those in `first_ids` have precedence.
    """
    rendered = {p.id: render_passage(p) for p in passages}
    # an unknown window limits the text of passages alone
    sizes = {p.id: allowance.measure(rendered[p.id] if allowance.in_tokens else p.text) for p in passages}
    chosen = select_relevant(questions, passages, allowance.max_size, sizes, frozenset(first_ids))
    chosen_ids = {p.id for p in chosen}
    omitted = [p.id for p in passages if p.id not in chosen_ids]
    return ShownPassages(
        (*(rendered[p.id] for p in chosen), *_render_omitted(omitted, len(passages), left_out)),
        len(omitted) + left_out,
    )


def _render_omitted(omitted_ids: Sequence[str], count: int, left_out: int) -> tuple[str, ...]:
    """Say how many passages are not shown, and which, as far as the list stays short."""
    if not omitted_ids and not left_out:
        return ()
    omitted, total = len(omitted_ids) + left_out, count + left_out
    listed = omitted_ids[:MAX_OMITTED_IDS]
    more = omitted - len(listed)
    ids = ", ".join(listed) + (f" and {more} more" if more and listed else "")
    return (f"{omitted} of {total} retrieved passages are not shown here{f': {ids}' if ids else ''}.",)


def render_passage(passage: RetrievedPassage) -> str:
    """Render a passage under the ids by which an answer cites it and a tool reads on in its source."""
    head = name_passage(passage.id, passage.source_reference, passage.start, passage.end, passage.published)
    location = f"{passage.title} \u203a {passage.heading}" if passage.heading else passage.title
    return head + "\n" + wrap_untrusted(shorten_line(location) + "\n" + passage.text)


def name_passage(id: str, source: str, start: int, end: int, published: str) -> str:
    """Return the line above a passage: its ids, its place, and the date of its document unless that is empty."""
    date = f", dated {published}" if published else ""
    return f"Passage {id} (source {source}, {start} to {end}{date})"


def render_open_parts(parts: Sequence[str]) -> tuple[str, ...]:
    """Render the parts of a question that are not answered, for the writer of its report."""
    return ("These parts are not answered, or not completely:\n" + "\n".join(f"- {p}" for p in parts),) if parts else ()


def render_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)
