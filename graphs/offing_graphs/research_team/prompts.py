"""The prompt of the lead and its `text` format. AgentFlow defines the prompts of its roles."""

from offing.sdk import Message
from offing_graphs.agentflow.prompts import (
    ANALYSIS_FORMAT_RULE,
    ANALYSIS_TAGS,
    parse_text_analysis,
    render_text_analysis,
)
from offing_graphs.agentflow.schemas import AnalystInput
from offing_graphs.shared.prompt_parts import build_prompt, render_task, render_tool_cards
from offing_graphs.shared.report_style import render_template_hint
from offing_graphs.shared.tagged_text import build_text_format
from offing_graphs.shared.text_repairs import build_tag_repair

LEAD_SYSTEM_PROMPT = (
    "You lead a research team. Split the question into parts that colleagues can research at the same time, without "
    "knowing each other's answers: each understandable alone, none that another holds. A question that has no such "
    "parts stays whole, as its own only part. Do not answer it."
)


def render_prompt(inputs: AnalystInput) -> tuple[Message, ...]:
    template = render_template_hint(inputs.report_style)
    tools = render_tool_cards(inputs.tools, inputs.context_tokens)
    return build_prompt(LEAD_SYSTEM_PROMPT, (*render_task(inputs), *template, *tools))


TEXT_FORMAT = build_text_format(
    render_prompt,
    ANALYSIS_FORMAT_RULE,
    parse_text_analysis,
    render_text_analysis,
    repair=build_tag_repair(ANALYSIS_TAGS),
)
