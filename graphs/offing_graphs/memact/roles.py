"""The role of the graph with its input, prompts, headline and functions without a model."""

from offing.sdk import REPORT_ANSWER_TOKENS, Headline, Role, StepKind, shorten_line
from offing_graphs.memact import extractive, prompts
from offing_graphs.memact.schemas import Act, AgentInput
from offing_graphs.shared.call_batches import MAX_CALLS, QUERY_LIST, split_calls
from offing_graphs.shared.choices import choose_tool
from offing_graphs.shared.prompt_parts import render_json
from offing_graphs.shared.report_repairs import repair_draft


def _render_headline(output: Act) -> Headline:
    if output.answer:
        return Headline(shorten_line(f"Answer: {output.answer.answer or output.answer.title}"))
    if output.summary:
        return Headline(shorten_line(f"Summary: {output.summary}"))
    return Headline(shorten_line(" · ".join(f"{call.tool}({render_json(call.args)})" for call in output.calls)))


def _repair_output(output: Act, inputs: AgentInput) -> tuple[Act, tuple[str, ...]]:
    if output.answer is None:
        return _split_query_list(output, inputs)
    answer, repairs = repair_draft(output.answer, inputs.evidence)
    return (output.model_copy(update={"answer": answer, "written": ""}), repairs) if repairs else (output, ())


def _split_query_list(output: Act, inputs: AgentInput) -> tuple[Act, tuple[str, ...]]:
    """Make a call with a list of queries several calls. Too many of them stay one call, which is rejected."""
    calls = split_calls(output.calls, inputs.tools)
    if calls == output.calls or len(calls) > MAX_CALLS:
        return output, ()
    first, *more = calls
    return output.model_copy(update={"tool": first.tool, "args": first.args, "more_calls": tuple(more)}), (QUERY_LIST,)


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
    choices=lambda inputs: (choose_tool("tool", inputs.tools), choose_tool("more_calls.*.tool", inputs.tools)),
    repair_output=_repair_output,
)
ROLES = (AGENT,)
