"""The role of the graph in its three phases, with its inputs, prompts and model-free functions."""

from offing.sdk import REPORT_ANSWER_TOKENS, Headline, Role, StepKind, shorten_line
from offing_graphs.iterresearch import extractive, prompts
from offing_graphs.iterresearch.schemas import OUTPUTS_BY_PHASE, Round, TurnPhase, Workspace
from offing_graphs.iterresearch.state import ROLE_NAME
from offing_graphs.shared.call_batches import MAX_CALLS, QUERY_LIST, split_calls
from offing_graphs.shared.choices import choose_tool
from offing_graphs.shared.prompt_parts import render_json
from offing_graphs.shared.report_repairs import repair_draft


def _render_headline(output: Round) -> Headline:
    if output.actions:
        calls = " · ".join(f"{call.tool} {render_json(call.args)}" for call in output.actions)
        return Headline(shorten_line(calls), shorten_line(output.think))
    return Headline(shorten_line(output.answer.answer if output.answer else "") or "Answer", shorten_line(output.think))


def _repair_output(output: Round, inputs: Workspace) -> tuple[Round, tuple[str, ...]]:
    if output.answer is None:
        return _split_query_list(output, inputs)
    answer, repairs = repair_draft(output.answer, prompts.list_citable(inputs))
    return output.model_copy(update={"answer": answer}), repairs


def _split_query_list(output: Round, inputs: Workspace) -> tuple[Round, tuple[str, ...]]:
    """Make a call with a list of queries several calls. Too many of them stay one call, which is rejected."""
    calls = split_calls(output.actions, inputs.tools)
    if calls == output.actions or len(calls) > MAX_CALLS:
        return output, ()
    return output.model_copy(update={"action": calls[0], "more_actions": calls[1:]}), (QUERY_LIST,)


def _build_role(phase: TurnPhase) -> Role[Workspace, Round]:
    return Role(
        ROLE_NAME,
        Workspace,
        OUTPUTS_BY_PHASE[phase],
        prompts.render_researcher_prompt,
        _render_headline,
        step_kind=StepKind.ROLE_CALL,
        label="round",
        extractive=extractive.choose_turn,
        prompt_formats=(prompts.TEXT_FORMAT,),
        answer_tokens=REPORT_ANSWER_TOKENS,
        default_format="text",
        choices=lambda inputs: (
            choose_tool("action.tool", inputs.tools),
            choose_tool("more_actions.*.tool", inputs.tools),
        ),
        repair_output=_repair_output,
    )


RESEARCHERS_BY_PHASE = {stage: _build_role(stage) for stage in TurnPhase}
"""The role by phase. The phases differ in what the output must contain."""
ROLES = (RESEARCHERS_BY_PHASE[TurnPhase.MIDDLE],)
