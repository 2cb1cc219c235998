"""The role of the graph with its input, prompts, headline and functions without a model."""

from offing.sdk import REPORT_ANSWER_TOKENS, Headline, Role, StepKind, shorten_line
from offing_graphs.hiper import extractive, prompts
from offing_graphs.hiper.schemas import FINAL_ACTIONS, AgentInput, Switch, Turn
from offing_graphs.shared.choices import choose_tool
from offing_graphs.shared.report_repairs import repair_draft


def _render_headline(output: Turn) -> Headline:
    action = output.action
    args = ", ".join(f"{name}={value!r}" for name, value in action.args.items())
    answer = action.report.answer if action.report else ""
    did = f"{action.tool}: {answer}" if action.is_final else f"{action.tool}({args})"
    new = output.switch is Switch.SWITCH
    return Headline(
        shorten_line(did), shorten_line(f"new subgoal: {output.subgoal}" if new else f"for: {output.subgoal}")
    )


def _repair_report(output: Turn, inputs: AgentInput) -> tuple[Turn, tuple[str, ...]]:
    if output.action.report is None:
        return output, ()
    report, repairs = repair_draft(output.action.report, inputs.evidence)
    return output.model_copy(update={"action": output.action.model_copy(update={"report": report})}), repairs


AGENT = Role(
    "agent",
    AgentInput,
    Turn,
    prompts.render_agent_prompt,
    _render_headline,
    step_kind=StepKind.ROLE_CALL,
    label="act",
    extractive=extractive.choose_turn,
    prompt_formats=(prompts.TEXT_FORMAT,),
    answer_tokens=REPORT_ANSWER_TOKENS,
    default_format="text",
    choices=lambda inputs: (choose_tool("action.tool", inputs.tools, *sorted(FINAL_ACTIONS)),),
    repair_output=_repair_report,
)
ROLES = (AGENT,)
