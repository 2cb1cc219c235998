"""The role of the graph with its input, prompts, headline and functions without a model."""

from offing.sdk import REPORT_ANSWER_TOKENS, Headline, Role, StepKind, shorten_line
from offing_graphs.hiper import extractive, prompts
from offing_graphs.hiper.schemas import AgentInput, Switch, Turn


def _render_headline(output: Turn) -> Headline:
    action = output.action
    args = ", ".join(f"{name}={value!r}" for name, value in action.args.items())
    answer = action.report.answer if action.report else ""
    did = f"{action.tool}: {answer}" if action.is_final else f"{action.tool}({args})"
    new = output.switch is Switch.SWITCH
    return Headline(
        shorten_line(did), shorten_line(f"new subgoal: {output.subgoal}" if new else f"for: {output.subgoal}")
    )


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
)
ROLES = (AGENT,)
