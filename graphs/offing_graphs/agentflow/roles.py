"""The five roles of the graph with their inputs, prompts, headlines and functions without a model."""

from offing.sdk import REPORT_ANSWER_TOKENS, Headline, ReportDraft, Role, StepKind, shorten_line
from offing_graphs.agentflow import extractive, prompts, search_words
from offing_graphs.agentflow.schemas import AnalystInput, Command, ExecutorInput, PlannerInput, Verdict, VerifierInput
from offing_graphs.shared.choices import choose_sub_question, choose_tool
from offing_graphs.shared.report_repairs import repair_writer_output
from offing_graphs.shared.schemas import Analysis, Plan, WriterInput, resolve_part

PART_ID = "part_id"
"""Name of the repair of a verdict that names a sub-question by its id."""
CARRIED_OVER = "carried_over"
"""Name of the repair of a verdict that leaves out sub-questions which an earlier one judged."""


def _render_analysis_headline(output: Analysis) -> Headline:
    count = len(output.sub_questions)
    return Headline(shorten_line(output.summary), shorten_line(" · ".join(output.sub_questions)) if count > 1 else "")


def _render_plan_headline(output: Plan) -> Headline:
    return Headline(shorten_line(output.sub_goal), shorten_line(f"{output.tool}: {output.justification}"))


def _render_call_headline(output: Command) -> Headline:
    args = ", ".join(f"{name}={value!r}" for name, value in output.args.items())
    return Headline(shorten_line(f"{output.tool}({args})"))


def _render_verdict_headline(output: Verdict) -> Headline:
    covered = sum(c.covered for c in output.coverage)
    detail = f"{covered} of {len(output.coverage)} parts answered; " if output.coverage else ""
    return Headline(shorten_line(output.analysis), detail + ("stop" if output.stop else "continue"))


def _render_report_headline(output: ReportDraft) -> Headline:
    return Headline(shorten_line(output.title), shorten_line(output.answer))


def _complete_coverage(output: Verdict, inputs: VerifierInput) -> tuple[Verdict, tuple[str, ...]]:
    """Replace the ids of sub-questions by their words, and keep the earlier judgment of those that are not named.

    Every reader of a verdict knows the words, and finds all that is known in the latest verdict.
    """
    parts = inputs.analysis.sub_questions
    named = tuple(
        one.model_copy(update={"sub_question": resolve_part(one.sub_question, parts)}) for one in output.coverage
    )
    open_parts = set(parts) - {one.sub_question for one in named}
    earlier = inputs.verdict.coverage if inputs.verdict else ()
    left_out = tuple(one for one in earlier if one.sub_question in open_parts)
    repairs = (*((PART_ID,) if named != output.coverage else ()), *((CARRIED_OVER,) if left_out else ()))
    return (output.model_copy(update={"coverage": (*named, *left_out)}) if repairs else output), repairs


ANALYST = Role(
    "analyst",
    AnalystInput,
    Analysis,
    prompts.render_analyst_prompt,
    _render_analysis_headline,
    step_kind=StepKind.ANALYSIS,
    label="analyze",
    extractive=extractive.analyze_question,
    prompt_formats=(prompts.ANALYST_TEXT_FORMAT,),
)
PLANNER = Role(
    "planner",
    PlannerInput,
    Plan,
    prompts.render_planner_prompt,
    _render_plan_headline,
    step_kind=StepKind.PLAN,
    label="plan",
    extractive=extractive.plan_next_step,
    prompt_formats=(prompts.PLANNER_TEXT_FORMAT, search_words.WORDS_FORMAT),
    rules=search_words.RULES,
    choices=lambda inputs: (choose_tool("tool", inputs.tools),),
)
EXECUTOR = Role(
    "executor",
    ExecutorInput,
    Command,
    prompts.render_executor_prompt,
    _render_call_headline,
    step_kind=StepKind.TOOL_CALL,
    label="call",
    extractive=extractive.build_tool_call,
    prompt_formats=(prompts.EXECUTOR_TEXT_FORMAT,),
    choices=lambda inputs: (choose_tool("tool", (inputs.tool,)),),
)
VERIFIER = Role(
    "verifier",
    VerifierInput,
    Verdict,
    prompts.render_verifier_prompt,
    _render_verdict_headline,
    step_kind=StepKind.VERIFICATION,
    label="verify",
    extractive=extractive.verify_coverage,
    prompt_formats=(prompts.VERIFIER_TEXT_FORMAT,),
    choices=lambda inputs: (choose_sub_question(inputs.analysis),),
    repair_output=_complete_coverage,
)
GENERATOR = Role(
    "generator",
    WriterInput,
    ReportDraft,
    prompts.render_writer_prompt,
    _render_report_headline,
    step_kind=StepKind.ROLE_CALL,
    label="write",
    extractive=extractive.write_report,
    prompt_formats=(prompts.GENERATOR_TEXT_FORMAT,),
    answer_tokens=REPORT_ANSWER_TOKENS,
    default_format="text",
    repair_output=repair_writer_output,
)
ROLES = (ANALYST, PLANNER, EXECUTOR, VERIFIER, GENERATOR)
