"""The role of the graph with its input, prompts, headline and functions without a model."""

import json

from offing.sdk import REPORT_ANSWER_TOKENS, Headline, Role, StepKind, shorten_line
from offing_graphs.memact import extractive, prompts
from offing_graphs.memact.schemas import Act, AgentInput
from offing_graphs.shared.choices import choose_tool
from offing_graphs.shared.report_repairs import repair_draft


def _render_headline(output: Act) -> Headline:
    if output.answer:
        return Headline(shorten_line(f"Answer: {output.answer.answer or output.answer.title}"))
    if output.summary:
        return Headline(shorten_line(f"Summary: {output.summary}"))
    return Headline(shorten_line(f"{output.tool}({json.dumps(output.args, ensure_ascii=False, sort_keys=True)})"))


def _repair_answer(output: Act, inputs: AgentInput) -> tuple[Act, tuple[str, ...]]:
    if output.answer is None:
        return output, ()
    answer, repairs = repair_draft(output.answer, inputs.evidence)
    return (output.model_copy(update={"answer": answer, "written": ""}), repairs) if repairs else (output, ())


AGENT = Role(
    "agent",
    AgentInput,
    Act,
    prompts.render_prompt,
    _render_headline,
    step_kind=StepKind.ROLE_CALL,
    label="act",
    extractive=extractive.choose_action,
    prompt_formats=(prompts.TEXT_FORMAT,),
    answer_tokens=REPORT_ANSWER_TOKENS,
    default_format="text",
    choices=lambda inputs: (choose_tool("tool", inputs.tools),),
    repair_output=_repair_answer,
)
ROLES = (AGENT,)
