"""Parts of prompts that all graphs share: the task, its tools and passages.

A part that is unchanged since the previous turn is the same string, so that it is stored
once. Text from documents and tools stands in untrusted blocks, see
`offing.core.untrusted_block`.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace

from offing.sdk import UNTRUSTED_BLOCK_RULE, Message, shorten_line, wrap_untrusted
from offing_graphs.extractive.quotes import select_relevant
from offing_graphs.shared.schemas import Analysis, RetrievedPassage, TaskContext, ToolCard

MAX_USER_MESSAGES = 10
"""Maximum number of user messages that are shown. The latest are kept."""


def build_prompt(system: str, parts: Iterable[str]) -> tuple[Message, ...]:
    return Message("system", (system, UNTRUSTED_BLOCK_RULE)), Message("user", tuple(p for p in parts if p))


def add_format_rules(messages: tuple[Message, ...], format_rules: str) -> tuple[Message, ...]:
    """Add the rules of a prompt format other than JSON to the prompt."""
    last = messages[-1]
    instruction = f"Answer in exactly this form, with nothing before or after it:\n{format_rules}"
    return *messages[:-1], replace(last, parts=(*last.parts, instruction))


def render_task(inputs: TaskContext) -> tuple[str, ...]:
    earlier = tuple(f"Asked earlier: {e.question}\nAnswered: {wrap_untrusted(e.answer)}" for e in inputs.earlier)
    user_messages = tuple(
        f"A person wrote during the run: {message}" for message in inputs.user_messages[-MAX_USER_MESSAGES:]
    )
    return (*earlier, f"The question:\n{inputs.question}", *user_messages)


def render_analysis(analysis: Analysis) -> str:
    return "The analysis:\n" + render_json(analysis.model_dump(mode="json"))


def render_tool_cards(tools: Iterable[ToolCard]) -> tuple[str, ...]:
    return tuple(map(_render_tool_card, tools))


def _render_tool_card(card: ToolCard) -> str:
    """Render a tool card.

    Third-party text about a tool is untrusted, like the results of the tool.
    """
    about = f"{card.description}\nArguments: {render_json(card.parameters)}"
    return f"Tool {card.name}:\n{wrap_untrusted(about)}" if card.third_party else f"Tool {card.name}: {about}"


def render_passages(
    question: str, analysis: Analysis, evidence: Sequence[RetrievedPassage], max_chars: int
) -> tuple[str, ...]:
    chosen = select_relevant((question, *analysis.sub_questions), evidence, max_chars)
    return tuple(map(render_passage, chosen))


def render_passage(passage: RetrievedPassage) -> str:
    head = f"Passage {passage.id} (source {passage.source}, text {passage.text_id}, {passage.start} to {passage.end})"
    location = f"{passage.title} \u203a {passage.heading}" if passage.heading else passage.title
    return head + "\n" + wrap_untrusted(shorten_line(location) + "\n" + passage.text)


def render_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)
